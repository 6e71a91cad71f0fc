"""The passes, one module or folder each, their base classes, and the registry that finds them by name."""
