"""The commands: each module has a function `perform` that takes a `Job` and gives the exit status."""
