"""Each intrinsic on each dtype against what Python's own numbers say, corner values included."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from stripe.exec.arith import apply, constant
from stripe.exec.grains import Grain
from stripe.exec.grains import apply as grain_after
from stripe.exec.interp import interpret
from stripe.ir import DTYPES, INTRINSICS, DType
from stripe.tile.reference_ops import ELEMENTWISE
from tests.support.programs import elementwise

INTEGERS = [name for name, dtype in DTYPES.items() if dtype.is_integer]
FLOATS = [name for name, dtype in DTYPES.items() if dtype.is_float]
FLOAT_VALUES = [0.0, -0.0, 0.5, -0.5, 1.0, 1.5, 2.5, -2.5, 3.0, -7.25, 100.0, math.inf, -math.inf, math.nan]


def run(op: str, dtype: str, operands: list[list[Any]], result: str, target: str = "") -> list[Any]:
    names = ["A", "B", "C"][: len(operands)]
    with np.errstate(over="ignore"):
        arrays = {n: np.array(v, dtype=DTYPES[dtype].numpy()) for n, v in zip(names, operands, strict=True)}
    call = ", ".join([*(f"${name}" for name in names), *([target] if target else [])])
    text = f"$O = {op}({call})"
    program = elementwise(text, len(operands[0]), dict.fromkeys(names, dtype), result)
    return interpret(program, arrays)["O"].tolist()


def integer_values(dtype: DType) -> list[int]:
    low, high = int(dtype.min_value), int(dtype.max_value)
    return sorted(
        {v for v in (low, low + 1, -9, -8, -1, 0, 1, 2, 3, 7, 8, 31, high - 1, high) if low <= v <= high}
    )


def wrap(value: int, dtype: DType) -> int:
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.kind == "int" and value >> (dtype.bits - 1) else value


def truncated(a: int, b: int) -> int:
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shifted(a: int, b: int, bits: int) -> int:
    """To the left for positive b."""
    return a << b if 0 <= b < bits else 0


INTEGER_BINARY: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "div": lambda a, b, _: truncated(a, b),
    "mod": lambda a, b, _: a - b * truncated(a, b) if b else 0,
    "min": lambda a, b, _: min(a, b),
    "max": lambda a, b, _: max(a, b),
    "bit_and": lambda a, b, _: a & b,
    "bit_or": lambda a, b, _: a | b,
    "bit_xor": lambda a, b, _: a ^ b,
    "bit_left": shifted,
    "bit_right": lambda a, b, bits: a >> b if 0 <= b < bits else (-1 if a < 0 else 0),
}
INTEGER_UNARY: dict[str, Callable[[int, int], int]] = {
    "neg": lambda a, _: -a,
    "abs": lambda a, _: abs(a),
    "relu": lambda a, _: max(a, 0),
    "zelu": lambda a, _: max(a, 0),
    "ident": lambda a, _: a,
    "bit_not": lambda a, _: ~a,
}


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("op", INTEGER_BINARY)
def test_integer_binary(op: str, name: str) -> None:
    dtype = DTYPES[name]
    pairs = list(product(integer_values(dtype), repeat=2))
    want = [wrap(INTEGER_BINARY[op](a, b, dtype.bits), dtype) for a, b in pairs]
    assert run(op, name, [[a for a, _ in pairs], [b for _, b in pairs]], name) == want


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("op", INTEGER_UNARY)
def test_integer_unary(op: str, name: str) -> None:
    dtype = DTYPES[name]
    values = integer_values(dtype)
    assert run(op, name, [values], name) == [wrap(INTEGER_UNARY[op](v, dtype.bits), dtype) for v in values]


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "cmp_eq": lambda a, b: a == b,
    "cmp_ne": lambda a, b: a != b,
    "cmp_lt": lambda a, b: a < b,
    "cmp_le": lambda a, b: a <= b,
    "cmp_gt": lambda a, b: a > b,
    "cmp_ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons(op: str, name: str) -> None:
    dtype = DTYPES[name]
    values: list[Any] = [False, True]
    if dtype.is_integer:
        values = integer_values(dtype)
    elif dtype.is_float:
        values = [rounded(value, name) for value in FLOAT_VALUES]
    pairs = list(product(values, repeat=2))
    want = [COMPARISONS[op](a, b) for a, b in pairs]
    assert run(op, name, [[a for a, _ in pairs], [b for _, b in pairs]], "bool") == want


BOOL_OPS: dict[str, Callable[[bool, bool], bool]] = {
    "bit_and": lambda a, b: a and b,
    "bit_or": lambda a, b: a or b,
    "bit_xor": lambda a, b: a != b,
    "bit_left": lambda a, b: (int(a) << int(b)) != 0,
    "bit_right": lambda a, b: (int(a) >> int(b)) != 0,
}


@pytest.mark.parametrize("op", BOOL_OPS)
def test_bool_bits(op: str) -> None:
    pairs = list(product([False, True], repeat=2))
    want = [BOOL_OPS[op](a, b) for a, b in pairs]
    assert run(op, "bool", [[a for a, _ in pairs], [b for _, b in pairs]], "bool") == want


def test_bool_not_and_ident() -> None:
    assert run("bit_not", "bool", [[False, True]], "bool") == [True, False]
    assert run("ident", "bool", [[False, True]], "bool") == [False, True]


EIGHT_BITS = {"fp8e4m3": (4, 448.0, math.nan), "fp8e5m2": (5, 57344.0, math.inf)}
"""The bits of the exponent, the largest value, and what lies above it."""


def rounded_to_eight_bits(value: float, name: str) -> float:
    """As `rounded`, by looking through all numbers of a sign, an exponent and the rest of eight bits."""
    exponents, largest, above = EIGHT_BITS[name]
    digits, bias = 7 - exponents, 2 ** (exponents - 1) - 1
    numbers: list[float] = []
    for code in range(129):
        exponent, fraction = divmod(code, 1 << digits)
        one = 1.0 if exponent else 0.0
        numbers.append((one + fraction / 2**digits) * 2.0 ** (max(exponent, 1) - bias))
    if math.isnan(value) or math.isinf(value):
        return math.copysign(above, value) if math.isinf(value) else value
    near = min(abs(value), 2 * largest)
    code = min(range(129), key=lambda code: (abs(numbers[code] - near), code % 2))
    return math.copysign(numbers[code] if numbers[code] <= largest else above, value)


def rounded(value: float, name: str) -> float:
    """The number nearest to an fp32 or fp64 result, as the dtype holds it; ties to even. Via `struct`, not numpy."""
    if name in EIGHT_BITS:
        return rounded_to_eight_bits(value, name)
    if name == "fp64" or math.isnan(value) or math.isinf(value):
        return value
    try:
        single = struct.unpack("<f", struct.pack("<f", value))[0]
        if name == "fp16":
            return struct.unpack("<e", struct.pack("<e", single))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    if name == "bf16":
        bits = struct.unpack("<I", struct.pack("<f", single))[0]
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        return struct.unpack("<f", struct.pack("<I", bits))[0]
    return single


def same(got: list[float], want: list[float]) -> bool:
    """Bit equality but for NaN, signs of zero included."""
    return len(got) == len(want) and all(
        (math.isnan(g) and math.isnan(w)) or (g == w and math.copysign(1, g) == math.copysign(1, w))
        for g, w in zip(got, want, strict=True)
    )


def divided(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def remainder(a: float, b: float) -> float:
    return math.nan if math.isinf(a) or b == 0 else math.fmod(a, b)


def lesser(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else a if a < b else b


def greater(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else a if a > b else b


FLOAT_BINARY: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": divided,
    "mod": remainder,
    "min": lesser,
    "max": greater,
}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("op", FLOAT_BINARY)
def test_float_binary(op: str, name: str) -> None:
    pairs = list(product([*FLOAT_VALUES, 1 / 3], repeat=2))
    exact = [(rounded(a, name), rounded(b, name)) for a, b in pairs]
    want = [rounded(FLOAT_BINARY[op](a, b), name) for a, b in exact]
    assert same(run(op, name, [[a for a, _ in pairs], [b for _, b in pairs]], name), want)


def half_away(x: float) -> float:
    if math.isnan(x) or math.isinf(x):
        return x
    whole = math.trunc(x)
    return math.copysign(abs(whole) + (abs(x - whole) >= 0.5), x)


def guarded(function: Callable[[float], float]) -> Callable[[float], float]:
    """`function` where Python raises for infinities and outside the domain."""

    def call(x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError):
            return math.nan

    return call


FLOAT_UNARY: dict[str, Callable[[float], float]] = {
    "neg": lambda x: -x,
    "abs": abs,
    "ident": lambda x: x,
    "relu": lambda x: 0.0 if x < 0 else x,
    "zelu": lambda x: 0.0 if x < 0 else x,
    "floor": lambda x: math.copysign(math.floor(x), x) if math.isfinite(x) else x,
    "ceil": lambda x: math.copysign(math.ceil(x), x) if math.isfinite(x) else x,
    "round": half_away,
    "round_even": lambda x: math.copysign(round(x), x) if math.isfinite(x) else x,
}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("op", FLOAT_UNARY)
def test_float_unary_exact(op: str, name: str) -> None:
    values = [*FLOAT_VALUES, 0.49999997, -0.49999997, 8388609.0]
    exact = [rounded(v, name) for v in values]
    assert same(run(op, name, [values], name), [rounded(FLOAT_UNARY[op](v), name) for v in exact])


UNIT = [-0.9, -0.5, 0.0, 0.25, 0.75]
WIDE = [-3.0, -0.5, 0.0, 0.25, 2.0]
ABOVE = [1.0, 1.5, 2.0, 9.0]
TRANSCENDENTAL: dict[str, tuple[Callable[[float], float], list[float]]] = {
    "exp": (math.exp, WIDE),
    "log": (math.log, ABOVE),
    "sqrt": (math.sqrt, [0.0, *ABOVE]),
    "erf": (math.erf, WIDE),
    "sigmoid": (lambda x: 1 / (1 + math.exp(-x)), WIDE),
    "sin": (math.sin, WIDE),
    "cos": (math.cos, WIDE),
    "tan": (math.tan, WIDE),
    "asin": (math.asin, UNIT),
    "acos": (math.acos, UNIT),
    "atan": (math.atan, WIDE),
    "sinh": (math.sinh, WIDE),
    "cosh": (math.cosh, WIDE),
    "tanh": (math.tanh, WIDE),
    "asinh": (math.asinh, WIDE),
    "acosh": (math.acosh, ABOVE),
    "atanh": (math.atanh, UNIT),
}
RELATIVE = {"fp64": 1e-14, "fp32": 1e-6, "fp16": 2e-3, "bf16": 2e-2, "fp8e4m3": 2**-4, "fp8e5m2": 2**-3}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("op", TRANSCENDENTAL)
def test_transcendental(op: str, name: str) -> None:
    function, values = TRANSCENDENTAL[op]
    want = [function(rounded(v, name)) for v in values]
    assert run(op, name, [values], name) == pytest.approx(want, rel=RELATIVE[name], abs=1e-7)


@pytest.mark.parametrize("op", ["sqrt", "log", "asin", "acosh", "atanh"])
def test_outside_the_domain_is_nan(op: str) -> None:
    value = 0.5 if op == "acosh" else -2.0
    assert math.isnan(run(op, "fp32", [[value]], "fp32")[0])


@pytest.mark.parametrize("name", FLOATS)
def test_pow(name: str) -> None:
    pairs = [(2.0, 3.0), (4.0, 0.5), (-2.0, 3.0), (5.0, 0.0), (2.0, -1.0)]
    got = run("pow", name, [[a for a, _ in pairs], [b for _, b in pairs]], name)
    assert got == pytest.approx([a**b for a, b in pairs], rel=RELATIVE[name])


def cast_value(value: float, source: str, target: str) -> Any:
    """`value`, already one of `source`, as Python's numbers cast it."""
    dtype = DTYPES[target]
    if target == "bool":
        return value != 0
    if dtype.is_float:
        return rounded(float(value), target)
    if not DTYPES[source].is_float:
        return wrap(int(value), dtype)
    if math.isnan(value):
        return 0
    low, high = int(dtype.min_value), int(dtype.max_value)
    if math.isinf(value):
        return high if value > 0 else low
    return max(low, min(high, math.trunc(value)))


@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_cast(source: str, target: str) -> None:
    dtype = DTYPES[source]
    values: list[Any] = [False, True]
    if dtype.is_integer:
        values = integer_values(dtype)
    elif dtype.is_float:
        extremes = [
            127.9,
            255.5,
            -1.0,
            -129.0,
            65504.0,
            2.0**31,
            -(2.0**31),
            2.0**63,
            2.0**64,
            -(2.0**63),
            1e30,
        ]
        values = [rounded(v, source) for v in [*FLOAT_VALUES, *extremes]]
    want = [cast_value(v, source, target) for v in values]
    got = run("cast", source, [values], target, target)
    assert same(got, want) if DTYPES[target].is_float else got == want


@pytest.mark.parametrize("name", DTYPES)
def test_cond(name: str) -> None:
    program = elementwise("$O = cond($P, $A, $B)", 2, {"P": "bool", "A": name, "B": name}, name)
    dtype = DTYPES[name].numpy()
    arrays = {"P": np.array([True, False]), "A": np.ones(2, dtype), "B": np.zeros(2, dtype)}
    assert interpret(program, arrays)["O"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("literal", "dtype", "want"),
    [
        ("-56", "i8", -56),
        ("65535", "u16", 65535),
        ("7.0", "fp16", 7.0),
        ("0.1", "fp32", 0.10000000149011612),
        ("0.1", "bf16", 0.10009765625),
        ("true", "bool", True),
        ("-inf", "fp64", -math.inf),
        ("18446744073709551615", "u64", 2**64 - 1),
    ],
)
def test_constant(literal: str, dtype: str, want: Any) -> None:
    program = elementwise(f"$O = ({dtype}){literal}", 1, {}, dtype)
    assert interpret(program, {})["O"].tolist() == [want]


@pytest.mark.parametrize(
    ("value", "dtype", "want"),
    [(300, "u8", 44), (-1, "u16", 65535), (200, "i8", -56), (2.9, "i32", 2), (math.inf, "i16", 32767),
     (math.nan, "i16", 0), (3, "bool", True), (0.5, "bool", True), (3, "bf16", 3.0)],
)  # fmt: skip
def test_constant_that_a_pass_made(value: float, dtype: str, want: Any) -> None:
    made = constant(value, DTYPES[dtype])
    assert made.dtype == DTYPES[dtype].numpy()
    assert made.tolist() == want


def test_all_intrinsics_are_here() -> None:
    tables = [INTEGER_BINARY, INTEGER_UNARY, COMPARISONS, FLOAT_BINARY, FLOAT_UNARY, TRANSCENDENTAL]
    assert {name for table in tables for name in table} | {"pow", "cond", "cast"} == set(INTRINSICS)


@pytest.mark.parametrize("op", ["round", "round_even", "ceil", "floor", "min", "max", "relu", "neg", "abs"])
def test_literals_are_folded_as_tensors_are_computed(op: str) -> None:
    values = [0.0, -0.0, 0.49999999999999994, -0.5, 0.5, 2.5, -2.5, 2.0**52 + 1, -(2.0**52) - 1, 1e300]
    spec = INTRINSICS[op]
    for chosen in product(values, repeat=spec.arity):
        (expected,) = ELEMENTWISE[op](*(np.array([value]) for value in chosen))
        found = spec.fold(*chosen)
        assert (found, math.copysign(1.0, found)) == (expected, math.copysign(1.0, expected)), chosen


@pytest.mark.parametrize("op", [op for op, spec in INTRINSICS.items() if spec.keeps_zero])
def test_an_intrinsic_that_keeps_zeros(op: str) -> None:
    if op == "cast":
        assert run(op, "fp32", [[0.0, -0.0]], "i32", "i32") == [0, 0]
        return
    zeros = [constant(0, DTYPES["fp32"])] * INTRINSICS[op].arity
    operands = [np.array([False, True]), *zeros[1:]] if op == "cond" else zeros
    assert not np.any(apply(op, operands, DTYPES["fp32"]))


@pytest.mark.parametrize("op", [op for op, spec in INTRINSICS.items() if spec.grain and op != "cast"])
def test_results_are_of_the_grain_of_the_row(op: str) -> None:
    """All results of operands on the grid of an interval lie in the interval of the results, on its grid."""
    spec = INTRINSICS[op]
    for low, high in product((-2.5, -1.0, 0.0, 0.5, 2.0), repeat=2):
        grains = [Grain(low, high, 0.5), Grain(-high, 1.5, 0.25)][: spec.arity]
        if any(grain.low > grain.high for grain in grains):
            continue
        found = grain_after(op, grains, DTYPES["fp32"], None)
        values = [np.arange(grain.low, grain.high + grain.step, grain.step) for grain in grains]
        for operands in product(*values):
            result = float(apply(op, [constant(float(v), DTYPES["fp32"]) for v in operands], DTYPES["fp32"]))
            assert found.low <= result <= found.high
            assert result % found.step == 0
