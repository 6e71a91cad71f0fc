"""The passes, one module or folder each, the registry that finds them by name, and what they share (`common`)."""
