"""The element-wise operations of Tile: spellings, number of operands, and the dtype of the result."""

from __future__ import annotations

from collections.abc import Sequence

from stripe.ir.dtypes import BOOL, FP32, I32, DType, common_type_of
from stripe.tile.shapes import sizes_text

BINARY_OPS: dict[str, str] = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "==": "cmp_eq", "!=": "cmp_ne", "<": "cmp_lt", ">": "cmp_gt",
    "<=": "cmp_le", ">=": "cmp_ge", "<<": "bit_left", ">>": "bit_right", "&": "bit_and", "|": "bit_or", "^": "bit_xor",
}  # fmt: skip
UNARY_OPS: dict[str, str] = {"-": "neg", "~": "bit_not"}

SYMBOLS: dict[str, str] = {name: symbol for symbol, name in BINARY_OPS.items()}
_SPELLED: dict[str, str] = {**SYMBOLS, "neg": "-", "bit_not": "~"}

ALIASES: dict[str, str] = {
    "eq": "cmp_eq", "neq": "cmp_ne", "lt": "cmp_lt", "lte": "cmp_le", "gt": "cmp_gt", "gte": "cmp_ge",
    "assign": "ident",
}  # fmt: skip
"""Other spellings of operations."""

_FLOAT_OPS = frozenset(
    "exp log sqrt sigmoid sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh pow".split()
)
_ROUNDING = frozenset("ceil floor round".split())
_BITS = frozenset("bit_and bit_or bit_xor bit_not bit_left bit_right".split())
_BOOLEAN_FORMS = {"add": "bit_or", "max": "bit_or", "mul": "bit_and", "min": "bit_and", "sub": "bit_xor"}

ARITY: dict[str, int] = {
    **dict.fromkeys("add sub mul div mod pow min max".split(), 2),
    **dict.fromkeys("cmp_eq cmp_ne cmp_lt cmp_le cmp_gt cmp_ge".split(), 2),
    **dict.fromkeys("bit_and bit_or bit_xor bit_left bit_right".split(), 2),
    **dict.fromkeys("neg ident abs relu zelu bit_not exp log sqrt sigmoid".split(), 1),
    **dict.fromkeys(
        "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh ceil floor round".split(), 1
    ),
    "cond": 3,
}
"""Operations that can be called by name, and their number of operands."""


class OperandError(ValueError):
    """Operands that an operation does not take, with what would be right."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.hint = hint


def result_dtype(op: str, dtypes: Sequence[DType]) -> DType:
    """The dtype of an operation: comparisons give bool, functions such as exp at least fp32, all else the common type.

    Raises OperandError for dtypes that the operation does not take.
    """
    if op.startswith("cmp_"):
        return BOOL
    if op == "cond":
        return common_type_of(dtypes[1:])
    common = common_type_of(dtypes)
    if op in _FLOAT_OPS:
        return common if common.is_float else FP32
    if op in _BITS:
        if common.is_float:
            raise OperandError(
                f"'{_SPELLED.get(op, op)}' does not take {common}", "cast with as_int(x, 32) first"
            )
        return I32 if common == BOOL and op in ("bit_left", "bit_right") else common
    if common == BOOL and op not in _BOOLEAN_FORMS and op not in ("ident", *_ROUNDING):
        raise OperandError(f"'{_SPELLED.get(op, op)}' does not take bool", "cast with as_int(x, 32) first")
    return common


def operand_dtype(op: str, dtypes: Sequence[DType], result: DType) -> DType:
    """The dtype to which the operands are cast (for `cond` all but the first)."""
    return common_type_of(dtypes) if op.startswith("cmp_") else result


def intrinsic_for(op: str, dtype: DType) -> str:
    """The intrinsic that does `op` on operands of `dtype`: sums of bools are 'or', roundings of integers nothing."""
    if dtype == BOOL and op in _BOOLEAN_FORMS:
        return _BOOLEAN_FORMS[op]
    return "ident" if op in _ROUNDING and not dtype.is_float else op


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
