"""Exact counts of integer points: closed forms where the access separates, else the vertices of a polytope."""
