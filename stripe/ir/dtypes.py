"""Element types: their names, widths and numpy counterparts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from sys import float_info
from typing import TYPE_CHECKING, Literal

from stripe.ir.frozen import frozen

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["bool", "int", "uint", "float"]


@frozen
class DType:
    """The row of an element type, from which everything about it derives.

    `bits` is the width of a value (a bool takes 8); `array_type` the name of the type with the same representation in
    numpy or ml_dtypes. `mantissa` counts the bits of a float's significand, the hidden one included, and `largest` is
    its largest finite value. A float is a sign, an exponent biased by half its range and the rest of the significand;
    codes above the largest value are infinity, where `largest` leaves the top exponent to it, and NaN.
    """

    name: str
    kind: Kind
    bits: int
    array_type: str
    mantissa: int = 0
    largest: float = 0.0

    def __str__(self) -> str:
        return self.name

    @property
    def bytes(self) -> int:
        """Bytes of one element, which begins at a whole byte in memory."""
        return -(-self.bits // 8)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_narrow(self) -> bool:
        """True for floats of less than 32 bits: they compute in fp32 and round."""
        return self.is_float and self.bits < 32

    @property
    def compute(self) -> DType:
        """The dtype in which operations compute before they round."""
        return FP32 if self.is_narrow else self

    @property
    def exponent(self) -> int:
        """The bits of a float's exponent."""
        return self.bits - self.mantissa

    @property
    def bias(self) -> int:
        """The excess in the exponent field of a float."""
        return (1 << self.exponent - 1) - 1

    @property
    def has_infinity(self) -> bool:
        """Whether the top exponent of a float is infinity and NaN, and not numbers too."""
        return math.frexp(self.largest)[1] - 1 <= self.bias

    @property
    def largest_code(self) -> int:
        """The bits of a float's largest value."""
        significand, exponent = math.frexp(self.largest)
        return ((exponent - 2 + self.bias) << self.mantissa - 1) + int(significand * 2.0**self.mantissa)

    @property
    def in_numpy(self) -> bool:
        """Whether numpy itself has the type, so that its files hold it."""
        import numpy as np

        return hasattr(np, self.array_type)

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers, false for bool."""
        return self.kind in ("int", "uint")

    @property
    def min_value(self) -> int | float:
        """The lowest value: the identity of `max`. Minus infinity for floats that have it."""
        if self.is_float:
            return -self.max_value
        return -(1 << (self.bits - 1)) if self.kind == "int" else 0

    @property
    def max_value(self) -> int | float:
        """The highest value: the identity of `min`. Infinity for floats that have it."""
        if self.is_float:
            return math.inf if self.has_infinity else self.largest
        if self.kind == "bool":
            return 1
        return (1 << (self.bits - 1)) - 1 if self.kind == "int" else (1 << self.bits) - 1

    def widens(self, other: DType) -> bool:
        """Whether this is a wider dtype of the same kind, unsigned integers being integers, that holds every value of
        `other`."""
        if self.is_float or other.is_float:
            held = self.mantissa >= other.mantissa and self.largest >= other.largest
            return self.is_float and other.is_float and self.bits > other.bits and held
        integers = self.kind == other.kind or (self.kind, other.kind) == ("int", "uint")
        return integers and self.bits > other.bits

    def numpy(self) -> np.dtype[np.generic]:
        """The numpy dtype with the same representation; types that numpy lacks come from ml_dtypes."""
        import numpy as np

        if self.in_numpy:
            return np.dtype(self.array_type)
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, self.array_type))

    @staticmethod
    def parse(text: str) -> DType:
        """The dtype called `text`; raises KeyError when there is none (see `DTYPES` for the names)."""
        return DTYPES[text]


BOOL = DType("bool", "bool", 8, "bool")
I8, I16, I32, I64 = (DType(f"i{bits}", "int", bits, f"int{bits}") for bits in (8, 16, 32, 64))
U8, U16, U32, U64 = (DType(f"u{bits}", "uint", bits, f"uint{bits}") for bits in (8, 16, 32, 64))
FP16 = DType("fp16", "float", 16, "float16", 11, 65504.0)
BF16 = DType("bf16", "float", 16, "bfloat16", 8, (2 - 2.0**-7) * 2.0**127)
FP8E4M3 = DType("fp8e4m3", "float", 8, "float8_e4m3fn", 4, 448.0)
FP8E5M2 = DType("fp8e5m2", "float", 8, "float8_e5m2", 3, 57344.0)
FP32 = DType("fp32", "float", 32, "float32", 24, (2 - 2.0**-23) * 2.0**127)
FP64 = DType("fp64", "float", 64, "float64", 53, float_info.max)

DTYPES: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (BOOL, I8, I16, I32, I64, U8, U16, U32, U64, FP8E4M3, FP8E5M2, FP16, BF16, FP32, FP64)
}


def value_key(value: bool | int | float) -> object:
    """A key of a value of one dtype, equal for equal values: 0.0 and -0.0 are two values, nan is one."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else (value, math.copysign(1.0, value))
    return value


def common_type(left: DType, right: DType) -> DType:
    """The type of a mixed operation: a float beats an integer, then the wider wins, a tie keeps the left one.

    A bool gives way to everything else. Two floats of which neither holds the other, such as fp16 and bf16, make fp32.
    """
    if left == right:
        return left
    if "bool" in (left.kind, right.kind):
        return right if left.kind == "bool" else left
    if left.is_float != right.is_float:
        return left if left.is_float else right
    wide, other = (right, left) if right.bits > left.bits else (left, right)
    return wide if wide.mantissa >= other.mantissa and wide.largest >= other.largest else FP32


def common_type_of(dtypes: Iterable[DType]) -> DType:
    """`common_type` folded over at least one dtype."""
    first, *rest = dtypes
    for dtype in rest:
        first = common_type(first, dtype)
    return first
