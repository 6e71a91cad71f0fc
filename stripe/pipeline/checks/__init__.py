"""Checks of programs between passes, as instruments: structure and stage, the proof of each rewrite, the machine."""
