"""Functions of Tile that are written in Tile: `tilelib/builtin.tile`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from stripe.ir.package_data import data_path
from stripe.tile import ast
from stripe.tile.parser import parse_functions


@cache
def library() -> Mapping[str, ast.Function]:
    """The functions by name; they may call each other."""
    text = data_path("tilelib", "builtin.tile").read_text(encoding="utf-8")
    return {function.name: function for function in parse_functions(text, "builtin.tile")}


LIBRARY_NAMES = frozenset(("builtin_softmax", "builtin_logsoftmax", "builtin_binary_crossentropy"))
"""Their names, which take no reading of the file."""
