"""Structures of Stripe that lowering never makes, by kind."""
