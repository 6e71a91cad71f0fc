"""The textual form of programs: parser, builder of the IR from the parse tree, printer, names."""
