"""Measured comparisons: `make bench` writes their table."""
