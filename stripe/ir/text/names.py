"""Words that may name an index, a refinement or a scalar; fresh names, made from their context."""

from __future__ import annotations

import re
from collections.abc import Container
from functools import lru_cache

NAME_PATTERN = r"[A-Za-z_][A-Za-z0-9_.'^]*"
TAG_PATTERN = r"[A-Za-z_][A-Za-z0-9_.\-]*"

RESERVED = frozenset(
    "block cast const else floor in inout load load_index mod new none out store true false inf nan".split()
)
"""Words of the textual form, which nothing else may be called."""

CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that no program holds: a terminal obeys them instead of showing them, or turns the direction of text."""

_LINES = re.compile("[\n\f\r]")
_NAME = re.compile(NAME_PATTERN)
_TAG = re.compile(TAG_PATTERN)


@lru_cache(maxsize=4096)
def is_name(text: str) -> bool:
    """Whether `text` can name an index, a refinement or a scalar in the textual form."""
    return _NAME.fullmatch(text) is not None and text not in RESERVED


def is_line(text: str) -> bool:
    """Whether `text` can be a block's name or comment, which the textual form holds without blanks at its ends."""
    return text == text.strip() and not (_LINES.search(text) or CONTROL.search(text))


@lru_cache(maxsize=4096)
def is_tag(text: str) -> bool:
    """Whether `text` can be a tag."""
    return _TAG.fullmatch(text) is not None


def fresh(name: str, taken: Container[str]) -> str:
    """`name` when it is free and allowed, else the first free one of `name_0`, `name_1`, …"""
    if name not in taken and name not in RESERVED:
        return name
    number = 0
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
