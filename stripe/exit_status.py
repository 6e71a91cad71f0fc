"""The exit statuses of all commands, which errors carry."""

from __future__ import annotations

OK, INPUT_ERROR, USAGE_ERROR, MISMATCH, FAULT, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 70, 130, 141
SIGNALLED = 128
"""The exit status of a signal, less its number."""
