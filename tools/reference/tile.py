"""Regions of docs/tile.md: dtypes, operators and functions, with the result types that the compiler infers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

from stripe.ir import Role
from stripe.ir.dtypes import BF16, BOOL, DTYPES, FP16, FP32, FP64, I8, I32, U8, DType, common_type
from stripe.ir.intrinsics import INTRINSICS, IntrinsicSpec
from stripe.tile import compile_tile
from stripe.tile.builtins import BUILTINS
from stripe.tile.library import LIBRARY_NAMES
from stripe.tile.operations import OperandError, operation_names, result_dtype
from tools.reference.markdown import code, table

_SAMPLES = (BOOL, I8, I32, FP16, FP32)

ELEMENTWISE: dict[str, str] = {
    "add": "sum; of bools: or",
    "sub": "difference; of bools: exclusive or",
    "mul": "product; of bools: and",
    "div": "quotient; of integers towards zero, and 0 where the divisor is 0",
    "mod": "remainder with the sign of the dividend, as C has it; of floats: `fmod`",
    "pow": "power",
    "min": "`a < b ? a : b`, NaN where an operand is NaN",
    "max": "`a > b ? a : b`, NaN where an operand is NaN",
    "cmp_eq": "equal",
    "cmp_ne": "not equal",
    "cmp_lt": "less",
    "cmp_le": "less or equal",
    "cmp_gt": "greater",
    "cmp_ge": "greater or equal",
    "bit_and": "and of bits",
    "bit_or": "or of bits",
    "bit_xor": "exclusive or of bits",
    "bit_left": "shift to the left; 0 by the width and more, or by less than 0",
    "bit_right": "shift to the right; of signed integers with the sign",
    "bit_not": "complement of bits",
    "neg": "negation",
    "ident": "the operand itself",
    "abs": "magnitude",
    "relu": "`x < 0 ? 0 : x`",
    "zelu": "`x < 0 ? 0 : x`, kept as an operation of its own (`#eltwise_zelu`)",
    "exp": "exponential",
    "log": "natural logarithm; `log(builtin_softmax(…))` becomes the log-softmax",
    "sqrt": "square root",
    "sigmoid": "`1 / (1 + exp(-x))`",
    "erf": "error function, the integral of the normal distribution",
    "sin": "sine, of radians",
    "cos": "cosine",
    "tan": "tangent",
    "asin": "inverse sine",
    "acos": "inverse cosine",
    "atan": "inverse tangent",
    "sinh": "hyperbolic sine",
    "cosh": "hyperbolic cosine",
    "tanh": "hyperbolic tangent",
    "asinh": "inverse hyperbolic sine",
    "acosh": "inverse hyperbolic cosine",
    "atanh": "inverse hyperbolic tangent",
    "ceil": "rounded up; of integers: themselves",
    "floor": "rounded down",
    "round": "nearest whole number, half away from zero",
    "round_even": "nearest whole number, half to the even one",
    "cond": "`c ? a : b`; a condition that is no bool is compared with 0",
}
"""The meaning of each element-wise operation."""

FUNCTIONS: dict[str, tuple[str, str]] = {
    "as_float": ("as_float(K, 16)", "cast to a float of 16, 32 or 64 bits; 32 where omitted"),
    "as_int": (
        "as_int(X, 8)",
        "cast to a signed integer of 8, 16, 32 or 64 bits: truncated, saturated, NaN is 0",
    ),
    "as_uint": ("as_uint(X, 32)", "cast to an unsigned integer, likewise"),
    "as_bool": ("as_bool(X)", "whether the element differs from 0"),
    **{f"as_{name}": (f"as_{name}(K)", f"cast to `{name}`") for name in DTYPES if name != "bool"},
    "infinity": ("X * infinity()", "the number above all others, an fp32"),
    "quantize": ("quantize(X)", "nearest integer, saturated at the ends of i8"),
    "reverse_grad": ("reverse_grad(X, 2)", "the operand itself; the factor belongs to gradients"),
    "recip": ("recip(X)", "`1.0 / x`"),
    "shape": ("shape(X)", "the sizes, as a vector"),
    "reshape": ("reshape(X, M, N)", "the elements in row-major order with other sizes; their number stays"),
    "index": ("index(X, 1)", "the coordinate of each element along a dimension, counted from 0"),
    "gather": ("gather(X, V)", "`O[i…, j…] = X[V[i…], j…]`; indices are clamped to the first dimension of X"),
    "scatter": ("scatter(X, V, Y)", "`O[V[i…], j…] += X[i…, j…]`, from 0; Y gives the first size"),
    "prng_step": ("prng_value(prng_step(S, N, M))", "values of these sizes and a state, from the state S"),
    "prng_state": ("prng_state(prng_step(S, N))", "the next state of the generator"),
    "prng_value": ("prng_value(prng_step(S, N))", "the values, from 0 to 1"),
    "simple_reduce": (
        "simple_reduce(X, 1, M)",
        "the sum over leading dimensions left out and those of size 1",
    ),
    "tuple": ("element(tuple(X, K), 0)", "several values under one name, for `element`"),
    "element": ("element(tuple(X, K), 1)", "a value of a tuple, counted from 0"),
    "broadcast": ("X * broadcast(N, 1)", "of two sizes that broadcast, the greater one; an integer"),
    "match": ("X * match(N, N)", "sizes that must be equal; an integer"),
    "builtin_softmax": (
        "builtin_softmax(X, N, M)",
        "`exp(x) / sum(exp(x))` of each row of a matrix, with its sizes",
    ),
    "builtin_logsoftmax": ("builtin_logsoftmax(X, N, M)", "its logarithm, without overflow"),
    "builtin_binary_crossentropy": (
        "builtin_binary_crossentropy(X, Y, 1)",
        "`-(t * log(p)) - (1 - t) * log(1 - p)`",
    ),
}
"""A use of each other function, on the inputs of `PRELUDE`, and its meaning."""

PRELUDE = (
    "function (X[N=4, M=6]: fp32, Y[N, M]: fp32, K[N, M]: i32, V[N]: i32, S[P=3, Q=2048]: u32) -> (O) "
    "{{ O = {call}; }}"
)


def require_rows(table_name: str, rows: Mapping[str, object], functions: Set[str]) -> None:
    """ValueError that names functions without their row and rows without a function."""
    missing, unknown = sorted(functions - rows.keys()), sorted(rows.keys() - functions)
    problems = [f"no row for: {', '.join(missing)}"] if missing else []
    problems += [f"no function: {', '.join(unknown)}"] if unknown else []
    if problems:
        raise ValueError(f"{table_name} of tools/reference/tile.py: {'; '.join(problems)}")


def _results(spec: IntrinsicSpec) -> list[str]:
    found: list[str] = []
    for dtype in _SAMPLES:
        try:
            operands = [BOOL, dtype, dtype] if spec.result == "cond" else [dtype] * spec.arity
            found.append(str(result_dtype(spec.name, operands)))
        except OperandError:
            found.append("error")
    return found


def _elementwise() -> str:
    specs = [spec for spec in INTRINSICS.values() if spec.name in operation_names()]
    require_rows("ELEMENTWISE", ELEMENTWISE, {spec.name for spec in specs})
    rows: list[list[str]] = []
    for spec in specs:
        arguments = {1: "a", 2: "a, b", 3: "c, a, b"}[spec.arity]
        calls = [f"{name}({arguments})" for name in (spec.name, *spec.aliases)]
        operator = f"a {spec.symbol} b" if spec.arity == 2 else f"{spec.symbol}a"
        calls = (
            ["c ? a : b", *calls] if spec.result == "cond" else [operator, *calls] if spec.symbol else calls
        )
        rows.append([code(calls), ELEMENTWISE[spec.name], *_results(spec)])
    return table(("spelling", "meaning", *(f"of {dtype}" for dtype in _SAMPLES)), rows)


def result_of(call: str) -> str:
    """Sizes and dtype of a call on the inputs of `PRELUDE`."""
    program = compile_tile(PRELUDE.format(call=call), "call")
    (out,) = [ref for ref in program.entry.refinements if ref.role is Role.USER and ref.name == "O"]
    return f"{out.dtype}[{', '.join(map(str, out.sizes))}]"


def _functions() -> str:
    require_rows("FUNCTIONS", FUNCTIONS, {*BUILTINS, *LIBRARY_NAMES})
    rows = [
        (f"`{name}`", f"`{call}`", f"`{result_of(call)}`", meaning)
        for name, (call, meaning) in FUNCTIONS.items()
    ]
    return table(("function", "in use", "gives", "meaning"), rows)


def _dtypes() -> str:
    rows = [
        (f"`{dtype}`", dtype.kind, str(dtype.bits), str(dtype.min_value), str(dtype.max_value))
        for dtype in DTYPES.values()
    ]
    return table(("dtype", "kind", "bits", "least", "greatest"), rows)


def _common() -> str:
    some: tuple[DType, ...] = (BOOL, I8, U8, I32, FP16, BF16, FP32, FP64)
    rows = [(f"`{left}`", *(str(common_type(left, right)) for right in some)) for left in some]
    return table(("", *map(str, some)), rows)


REGIONS: dict[str, Callable[[], str]] = {
    "elementwise": _elementwise,
    "functions": _functions,
    "dtypes": _dtypes,
    "common": _common,
}
"""The regions of the page."""
