"""Readers of other formats, into Tile and Stripe."""
