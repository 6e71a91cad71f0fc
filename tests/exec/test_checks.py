"""What the interpreter refuses at run time, and that it says where: block, refinement, point, element."""

from __future__ import annotations

import numpy as np
import pytest

from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.ir import Program
from tests.support.programs import build, load

DATA = {"A": np.arange(6, dtype=np.int32)}
BUDGETS = pytest.mark.parametrize("budget", [1 << 30, 1])


def copy(head: str, source: str, target: str, size: int = 6) -> Program:
    """A kernel `copy` with `head` as indices and constraints, from A (6 elements) to O."""
    return build(
        f"in A i32(6); out O i32({size})",
        f"""0: #kernel block {head}
            in<[0]> A{source}
            out<[0]> O{target}
        ) {{
          0: $a = load(A)
          1: O = store($a)
        }}""",
    )


@BUDGETS
def test_load_out_of_bounds(budget: int) -> None:
    built = copy("[i:6] ( // copy", "[1 + i] i32(1:1)", "[i]:assign i32(1:1)")
    with pytest.raises(ExecutionError) as caught:
        interpret(built, DATA, memory_budget=budget, checks=False)
    assert str(caught.value) == (
        "block 0.0.0 (copy): error: load of 'A' touches element [6] outside the view 'A' of sizes (6)"
        " at the point i=5\n  hint: make the buffer larger, or leave the point out by a constraint"
    )


@BUDGETS
def test_store_out_of_bounds(budget: int) -> None:
    built = copy("[i:6] ( // copy\n -1 + i >= 0", "[i] i32(1:1)", "[-2 + i]:assign i32(1:1)")
    with pytest.raises(ExecutionError, match=r"store to 'O' touches element \[-1\] .* at the point i=1"):
        interpret(built, DATA, memory_budget=budget)


@BUDGETS
def test_constraints_make_accesses_legal(budget: int) -> None:
    built = copy("[i:6] ( // copy\n 4 - i >= 0", "[1 + i] i32(1:1)", "[i]:add i32(1:1)")
    assert interpret(built, DATA, memory_budget=budget)["O"].tolist() == [1, 2, 3, 4, 5, 0]


@BUDGETS
def test_access_outside_the_box_of_a_view(budget: int) -> None:
    built = load("exec/checks/outside_the_box")
    with pytest.raises(ExecutionError) as caught:
        interpret(built, DATA, memory_budget=budget)
    assert str(caught.value) == (
        "block 0.0.0.0 (inner): error: load of 'C' touches element [2] outside the view 'B' of sizes (2)"
        " at the point t=0, i=2\n  hint: make the buffer larger, or leave the point out by a constraint"
    )


@BUDGETS
def test_two_points_assign_one_element(budget: int) -> None:
    built = copy("[i:6] ( // copy", "[i] i32(1:1)", "[floor(i/2)]:assign i32(1:1)", size=3)
    with pytest.raises(
        ExecutionError, match=r"assigns 'O'\[0\], which another point has assigned, at the point i=1"
    ):
        interpret(built, DATA, memory_budget=budget)
    got = interpret(built, DATA, memory_budget=budget, checks=False)["O"]
    assert all(value in (2 * i, 2 * i + 1) for i, value in enumerate(got))


@BUDGETS
def test_an_index_that_the_address_lacks_assigns_twice(budget: int) -> None:
    built = copy("[i:6, k:3] ( // copy", "[i] i32(1:1)", "[i]:assign i32(1:1)")
    with pytest.raises(ExecutionError, match="another point has assigned"):
        interpret(built, DATA, memory_budget=budget)


@BUDGETS
def test_one_point_may_be_chosen_by_constraints(budget: int) -> None:
    built = copy("[i:6, k:3] ( // copy\n -1 + k >= 0\n 1 - k >= 0", "[i] i32(1:1)", "[i]:assign i32(1:1)")
    assert interpret(built, DATA, memory_budget=budget)["O"].tolist() == list(range(6))


@BUDGETS
def test_blocks_in_sequence_may_assign_one_element(budget: int) -> None:
    built = load("exec/checks/blocks_in_sequence_may_assign_one_element")
    assert interpret(built, DATA, memory_budget=budget)["O"].tolist() == list(range(6))


@BUDGETS
def test_an_output_must_be_written_everywhere(budget: int) -> None:
    built = copy("[i:4] ( // copy", "[i] i32(1:1)", "[1 + i]:assign i32(1:1)")
    with pytest.raises(ExecutionError, match=r"'O' ends with its element \[0\], which is unwritten \(2 such"):
        interpret(built, DATA, memory_budget=budget)


@BUDGETS
def test_an_undefined_element_must_not_be_read(budget: int) -> None:
    built = load("exec/checks/undefined_element")
    with pytest.raises(ExecutionError) as caught:
        interpret(built, DATA, memory_budget=budget)
    message = "block 0.0.1 (use): error: load of 'T' reads 'T'[5], which is unwritten, at the point i=5"
    assert str(caught.value) == message


def test_a_buffer_that_nobody_writes() -> None:
    built = load("exec/checks/buffer_not_written")
    with pytest.raises(ExecutionError, match=r"load of 'T' reads 'T'\[0\], which is unwritten"):
        interpret(built, {})


def test_undefined_local_memory_of_another_point() -> None:
    """Each point has its own L: what point 0 wrote is not there for point 1."""
    built = load("exec/checks/local_memory_of_another_point")
    with pytest.raises(ExecutionError, match=r"reads 'L'\[0\], which is unwritten, at the point i=1"):
        interpret(built, DATA)


def test_memory_that_no_machine_has() -> None:
    built = load("exec/checks/memory_that_no_machine_has")
    with pytest.raises(
        ExecutionError, match=r"the buffer 'L' takes .* bytes, more than the memory of this machine"
    ):
        interpret(built, DATA)
