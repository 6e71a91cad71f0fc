"""Tile: its reader, and its evaluation by numpy as a reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stripe.frontends.frontend import Loaded, ReadOptions, Source
from stripe.ir import ConfigError
from stripe.tile import TypedFunction, find_warnings, lower, program_name, typed_function
from stripe.tile.shapes import Binding, parse_shape

if TYPE_CHECKING:
    from stripe.frontends.frontend import Arrays


def load(source: Source, options: ReadOptions) -> Loaded:
    """The program of a Tile function. Raises StripeError with its place."""
    function = _typed(source, options)
    return Loaded(lower(function, program_name(source.name)), find_warnings(function))


def evaluate(source: Source, options: ReadOptions, inputs: Arrays) -> Arrays:
    """The outputs as numpy computes them from the Tile source, without lowering."""
    from stripe.tile.reference import evaluate as by_numpy  # numpy, for a comparison alone

    return by_numpy(_typed(source, options), inputs)


def _typed(source: Source, options: ReadOptions) -> TypedFunction:
    return typed_function(source.text, source.name, read_shapes(options.shapes))


def read_shapes(texts: tuple[str, ...]) -> dict[str, Binding]:
    """The values of `--shape` by input."""
    shapes: dict[str, Binding] = {}
    for text in texts:
        name, shape = parse_shape(text)
        if name in shapes:
            raise ConfigError(f"--shape gives '{name}' twice", hint="give each input once")
        shapes[name] = shape
    return shapes
