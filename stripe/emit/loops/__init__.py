"""Planning of loops."""
