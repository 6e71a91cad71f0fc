"""Shapes of tensors, and the text form in which a command line gives them."""

from __future__ import annotations

import re
from typing import TypeAlias

from stripe.ir.dtypes import DTYPES, FP32, DType
from stripe.ir.errors import ConfigError, did_you_mean
from stripe.ir.frozen import frozen

MAX_BYTES = 2**63 - 1


@frozen
class TensorShape:
    """Sizes of the dimensions, outermost first, and the element type; `dtype` None leaves it to the file."""

    sizes: tuple[int, ...]
    dtype: DType | None = None

    def __str__(self) -> str:
        return f"{sizes_text(self.sizes)}:{self.dtype or FP32}"


Binding: TypeAlias = TensorShape | int | float
"""An argument for an input: the shape of a tensor, or a constant."""

_SHAPE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*'?)=(?P<sizes>\d+(?:[xX]\d+)*)?(?::(?P<dtype>\w*))?")
_CONSTANT = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*'?)==(?P<value>[-+0-9.eE]+)")


def sizes_text(sizes: tuple[int, ...]) -> str:
    """`128x20`; `scalar` for no dimension at all."""
    return "x".join(map(str, sizes)) or "scalar"


def parse_shape(text: str) -> tuple[str, Binding]:
    """`A=128x20:fp32` (dtype optional), `A=:fp32` or `A=:` for rank 0, or `A==5` for a constant; raises ConfigError."""
    constant = _CONSTANT.fullmatch(text)
    if constant is not None:
        value = constant["value"]
        try:
            number = int(value) if re.fullmatch(r"[-+]?\d{1,30}", value) else float(value)
        except ValueError:
            raise ConfigError(
                f"cannot read the constant in '{text}'", hint="write NAME==5 or NAME==0.5"
            ) from None
        if abs(number) == float("inf"):
            raise ConfigError(f"the constant in '{text}' is too large", hint="the largest is about 1.79e308")
        return constant["name"], number
    match = _SHAPE.fullmatch(text)
    if match is None or text.endswith("="):
        raise ConfigError(
            f"cannot read the shape '{text}'", hint="write NAME=128x20:fp32, or NAME=:fp32 for a scalar"
        )
    dtype = match["dtype"]
    if dtype not in (None, *DTYPES) and (dtype or match["sizes"]):
        hint = did_you_mean(dtype, DTYPES, f"the dtypes are {' '.join(DTYPES)}")
        raise ConfigError(f"unknown dtype '{dtype}' in the shape '{text}'", hint=hint)
    digits = re.split("[xX]", match["sizes"]) if match["sizes"] else []
    if any(len(part) > 19 for part in digits):
        raise ConfigError(
            f"a size in the shape of '{match['name']}' is too large", hint="a tensor has less than 2^63 bytes"
        )
    return match["name"], TensorShape(tuple(map(int, digits)), DTYPES[dtype] if dtype else None)
