"""Running programs: the interpreter, compiled C, and the comparison of results."""
