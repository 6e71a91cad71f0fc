"""Each row of the tables of operations, aggregations and dtypes: the reference of Tile, which shares no code with the
rest, agrees with the interpreter on corner values. `tests/emit/test_scalars.py` compares the interpreter with C."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from stripe.exec import arith
from stripe.exec.compare import EXACT, LOOSE, Tolerance, compare
from stripe.exec.compile import compile_program
from stripe.exec.interp import interpret
from stripe.ir import DTYPES, INTRINSICS, Agg, DType, StripeError, verify_structural
from stripe.ir.dtypes import BOOL
from stripe.ir.intrinsics import IntrinsicSpec
from stripe.tile import bind, lower, parse_tile
from stripe.tile.fold import fold
from stripe.tile.operations import OperandError, called, operation_names, result_dtype
from stripe.tile.reference import evaluate
from stripe.tile.reference_ops import ELEMENTWISE
from stripe.tile.typed import Const
from tests.support.corners import corner_arrays


def check(text: str, data: Mapping[str, npt.NDArray[Any]], tolerance: Tolerance) -> None:
    function = bind(parse_tile(text))
    with np.errstate(all="ignore"):
        found = compare(evaluate(function, data), interpret(lower(function, "row"), data), tolerance)
    assert [str(difference) for difference in found] == []


def operands(spec: IntrinsicSpec, dtype: DType) -> Sequence[DType]:
    return [BOOL, dtype, dtype] if spec.result == "cond" else [dtype] * spec.arity


def cases() -> Iterator[tuple[str, str]]:
    """The names by which Tile calls operations, with each dtype that they take."""
    for name in sorted(operation_names()):
        spec = called(name)
        assert spec is not None
        for dtype in DTYPES.values():
            try:
                result_dtype(spec.name, operands(spec, dtype))
            except OperandError:
                continue
            yield name, dtype.name


@pytest.mark.parametrize(("name", "dtype"), list(cases()))
def test_an_operation_of_tile(name: str, dtype: str) -> None:
    spec = called(name)
    assert spec is not None
    data = corner_arrays(operands(spec, DTYPES[dtype]))
    size = data["A"].size
    declared = ", ".join(f"{operand}[N={size}]: {array_type(array)}" for operand, array in data.items())
    tolerance = EXACT if spec.exact else LOOSE
    check(f"function ({declared}) -> (O) {{ O = {name}({', '.join(data)}); }}", data, tolerance)


def array_type(array: npt.NDArray[Any]) -> str:
    return next(dtype.name for dtype in DTYPES.values() if dtype.numpy() == array.dtype)


@pytest.mark.parametrize("symbol", sorted({spec.symbol for spec in INTRINSICS.values() if spec.symbol}))
def test_an_operator_of_tile(symbol: str) -> None:
    data = corner_arrays([DTYPES["i16"], DTYPES["i16"]])
    declared = ", ".join(f"{operand}[N={data['A'].size}]: i16" for operand in data)
    forms = [f"A {symbol} B" if spec.arity == 2 else f"{symbol}A" for spec in with_symbol(symbol)]
    for form in forms:
        check(f"function ({declared}) -> (O) {{ O = {form}; }}", data, EXACT)


def with_symbol(symbol: str) -> list[IntrinsicSpec]:
    return [spec for spec in INTRINSICS.values() if spec.symbol == symbol]


@pytest.mark.parametrize(
    ("agg", "dtype"), [(agg, dtype.name) for agg in Agg for dtype in DTYPES.values() if agg.takes(dtype)]
)
def test_an_aggregation(agg: Agg, dtype: str) -> None:
    """Over small numbers, whose sums and products are exact in any order, and over pairs of corner values."""
    kind = DTYPES[dtype]
    small = np.array([[n % 4 - 1 if kind.min_value else n % 3 for n in range(6)]] * 3).astype(kind.numpy())
    rows = np.stack(list(corner_arrays([kind, kind]).values()), axis=1)
    for values in (small, rows):
        if agg is Agg.ASSIGN:
            values = values[:, :1]
        size, terms = values.shape
        text = f"function (A[N={size}, M={terms}]: {dtype}) -> (O) {{ O[i : N] = {agg.symbol}(A[i, j]); }}"
        check(text, {"A": values}, EXACT)


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", [name for name in DTYPES if name != "bool"])
def test_a_cast(source: str, target: str) -> None:
    kind = DTYPES[target]
    function = {"int": "as_int", "uint": "as_uint", "float": "as_float"}[kind.kind]
    by_width = target in (f"i{kind.bits}", f"u{kind.bits}", f"fp{kind.bits}")
    call = f"{function}(A, {kind.bits})" if by_width else f"as_{target}(A)"
    data = corner_arrays([DTYPES[source]])
    check(f"function (A[N={data['A'].size}]: {source}) -> (O) {{ O = {call}; }}", data, EXACT)


@pytest.mark.parametrize(
    ("agg", "dtype"),
    [(agg, d) for agg in Agg if agg is not Agg.ASSIGN for d in DTYPES.values() if agg.takes(d)],
    ids=str,
)
def test_identity_idempotence_and_order_are_what_the_rows_say(agg: Agg, dtype: DType) -> None:
    values = corner_arrays([dtype])["A"]
    identity = np.full_like(values, arith.constant(agg.identity(dtype), dtype))
    merge = arith.aggregation(agg, dtype)
    with np.errstate(all="ignore"):
        assert compare({"O": values}, {"O": merge(values, identity)}) == []
        assert compare({"O": merge(identity, values)}, {"O": merge(values, identity)}) == []
        twice = compare({"O": values}, {"O": merge(values, values)})
    assert bool(twice) == agg.counts(dtype)


@pytest.mark.parametrize(
    "spec", [spec for spec in INTRINSICS.values() if spec.arity == 2], ids=lambda s: s.name
)
def test_operands_commute_where_the_row_says(spec: IntrinsicSpec) -> None:
    for dtype in filter(spec.takes, DTYPES.values()):
        a, b = corner_arrays([dtype, dtype]).values()
        with np.errstate(all="ignore"):
            there, back = (arith.apply(spec.name, pair, dtype) for pair in ((a, b), (b, a)))
        known = ~(np.isnan(there.astype(np.float64)) if dtype.is_float else np.zeros(there.shape, np.bool_))
        assert (there[known].tobytes() == back[known].tobytes()) == spec.commutes_on(dtype), dtype


@pytest.mark.parametrize(
    "spec", [spec for spec in INTRINSICS.values() if spec.result in ("same", "bool")], ids=lambda s: s.name
)
def test_folding_is_computing(spec: IntrinsicSpec) -> None:
    """In fp64 and in an integer type without overflow; folding refuses what is not finite."""
    for name in ("fp64", "i32"):
        if not spec.takes(DTYPES[name]):
            continue
        columns = corner_arrays([DTYPES[name]] * spec.arity)
        for row in zip(*(column.tolist() for column in columns.values()), strict=True):
            if not all(math.isfinite(value) and abs(value) < 1000 for value in row):
                continue
            try:
                folded = spec.fold(*row)
            except (ArithmeticError, ValueError):
                continue
            with np.errstate(all="ignore"):
                computed = arith.apply(
                    spec.name, [np.asarray(value, DTYPES[name].numpy()) for value in row], DTYPES[name]
                ).item()
            if name == "i32" and not -(2**31) <= folded < 2**31:
                continue
            assert computed == pytest.approx(folded, rel=1e-12), row


def test_dtypes_say_what_numpy_does() -> None:
    for dtype in DTYPES.values():
        assert dtype.numpy().itemsize == dtype.bytes
        if dtype.is_float:
            step = 2.0 ** (1 - dtype.mantissa)
            assert float(np.asarray(1 + step, dtype.numpy())) == 1 + step
            assert float(np.asarray(1 + step / 2, dtype.numpy())) == 1
            assert float(np.asarray(dtype.largest, dtype.numpy())) == dtype.largest


def test_rows_and_the_reference_name_the_same_operations() -> None:
    named = {spec.name for spec in INTRINSICS.values() if spec.result not in ("cast", "cond")}
    assert named == set(ELEMENTWISE)


def test_a_row_is_all_that_an_operation_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    row = IntrinsicSpec("erf", 1, "float", "same", math.erf, c="{math[erf]}({0})", exact=False)
    monkeypatch.setitem(INTRINSICS, "erf", row)
    values = [0.0, 0.5, -1.5, 100.0]
    for name in ("fp16", "fp32", "fp64"):
        program = lower(
            bind(parse_tile(f"function (A[N=4]: {name}) -> (O) {{ O = erf(A) + erf(0.5); }}")), "erf"
        )
        data = {"A": np.array(values, DTYPES[name].numpy())}
        expected = np.array([math.erf(value) + math.erf(0.5) for value in values])
        for engine in (interpret(program, data), compile_program(program).run(data)):
            assert engine["O"].astype(np.float64) == pytest.approx(
                expected, rel=2e-3 if name == "fp16" else 1e-6
            )


def test_an_aggregation_of_a_dtype_that_its_row_does_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "function (A[N=4]: fp32) -> (O) { O[] = +(A[i]); }"
    program = lower(bind(parse_tile(text)))
    monkeypatch.setitem(INTRINSICS, "add", replace(INTRINSICS["add"], operands="integer"))
    assert not Agg.ADD.takes(DTYPES["fp32"])
    assert Agg.ADD.takes(DTYPES["i8"])
    assert "'O' is fp32, which 'add' does not take" in str(verify_structural(program)[0])
    with pytest.raises(StripeError, match=r"'\+' does not aggregate fp32"):
        lower(bind(parse_tile(text)))


def test_constants_of_bool_fold_as_bools() -> None:
    yes, no = Const(value=True, dtype=BOOL), Const(value=False, dtype=BOOL)
    assert fold("bit_not", [yes]) == no
    assert fold("add", [yes, yes]) == yes
    assert fold("sub", [yes, yes]) == no
