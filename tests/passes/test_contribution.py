"""Contributions of padding: every claimed number is what the interpreter computes, on all kinds of numbers."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import stripe
from stripe.exec.interp import interpret
from stripe.ir import DTYPES, INTRINSICS, Agg, Block, DType, Program, result_dtype
from stripe.ir.constants import convert_constant
from stripe.ir.frozen import replace
from stripe.rewrite.contribution import fill_of, neutral_sets, stored_number

_ELEMENTS = 64
_KERNELS = 40
_OPS = sorted(op for op, spec in INTRINSICS.items() if spec.exact and op != "cast")
_NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "7",
    "9",
    "-1",
    "0.0",
    "-0.0",
    "0.3",
    "17.0",
    "3.0e38",
    "-2.5",
    "inf",
    "-inf",
    "nan",
    "500.0",
)
_FLOATS = [dtype for dtype in DTYPES.values() if dtype.is_float]
_LARGE = [dtype for dtype in DTYPES.values() if dtype.bytes >= 4]
_NAMES = "ABC"


def _draw(random: Random, number: int) -> str:
    """A kernel of up to seven operations on inputs of random dtypes."""
    dtypes = [random.choice(list(DTYPES.values())) for _ in range(random.randint(1, 3))]
    is_product = random.random() < 0.5
    if is_product:  # as kernels of contractions are
        dtypes = [random.choice([*dtypes, DTYPES["fp32"]])] * 2
    is_scaled = random.random() < 0.4  # a number that a cast may take beyond the largest float, times a float
    if is_scaled:
        dtypes = [random.choice(_LARGE), random.choice(_FLOATS)]
    lines = [f"$v{place} = load({name})" for place, name in enumerate(_NAMES[: len(dtypes)])]
    values: list[tuple[str, DType]] = [(f"$v{place}", dtype) for place, dtype in enumerate(dtypes)]

    def let(text: str, dtype: DType) -> None:
        values.append((f"$v{len(lines)}", dtype))
        lines.append(f"$v{len(lines)} = {text}")

    if is_scaled:
        let(f"cast($v0, {dtypes[1]})", dtypes[1])
        let("mul($v1, $v2)", dtypes[1])
    elif is_product and dtypes[0].kind != "bool":
        let("mul($v0, $v1)", dtypes[0])
    for _ in range(0 if is_scaled and random.random() < 0.6 else random.randint(0, 6)):
        op = random.choice(
            [*_OPS, "mul", "mul", "mul", "cast", "cast", "cast", "constant", "constant", "cond"]
        )
        first = random.choice(values)
        if op == "constant":
            dtype = random.choice([first[1], *DTYPES.values()])
            numbers = [n for n in _NUMBERS if n.isdigit() != dtype.is_float and n != "-1"]
            numbers = ["true", "false"] if dtype.kind == "bool" else numbers
            let(f"({dtype}) {random.choice(numbers)}", dtype)
        elif op == "cast":
            target = random.choice(list(DTYPES.values()))
            let(f"cast({first[0]}, {target})", target)
        else:
            conditions = [value for value in values if value[1].kind == "bool"]
            chosen = [random.choice(conditions or values)] if op == "cond" else []
            same = [value for value in values if value[1] == first[1]]
            chosen += [random.choice(same) for _ in range(INTRINSICS[op].arity - len(chosen))]
            try:
                dtype = result_dtype(op, [value[1] for value in chosen])
            except ValueError:
                continue
            let(f"{op}({', '.join(value[0] for value in chosen)})", dtype)
    out = values[-1][1]
    head = f"{number}: #kernel block [i:{_ELEMENTS}] ( // k{number}"
    refs = [f"in<[0]> {n} = {n}{number}[i] {d}(1:1)" for n, d in zip(_NAMES, dtypes, strict=False)]
    refs.append(f"out<[0]> O = O{number}[i]:assign {out}(1:1)")
    body = [f"{place}: {line}" for place, line in enumerate([*lines, f"O = store({values[-1][0]})"])]
    return "\n".join([head, *refs, ") {", *body, "}"])


def _program(seed: int) -> Program:
    random = Random(seed)
    return _around([_draw(random, number) for number in range(_KERNELS)], f"contributions{seed}")


def _around(kernels: list[str], name: str = "contributions") -> Program:
    """The kernels in main, each of its views a tensor of the user."""
    views = [
        (line.split()[0], line.split(" = ")[1].split("[")[0], line.split()[-1].split("(")[0])
        for kernel in kernels
        for line in kernel.splitlines()
        if line.startswith(("in<", "out<"))
    ]
    outer = [f"#user none new@0x00000000<[0]> {name}[0] {dtype}({_ELEMENTS}:1)" for _, name, dtype in views]
    inner = [
        f"{way} {name}[0]{':assign' if way.startswith('out') else ''} {dtype}({_ELEMENTS}:1)"
        for way, name, dtype in views
    ]
    lines = ["0: #program block [] ( // p", *outer, ") {", "0: #main block [] ( // main", *inner, ") {"]
    return stripe.parse("\n".join([*lines, *kernels, "}", "}"]), name=f"{name}.stripe")


def _data(dtype: DType, seed: int, finite: bool) -> np.ndarray:
    """Random bits, zeros, ones and the ends of a dtype."""
    random = np.random.default_rng(seed)
    array = dtype.numpy()
    if dtype.kind == "bool":
        return random.integers(0, 2, _ELEMENTS).astype(np.bool_)
    if not dtype.is_float:
        ends = np.array([0, 1, 2, dtype.max_value, dtype.min_value], array)
        return np.concatenate([ends, random.integers(0, 256, 59 * dtype.bytes, np.uint8).view(array)])
    found = random.integers(0, 256, _ELEMENTS * dtype.bytes, np.uint8).view(array)
    found[:6] = np.array([0.0, -0.0, 1.0, -1.0, dtype.largest, -dtype.largest]).astype(array)
    found[6:9] = np.array([np.inf if dtype.has_infinity else np.nan, -np.inf, np.nan]).astype(array)
    with np.errstate(invalid="ignore"):
        wide = found.astype(np.float64)
    return np.where(np.isfinite(wide), wide, 1.0).astype(array) if finite else found


def _agree(found: np.ndarray, claimed: float, dtype: DType) -> bool:
    if claimed != claimed:
        return bool(np.isnan(found.astype(np.float64)).all())
    if convert_constant(claimed, dtype) != claimed:
        return False
    wanted = np.array([claimed]).astype(dtype.numpy())
    if dtype.is_float and isinstance(claimed, int):  # a zero of either sign
        return bool((found.astype(np.float64) == float(claimed)).all())
    same_sign = (
        not dtype.is_float or (np.signbit(found.astype(np.float64)) == np.signbit(float(claimed))).all()
    )
    return bool((found == wanted).all()) and bool(same_sign)


def _claims(block: Block, random: Random) -> tuple[dict[str, bool | int | float], frozenset[str], Agg]:
    """What inputs of a kernel are known, as the padding of an aggregation, and which are finite."""
    agg = random.choice([*Agg, Agg.ADD, Agg.ADD])
    inputs = [ref for ref in block.refinements if ref.dir.reads]
    chosen = [ref for ref in inputs if random.random() < 0.7]
    finite = frozenset(ref.name for ref in inputs if random.random() < 0.6)
    return {ref.name: fill_of(agg, ref.dtype) for ref in chosen}, finite, agg


def check(seed: int) -> int:
    """The number of claims that hold on the program of a seed."""
    program, random = _program(seed), Random(seed)
    kernels = list(next(iter(program.entry.blocks)).blocks)
    drawn = [_claims(kernel, random) for kernel in kernels]
    inputs: dict[str, np.ndarray] = {}
    for number, (kernel, (known, finite, _)) in enumerate(zip(kernels, drawn, strict=True)):
        for place, ref in enumerate(ref for ref in kernel.refinements if ref.dir.reads):
            values = _data(ref.dtype, 1000 * seed + 10 * number + place, ref.name in finite)
            inputs[ref.source] = values
            if ref.name in known:
                inputs[ref.source] = np.full(_ELEMENTS, np.array(known[ref.name]).astype(values.dtype))
    with np.errstate(all="ignore"):
        results = interpret(program, inputs)
    held = 0
    for kernel, (known, finite, agg) in zip(kernels, drawn, strict=True):
        output = next(ref for ref in kernel.refinements if ref.dir.writes)
        claimed = stored_number(kernel, known, finite)
        if claimed is not None:
            held += 1
            assert _agree(results[output.source], claimed, output.dtype), (
                f"{seed}: {kernel.name} {known} {claimed}"
            )
        if agg is not Agg.ASSIGN and agg.takes(output.dtype):
            refs = tuple(replace(ref, agg=agg) if ref.dir.writes else ref for ref in kernel.refinements)
            if known.keys() in [*neutral_sets(replace(kernel, refinements=refs), finite)]:
                identity = np.array(agg.identity(output.dtype)).astype(output.dtype.numpy())
                assert (results[output.source] == identity).all(), f"{seed}: {kernel.name} {known}"
    return held


def test_claimed_contributions_are_computed() -> None:
    assert sum(map(check, range(16))) > 200


@pytest.mark.parametrize("op", sorted(op for op, spec in INTRINSICS.items() if not spec.exact))
def test_results_of_inexact_functions_are_unknown(op: str) -> None:
    """Their last bit differs between libraries, so that C may give another number."""
    operands = ", ".join(["$v"] * INTRINSICS[op].arity)
    for number in ("0.0", "1.0", "3.0", "20.0", "-800.0"):
        body = [f"0: $v = (fp32) {number}", f"1: $r = {op}({operands})", "2: O = store($r)"]
        program = _around(
            [
                "\n".join(
                    [
                        "0: #kernel block [i:64] ( // k",
                        "out<[0]> O = O[i]:assign fp32(1:1)",
                        ") {",
                        *body,
                        "}",
                    ]
                )
            ]
        )
        (kernel,) = next(iter(program.entry.blocks)).blocks
        assert stored_number(kernel, {}, frozenset()) is None


@pytest.mark.slow
def test_many_claimed_contributions_are_computed() -> None:
    for seed in range(1000, 1500):
        check(seed)
