"""Words of Graphviz text."""

from __future__ import annotations


def quote(text: str) -> str:
    """A text as Graphviz quotes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
