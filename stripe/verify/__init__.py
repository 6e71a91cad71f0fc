"""The proof of a rewrite, its fallback by running, and what makes a program wrong in itself."""
