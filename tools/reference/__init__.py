"""Pages of the manual that come from the code."""

from __future__ import annotations
