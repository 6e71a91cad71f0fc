"""The element-wise operations of Tile: spellings, and the dtype of the result."""

from __future__ import annotations

from collections.abc import Sequence

from stripe.ir.dtypes import BOOL, FP32, I32, DType, common_type_of
from stripe.ir.intrinsics import INTRINSICS, IntrinsicSpec
from stripe.tile.shapes import sizes_text

UNARY_OPS: dict[str, str] = {
    spec.symbol: name for name, spec in INTRINSICS.items() if spec.arity == 1 and spec.symbol
}
BINARY_OPS: dict[str, str] = {
    spec.symbol: name for name, spec in INTRINSICS.items() if spec.arity == 2 and spec.symbol
}


def called(name: str) -> IntrinsicSpec | None:
    """The element-wise operation that Tile calls by `name`; `cast` has functions of its own, such as as_float."""
    spec = INTRINSICS.get(name) or next((s for s in INTRINSICS.values() if name in s.aliases), None)
    return None if spec is None or spec.result == "cast" else spec


def operation_names() -> set[str]:
    """All names for which `called` knows an operation."""
    rows = [spec for spec in INTRINSICS.values() if spec.result != "cast"]
    return {name for spec in rows for name in (spec.name, *spec.aliases)}


class OperandError(ValueError):
    """Operands that an operation does not take, with a suggestion."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.hint = hint


def result_dtype(op: str, dtypes: Sequence[DType]) -> DType:
    """The dtype of an operation: comparisons give bool, functions such as exp at least fp32, all else the common type.

    PlaidML gives every operation but a comparison the widest dtype of its operands: a float before any integer, the
    first of several as wide, and bool is as wide as i8. So `exp` of i32 is i32 there and fp32 here; `relu` of i8, which
    is `C ? 0.0 : X` there, is fp32 there and i8 here; `bool + i8` is bool there, `i8 + bool` i8, and both are i8 here.

    The intrinsics of the IR, whose operands have one dtype, have `stripe.ir.intrinsics.result_dtype`.

    Raises OperandError for dtypes that the operation does not take.
    """
    spec = INTRINSICS[op]
    if spec.result == "bool":
        return BOOL
    if spec.result == "cond":
        return common_type_of(dtypes[1:])
    common = common_type_of(dtypes)
    if spec.operands == "float" and not spec.on_integer:
        return common if common.is_float else FP32
    if spec.operands == "integer" and common == BOOL and op in ("bit_left", "bit_right"):
        return I32
    if not INTRINSICS[spec.on(common)].takes(common):
        raise OperandError(f"'{spec.symbol or op}' does not take {common}", "cast with as_int(x, 32) first")
    return common


def operand_dtype(op: str, dtypes: Sequence[DType], result: DType) -> DType:
    """The dtype to which the operands are cast (for `cond` all but the first)."""
    return common_type_of(dtypes) if INTRINSICS[op].result == "bool" else result


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The numpy rule: aligned at the last dimension, equal or 1. Raises OperandError where it does not hold."""
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result: list[int] = []
    for place, column in enumerate(zip(*padded, strict=True)):
        wide = sorted({size for size in column if size != 1})
        if len(wide) > 1:
            texts = " and ".join(sizes_text(shape) for shape in shapes if shape)
            clash = " against ".join(map(str, wide))
            reason = f"the shapes {texts} do not broadcast: dimension {place - rank} is {clash}"
            raise OperandError(reason, "sizes agree from the last dimension on, or are 1")
        result.append(wide[0] if wide else 1)
    return tuple(result)
