"""Exact counts: operations, distinct elements, bytes by buffer and memory level, energy."""
