"""What stands around blocks decides too: allocations, constants, roles of tensors, scalars of main, sizes of outputs.

Blocks that are written alike compute the same only where all of that is the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stripe.ir import (
    DTYPES,
    ConstantBuffer,
    Dim,
    Program,
    Role,
    parse_program,
    verify_structural,
)
from stripe.verify.proof.judge import judge
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Different, Equal
from tests.support.programs import build, load
from tests.support.programs import source as text_of
from tests.support.running import run_both

SCALED = """
    {number}: #kernel block [i:4] ( // scale
        in A[i] fp32(1:1)
        in W[i] fp32(1:1)
        out O[i]:assign fp32(1:1)
    ) {{
      0: $A = load(A)
      1: $W = load(W)
      2: $O = mul($A, $W)
      3: O = store($O)
    }}"""


def with_role(before: Program, name: str, role: Role) -> Program:
    """The program with an allocation of the entry in another role."""
    refs = tuple(replace(r, role=role) if r.name == name else r for r in before.entry.refinements)
    return replace(before, entry=replace(before.entry, refinements=refs))


def with_constant(before: Program, values: list[int]) -> Program:
    """The program with `W` a constant of these values."""
    data = np.array(values, np.float32).tobytes()
    constant = ConstantBuffer("W", DTYPES["fp32"], (len(values),), data)
    return replace(with_role(before, "W", Role.CONSTANT), constants=(constant,))


def scaled() -> Program:
    return load("verify/surroundings/scaled")


def not_equal(before: Program, after: Program) -> None:
    """Not proved, and running shows why."""
    assert verify_structural(before) == verify_structural(after) == []
    judgement = judge(before, after)
    assert not isinstance(judgement.verdict, Equal)
    assert not judgement.accepted
    assert run_both(before, after) != ""


def test_constants_with_other_contents() -> None:
    before = with_constant(scaled(), [1, 2, 3, 4])
    assert prove_equal(before, with_constant(scaled(), [1, 2, 3, 4])) == Equal()
    not_equal(before, with_constant(scaled(), [1, 2, 3, 5]))


@pytest.mark.parametrize("text", ["A 4\nin W 4", "W 4\nin A 4"])
def test_an_input_that_nothing_gives_any_more(text: str) -> None:
    before = build(f"in {text}\nout O 4", SCALED.format(number=0))
    not_equal(before, with_role(before, "W", Role.TEMPORARY))
    not_equal(before, with_constant(before, [1, 2, 3, 4]))


def not_equal_to_written_constant(before: Program, data: list[int]) -> None:
    """A constant that is written is no valid program, and the proof does not rely on that."""
    after = with_constant(load("verify/surroundings/scaled_by_a_copy"), data)
    assert ["which is a constant" in found.message for found in verify_structural(after)] == [True]
    assert not isinstance(prove_equal(before, after), Equal)


def test_a_constant_that_is_written() -> None:
    not_equal_to_written_constant(with_constant(scaled(), [1, 2, 3, 4]), [1, 2, 3, 4])


def test_a_folded_constant_that_is_written_again() -> None:
    before = load("verify/surroundings/scaled_by_two")
    assert prove_equal(before, with_constant(scaled(), [2, 2, 2, 2])) == Equal()
    not_equal(before, with_constant(scaled(), [2, 2, 2, 3]))
    not_equal_to_written_constant(before, [2, 2, 2, 2])


def test_an_allocation_smaller_than_what_lies_in_it() -> None:
    """Blocks and views are the same, so that nothing but the allocation differs."""
    before = load("verify/surroundings/blur")
    refs = tuple(replace(r, dims=(Dim(10, 1),)) if r.name == "T" else r for r in before.entry.refinements)
    after = replace(before, entry=replace(before.entry, refinements=refs))
    not_equal(before, after)
    verdict = prove_equal(before, after)
    assert isinstance(verdict, Different)
    assert "out of bounds of (10)" in verdict.witness.message


UPDATED_TENSORS = "in A 4\ninout X 4\nout O 4"
UPDATED = """
    0: #kernel block [i:4] ( // update
        in A[i] fp32(1:1)
        {view}
    ) {{
      {body}
    }}
    1: #kernel block [i:4] ( // use
        in X[i] fp32(1:1)
        out O[i]:assign fp32(1:1)
    ) {{
      0: $X = load(X)
      1: $O = relu($X)
      2: O = store($O)
    }}"""


def updated(agg: str, *values: str) -> Program:
    """X[i] becomes, or is merged with, each of `values` of $A and $X."""
    lines = ["$A = load(A)", *(["$X = load(X)"] if any("$X" in value for value in values) else [])]
    for number, value in enumerate(values):
        lines += [f"$V{number} = {value}", f"X = store($V{number})"]
    body = "\n      ".join(f"{number}: {line}" for number, line in enumerate(lines))
    return build(UPDATED_TENSORS, UPDATED.format(view=f"inout X[i]:{agg} fp32(1:1)", body=body))


def test_a_merge_into_an_input_begins_with_what_was_given() -> None:
    merged = updated("max", "ident($A)")
    assert prove_equal(merged, updated("max", "ident($A)", "ident($X)")) == Equal()
    not_equal(updated("assign", "ident($A)"), merged)
    not_equal(updated("assign", "ident($A)"), updated("add", "ident($A)"))
    not_equal(updated("assign", "add($A, $X)"), updated("add", "add($A, $X)"))
    not_equal(updated("add", "ident($A)"), updated("add", "ident($A)", "ident($A)"))
    not_equal(updated("add", "ident($A)"), updated("add", "ident($A)", "ident($X)"))


KEPT = """
    {number}: #kernel block [i:{count}] ( // write
        {views}
        out W = X[{first} + i]:assign fp32(1:1)
    ) {{
      0: $V = load({source})
      1: W = store($V)
    }}"""


def kept(*pieces: tuple[int, int, str]) -> Program:
    """A program that writes elements of X, from the first one of so many, with those of A or with their own."""
    kernels: list[str] = []
    for number, (first, count, source) in enumerate(pieces):
        view = f"in {source}[{first} + i] fp32(1:1)"
        text = KEPT.format(number=number, first=first, count=count, views=view, source=source)
        kernels.append(
            text
            if source == "A"
            else text.replace(f"in X[{first}", f"in V = X[{first}").replace("load(X)", "load(V)")
        )
    return build("in A 4\ninout X 4", "".join(kernels))


def test_an_input_keeps_what_nobody_writes() -> None:
    """As an output it gives that back."""
    for before, after in (
        (kept((0, 2, "A")), kept((0, 2, "A"), (2, 2, "X"))),
        (kept((0, 4, "X")), kept((1, 2, "X"))),
        (kept(), kept((0, 4, "X"))),
    ):
        assert prove_equal(before, after) == prove_equal(after, before) == Equal()
    for before, after in ((kept(), kept((0, 4, "A"))), (kept((0, 2, "A")), kept((0, 3, "A")))):
        not_equal(before, after)
        not_equal(after, before)


@pytest.mark.parametrize("agg", ["add", "mul"])
def test_merges_of_bools_are_not_counted(agg: str) -> None:
    repeated = REPEATED.replace("add", agg)
    once, twice = (build("in A bool(4)\nout O bool(4)", repeated.format(count=n)) for n in (1, 2))
    assert prove_equal(once, twice) == Equal()
    assert run_both(once, twice) == ""


REPEATED = """
    0: #kernel block [i:4, k:{count}] ( // repeat
        in A[i] bool(1:1)
        out O[i]:add bool(1:1)
    ) {{
      0: $A = load(A)
      1: O = store($A)
    }}"""


def test_scalars_of_main() -> None:
    """The store is the same in both, what it stores is not."""
    before = load("verify/surroundings/scalars_of_main")
    not_equal(before, load("verify/surroundings/scalars_of_main_relu"))
    assert prove_equal(before, load("verify/surroundings/scalars_of_main_renamed")) == Equal()


GENERATED = """
    0: #kernel block [] ( // numbers
        in S[0, 0] u32(3:4, 4:1)
        out N[0, 0]:assign u32(3:4, 4:1)
        out V[0, 0]:assign fp32({rows}:{columns}, {columns}:1)
    ) {{
      0: (N, V) = prng_step(S)
    }}
    1: #kernel block [i:2, j:2] ( // part
        in V[i, j] fp32(1:{columns}, 1:1)
        out O[i, j]:assign fp32(1:2, 1:1)
    ) {{
      0: $V = load(V)
      1: O = store($V)
    }}"""


def generated(rows: int, columns: int) -> Program:
    tensors = f"in S u32(3 4)\nout N u32(3 4)\ntmp V {rows} {columns}\nout O 2 2"
    return build(tensors, GENERATED.format(rows=rows, columns=columns))


def test_random_numbers_in_another_shape() -> None:
    """A generator fills its output in row-major order: which number an element is depends on the sizes."""
    not_equal(generated(2, 3), generated(3, 2))


SUMS = """
    {number}: #kernel block [i:{count}, k:3] ( // sum
        in {source}[{first} + i, k] fp32(1:3, 1:1)
        out T[{first} + i]:add fp32(1:1)
    ) {{
      0: $V = load({source})
      1: T = store($V)
    }}"""
PICKED = """
    {number}: #kernel block [] ( // pick
        in T[0] fp32(4:1)
        in I[0] i32(2:1)
        out O[0]:assign fp32(2:1)
    ) {{
      0: O = gather(T, I)
    }}"""


def picked(*sums: tuple[int, int, str]) -> Program:
    """Elements of T are picked, which are sums over rows of other buffers."""
    kernels = [
        SUMS.format(number=number, first=first, count=count, source=source)
        for number, (first, count, source) in enumerate(sums)
    ]
    tensors = "in A 4 3\nin B 4 3\nin I i32(2)\nout O 2\ntmp T 4"
    return build(tensors, "".join(kernels) + PICKED.format(number=len(sums)))


def test_an_operand_of_a_special_that_agrees_in_part() -> None:
    before = picked((0, 4, "A"))
    assert prove_equal(before, picked((0, 2, "A"), (2, 2, "A"))) == Equal()
    not_equal(before, picked((0, 2, "A"), (2, 2, "B")))
    assert prove_equal(picked((0, 2, "A"), (2, 2, "B")), picked((2, 2, "B"), (0, 2, "A"))) == Equal()


BEHIND = """
    0: #kernel block [i:4] ( // some
        {constraint}
        in A[i] {dtype}(1:1)
        out T[i]:{agg} {dtype}(1:1)
    ) {{
      0: $A = load(A)
      1: T = store($A)
    }}
    1: #kernel block [i:8] ( // all
        in T[i] {dtype}(1:1)
        out O[i]:{agg} {dtype}(1:1)
    ) {{
      0: $T = load(T)
      1: O = store($T)
    }}"""


def behind(agg: str, dtype: str = "i32", constraint: str = "3 - i >= 0") -> Program:
    """Half of T gets a contribution each; the other half is the identity of the merge, and merged on."""
    tensors = f"in A {dtype}(4)\nout O {dtype}(8)\ntmp T {dtype}(8)"
    return build(tensors, BEHIND.format(agg=agg, dtype=dtype, constraint=constraint))


def test_elements_without_a_contribution_are_the_identity() -> None:
    """An element with one contribution is equal under any aggregation, one without any is not."""
    not_equal(behind("add"), behind("max"))
    not_equal(behind("max"), behind("mul"))
    assert prove_equal(behind("add", "u32"), behind("max", "u32")) == Equal()


def test_a_constant_that_is_written_in_part() -> None:
    """What both programs write is equal, what they leave is not."""
    text = text_of("verify/surroundings/scaled_by_a_copy").replace(
        "block [i:4] ( // weights", "block [i:2] ("
    )
    first, second = (
        with_constant(parse_program(text, "part"), values) for values in ([1, 2, 3, 4], [1, 2, 3, 5])
    )
    assert prove_equal(first, first) == Equal()
    assert not isinstance(prove_equal(first, second), Equal)


def test_a_constant_and_merges_that_no_point_makes() -> None:
    """Both programs write nothing, and what is there differs."""
    merged = behind("add", constraint="-1 - i >= 0")
    _, reader = merged.main.blocks
    refs = tuple(ref for ref in merged.main.refinements if ref.name != "A")
    main = replace(merged.main, refinements=refs, statements=(reader,))
    given = with_role(replace(merged, entry=replace(merged.entry, statements=(main,))), "T", Role.CONSTANT)
    data = np.full(8, 5, np.int32).tobytes()
    constant = replace(given, constants=(ConstantBuffer("T", DTYPES["i32"], (8,), data),))
    for before, after in ((constant, merged), (merged, constant)):
        assert not isinstance(prove_equal(before, after), Equal)


def test_a_constant_in_place_of_what_nothing_writes() -> None:
    """It is read at no point of either program."""
    never = SCALED.format(number=0).replace("in A", "-1 - i >= 0\n        in A")
    copied = KEPT.format(number=1, first=0, count=4, views="in A[i] fp32(1:1)", source="A")
    before = build("in A 4\ntmp O 4\ntmp W 4\nout X 4", never + copied)
    assert isinstance(prove_equal(before, with_constant(before, [1, 2, 3, 4])), Equal)
