"""The scalar intrinsics and the specials: their operands and result types. Engines give them their meaning.

Every input of an arithmetic intrinsic has the same dtype; lowering inserts `cast`. Integers wrap; `div` and `mod`
truncate towards zero and give 0 for a zero divisor; shifts by a negative amount or by the width and more give 0 (or
the sign); a shift of a bool is that of 0 or 1. `round` is half away from zero; float `mod` is C's `fmod`; `min` and
`max` are `a < b ? a : b` and `a > b ? a : b`, NaN when an operand is NaN; `relu` and `zelu` are `x < 0 ? 0 : x`. A cast
from float to integer truncates, saturates and turns NaN into 0; from integer to integer it wraps; to bool it is
`x != 0`. fp16 and bf16 compute in fp32 and round, casts too: from anything first to fp32, then to the type.

Specials replace what their outputs hold; every operand is a whole view, its elements in row-major order of its sizes:

- `O = gather(D, I)`: O[i..., j...] = D[clamp(I[i...], 0, d0 - 1), j...], d0 the leading size of D.
- `O = scatter(E, I, V)`: O starts at zero, then O[I[i...], j...] += E[i..., j...] for each i, j; indices outside
  [0, o0) are dropped; V gives the leading size o0 at lowering and its elements are not read. Sums are in O's dtype.
- `(T, U) = prng_step(S)`: S and T are u32[3, W] (W = 2048 from Tile), U is fp32 of any shape with n elements. Each
  column is a combined Tausworthe generator (L'Ecuyer 1996, "taus88"). For j = 0 .. W-1, with s1, s2, s3 = S[:, j],
  and for k = j, j + W, j + 2W, ... below n, in turn: first the step, all in u32,

      s1 = ((s1 & 4294967294) << 12) ^ (((s1 << 13) ^ s1) >> 19)
      s2 = ((s2 & 4294967288) <<  4) ^ (((s2 <<  2) ^ s2) >> 25)
      s3 = ((s3 & 4294967280) << 17) ^ (((s3 <<  3) ^ s3) >> 11)

  then U[k] = (fp32)(s1 ^ s2 ^ s3) * 2^-32 (the u32 rounds to the nearest fp32). T[:, j] is the state after the column's
  last step: a column that makes no element keeps its state. A valid state has s1 >= 2, s2 >= 8, s3 >= 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from stripe.ir.dtypes import BOOL, DType

Result = Literal["same", "bool", "cast", "cond"]
Operands = Literal["any", "number", "integer", "float"]


@dataclass(frozen=True, slots=True)
class IntrinsicSpec:
    """Number of inputs, the kinds of dtype that it takes, and how its result type follows."""

    name: str
    arity: int
    operands: Operands
    result: Result


def _table() -> dict[str, IntrinsicSpec]:
    rows: list[tuple[str, int, Operands, Result]] = [
        ("add sub mul div mod min max", 2, "number", "same"),
        ("neg abs relu zelu", 1, "number", "same"),
        ("ident", 1, "any", "same"),
        ("cmp_eq cmp_ne cmp_lt cmp_le cmp_gt cmp_ge", 2, "any", "bool"),
        ("bit_and bit_or bit_xor", 2, "integer", "same"),
        ("bit_left bit_right", 2, "integer", "same"),
        ("bit_not", 1, "integer", "same"),
        ("cond", 3, "any", "cond"),
        ("cast", 1, "any", "cast"),
        ("ceil floor round exp log sqrt sigmoid", 1, "float", "same"),
        ("sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh", 1, "float", "same"),
        ("pow", 2, "float", "same"),
    ]
    return {
        name: IntrinsicSpec(name, arity, operands, result)
        for names, arity, operands, result in rows
        for name in names.split()
    }


INTRINSICS: dict[str, IntrinsicSpec] = _table()

TRANSCENDENTAL = frozenset(
    "exp log pow sigmoid sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh".split()
)
"""Intrinsics whose last bit may differ between libraries."""


@dataclass(frozen=True, slots=True)
class SpecialSpec:
    """Names of the operands of a special, in order."""

    name: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]


SPECIALS: dict[str, SpecialSpec] = {
    "gather": SpecialSpec("gather", ("out",), ("data", "index")),
    "scatter": SpecialSpec("scatter", ("out",), ("updates", "index", "shape")),
    "prng_step": SpecialSpec("prng_step", ("state", "value"), ("state",)),
}
"""Their meaning stands at the top of this module."""


def result_dtype(op: str, inputs: Sequence[DType], target: DType | None = None) -> DType:
    """The dtype of `op` on `inputs`; `target` is what `cast` names.

    Raises:
        ValueError: unknown intrinsic, wrong number of inputs, or dtypes that it does not take (the text says which).
    """
    spec = INTRINSICS.get(op)
    if spec is None:
        raise ValueError(f"unknown intrinsic '{op}'")
    if len(inputs) != spec.arity:
        raise ValueError(f"'{op}' takes {spec.arity} inputs, not {len(inputs)}")
    if spec.result == "cast":
        if target is None:
            raise ValueError("'cast' needs the dtype to cast to")
        return target
    data = inputs
    if spec.result == "cond":
        if inputs[0] != BOOL:
            raise ValueError(f"the first input of 'cond' must be bool, not {inputs[0]}")
        data = inputs[1:]
    if any(dtype != data[0] for dtype in data):
        raise ValueError(f"the inputs of '{op}' must have one dtype, not {', '.join(d.name for d in data)}")
    if not _accepts(spec.operands, data[0]):
        raise ValueError(f"'{op}' does not take {data[0]} (it takes {_WORDS[spec.operands]})")
    return BOOL if spec.result == "bool" else data[0]


_WORDS: dict[Operands, str] = {
    "any": "any dtype",
    "number": "integers and floats",
    "integer": "integers and bool",
    "float": "floats",
}


def _accepts(operands: Operands, dtype: DType) -> bool:
    if operands == "any":
        return True
    if operands == "integer":
        return not dtype.is_float
    return dtype.is_float or (operands == "number" and dtype.is_integer)
