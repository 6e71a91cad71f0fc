"""Random contractions against brute force: strides, halos, fractions, negative signs, constraints, all operators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from stripe.exec.interp import interpret
from stripe.ir import StripeError, parse_program, print_program, verify_structural
from stripe.ir.dtypes import BOOL, DTYPES, common_type_of
from stripe.tile import ast, compile_tile, parse_tile, print_tile
from tests.tile.random_polynomials import anchor, polynomials
from tests.tile.reference import MultipleAssignment, contraction

REACH = 16  # |index| <= 2 * (5 + 3) by the anchors below
NAMES = ("i", "j", "k")
COMBINATIONS: list[ast.CombOp] = ["", "*", "*", "+", "==", "?"]
AGGREGATIONS: list[ast.AggOp] = ["+", "+", "*", ">", "<", "="]


@st.composite
def functions(draw: st.DrawFn) -> ast.Function:
    """A function with one contraction whose indices are all bounded."""
    names = NAMES[: draw(st.integers(1, 3))]
    comb = draw(st.sampled_from(COMBINATIONS))
    arity = {"": 1, "?": 3}.get(comb, 2)
    size = st.integers(1, 5)
    homes: list[list[ast.Expr]] = [[] for _ in range(arity + 2)]  # output, inputs, constraints
    for name in names:
        homes[draw(st.integers(0, arity + 1))].append(anchor(draw, name))
    for place in range(arity + 2):
        extra = draw(st.integers(0, 1 if place < arity + 1 else 2))
        homes[place] += [draw(polynomials(names)) for _ in range(extra)]
    inputs: list[ast.Input] = []
    accesses: list[ast.TensorAccess] = []
    dtypes = draw(
        st.lists(st.sampled_from(["fp32", "i32", "i8", "u8", "fp64", "i64"]), min_size=arity, max_size=arity)
    )
    for place, dtype in enumerate(dtypes):
        dims = tuple(ast.InputDim(f"D{place}_{n}", draw(size)) for n in range(len(homes[place + 1])))
        inputs.append(ast.Input(f"A{place}", dims, dtype))
        accesses.append(ast.TensorAccess(f"A{place}", tuple(homes[place + 1])))
    sizes = tuple(ast.IntLit(draw(size)) for _ in homes[0])
    bounds = tuple(ast.Bound(expr, ast.IntLit(draw(size))) for expr in homes[-1])
    agg = draw(st.sampled_from(AGGREGATIONS))
    common = BOOL if comb == "==" else common_type_of(DTYPES[dtype] for dtype in dtypes)
    wider = [name for name, dtype in DTYPES.items() if common_type_of((dtype, common)) == dtype]
    dtype = draw(st.none() | st.sampled_from([name for name in wider if not DTYPES[name].is_narrow]))
    node = ast.Contraction(
        ast.TensorAccess("O", tuple(homes[0])), sizes or None, agg, comb, tuple(accesses), bounds,
        no_defract=draw(st.booleans()), dtype=dtype,
    )  # fmt: skip
    return ast.Function(tuple(inputs), (ast.Output("O"),), (node,))


def _random_arrays(function: ast.Function, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    generator = np.random.default_rng(seed)
    node = function.statements[0]
    assert isinstance(node, ast.Contraction)
    high = 1 if node.agg == "*" else 3  # products of powers of two are exact in any order
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for item in function.inputs:
        assert item.dims is not None and item.dtype is not None
        low = 0 if item.dtype.startswith("u") else -high
        values = generator.integers(low, high + 1, tuple(dim.size or 1 for dim in item.dims))
        arrays[item.name] = np.asarray(values).astype(DTYPES[item.dtype].numpy())
    return arrays


def check(function: ast.Function, seed: int) -> None:
    """Compiles, verifies, runs, and compares with brute force; errors must be ones that brute force sees too."""
    node = function.statements[0]
    assert isinstance(node, ast.Contraction)
    text = print_tile(function)
    assert parse_tile(text) == function, text
    arrays = _random_arrays(function, seed)
    dtypes = [DTYPES[item.dtype or "fp32"] for item in function.inputs]
    dtype = BOOL if node.comb == "==" else common_type_of(dtypes)
    dtype = DTYPES[node.dtype] if node.dtype is not None else dtype
    sizes = tuple(size.value for size in node.sizes or () if isinstance(size, ast.IntLit))
    with np.errstate(all="ignore"):
        assigned = replace(node, agg="+") if node.agg == "=" else node
        _, hits = contraction(assigned, arrays, sizes, dtype.numpy(), {}, REACH)
        try:
            program = compile_tile(text, "t.tile")
        except StripeError as error:
            if "more than once" in error.reason:
                element = error.reason.split("O[")[1].split("]")[0]
                assert hits[tuple(int(n) for n in element.split(",") if n)] > 1
                assert node.agg == "="
            else:
                assert "no point" in error.reason, error
                assert hits.sum() == 0, text
            return
        assert verify_structural(program) == []
        assert parse_program(print_program(program)) == program
        try:
            expected, hits = contraction(node, arrays, sizes, dtype.numpy(), {}, REACH)
        except MultipleAssignment:
            raise AssertionError(f"multiple assignment not found:\n{text}") from None
        assert hits.sum() > 0, text
        found = interpret(program, arrays)["O"]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected, err_msg=text)


def parsed(text: str) -> ast.Function:
    return parse_tile(text)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(functions(), st.integers(0, 1000))
@example(parsed("function (A[N=5]: fp32, B[K=3]: fp32) -> (O) { O[2*i + j : 9] = +(A[i] * B[j]); }"), 0)
@example(parsed("function (A[N=5]: fp32, B[K=3]: fp32) -> (O) { O[x : 9] = +(A[x/2 + -1*j/2] * B[j]); }"), 0)
@example(parsed("function (A[N=5]: i8) -> (O) { O[i : 5] = >(A[i + j]), j < 3; }"), 1)
@example(parsed("function (A[N=5]: i8) -> (O) { O[3*i : 11] = =(A[i]); }"), 1)
@example(parsed("function (A[N=4]: i32) -> (O) { O[i : 4] = *(A[i + -1*j]), j < 4; }"), 1)
@example(
    parsed("function (A[N=5]: u8, B[M=5]: fp32, C[L=5]: i32) -> (O) { O[] = +(A[i] == B[i] ? C[i]); }"), 2
)
@example(parsed("function (A[N=5]: i8, B[M=5]: u8) -> (O) { O[]: i32 = +(A[i] * B[i]); }"), 2)
@example(parsed("function (A[N=5]: i8, B[M=5]: u8) -> (O) { O[]: i32 = +(A[i] == B[i]); }"), 2)
def test_contractions_mean_what_brute_force_says(function: ast.Function, seed: int) -> None:
    check(function, seed)
