"""The scalar intrinsics and the specials: their operands and result types. Engines give them their meaning.

Every input of an arithmetic intrinsic has the same dtype; lowering inserts `cast`. Integers wrap; `div` and `mod`
truncate towards zero and give 0 for a zero divisor; shifts by a negative amount or by the width and more give 0 (or
the sign); a shift of a bool is that of 0 or 1. `round` is half away from zero, `round_even` half to even; float `mod`
is C's `fmod`; `min` and `max` are `a < b ? a : b` and `a > b ? a : b`, NaN when an operand is NaN; `relu` and `zelu`
are `x < 0 ? 0 : x`. A cast from float to integer truncates, saturates and turns NaN into 0; from integer to integer it
wraps; to bool it is `x != 0`. Narrow floats compute in fp32 and round, casts too: from anything first to fp32, then to
the type, of which the largest value is followed by infinity, or by NaN where the type has no infinity.

Specials replace all elements of their outputs; every operand is a whole view, its elements in row-major order of its
sizes:

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

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from stripe.ir import elementary
from stripe.ir.dtypes import BOOL, DType, Kind
from stripe.ir.frozen import frozen

Result = Literal["same", "bool", "cast", "cond"]
Operands = Literal["any", "number", "integer", "float"]
Number = bool | int | float
Shape = tuple[int, Operands, Result]


@dataclass(frozen=True, slots=True)
class IntrinsicSpec:
    """The row of an intrinsic. Types, C, folding, names, bounds on errors and the proof derive from it. Apart from it
    stand numpy's meaning where numpy has no such function (`exec/arith.py`), the grains of `mul`, `div`, `mod` and
    `cond` (`exec/grains.py`), and, so that a wrong row shows, the reference evaluator of Tile and the enumeration.

    `operands` are the kinds of dtype that it takes, `result` how its dtype follows. `c` is its expression in C, by kind
    where `c_on` says so: a bare operator is arithmetic (which wraps on integers), otherwise `{0}`, `{1}`, `{2}` are the
    operands, `{c}` the type, `{one}` a 1, `{negative}` minus the first operand, `{math[f]}` a function of the library
    and `{helper[f]}` one of the emitter. `vector` and `vector_on` are the same on GNU vectors, needed where `c` is no
    operator: `{vector}` is their type, `{vectors[i]}` and `{vectors[u]}` those of integers as wide. A bool is a mask
    there, an integer as wide as the numbers that were compared, of which all bits are set or none. `numpy` names the
    function where numpy has one with the same meaning, `fold` computes on Python's numbers (ZeroDivisionError,
    ValueError or OverflowError where there is no finite result).
    """

    name: str
    arity: int
    operands: Operands
    result: Result
    fold: Callable[..., Number]
    numpy: str = ""
    c: str = ""
    c_on: Mapping[Kind, str] = field(default_factory=dict[Kind, str])
    vector: str = ""
    vector_on: Mapping[Kind, str] = field(default_factory=dict[Kind, str])
    symbol: str = ""
    """The operator of Tile."""
    aliases: tuple[str, ...] = ()
    """Other names in Tile."""
    commutes: Literal["always", "on integers", "never"] = "never"
    """Where the order of the operands changes no bit: on floats `min` and `max` distinguish 0 from -0 by it."""
    exact: bool = True
    """False where the last bit differs between libraries."""
    rounds: bool = True
    """False where every float type that holds the operands holds the result."""
    magnitude: str = ""
    """The intrinsic on magnitudes whose result bounds the error of this one; none where errors grow otherwise."""
    grain: Literal["", "kept", "whole"] = ""
    """"kept" where results are multiples of each power of two that divides the operands, and monotone in each operand
    on either side of 0; "whole" where they are a whole number next to the operand."""
    steps: elementary.Terms | None = None
    """Where it is a sequence of operations on fp32, and on narrow floats through fp32: that function."""
    on_bool: str = ""
    """The intrinsic that does it on bools, which it does not take itself."""
    on_integer: str = ""
    """The intrinsic that does it on integers, which it does not take itself."""

    def commutes_on(self, dtype: DType) -> bool:
        """Whether operands of `dtype` in any order give the same bits."""
        return self.commutes == "always" or (self.commutes == "on integers" and not dtype.is_float)

    @property
    def keeps_zero(self) -> bool:
        """Whether the result of operands that are all 0 is a 0 of some sign, and no bool."""
        if self.operands == "integer" or self.result == "bool" or not self.exact:
            return False
        try:
            return self.fold(*[0.0] * self.arity) == 0
        except (ZeroDivisionError, ValueError):
            return False

    def on_vectors(self, kind: Kind) -> str:
        """Its expression in C on vectors, an operator or one with operands; empty where there is none."""
        scalar = self.c_on.get(kind, self.c)
        return self.vector_on.get(kind, self.vector) or ("" if "{" in scalar else scalar)

    def has_vectors(self, dtype: DType) -> bool:
        """Whether C has it on GNU vectors of `dtype`: as an expression, or as steps that are operations on them."""
        steps = self.steps if dtype.is_float and dtype.bits == 32 else None
        return bool(self.on_vectors(dtype.kind)) or (
            steps is not None and elementary.is_lanewise(steps, self.arity)
        )

    def on(self, dtype: DType) -> str:
        """The intrinsic that does it on `dtype`: sums of bools are 'or', roundings of integers nothing."""
        instead = "" if dtype.is_float else self.on_bool if dtype.kind == "bool" else self.on_integer
        return instead or self.name

    def takes(self, dtype: DType) -> bool:
        """Whether operands may have `dtype`."""
        match self.operands:
            case "any":
                return True
            case "integer":
                return not dtype.is_float
            case "number":
                return dtype.kind != "bool"
            case "float":
                return dtype.is_float


def _quotient(a: Number, b: Number) -> Number:
    """Towards zero for integers."""
    if isinstance(a, float):
        return a / b
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: Number, b: Number) -> Number:
    return math.fmod(a, b) if isinstance(a, float) else a - b * _quotient(a, b)


def _same(a: Number) -> Number:
    return a


def _negative(a: Number) -> Number:
    return -a


def _absolute(a: Number) -> Number:
    return abs(a)


def _least(a: Number, b: Number) -> Number:
    return a if a < b or a != a else b


def _most(a: Number, b: Number) -> Number:
    return a if a > b or a != a else b


def _ceil(a: float) -> float:
    return math.copysign(math.ceil(a), a)


def _floor(a: float) -> float:
    return math.copysign(math.floor(a), a)


def _round(a: float) -> float:
    whole = math.floor(abs(a))  # a + 0.5 may round
    return math.copysign(whole + (abs(a) - whole >= 0.5), a)


def _round_even(a: float) -> float:
    return math.copysign(round(a), a)


def _rectified(a: Number) -> Number:
    return max(a, 0)


def _sigmoid(a: float) -> float:
    return 1.0 / (1.0 + math.exp(-a))


_WIDEST = 256


def _left(a: int, b: int) -> int:
    if not 0 <= b < _WIDEST:
        raise ValueError(f"cannot shift a constant by {b}")
    return a << b


def _right(a: int, b: int) -> int:
    return a >> (b if 0 <= b < _WIDEST else _WIDEST)


def _chosen(condition: Number, a: Number, b: Number) -> Number:
    return a if condition else b


def _arithmetic() -> Iterator[IntrinsicSpec]:
    spec = IntrinsicSpec
    two: Shape = (2, "number", "same")
    one: Shape = (1, "number", "same")
    yield spec(
        "add", *two, operator.add, "add", "+", symbol="+", commutes="always", on_bool="bit_or",
        magnitude="add", grain="kept",
    )  # fmt: skip
    yield spec(
        "sub",
        *two,
        operator.sub,
        "subtract",
        "-",
        symbol="-",
        on_bool="bit_xor",
        magnitude="add",
        grain="kept",
    )
    yield spec(
        "mul", *two, operator.mul, "multiply", "*", symbol="*", commutes="always", on_bool="bit_and",
        magnitude="mul",
    )  # fmt: skip
    yield spec("div", *two, _quotient, "divide", "{helper[div]}({0}, {1})", {"float": "/"}, symbol="/")
    yield spec(
        "mod", *two, _remainder, "fmod", "{helper[mod]}({0}, {1})", {"float": "{math[fmod]}({0}, {1})"}
    )
    for name, fold, sign, on_bool in (("min", _least, "<", "bit_and"), ("max", _most, ">", "bit_or")):
        # A NaN in the second operand makes a comparison false and is returned.
        on_floats: dict[Kind, str] = {"float": f"{{0}} {sign} {{1}} || {{0}} != {{0}} ? {{0}} : {{1}}"}
        yield spec(
            name, *two, fold, f"{name}imum", f"{{0}} {sign} {{1}} ? {{0}} : {{1}}", on_floats,
            vector=_chosen_lanes(f"({{0}} {sign} {{1}})"),
            vector_on={"float": _chosen_lanes(f"(({{0}} {sign} {{1}}) | ({{0}} != {{0}}))")},
            commutes="on integers", on_bool=on_bool, rounds=False, magnitude="max", grain="kept",
        )  # fmt: skip
    yield spec(
        "neg", *one, _negative, "negative", "{negative}", {"float": "-{0}"}, "-{0}",
        {"int": "({vector})(-({vectors[u]}){0})"}, symbol="-", rounds=False, magnitude="ident", grain="kept",
    )  # fmt: skip
    c_on: dict[Kind, str] = {"uint": "{0}", "float": "{math[fabs]}({0})"}
    yield spec(
        "abs", *one, _absolute, "abs", "{0} < 0 ? {negative} : {0}", c_on,
        rounds=False, magnitude="ident", grain="kept",
    )  # fmt: skip
    for name in ("relu", "zelu"):
        yield spec(
            name, *one, _rectified, "", "{0} < 0 ? 0 : {0}", {"uint": "{0}"},
            "({vector})(~({0} < ({vector}){{0}}) & ({vectors[i]}){0})",
            rounds=False, magnitude="ident", grain="kept",
        )  # fmt: skip


def _chosen_lanes(mask: str, first: str = "{0}", second: str = "{1}") -> str:
    """The lanes of the first operand under the mask, those of the second elsewhere."""
    return f"({{vector}})(({mask} & ({{vectors[i]}}){first}) | (~{mask} & ({{vectors[i]}}){second}))"


def _logic() -> Iterator[IntrinsicSpec]:
    spec = IntrinsicSpec
    yield spec(
        "ident", 1, "any", "same", _same, "asarray", "{0}", vector="{0}", aliases=("assign",), rounds=False,
        magnitude="ident", grain="kept",
    )  # fmt: skip
    for name, function, sign, alias, commutes in (
        ("cmp_eq", "equal", "==", "eq", True), ("cmp_ne", "not_equal", "!=", "neq", True),
        ("cmp_lt", "less", "<", "lt", False), ("cmp_le", "less_equal", "<=", "lte", False),
        ("cmp_gt", "greater", ">", "gt", False), ("cmp_ge", "greater_equal", ">=", "gte", False),
    ):  # fmt: skip
        yield spec(
            name, 2, "any", "bool", getattr(operator, name.removeprefix("cmp_")), function,
            f"{{0}} {sign} {{1}}", vector=f"({{vector}})({{0}} {sign} {{1}})", symbol=sign, aliases=(alias,),
            commutes="always" if commutes else "never",
        )  # fmt: skip
    for name, fold, sign, on_bool in (
        ("and", int.__and__, "&", "&&"), ("or", int.__or__, "|", "||"), ("xor", int.__xor__, "^", "!="),
    ):  # fmt: skip
        yield spec(
            f"bit_{name}", 2, "integer", "same", fold, f"bitwise_{name}", f"({{c}})({{0}} {sign} {{1}})",
            {"bool": f"{{0}} {on_bool} {{1}}"}, f"{{0}} {sign} {{1}}", symbol=sign, commutes="always",
        )  # fmt: skip
    # A shift of a bool by 0 or 1 to the left stays different from 0.
    left, right = "{helper[shl]}({0}, {1})", "{helper[shr]}({0}, {1})"
    yield spec("bit_left", 2, "integer", "same", _left, "", left, {"bool": "{0}"}, symbol="<<")
    yield spec("bit_right", 2, "integer", "same", _right, "", right, {"bool": "{0} && !{1}"}, symbol=">>")
    c_on: dict[Kind, str] = {"bool": "!{0}"}
    yield spec(
        "bit_not", 1, "integer", "same", int.__invert__, "invert", "({c})~{0}", c_on, "~{0}", symbol="~"
    )
    yield spec(
        "cond", 3, "any", "cond", _chosen, "where", "{0} ? {1} : {2}",
        vector=_chosen_lanes("{0}", "{1}", "{2}"), rounds=False,
    )  # fmt: skip
    yield spec("cast", 1, "any", "cast", _same, vector="__builtin_convertvector({0}, {vector})", grain="kept")


def _functions() -> Iterator[IntrinsicSpec]:
    spec = IntrinsicSpec
    one: Shape = (1, "float", "same")
    for name, function, fold in (
        ("ceil", "ceil", _ceil), ("floor", "floor", _floor), ("round", "", _round),
        ("round_even", "rint", _round_even),
    ):  # fmt: skip
        c = f"{{math[{function if name == 'round_even' else name}]}}({{0}})"
        yield spec(
            name, *one, fold, function, c, on_bool="ident", on_integer="ident", rounds=False, grain="whole"
        )
    yield spec("sqrt", *one, math.sqrt, "sqrt", "{math[sqrt]}({0})")
    own: dict[str, elementary.Terms] = {
        "exp": elementary.exp, "log": elementary.log, "sin": elementary.sin, "cos": elementary.cos,
        "tanh": elementary.tanh,
    }  # fmt: skip
    for name in "exp log sin cos tan sinh cosh tanh".split():
        c = f"{{math[{name}]}}({{0}})"
        yield spec(name, *one, getattr(math, name), name, c, exact=False, steps=own.get(name))
    for name in "sin cos tan sinh cosh tanh".split():
        arc, c = f"a{name}", f"{{math[a{name}]}}({{0}})"
        yield spec(arc, *one, getattr(math, arc), f"arc{name}", c, exact=False)
    yield spec("erf", *one, math.erf, "", "{math[erf]}({0})", exact=False, steps=elementary.erf)
    c = "{one} / ({one} + {math[exp]}(-{0}))"
    yield spec("sigmoid", *one, _sigmoid, "", c, exact=False, steps=elementary.sigmoid)
    c = "{math[pow]}({0}, {1})"
    yield spec("pow", 2, "float", "same", math.pow, "power", c, exact=False, steps=elementary.pow)


def _table(rows: Iterable[IntrinsicSpec]) -> dict[str, IntrinsicSpec]:
    return {row.name: row for row in rows}


INTRINSICS: dict[str, IntrinsicSpec] = _table([*_arithmetic(), *_logic(), *_functions()])


@frozen
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
    """The dtype of `op` on `inputs`; `target` is that of a `cast`. (In Tile, where operands may have several dtypes, it
    is `stripe.tile.operations.result_dtype`.)

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
    if not spec.takes(data[0]):
        raise ValueError(f"'{op}' does not take {data[0]} (it takes {_WORDS[spec.operands]})")
    return BOOL if spec.result == "bool" else data[0]


_WORDS: dict[Operands, str] = {
    "any": "any dtype",
    "number": "integers and floats",
    "integer": "integers and bool",
    "float": "floats",
}
