"""Targets that need more than the emitter: passes, or the source that a program was lowered from."""
