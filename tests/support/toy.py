"""A front end for a toy language of bytes: `TOY`, a size of one byte, and for each element one byte that is added."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stripe.exec.arith import Array
from stripe.frontends.frontend import FrontEnd, Loaded, ReadOptions, Source
from stripe.ir import StripeError
from stripe.tile import compile_tile

MAGIC = b"TOY\0"


def load(source: Source, _options: ReadOptions) -> Loaded:
    """A program that adds a constant to each element."""
    size, added = _read(source)
    return Loaded(compile_tile(f"function (A[N={size}]: i32) -> (O) {{ O = A + {added}; }}", source.name))


def evaluate(source: Source, _options: ReadOptions, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
    """The same by numpy."""
    return {"O": (inputs["A"] + np.int32(_read(source)[1])).astype(np.int32)}


def _read(source: Source) -> tuple[int, int]:
    if not source.data.startswith(MAGIC) or len(source.data) != 6:
        raise StripeError("this is no toy", path=source.name, hint="a toy has 6 bytes")
    return source.data[4], source.data[5]


FRONT_END = FrontEnd(
    "toy", (".toy",), "tests.support.toy:load", {"toy-numpy": "tests.support.toy:evaluate"}, binary=True
)
