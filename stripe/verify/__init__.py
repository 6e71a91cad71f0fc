"""Proofs that a rewrite kept the meaning, and independent checkers of schedule and placement."""
