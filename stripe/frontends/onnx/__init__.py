"""ONNX networks as Tile programs: each node becomes a call of an operator of `tilelib/onnx`.

This module imports the onnx package when it is first asked for a network, and says how to get it where it is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stripe.ir.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from stripe.frontends.frontend import Arrays, Loaded, ReadOptions, Source


def _module(source: Source) -> ModuleType:
    try:
        from stripe.frontends.onnx import reader as module
    except ModuleNotFoundError as error:
        reason = f"networks need the package '{error.name}'"
        raise ConfigError(reason, path=source.name, hint="pip install 'stripe-opt[onnx]'") from None
    return module


def load(source: Source, options: ReadOptions) -> Loaded:
    """The program of a model. Raises StripeError with all nodes that cannot be imported."""
    return _module(source).load(source, options)


def as_tile(source: Source, options: ReadOptions) -> str:
    """The model as a Tile file, without the contents of its constants."""
    return _module(source).as_tile(source, options)


def files_beside(source: Source) -> tuple[Path, ...]:
    """The files with contents of the model's tensors, those that are there."""
    return _module(source).files_beside(source)


def evaluate(source: Source, options: ReadOptions, inputs: Arrays) -> Arrays:
    """The outputs by ONNX Runtime where it is installed, else by the reference evaluator of onnx."""
    return _module(source).evaluate(source, options, inputs)
