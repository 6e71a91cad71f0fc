"""The pass `map`."""
