"""Every intrinsic, cast, constant and aggregation on every dtype in C, against the interpreter, corner values included.

All kernels are one program, so that each compiler runs once.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from stripe.exec.compare import EXACT, LOOSE, compare
from stripe.exec.compile import CompileOptions, compile_program
from stripe.exec.interp import interpret
from stripe.ir import DTYPES, INTRINSICS, DType, Program
from tests.support.batch import merge, merge_arrays, prefixed
from tests.support.compilers import BUILD_NAMES, BUILDS
from tests.support.corners import corner_arrays, corner_values
from tests.support.programs import build, elementwise

Case = tuple[str, Program, dict[str, npt.NDArray[Any]]]


def unary(statement: str, dtypes: list[DType], result: DType) -> Case:
    data = corner_arrays(dtypes)
    names = {name: dtype.name for name, dtype in zip(data, dtypes, strict=True)}
    return statement, elementwise(statement, len(data["A"]), names, result.name), data


def intrinsic_cases() -> list[Case]:
    cases: list[Case] = []
    for op, spec in INTRINSICS.items():
        if op == "cast":
            continue
        for dtype in DTYPES.values():
            if not spec.takes(dtype):
                continue
            dtypes = [dtype] * spec.arity if op != "cond" else [DTYPES["bool"], dtype, dtype]
            call = ", ".join(f"${name}" for name in "ABC"[: spec.arity])
            cases.append(
                unary(f"$O = {op}({call})", dtypes, DTYPES["bool"] if spec.result == "bool" else dtype)
            )
    return cases


def cast_cases() -> list[Case]:
    return [
        unary(f"$O = cast($A, {target})", [source], target)
        for source, target in product(DTYPES.values(), repeat=2)
    ]


def same_operand_cases() -> list[Case]:
    """`op($A, $A)`: compilers warn of comparisons with itself."""
    cases: list[Case] = []
    for op, name in product(
        ("cmp_lt", "cmp_eq", "sub", "min", "div", "bit_xor"), ("i32", "fp32", "u8", "bool")
    ):
        if INTRINSICS[op].takes(DTYPES[name]):
            result = DTYPES["bool"] if op.startswith("cmp") else DTYPES[name]
            cases.append(unary(f"$O = {op}($A, $A)", [DTYPES[name]], result))
    return cases


CONSTANTS = {
    "bool": ["true", "false"],
    "i8": ["-128", "127"],
    "u8": ["255", "0"],
    "i16": ["-32768"],
    "u16": ["65535"],
    "i32": ["-2147483648", "2147483647"],
    "u32": ["4294967295"],
    "i64": ["-9223372036854775808", "9223372036854775807", "4294967296"],
    "u64": ["18446744073709551615"],
    "fp16": ["0.1", "65519.0", "65520.0", "6.0e-8", "nan"],
    "bf16": ["0.1", "3.4e38", "-inf"],
    "fp32": ["0.1", "1.0e-45", "1.0e39", "-0.0", "16777217.0", "inf", "-inf", "nan"],
    "fp64": ["0.1", "5.0e-324", "inf", "nan", "9007199254740993.0"],
}


def constant_cases() -> list[Case]:
    data = {"A": np.zeros(1, np.int8)}
    return [
        (f"({dtype}){value}", elementwise(f"$O = ({dtype}){value}", 1, {"A": "i8"}, dtype), data)
        for dtype, texts in CONSTANTS.items()
        for value in texts
    ]


def aggregation_cases() -> list[Case]:
    """Sums over the inner index (in a register), and over the outer one (in memory)."""
    cases: list[Case] = []
    for agg, dtype, order in product(("add", "mul", "min", "max"), DTYPES.values(), ("o:3, r:7", "r:7, o:3")):
        body = f"""0: #kernel block [{order}] ( // aggregate
            in<[0]> A[o, r] {dtype}(1:7, 1:1)
            out<[0]> O[o]:{agg} {dtype}(1:1)
        ) {{
          0: $a = load(A)
          1: O = store($a)
        }}"""
        name = f"{agg} {dtype} [{order}]"
        built = build(f"in A {dtype.name}(3 7); out O {dtype.name}(3)", body)
        pattern = [corner_values(dtype)[n % len(corner_values(dtype))] for n in range(21)]
        if dtype.is_float:
            pattern = [float(n % 4 - 1) for n in range(20)] + [math.nan]
        data = np.array(pattern, np.float64 if dtype.is_float else dtype.numpy())
        cases.append((name, built, {"A": data.astype(dtype.numpy()).reshape(3, 7)}))
    return cases


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [
        *intrinsic_cases(), *cast_cases(), *same_operand_cases(), *constant_cases(), *aggregation_cases(),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def expected(cases: list[Case]) -> list[dict[str, npt.NDArray[Any]]]:
    return [interpret(built, data) for _, built, data in cases]


@pytest.mark.parametrize("options", BUILDS, ids=BUILD_NAMES)
def test_every_scalar_operation(
    options: CompileOptions, cases: list[Case], expected: list[dict[str, npt.NDArray[Any]]]
) -> None:
    whole = merge([built for _, built, _ in cases])
    results = compile_program(whole, options).run(merge_arrays([data for _, _, data in cases]))
    wrong: list[str] = []
    for number, (name, _, data) in enumerate(cases):
        got = {"O": results[prefixed(number, "O")]}
        loose = any(f"{op}(" in name for op, spec in INTRINSICS.items() if not spec.exact)
        differences = compare(expected[number], got, LOOSE if loose else EXACT)
        wrong += [f"{name} on {[str(a.dtype) for a in data.values()]}: {d}" for d in differences]
    assert wrong == []


NARROW = [dtype for dtype in DTYPES.values() if dtype.is_narrow]


def all_values(dtype: DType) -> npt.NDArray[Any]:
    """The values of all patterns of bits."""
    return np.arange(1 << dtype.bits, dtype=f"u{dtype.bytes}").view(dtype.numpy())


def float_patterns() -> npt.NDArray[np.float32]:
    """All values of the narrow floats as fp32, their neighbours and midpoints, and random bits."""
    exact = np.concatenate([all_values(dtype).astype(np.float32).view(np.uint32) for dtype in NARROW])
    halves = [half + step for half in (1 << 12, 1 << 15, 1 << 19, 1 << 20) for step in (-1, 0, 1)]
    near = [exact + np.uint32(step) for step in (0, 1, *halves)]
    noise = np.random.default_rng(7).integers(0, 1 << 32, 1 << 18, np.uint32)
    return np.concatenate([*near, noise]).view(np.float32)


def test_narrow_floats_convert_as_numpy_and_ml_dtypes_do() -> None:
    singles = float_patterns()
    kernels: list[Program] = []
    data: list[dict[str, npt.NDArray[Any]]] = []
    wanted: list[npt.NDArray[Any]] = []
    for dtype in NARROW:
        name, values = dtype.name, all_values(dtype)
        kernels.append(elementwise(f"$O = cast($A, {name})", singles.size, {"A": "fp32"}, name))
        kernels.append(elementwise("$O = cast($A, fp32)", values.size, {"A": name}, "fp32"))
        kernels.append(elementwise("$O = ident($A)", values.size, {"A": name}, name))
        data += [{"A": singles}, {"A": values}, {"A": values}]
        with np.errstate(over="ignore", invalid="ignore"):
            wanted += [singles.astype(dtype.numpy()), values.astype(np.float32), values]
    results = compile_program(merge(kernels)).run(merge_arrays(data))
    for number, expected in enumerate(wanted):
        got = results[prefixed(number, "O")]
        bits = f"u{got.itemsize}"
        with np.errstate(invalid="ignore"):
            same = (got.view(bits) == expected.view(bits)) | ((got != got) & (expected != expected))
        assert same.all(), (number, np.argmin(same))
    for number, dtype in enumerate(NARROW):
        copied = results[prefixed(3 * number + 2, "O")].tobytes()
        assert copied == all_values(dtype).tobytes(), "a copy keeps every bit of a NaN"
