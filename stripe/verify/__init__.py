"""The proof of a rewrite, its fallback by running, and the errors of a single program."""
