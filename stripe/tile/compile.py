"""Tile into Stripe: a text is parsed, bound to the shapes of its inputs, and lowered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from stripe.ir import Program
from stripe.tile.bind import bind
from stripe.tile.lower_program import lower
from stripe.tile.parser import parse_tile
from stripe.tile.shapes import Binding


def compile_tile(
    text: str, filename: str = "<string>", shapes: Mapping[str, Binding] | None = None
) -> Program:
    """The Stripe program of a Tile text, named after its file. Raises StripeError."""
    return lower(bind(parse_tile(text, filename), shapes), program_name(filename))


def program_name(filename: str) -> str:
    """The name of the program in a file."""
    stem = PurePath(filename).stem
    return "program" if not stem or filename.startswith("<") else stem
