"""The pass `fusion`: what it refuses, how it orders statements, and what stays readable after it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripe.ir import (
    Affine,
    Block,
    Direction,
    Index,
    Location,
    Program,
    Refinement,
    Special,
    Tags,
    with_entry,
    with_statements,
)
from stripe.passes.base import PassContext
from stripe.passes.fusion.fusion import Fusion
from stripe.passes.fusion.reach import NeededRange, Reach, needed_range, shifts
from stripe.passes.registry import find_pass
from stripe.tile import compile_tile
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Equal
from tests.passes.kernels import kernel, program_of
from tests.passes.programs import run_pass
from tests.support.programs import load

SHAPES = {"A": (8, 6), "B": (8, 6), "C": (8, 6), "D": (8, 6), "E": (6,), "W": (6, 5), "P": (8, 5)}
SIZES = {"i": 8, "j": 6}


def make(text: str, *tags: str, sizes: dict[str, int] | None = None, name: str = "") -> Block:
    return kernel(text, sizes or SIZES, SHAPES, tags=tags, name=name)


FIRST = make("B[i,j] = assign neg(A[i,j])", "a")
SECOND = make("C[i,j] = assign relu(B[i,j])", "b")


def fuse(program: Program, **options: object) -> tuple[list[str], list[str]]:
    """The names of the blocks of main afterwards, and the remarks."""
    interpreted = all(not isinstance(s, Special) for s in program.main.statements)
    result, remarks = run_pass(program, "fusion", interpreted=interpreted, **options)  # type: ignore[arg-type]
    return [block.name for block in result.main.blocks], [str(remark) for remark in remarks]


def with_main(program: Program, main: Block) -> Program:
    return with_entry(program, with_statements(program.entry, [main]))


def test_a_pass_without_a_match_gives_the_same_object() -> None:
    program = program_of([FIRST, SECOND], SHAPES, ["C"])
    for options in ({"a_reqs": ("x",)}, {"parent_reqs": ("x",)}, {"b_reqs": ("a",)}):
        assert Fusion.model_validate(options).run(program, PassContext()) is program


def test_the_second_of_two_views_of_one_buffer_is_merged() -> None:
    both = make("C[i,j] = assign mul(B[i,j], B[i,j])")
    result, _ = run_pass(program_of([FIRST, both], SHAPES, ["C"]), "fusion")
    (fused,) = result.main.blocks
    assert [ref.name for ref in fused.refinements] == ["A", "B", "C"]


def test_several_shared_buffers_have_to_agree() -> None:
    twice = make("D[i,j] = assign add(B[i,j], A[i,j])")
    pair, _ = run_pass(program_of([FIRST, SECOND, twice], SHAPES, ["C", "D"]), "fusion")
    assert [block.name for block in pair.main.blocks] == ["make_B+make_C+make_D"]
    transposed = {**SHAPES, "S": (6, 6), "T": (6, 6), "U": (6, 6)}
    square = {"i": 6, "j": 6}
    one = kernel("S[i,j] = assign neg(T[i,j])", square, transposed)
    other = kernel("U[i,j] = assign add(S[i,j], S[j,i])", square, transposed)
    _, remarks = run_pass(program_of([one, other], transposed, ["U"]), "fusion")
    assert [r.kind.value for r in remarks] == ["missed"]


def test_a_consumer_that_needs_everything_is_refused() -> None:
    total = make("E[j] = add ident(B[i,k])", sizes={"i": 8, "j": 6, "k": 6})
    names, remarks = fuse(program_of([FIRST, total], SHAPES, ["E"]))
    assert names == ["make_B", "make_E"]
    assert remarks == [
        "missed: make_B: not fused with make_E: i, k, which walks B, is reduced: only an entry of tiles shares it"
    ]


def test_partial_results_are_merged_on_request() -> None:
    total = make("E[j] = add ident(B[i,k])", sizes={"i": 8, "j": 6, "k": 6})
    names, remarks = fuse(program_of([FIRST, total], SHAPES, ["E"]), tiles={"i": 2, "j": 2})
    assert names == ["make_B+make_E"]
    assert remarks[0].endswith(
        "share [i:4, j:3]; 4 of 48 elements of B in each point; each result of make_E is merged 12 times"
        "; 12 points run in parallel instead of 48 of make_B"
    )


def test_writes_after_reads_keep_their_order() -> None:
    first = make("B[i,j] = assign neg(A[i,j])", name="first")
    second = make("C[i,j] = assign relu(B[i,j])", name="second")
    third = make("B[i,j] = assign ident(D[i,j])", name="third")
    names, remarks = fuse(program_of([first, second, third], SHAPES, ["C", "B"]))
    assert names == ["first+second", "third"]
    assert len(remarks) == 1


def test_a_reader_of_what_the_second_overwrites_is_no_obstacle_when_indices_agree() -> None:
    first = make("B[i,j] = assign add(A[i,j], C[i,j])", name="first")
    second = make("C[i,j] = assign relu(B[i,j])", name="second")
    program = program_of([make("C[i,j] = assign neg(A[i,j])", name="zero"), first, second], SHAPES, ["C"])
    names, _ = fuse(program, b_reqs=["kernel"])
    assert names == ["zero+first+second"]


def test_a_shifted_overwrite_is_refused() -> None:
    shapes = {"A": (8,), "B": (8,), "Z": (9,)}
    zero = kernel("Z[i] = assign ident(A[0])", {"i": 9}, shapes, name="zero")
    first = kernel("B[i] = assign add(A[i], Z[i])", {"i": 8}, shapes, name="first", tags=["first"])
    second = kernel("Z[i+1] = assign neg(B[i])", {"i": 8}, shapes, name="second")
    program = program_of([zero, first, second], shapes, ["Z", "B"])
    _, remarks = run_pass(program, "fusion", a_reqs=["first"], interpreted=True)
    # point i of the second one overwrites what point i + 1 of the first one has still to read
    assert [r.kind.value for r in remarks] == ["missed"]


def test_views_of_one_buffer_under_two_names_stay_apart() -> None:
    program = program_of([FIRST, SECOND], SHAPES, ["C"])
    main = program.main
    alias = replace(main.ref("B"), name="B2")
    second = replace(
        SECOND,
        refinements=tuple(replace(r, source="B2") if r.source == "B" else r for r in SECOND.refinements),
    )
    both = replace(main, refinements=(*main.refinements, alias), statements=(FIRST, second))
    names, remarks = fuse(with_main(program, both))
    assert names == ["make_B", "make_C"]
    assert remarks == ["missed: make_B: not fused with make_C: B and B2 are views of one buffer"]


def test_blocks_on_different_units_stay_apart() -> None:
    there, here = (
        replace(FIRST, location=Location.of("CONV", 0)),
        replace(SECOND, location=Location.of("DSP", 0)),
    )
    _, remarks = fuse(program_of([there, here], SHAPES, ["C"]))
    assert remarks == ["missed: make_B: not fused with make_C: they are located on CONV[0] and on DSP[0]"]
    result, _ = run_pass(program_of([there, SECOND], SHAPES, ["C"]), "fusion")
    assert [str(block.location) for block in result.main.blocks] == ["CONV[0]"]


def test_a_unit_that_depends_on_a_shared_index_moves_along() -> None:
    first = replace(FIRST, location=Location.of("CONV", Affine.var("i")))
    second = replace(SECOND, location=Location.of("CONV", Affine.var("i")))
    result, _ = run_pass(program_of([first, second], SHAPES, ["C"]), "fusion")
    assert [str(block.location) for block in result.main.blocks] == ["CONV[i]"]


def test_dependences_are_renumbered() -> None:
    middle = make("D[i,j] = assign neg(A[i,j])", name="middle")
    last = replace(
        make("P[i,n] = add mul(C[i,k], W[k,n])", "last", sizes={"i": 8, "k": 6, "n": 5}), deps=(2,)
    )
    program = program_of([FIRST, middle, replace(SECOND, deps=(0,)), last], SHAPES, ["P", "D"])
    result, _ = run_pass(program, "fusion", a_reqs=["a"], b_reqs=["b"])
    assert [(b.name, b.deps) for b in result.main.blocks] == [
        ("middle", ()),
        ("make_B+make_C", ()),
        ("make_P", (1,)),
    ]


def test_a_dependence_between_holds_them_apart() -> None:
    middle = replace(make("D[i,j] = assign neg(A[i,j])", name="middle"), deps=(0,))
    program = program_of([FIRST, middle, replace(SECOND, deps=(1,))], SHAPES, ["C", "D"])
    _, remarks = fuse(program, a_reqs=["a"], b_reqs=["b"])
    assert remarks == ["missed: make_B: not fused with make_C: middle has to run between them"]


def test_a_block_that_fills_joins_only_where_the_order_allows() -> None:
    """The first overwrite of X has to run after the fill that reads X, and before the consumer, which reads X too."""
    shapes = {"A": (8,), "X": (8,), "T": (16,), "C": (8,)}
    sizes = {"x": 8}
    start = kernel("X[x] = assign neg(A[x])", sizes, shapes, name="start")
    fill = kernel("T[2*x+1] = assign ident(X[x])", sizes, shapes, name="fill", tags=["init"])
    first = kernel("T[2*x] = assign relu(A[x])", sizes, shapes, name="first", tags=["first"])
    over = kernel("X[x] = assign ident(A[x])", sizes, shapes, name="over")
    second = kernel("C[x] = assign add(T[2*x], X[x])", sizes, shapes, name="second", tags=["second"])
    program = program_of([start, fill, first, over, second], shapes, ["C"])
    names, _ = fuse(program, a_reqs=["first"], b_reqs=["second"])
    assert names == ["start", "fill", "over", "first+second"]
    result, _ = run_pass(program_of([start, fill, first, second], shapes, ["C"]), "fusion", a_reqs=["first"])
    assert [block.name for block in result.main.blocks] == ["start", "first+second"]


def test_users_keep_what_they_read() -> None:
    """A buffer that the outside needs is written even if a window would be computed again."""
    shapes = {"A": (10,), "B": (10,), "C": (8,)}
    first = kernel("B[x] = assign neg(A[x])", {"x": 10}, shapes)
    second = kernel("C[x] = add ident(B[x + k])", {"k": 3, "x": 8}, shapes)
    names, remarks = fuse(program_of([first, second], shapes, ["B", "C"]), max_recompute=3)
    assert names == ["make_B", "make_C"]
    assert remarks == [
        "missed: make_B: not fused with make_C: B would be computed again for each point, but it is needed outside too"
    ]
    names, _ = fuse(program_of([first, second], shapes, ["C"]), max_recompute=3)
    assert names == ["make_B+make_C"]


def test_indices_passed_in_from_the_outside_have_to_be_the_same() -> None:
    """Inside a block, both views move with its index."""
    program = program_of([FIRST, SECOND], SHAPES, ["C"])

    def row(block: Block, shift: int) -> Block:
        indices = (Index("r", 1, Affine.var("i") + shift), Index("j", 6))
        refs = tuple(
            replace(
                r,
                access=tuple(
                    a.subs({"i": Affine.var("r") - (shift if r.source != "B" else 0)}) for a in r.access
                ),
            )
            for r in block.refinements
        )
        return replace(block, indices=indices, refinements=refs, tags=Tags())

    def outer(shift: int) -> Program:
        views = tuple(
            Refinement(
                ref.name,
                Direction.INOUT if ref.name == "B" else ref.dir,
                ref.name,
                ref.access,
                ref.dtype,
                ref.dims,
            )
            for ref in program.main.refinements
        )
        row_block = Block(
            "rows",
            (Index("i", 8 - shift),),
            (),
            views,
            (row(FIRST, 0), row(SECOND, shift)),
            tags=Tags.of("rows"),
        )
        return with_main(program, replace(program.main, statements=(row_block,)))

    same, _ = run_pass(outer(0), "fusion", parent_reqs=["rows"])
    (rows,) = same.main.blocks
    assert [block.name for block in rows.blocks] == ["make_B+make_C"]
    _, remarks = run_pass(outer(1), "fusion", interpreted=False, parent_reqs=["rows"])
    assert str(remarks[0]).startswith(
        "missed: make_B: not fused with make_C: their views of B move differently"
    )


def reach(step: int, low: int, high: int, size: int = 10) -> Reach:
    return Reach(0, "x", size, step, low, high, Affine())


def test_shifts() -> None:
    assert shifts(reach(1, 0, 0), reach(1, 0, 0), 1) == (0, 0)
    assert shifts(reach(1, 0, 0), reach(1, 2, 2), 1) == (2, 2)
    assert shifts(reach(1, 3, 3), reach(1, 0, 0), 1) == (-3, -3)
    assert shifts(reach(1, 0, 0), reach(2, 0, 1), 2) == (0, 0)
    assert shifts(reach(1, 0, 0), reach(1, 1, 1), 2) is None  # tiles of 2 that start at odd elements
    assert shifts(reach(1, 0, 0), reach(1, -1, 1), 1) is None  # windows overlap
    assert shifts(reach(4, 0, 3), reach(1, 0, 0), 4) == (0, 0)
    assert shifts(reach(8, 0, 0), reach(8, 1, 1), 8) == (0, 1)  # one element of eight


def test_needed_ranges() -> None:
    needed = needed_range(reach(1, 0, 0), reach(1, -1, 1), 4)
    assert needed is not None
    assert (needed.step, needed.low, needed.high) == (4, -1, 4)
    assert needed.work(3, 10) == 5 + 6 + 3  # [0, 4], [3, 8], [7, 9]
    assert needed_range(reach(2, 0, 1), reach(1, 0, 0), 3) is None


def test_two_names_of_one_buffer_that_come_from_two_names_of_main() -> None:
    """What one name reads another has written in between."""
    program = load("passes/fusion/two_names")
    after, remarks = run_pass(program, "fusion")
    assert isinstance(prove_equal(program, after), Equal)
    assert "m has to run between them" in str(remarks)


def test_rings_have_no_gaps() -> None:
    """Elements that no piece writes would keep what lay in their place before."""
    program = load("passes/fusion/gaps")
    after, remarks = run_pass(program, "fusion", overlap="keep", max_steps=4)
    assert isinstance(prove_equal(program, after), Equal)
    assert "T has elements in dimension 0 that no piece writes" in str(remarks)


@pytest.mark.parametrize("options", [{"max_recompute": 10}, {"overlap": "keep", "max_steps": 3}])
def test_what_statements_outside_read_is_not_private(options: dict[str, Any]) -> None:
    program = load("passes/fusion/read_by_main")
    after, _ = run_pass(program, "fusion", **options)
    assert isinstance(prove_equal(program, after), Equal)


@given(st.integers(-4, 4), st.integers(-6, 6), st.integers(0, 7), st.integers(1, 9), st.integers(1, 20))
def test_the_work_of_tiles_is_the_sum_over_them(
    step: int, low: int, more: int, count: int, size: int
) -> None:
    high = low + more
    spans = ((max(0, step * o + low), min(size - 1, step * o + high)) for o in range(count))
    expected = sum(max(0, last - first + 1) for first, last in spans)
    assert NeededRange(step, low, high).work(count, size) == expected


@pytest.mark.parametrize("options", [{"max_recompute": 10}, {"overlap": "keep"}])
def test_long_dimensions_take_no_longer(options: dict[str, Any]) -> None:
    text = (
        "function (X[L=2000000000]: i8) -> (O) "
        "{ T[x : 1999999998] = +(X[x + k]), k < 3; O[x : 1999999996] = +(T[x + k]), k < 3; }"
    )
    after = find_pass("fusion").model_validate(options).run(compile_tile(text), PassContext())
    assert len(after.main.statements) == 1


def test_values_that_both_halves_exclude_are_no_points_of_the_fused_block() -> None:
    after, _ = run_pass(load("passes/fusion/vast"), "fusion")
    (fused,) = after.main.blocks
    assert [str(c) for c in fused.constraints] == ["-500000000000 + i >= 0", "500000000005 - i >= 0"]
