"""Constant buffers as static arrays."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import product

from stripe.emit.c.writer import Writer
from stripe.ir import ConstantBuffer, DType, Refinement

_WIDTH = 100


def constant_array(name: str, constant: ConstantBuffer, ref: Refinement, writer: Writer) -> str:
    """The definition of `name` with the elements of `constant` where the strides of `ref` put them."""
    dtype = constant.dtype
    values = struct.iter_unpack(f"<{_format(dtype)}", constant.data)
    texts = [
        f"0x{value:0{2 * dtype.bytes}x}" if dtype.is_narrow else writer.memory_literal(value, dtype)
        for (value,) in values
    ]
    placed = ["0"] * ref.span
    for text, coordinates in zip(texts, product(*map(range, constant.sizes)), strict=True):
        placed[sum(c * s for c, s in zip(coordinates, ref.strides, strict=True))] = text
    head = f"{writer.dialect.constant} {writer.dialect.memory_type(constant.dtype)} {name}[{ref.span}] = {{"
    return "\n".join([head, *_wrapped(placed), "};"])


def _format(dtype: DType) -> str:
    """The letter of `struct` for an element; the bits of a narrow float are a number."""
    if dtype.is_float and not dtype.is_narrow:
        return "f" if dtype.bits == 32 else "d"
    letter = {1: "b", 2: "h", 4: "i", 8: "q"}[dtype.bytes]
    return letter if dtype.kind == "int" else letter.upper()


def _wrapped(texts: list[str]) -> Iterator[str]:
    line = " "
    for text in texts:
        if len(line) + len(text) + 2 > _WIDTH:
            yield line
            line = " "
        line += f" {text},"
    yield line
