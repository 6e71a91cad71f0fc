"""Constant buffers as static arrays."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import product

from stripe.emit.c.writer import Writer
from stripe.ir import ConstantBuffer, Refinement

_FORMATS = {"bool": "B", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
            "fp16": "H", "bf16": "H", "fp32": "f", "fp64": "d"}  # fmt: skip
_WIDTH = 100


def constant_array(name: str, constant: ConstantBuffer, ref: Refinement, writer: Writer) -> str:
    """The definition of `name` with the elements of `constant` where the strides of `ref` put them."""
    dtype = constant.dtype
    values = struct.iter_unpack(f"<{_FORMATS[dtype.name]}", constant.data)
    texts = [
        f"0x{value:04x}" if dtype.is_narrow else writer.memory_literal(value, dtype) for (value,) in values
    ]
    placed = ["0"] * ref.span
    for text, coordinates in zip(texts, product(*map(range, constant.sizes)), strict=True):
        placed[sum(c * s for c, s in zip(coordinates, ref.strides, strict=True))] = text
    head = f"{writer.dialect.constant} {writer.dialect.memory_type(constant.dtype)} {name}[{ref.span}] = {{"
    return "\n".join([head, *_wrapped(placed), "};"])


def _wrapped(texts: list[str]) -> Iterator[str]:
    line = " "
    for text in texts:
        if len(line) + len(text) + 2 > _WIDTH:
            yield line
            line = " "
        line += f" {text},"
    yield line
