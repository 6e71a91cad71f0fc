"""What blocks, views, allocations and aggregations mean, on small programs with numpy as the oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.ir import DTYPES, Program
from tests.support.exec_programs import checked, elementwise, program

ROW = np.arange(12, dtype=np.float32).reshape(3, 4)


def reduction(agg: str, dtype: str = "fp32", body: str = "") -> Program:
    """O[i] = agg over j of A[i, j], A of 3 x 4."""
    return program(
        f"""0: #kernel block [i:3, j:4] ( // reduce
            {body}
            in<[0]> A[i, j] {dtype}(1:4, 1:1)
            out<[0]> O[i]:{agg} {dtype}(1:1)
        ) {{
          0: $a = load(A)
          1: O = store($a)
        }}""",
        inputs={"A": ((3, 4), dtype)},
        outputs={"O": ((3,), dtype)},
    )


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "bool"])
@pytest.mark.parametrize("agg", ["add", "mul", "min", "max"])
def test_aggregations(agg: str, dtype: str) -> None:
    data = np.array([[1, 2, 3, 1], [5, 1, 1, 2], [1, 1, 1, 1]]).astype(DTYPES[dtype].numpy())
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
    built = program(
        """0: #kernel block [i:3, j:4] (
            out<[0]> O[i]:add i32(1:1)
        ) {
          0: $one = (i32)1
          1: O = store($one)
        }""",
        inputs={},
        outputs={"O": ((3,), "i32")},
    )
    assert interpret(built, {})["O"].tolist() == [4, 4, 4]


def test_two_blocks_aggregate_into_one_output() -> None:
    block = """block [i:3, j:4] (
            in<[0]> A[i, j] fp32(1:4, 1:1)
            out<[0]> O[i]:add fp32(1:1)
        ) {
          0: $a = load(A)
          1: O = store($a)
        }"""
    built = program(
        f"0: #kernel {block}\n1: #kernel {block}",
        inputs={"A": ((3, 4), "fp32")},
        outputs={"O": ((3,), "fp32")},
    )
    assert interpret(built, {"A": ROW})["O"].tolist() == (2 * ROW.sum(axis=1)).tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("agg", ["add", "mul", "min", "max"])
def test_colliding_addresses_aggregate(agg: str, dtype: str) -> None:
    built = program(
        f"""0: #kernel block [i:4, k:3] (
            in<[0]> A[i] {dtype}(1:1)
            out<[0]> O[i + k]:{agg} {dtype}(1:1)
        ) {{
          0: $a = load(A)
          1: O = store($a)
        }}""",
        inputs={"A": ((4,), dtype)},
        outputs={"O": ((6,), dtype)},
    )
    data = np.array([1, 0, 3, 2]).astype(DTYPES[dtype].numpy())
    windows = [[data[i] for i in range(4) if 0 <= x - i <= 2] for x in range(6)]
    function = {"add": sum, "mul": math.prod, "min": min, "max": max}[agg]
    want = [float(function([float(v) for v in window])) for window in windows]
    got = interpret(built, {"A": data})["O"].astype(np.float64).tolist()
    assert got == ([float(v != 0) for v in want] if dtype == "bool" else want)


def test_a_tile_with_a_local_buffer_is_fresh_for_each_point() -> None:
    """Tiles accumulate into a nested allocation, which is then added to the output."""
    built = program(
        """0: #kernel block [t:2, s:2] ( // tiles
            in<[0]> A[2*t, 4*s] fp32(2:8, 4:1)
            out<[0]> O[2*t]:add fp32(2:1)
            none new@0x00000000<[0]> L[0]:add fp32(2:1)
        ) {
          0: block [i:2, j:4] (
              in<[0]> A[i, j] fp32(1:8, 1:1)
              out<[0]> L[i]:add fp32(1:1)
          ) {
            0: $a = load(A)
            1: L = store($a)
          }
          1: block [i:2] (
              in<[0]> L[i] fp32(1:1)
              out<[0]> O[i]:add fp32(1:1)
          ) {
            0: $l = load(L)
            1: O = store($l)
          }
        }""",
        inputs={"A": ((4, 8), "fp32")},
        outputs={"O": ((4,), "fp32")},
    )
    data = np.arange(32, dtype=np.float32).reshape(4, 8)
    for budget in (1 << 30, 1):
        got = interpret(built, {"A": data}, memory_budget=budget)["O"]
        assert got.tolist() == data.sum(axis=1).tolist()


def test_views_over_the_edge_and_passed_in_indices() -> None:
    """Windows of 4 around tiles of 2: the box hangs over both edges, constraints keep the elements inside."""
    built = program(
        """0: #kernel block [t:3] (
            in<[0]> A[-1 + 2*t] fp32(4:1)
            out<[0]> O[2*t]:add fp32(2:1)
        ) {
          0: block [t = t, x:2, k:3] (
              -1 + k + 2*t + x >= 0
              6 - k - 2*t - x >= 0
              in<[0]> A[k + x] fp32(1:1)
              out<[0]> O[x]:add fp32(1:1)
          ) {
            0: $a = load(A)
            1: O = store($a)
          }
        }""",
        inputs={"A": ((6,), "fp32")},
        outputs={"O": ((6,), "fp32")},
    )
    data = np.array([1, 2, 4, 8, 16, 32], np.float32)
    want = np.convolve(data, [1, 1, 1], mode="same")
    for budget in (1 << 30, 1):
        assert interpret(built, {"A": data}, memory_budget=budget)["O"].tolist() == want.tolist()


def test_floor_and_mod_accesses_reshape() -> None:
    built = program(
        """0: #kernel block [i:12] (
            in<[0]> A[floor(i/4), i mod 4] fp32(1:4, 1:1)
            out<[0]> O[i]:assign fp32(1:1)
        ) {
          0: $a = load(A)
          1: O = store($a)
        }""",
        inputs={"A": ((3, 4), "fp32")},
        outputs={"O": ((12,), "fp32")},
    )
    assert interpret(built, {"A": ROW})["O"].tolist() == ROW.ravel().tolist()


def test_floor_and_mod_on_the_written_side_and_in_constraints() -> None:
    built = program(
        """0: #kernel block [i:12] (
            5 - i mod 6 >= 0
            in<[0]> A[i] fp32(1:1)
            out<[0]> O[i mod 3, floor(i/3)]:assign fp32(1:4, 1:1)
        ) {
          0: $a = load(A)
          1: O = store($a)
        }""",
        inputs={"A": ((12,), "fp32")},
        outputs={"O": ((3, 4), "fp32")},
    )
    assert interpret(built, {"A": ROW.ravel()})["O"].tolist() == ROW.reshape(4, 3).T.tolist()


def test_strides_of_user_tensors_stay_inside() -> None:
    """A column-major input with padding, an output with gaps: arrays are logical outside."""
    text = """0: #program block [] (
        #user none new@0x00000000<[0]> A[0, 0] i32(3:1, 4:5)
        #user none new@0x00000000<[0]> O[0, 0]:assign i32(3:8, 4:2)
    ) {
      0: #main block [] (
          in<[0]> A[0, 0] i32(3:1, 4:5)
          out<[0]> O[0, 0]:assign i32(3:8, 4:2)
      ) {
        0: #kernel block [i:3, j:4] (
            in<[0]> A[i, j] i32(1:1, 1:5)
            out<[0]> O[i, j]:assign i32(1:8, 1:2)
        ) {
          0: $a = load(A)
          1: O = store($a)
        }
      }
    }"""
    data = np.arange(12, dtype=np.int32).reshape(3, 4)
    got = interpret(checked(text), {"A": data})["O"]
    assert got.tolist() == data.tolist() and got.flags.c_contiguous


def test_load_index_gives_the_affine() -> None:
    built = elementwise("$O = load_index(-3 + 2*i)", 4, {}, "i32")
    assert interpret(built, {})["O"].tolist() == [-3, -1, 1, 3]


def test_a_scalar_keeps_its_value_when_memory_changes() -> None:
    """T[i] is loaded, overwritten, and the old value used after that."""
    built = program(
        """0: #kernel block [i:3] (
            in<[0]> A[i] i32(1:1)
            out<[0]> O[i]:assign i32(1:1)
            none new@0x00000000<[0]> T[0]:assign i32(1:1)
        ) {
          0: $a = load(A)
          1: T = store($a)
          2: $old = load(T)
          3: $b = add($a, $a)
          4: T = store($b)
          5: $new = load(T)
          6: $o = sub($new, $old)
          7: O = store($o)
        }""",
        inputs={"A": ((3,), "i32")},
        outputs={"O": ((3,), "i32")},
    )
    assert interpret(built, {"A": np.array([5, 6, 7], np.int32)})["O"].tolist() == [5, 6, 7]


def test_constants_of_the_program() -> None:
    built = checked("""0: #program block [] (
        #const none new@0x00000000<[0]> C[0] i16(3:1)
        #user none new@0x00000000<[0]> O[0]:assign i16(3:1)
    ) {
      0: #main block [] (
          in<[0]> C[0] i16(3:1)
          out<[0]> O[0]:assign i16(3:1)
      ) {
        0: #kernel block [i:3] (
            in<[0]> C[i] i16(1:1)
            out<[0]> O[i]:assign i16(1:1)
        ) {
          0: $c = load(C)
          1: O = store($c)
        }
      }
    }
    const C i16(3) = "0100ffff0002"
    """)
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
    built = program(
        "\n".join(heads) + leaf + "}" * depth,
        inputs={"A": ((size,), "i32")},
        outputs={"O": ((size,), "i32")},
    )
    data = np.arange(size, dtype=np.int32)
    got = interpret(built, {"A": data}, memory_budget=budget)["O"]
    assert (got == 2 * data).all()


def test_many_indices_of_range_one() -> None:
    names = [f"r{n}" for n in range(70)]
    built = program(
        f"""0: #kernel block [{", ".join(f"{n}:1" for n in names)}, i:3] (
            in<[0]> A[{" + ".join(["i", *sorted(names)])}] i32(1:1)
            out<[0]> O[i]:assign i32(1:1)
        ) {{
          0: $a = load(A)
          1: O = store($a)
        }}""",
        inputs={"A": ((3,), "i32")},
        outputs={"O": ((3,), "i32")},
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
    built = checked("""0: #program block [] (
        #user none new@0x00000000<[0]> A[0] i32(4:1)
    ) {
      0: #main block [] (
          inout<[0]> A[0]:assign i32(4:1)
      ) {
        0: #kernel block [i:2, k:3] (
            inout<[0]> A[2*i]:add i32(1:1)
        ) {
          0: $k = load_index(k)
          1: A = store($k)
        }
      }
    }""")
    data = np.array([1, 2, 3, 4], np.int32)
    assert interpret(built, {"A": data})["A"].tolist() == [4, 2, 6, 4]
    assert data.tolist() == [1, 2, 3, 4]
