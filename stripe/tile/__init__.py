"""The Tile language: parser, syntax tree, shape and type inference, index ranges, lowering to Stripe."""

from __future__ import annotations

from stripe.tile.bind import bind
from stripe.tile.compile import compile_tile, program_name, typed_function
from stripe.tile.diagnostics import CalledError
from stripe.tile.lower_program import lower
from stripe.tile.parser import parse_tile
from stripe.tile.printer import print_statement, print_tile
from stripe.tile.shapes import Binding, TensorShape, parse_shape
from stripe.tile.typed import TypedFunction
from stripe.tile.warnings import find_warnings

__all__ = [
    "Binding", "CalledError", "TensorShape", "TypedFunction", "bind", "compile_tile", "find_warnings",
    "lower", "parse_shape", "parse_tile", "print_statement", "print_tile", "program_name", "typed_function",
    ]  # fmt: skip
