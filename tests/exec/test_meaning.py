"""What blocks, views, allocations and aggregations mean, on small programs with numpy as the oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest

import stripe
from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.ir import DTYPES, Program
from tests.support.programs import build, checked, load, source

ROW = np.arange(12, dtype=np.float32).reshape(3, 4)


def reduction(agg: str, dtype: str = "fp32", body: str = "") -> Program:
    """O[i] = agg over j of A[i, j], A of 3 x 4."""
    return build(
        f"in A {dtype}(3 4); out O {dtype}(3)",
        f"""0: #kernel block [i:3, j:4] ( // reduce
            {body}
            in<[0]> A[i, j] {dtype}(1:4, 1:1)
            out<[0]> O[i]:{agg} {dtype}(1:1)
        ) {{
          0: $a = load(A)
          1: O = store($a)
        }}""",
    )


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "bool"])
@pytest.mark.parametrize("agg", ["add", "mul", "min", "max"])
def test_aggregations(agg: str, dtype: str) -> None:
    data = np.array([[1, 2, 3, 1], [5, 1, 1, 1], [1, 1, 1, 1]]).astype(DTYPES[dtype].numpy())
    function = {"add": np.sum, "mul": np.prod, "min": np.min, "max": np.max}[agg]
    want = function(data.astype(np.float64), axis=1)
    assert interpret(reduction(agg, dtype), {"A": data})["O"].tolist() == want.tolist()


@pytest.mark.parametrize(("agg", "function"), [("add", any), ("max", any), ("mul", all), ("min", all)])
def test_aggregations_of_bool(agg: str, function: object) -> None:
    data = np.array([[True, False, True, True], [True] * 4, [False] * 4])
    assert callable(function)
    assert interpret(reduction(agg, "bool"), {"A": data})["O"].tolist() == [function(row) for row in data]


def test_a_sum_of_small_integers_wraps() -> None:
    data = np.full((3, 4), 100, np.int8)
    assert interpret(reduction("add", "i8"), {"A": data})["O"].tolist() == [(400 + 128) % 256 - 128] * 3


def test_maximum_of_negatives_is_negative_and_nan_wins() -> None:
    data = -ROW - 1
    data[1, 2] = np.nan
    got = interpret(reduction("max"), {"A": data})["O"]
    assert got[0] == -1 and np.isnan(got[1]) and got[2] == -9


def test_masked_points_contribute_nothing() -> None:
    got = interpret(reduction("mul", body="-1 + j >= 0\n 2 - j >= 0"), {"A": ROW})["O"]
    assert got.tolist() == (ROW[:, 1] * ROW[:, 2]).tolist()


def test_an_element_that_nobody_contributes_to_holds_the_identity() -> None:
    got = interpret(reduction("max", body="-1 + i >= 0"), {"A": ROW})["O"]
    assert got.tolist() == [-np.inf, 7, 11]


def test_a_value_that_does_not_depend_on_the_index_counts_once_per_point() -> None:
    built = load("exec/meaning/value_without_index")
    assert interpret(built, {})["O"].tolist() == [4, 4, 4]


def test_two_blocks_aggregate_into_one_output() -> None:
    built = load("exec/meaning/two_blocks_aggregate_into_one_output")
    assert interpret(built, {"A": ROW})["O"].tolist() == (2 * ROW.sum(axis=1)).tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("agg", ["add", "mul", "min", "max"])
def test_colliding_addresses_aggregate(agg: str, dtype: str) -> None:
    built = build(
        f"in A {dtype}(4); out O {dtype}(6)",
        f"""0: #kernel block [i:4, k:3] (
            in<[0]> A[i] {dtype}(1:1)
            out<[0]> O[i + k]:{agg} {dtype}(1:1)
        ) {{
          0: $a = load(A)
          1: O = store($a)
        }}""",
    )
    data = np.array([1, 0, 3, 2]).astype(DTYPES[dtype].numpy())
    windows = [[data[i] for i in range(4) if 0 <= x - i <= 2] for x in range(6)]
    function = {"add": sum, "mul": math.prod, "min": min, "max": max}[agg]
    want = [float(function([float(v) for v in window])) for window in windows]
    got = interpret(built, {"A": data})["O"].astype(np.float64).tolist()
    assert got == ([float(v != 0) for v in want] if dtype == "bool" else want)


def test_a_tile_with_a_local_buffer_is_fresh_for_each_point() -> None:
    """Tiles accumulate into a nested allocation, which is then added to the output."""
    built = load("exec/meaning/local_buffer_of_a_tile")
    data = np.arange(32, dtype=np.float32).reshape(4, 8)
    for budget in (1 << 30, 1):
        got = interpret(built, {"A": data}, memory_budget=budget)["O"]
        assert got.tolist() == data.sum(axis=1).tolist()


def test_views_over_the_edge_and_passed_in_indices() -> None:
    """Windows of 4 around tiles of 2: the box hangs over both edges, constraints keep the elements inside."""
    built = load("exec/meaning/views_over_the_edge")
    data = np.array([1, 2, 4, 8, 16, 32], np.float32)
    want = np.convolve(data, [1, 1, 1], mode="same")
    for budget in (1 << 30, 1):
        assert interpret(built, {"A": data}, memory_budget=budget)["O"].tolist() == want.tolist()


def test_floor_and_mod_accesses_reshape() -> None:
    built = load("exec/meaning/reshape")
    assert interpret(built, {"A": ROW})["O"].tolist() == ROW.ravel().tolist()


def test_floor_and_mod_on_the_written_side_and_in_constraints() -> None:
    built = load("exec/meaning/floor_and_mod_written")
    assert interpret(built, {"A": ROW.ravel()})["O"].tolist() == ROW.reshape(4, 3).T.tolist()


def test_strides_of_user_tensors_stay_inside() -> None:
    """A column-major input with padding, an output with gaps: arrays are logical outside."""
    text = source("exec/meaning/strided_user_tensor")
    data = np.arange(12, dtype=np.int32).reshape(3, 4)
    got = interpret(checked(text), {"A": data})["O"]
    assert got.tolist() == data.tolist() and got.flags.c_contiguous


def test_load_index_gives_the_affine() -> None:
    built = load("exec/meaning/load_index")
    assert interpret(built, {})["O"].tolist() == [-3, -1, 1, 3]


def test_a_scalar_keeps_its_value_when_memory_changes() -> None:
    """T[i] is loaded, overwritten, and the old value used after that."""
    built = load("exec/meaning/scalar_kept")
    assert interpret(built, {"A": np.array([5, 6, 7], np.int32)})["O"].tolist() == [5, 6, 7]


def test_constants_of_the_program() -> None:
    built = load("exec/meaning/constants_of_the_program")
    assert interpret(built, {})["O"].tolist() == [1, -1, 512]


@pytest.mark.parametrize("budget", [1 << 30, 1])
def test_twelve_deep_nest(budget: int) -> None:
    """Each level halves what is left of a row of 4096 elements: the innermost sees one."""
    depth, size = 12, 1 << 12
    heads = [
        f"""0: block [b:2] (
            in<[0]> A[{size >> level}*b] i32({size >> level}:1)
            out<[0]> O[{size >> level}*b]:add i32({size >> level}:1)
        ) {{"""
        for level in range(1, depth + 1)
    ]
    leaf = "0: $a = load(A)\n1: $d = add($a, $a)\n2: O = store($d)\n"
    built = build(f"in A i32({size}); out O i32({size})", "\n".join(heads) + leaf + "}" * depth)
    data = np.arange(size, dtype=np.int32)
    got = interpret(built, {"A": data}, memory_budget=budget)["O"]
    assert (got == 2 * data).all()


def test_many_indices_of_range_one() -> None:
    names = [f"r{n}" for n in range(70)]
    built = build(
        "in A i32(3); out O i32(3)",
        f"""0: #kernel block [{", ".join(f"{n}:1" for n in names)}, i:3] (
            in<[0]> A[{" + ".join(["i", *sorted(names)])}] i32(1:1)
            out<[0]> O[i]:assign i32(1:1)
        ) {{
          0: $a = load(A)
          1: O = store($a)
        }}""",
    )
    assert interpret(built, {"A": np.array([4, 5, 6], np.int32)})["O"].tolist() == [4, 5, 6]


def test_inputs_are_not_changed_and_must_fit() -> None:
    built = reduction("add")
    data = ROW.copy()
    interpret(built, {"A": data})
    assert (data == ROW).all()
    for bad, what in (
        ({}, "input 'A' is missing"),
        ({"A": ROW, "B": ROW}, "no input 'B'"),
        ({"A": ROW.T}, r"shape \[4, 3\], the program takes \[3, 4\]"),
        ({"A": ROW.astype(np.float64)}, "dtype float64, the program takes fp32"),
    ):
        with pytest.raises(ExecutionError, match=what):
            interpret(built, bad)


def test_a_tensor_that_is_updated_in_place() -> None:
    """It is an input and an output; stores merge into what was given, and the caller's array stays as it is."""
    built = load("exec/meaning/updated_in_place")
    data = np.array([1, 2, 3, 4], np.int32)
    assert interpret(built, {"A": data})["A"].tolist() == [4, 2, 6, 4]
    assert data.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(("first", "size"), [(0, 10**9), (5 * 10**17, 10**18), (10**18 - 3, 10**18)])
def test_points_that_constraints_leave_of_a_vast_range_are_found_without_a_walk(
    first: int, size: int
) -> None:
    program = build(
        "in A i32(3 4); out O i32(3)",
        f"""0: #kernel block [i:{size}, j:4] ( // reduce
            -{first} + i >= 0
            {first + 2} - i >= 0
            in<[0]> A[-{first} + i, j] i32(1:4, 1:1)
            out<[0]> O[-{first} + i]:add i32(1:1)
        ) {{
          0: $a = load(A)
          1: O = store($a)
        }}""",
    )
    data = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert interpret(program, {"A": data})["O"].tolist() == [6, 22, 38]


@pytest.mark.parametrize("engine", ["interp", "c"])
def test_a_sum_onto_negative_zeros_keeps_their_sign(engine: str) -> None:
    program = load("exec/sum_onto_zeros")
    zeros = np.full(4, -0.0, np.float32)
    found = stripe.run(program, {"X": zeros, "O": zeros}, engine=engine)["O"]
    assert np.signbit(found).all()
