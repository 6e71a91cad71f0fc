"""Element types: their names, widths and numpy counterparts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["bool", "int", "uint", "float"]


@dataclass(frozen=True, slots=True)
class DType:
    """The type of a tensor element or scalar. `bits` is its width in memory; a bool takes 8."""

    name: str
    kind: Kind
    bits: int

    def __str__(self) -> str:
        return self.name

    @property
    def bytes(self) -> int:
        """Size of one element in bytes."""
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers, false for bool."""
        return self.kind in ("int", "uint")

    @property
    def min_value(self) -> int | float:
        """The lowest value: the identity of `max`. Minus infinity for floats."""
        if self.is_float:
            return float("-inf")
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def max_value(self) -> int | float:
        """The highest value: the identity of `min`. Infinity for floats."""
        if self.is_float:
            return float("inf")
        if self.kind == "bool":
            return 1
        return (1 << (self.bits - 1)) - 1 if self.kind == "int" else (1 << self.bits) - 1

    def numpy(self) -> np.dtype[np.generic]:
        """The numpy dtype with the same representation (bf16 comes from ml_dtypes)."""
        import numpy as np

        if self.name == "bf16":
            import ml_dtypes

            return np.dtype(ml_dtypes.bfloat16)
        return np.dtype(_NUMPY_NAMES[self.name])

    @staticmethod
    def parse(text: str) -> DType:
        """The dtype called `text`; raises KeyError when there is none (see `DTYPES` for the names)."""
        return DTYPES[text]


_NUMPY_NAMES = {
    "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "fp16": "float16", "fp32": "float32", "fp64": "float64",
}  # fmt: skip

BOOL = DType("bool", "bool", 8)
I8, I16, I32, I64 = (DType(f"i{bits}", "int", bits) for bits in (8, 16, 32, 64))
U8, U16, U32, U64 = (DType(f"u{bits}", "uint", bits) for bits in (8, 16, 32, 64))
FP16, FP32, FP64 = (DType(f"fp{bits}", "float", bits) for bits in (16, 32, 64))
BF16 = DType("bf16", "float", 16)

DTYPES: dict[str, DType] = {
    dtype.name: dtype for dtype in (BOOL, I8, I16, I32, I64, U8, U16, U32, U64, FP16, BF16, FP32, FP64)
}


def common_type(left: DType, right: DType) -> DType:
    """The type of a mixed operation: a float beats an integer, then the wider wins, a tie keeps the left one.

    A bool gives way to everything else. fp16 with bf16 is fp32, which holds both.
    """
    if left == right:
        return left
    if "bool" in (left.kind, right.kind):
        return right if left.kind == "bool" else left
    if left.is_float != right.is_float:
        return left if left.is_float else right
    if {left.name, right.name} == {"fp16", "bf16"}:
        return FP32
    return right if right.bits > left.bits else left


def common_type_of(dtypes: Iterable[DType]) -> DType:
    """`common_type` folded over at least one dtype."""
    first, *rest = dtypes
    for dtype in rest:
        first = common_type(first, dtype)
    return first
