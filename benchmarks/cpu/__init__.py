"""Emitted C beside the libraries and compilers that people use on a processor: `make bench-cpu`."""
