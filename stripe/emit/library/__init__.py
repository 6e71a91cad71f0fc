"""Libraries: a program as a folder of C sources, with a header, weights, build files and an example."""
