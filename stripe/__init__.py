"""stripe-opt: tensor programs as nested polyhedral blocks, rewritten for one machine by a list of passes."""

from __future__ import annotations

__version__ = "0.1.0"
