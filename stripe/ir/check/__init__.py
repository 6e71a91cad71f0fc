"""Structural checks: well-formedness, the stages of a program, magnitudes, diagnostics."""
