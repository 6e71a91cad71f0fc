"""Tile into Stripe: a text is parsed, bound to the shapes of its inputs, and lowered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from stripe.ir import Program
from stripe.tile.bind import bind
from stripe.tile.lower_program import lower
from stripe.tile.parser import parse_tile
from stripe.tile.shapes import Binding
from stripe.tile.typed import TypedFunction


def compile_tile(
    text: str, filename: str = "<string>", shapes: Mapping[str, Binding] | None = None
) -> Program:
    """The Stripe program of a Tile text, named after its file. Raises StripeError."""
    return lower(typed_function(text, filename, shapes), program_name(filename))


def typed_function(text: str, filename: str, shapes: Mapping[str, Binding] | None = None) -> TypedFunction:
    """The function of a Tile text with the sizes and dtypes of its inputs, before it is lowered. Raises StripeError."""
    return bind(parse_tile(text, filename), shapes)


def program_name(filename: str) -> str:
    """The name of the program in a file."""
    stem = PurePath(filename).stem
    return "program" if not stem or filename.startswith("<") else stem
