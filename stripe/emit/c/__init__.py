"""C text."""
