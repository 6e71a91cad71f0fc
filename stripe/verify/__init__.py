"""The proof of a rewrite, its fallback by running, the soundness of a single program, and checkers of schedules."""
