"""The scalar intrinsics and the specials: their operands and result types. Engines give them their meaning.

Every input of an arithmetic intrinsic has the same dtype; lowering inserts `cast`. Integers wrap; `div` and `mod` truncate
towards zero and give 0 for a zero divisor; shifts by a negative amount or by the width and more give 0 (or the sign);
`round` is half away from zero; `min` and `max` give NaN when an operand is NaN; a cast from float to integer truncates,
saturates and turns NaN into 0; `relu` and `zelu` are `x < 0 ? 0 : x`; fp16 and bf16 compute in fp32 and round.
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
    return {name: IntrinsicSpec(name, *row) for names, *row in rows for name in names.split()}


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
"""gather: out[i…, j…] = data[clamp(index[i…]), j…]. scatter: out[index[i…], j…] += updates[i…, j…] from zero, indices
outside are dropped, `shape` gives the leading size alone. prng_step: the next state and uniform values in [0, 1)."""


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
