"""Code generation: C and what follows it."""
