"""The pass `layout`: permuted and blocked buffers, copies of user tensors, and what is declined."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stripe
from stripe.ir import (
    Affine,
    ConstantBuffer,
    IndexMap,
    Program,
    Refinement,
    Role,
    parse_program,
    rewrite_matching,
    with_entry,
)
from stripe.passes.base import RemarkKind
from stripe.poly.index_maps import physical_sizes
from stripe.rewrite.pack import Packing
from stripe.rewrite.tile import tile_block
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Equal
from tests.passes.kernels import kernel, program_of
from tests.passes.programs import CONV, lines_of, run_pass, tiled
from tests.support.index_maps import blocked_maps
from tests.support.programs import load, source

SHAPES = {"A": (2, 20, 6), "T": (2, 20, 6), "O": (2, 18, 6)}


def window(*, tile: dict[str, int] | None = None) -> Program:
    """T is made from A, and O sums three neighbours of T."""
    make = kernel("T[n,c,x] = assign neg(A[n,c,x])", {"n": 2, "c": 20, "x": 6}, SHAPES, tags=("make",))
    use = kernel("O[n,c,x] = add ident(T[n,c+k,x])", {"n": 2, "c": 18, "k": 3, "x": 6}, SHAPES, tags=("use",))
    program = program_of([make, use], SHAPES, ["O"])
    if not tile:
        return program
    return with_entry(program, rewrite_matching(program.entry, ["use"], lambda b: tile_block(b, tile)))


def test_a_temporary_in_blocks_of_channels() -> None:
    result, remarks = run_pass(window(), "layout", alloc_reqs=["tmp"], block={"1": 16})
    assert lines_of(result, "> T[") == [
        "#tmp none new@0x00000000<[0]> T[0, 0, 0, 0] fp32(2:192, 2:96, 6:16, 16:1)",
        "inout<[0]> T[0, 0, 0, 0]:assign fp32(2:192, 2:96, 6:16, 16:1)",
        "out<[0]> T[n, floor(c/16), x, c mod 16]:assign fp32(1:192, 1:96, 1:16, 1:1)",
        "in<[0]> T[n, floor((c + k)/16), x, (c + k) mod 16] fp32(1:192, 1:96, 1:16, 1:1)",
    ]
    assert [str(remark) for remark in remarks] == ["applied: T: 2x20x6 stored as 2x2x6x16, 576 bytes empty"]


def test_a_permutation_keeps_accesses_linear() -> None:
    result, _ = run_pass(window(), "layout", refs=["T"], order=[0, 2, 1])
    assert lines_of(result, "> T[")[2:] == [
        "out<[0]> T[n, x, c]:assign fp32(1:120, 1:20, 1:1)",
        "in<[0]> T[n, x, c + k] fp32(1:120, 1:20, 1:1)",
    ]


def test_outer_views_move_by_whole_blocks_and_inner_ones_by_the_rest() -> None:
    result, _ = run_pass(window(tile={"c": 6, "x": 2}), "layout", refs=["T"], block={"1": 4})
    assert lines_of(result, "> T[")[3:] == [
        "in<[0]> T[0, 0, 2*x, 0] fp32(2:120, 5:24, 2:4, 4:1)",
        "in<[0]> T[n, c.o + floor((c + 2*c.o + k)/4), x, (c + 2*c.o + k) mod 4] fp32(1:120, 1:24, 1:4, 1:1)",
    ]
    even, _ = run_pass(window(tile={"c": 6, "x": 2}), "layout", refs=["T"], block={"1": 2})
    assert "3*c" in lines_of(even, "> T[")[3]


def test_user_tensors_are_copied_in_and_out() -> None:
    result, remarks = run_pass(CONV, "layout", refs=["I", "O"], block={"1": 2})
    assert [block.name for block in result.main.blocks] == ["pack_I", "conv", "unpack_O"]
    assert lines_of(result, "I_packed[d0", "I = I_packed", "O_packed[d0") == [
        "out<DRAM[0]> I_packed[d0, floor(d1/2), d1 mod 2]:assign fp32(1:4, 1:2, 1:1)",
        "in<DRAM[0]> I = I_packed[-1 + k + x, floor(ci/2), ci mod 2] fp32(1:4, 1:2, 1:1)",
        "in<DRAM[0]> O_packed[d0, 0, d1] fp32(1:2, 1:2, 1:1)",
    ]
    assert [str(remark) for remark in remarks] == [
        "applied: I: 10x4 stored as 10x2x2, through I_packed",
        "applied: O: 10x2 stored as 10x1x2, through O_packed",
    ]


def test_copies_run_where_the_kernel_runs() -> None:
    located = source("passes/layout/copies_run_where_the_kernel_runs")
    result, _ = run_pass(located, "layout", refs=["O"], order=[1, 0])
    assert len(lines_of(result, "block<CONV[1]>")) == 2


def test_dependences_hold_the_copies() -> None:
    deps = {1: (0,)}
    program = window()
    statements = [replace(s, deps=deps.get(n, ())) for n, s in enumerate(program.main.statements)]
    main = replace(program.main, statements=tuple(statements))
    result, _ = run_pass(
        replace(program, entry=replace(program.entry, statements=(main,))),
        "layout",
        refs=["A"],
        order=[2, 1, 0],
    )
    assert [(s.name, s.deps) for s in result.main.blocks] == [
        ("pack_A", ()), ("make_T", (0,)), ("make_O", (1,)),
    ]  # fmt: skip


def test_constants_are_packed_while_compiling() -> None:
    program = parse_program(CONV)

    def constant(ref: Refinement) -> Refinement:
        return replace(ref, role=Role.CONSTANT) if ref.name == "K" else ref

    data = np.arange(24, dtype="<f4").tobytes()
    entry = replace(program.entry, refinements=tuple(map(constant, program.entry.refinements)))
    fixed = Program(entry, (ConstantBuffer("K", entry.ref("K").dtype, (3, 4, 2), data),))
    result, _ = run_pass(fixed, "layout", alloc_reqs=["const"], order=[2, 0, 1], block={"1": 3})
    assert result.constants[0].sizes == (2, 3, 2, 3)
    assert len(result.main.statements) == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"order": [0, 1]}, "it has 3 dimensions, the order names 0, 1"),
        ({"block": {"3": 4}}, "it has 3 dimensions, the blocks name 3"),
    ],
)
def test_declines(options: dict[str, object], reason: str) -> None:
    program = window()
    result, remarks = run_pass(program, "layout", interpreted=True, refs=["T"], **options)
    assert result is program
    assert str(remarks[0]) == f"missed: T: layout not changed: {reason}"


def test_declines_specials_and_placed_buffers() -> None:
    text = source("passes/layout/special")
    _, remarks = run_pass(text, "layout", refs=["D"], order=[1, 0], interpreted=False)
    assert "the special gather uses it as a whole" in str(remarks[0])
    placed = source("passes/layout/placed")
    _, remarks = run_pass(placed, "layout", refs=["I"], order=[1, 0])
    assert "it has its place in a memory already" in str(remarks[0])


def test_nothing_to_do_changes_nothing() -> None:
    program = window()
    assert run_pass(program, "layout", block={"1": 1})[0] is program
    assert run_pass(program, "layout", reqs=["kernel"], order=[2, 1, 0])[0] is program


@settings(deadline=None, max_examples=30)
@given(
    st.permutations([0, 1, 2]),
    st.dictionaries(st.integers(0, 2), st.integers(1, 7), max_size=3),
    st.integers(1, 18),
    st.integers(1, 3),
    st.integers(1, 6),
)
def test_any_layout_keeps_the_meaning(
    order: list[int], block: dict[int, int], c: int, k: int, x: int
) -> None:
    run_pass(window(tile={"c": c, "k": k, "x": x}), "layout", order=order, block=block)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 10), st.integers(1, 4), st.integers(1, 5), st.booleans(), st.booleans())
def test_any_layout_of_what_is_cached_keeps_the_meaning(
    x: int, ci: int, width: int, first: bool, cached: bool
) -> None:
    program = tiled(x=x, ci=ci)
    if cached:
        program, _ = run_pass(program, "cache", reqs=["conv"], interpreted=False)
    block = {0: width, 1: 3} if first else {1: width}
    run_pass(program, "layout", block=block)


@settings(max_examples=60)
@given(
    st.data(),
    st.one_of(st.none(), st.fixed_dictionaries({"c": st.integers(1, 18), "x": st.integers(1, 6)})),
    st.sampled_from(["A", "T", "O"]),
)
def test_any_map_keeps_the_results_of_nested_views(
    data: st.DataObject, tile: dict[str, int] | None, name: str
) -> None:
    index_map = data.draw(blocked_maps(SHAPES[name]))
    result, remarks = run_pass(window(tile=tile), "layout", refs=[name], map=str(index_map))
    assert not any(remark.kind is RemarkKind.MISSED for remark in remarks), (index_map, remarks)
    buffer = name if name == "T" else f"{name}_packed"
    found = [ref for ref in (*result.entry.allocs, *result.main.allocs) if ref.name == buffer]
    assert all(ref.span <= prod(physical_sizes(index_map, SHAPES[name])) for ref in found)


def test_a_ring_of_one_row() -> None:
    ring = Packing.fold(IndexMap.fold(2, 0, 1))
    x, y, zero = Affine.var("x"), Affine.var("y"), Affine()
    assert ring.sizes((5, 3)) == (1, 3)
    assert ring.widths == {0: 1}
    assert ring.place((x, y), {0: zero}) == (zero, y)


@settings(max_examples=40, deadline=None)
@given(
    st.data(),
    st.one_of(st.none(), st.fixed_dictionaries({"c": st.integers(1, 18), "x": st.integers(1, 6)})),
    st.sampled_from(["A", "T", "O"]),
    st.sampled_from([None, 0, 1, -2.5]),
    st.booleans(),
)
def test_any_interface_and_pad_keeps_the_results(
    data: st.DataObject, tile: dict[str, int] | None, name: str, pad: float | None, interface: bool
) -> None:
    index_map = data.draw(blocked_maps(SHAPES[name]))
    program = window(tile=tile)
    result, remarks = run_pass(
        program, "layout", refs=[name], map=str(index_map), interface=interface, pad=pad
    )
    assert not any("layout not changed" in str(remark) for remark in remarks), (index_map, remarks)
    assert isinstance(prove_equal(program, result), Equal), (index_map, pad)
    if interface and name != "T" and result is not program:
        assert result.entry.ref(name).logical_sizes == SHAPES[name]


def test_pads_of_all_tensors_let_a_sum_run_over_full_blocks() -> None:
    shapes = {"I": (6, 5, 10), "K": (3, 10, 6), "O": (4, 5, 6)}
    conv = kernel(
        "O[h,w,d] = add mul(I[h+k,w,c], K[k,c,d])", {"h": 4, "w": 5, "d": 6, "k": 3, "c": 10}, shapes
    )
    program = program_of([conv], shapes, ["O"])
    first, remarks = run_pass(program, "layout", refs=["I"], map="HWC4c", interface=True, pad=0)
    assert "c:10 does not become 12: it would touch K[0, 10, 0], which has no value" in str(remarks[-1])
    second, remarks = run_pass(first, "layout", refs=["K"], map="KCD4c4d", interface=True, pad=0)
    assert "applied: make_O: with pads c:10 is 12" in map(str, remarks)
    third, remarks = run_pass(second, "layout", refs=["O"], map="HWD4d", interface=True, pad=0)
    assert "d:6 does not become 8: the hole O[0, 0, 1, 2] would not hold 0.0" in str(remarks[-1])
    assert [block.name for block in third.main.blocks] == ["fill_O", "make_O"]
    undefined, _ = run_pass(second, "layout", refs=["O"], map="HWD4d", interface=True)
    assert isinstance(prove_equal(program, undefined), Equal)
    finite, remarks = run_pass(
        second, "layout", refs=["O"], map="HWD4d", interface=True, pad=0, allow_nonfinite=True
    )
    assert [block.name for block in finite.main.blocks] == ["make_O"]
    assert isinstance(prove_equal(program, finite), Equal)


def test_a_second_layout_of_a_tensor_of_the_user() -> None:
    """A copy of it read holes without a value, and blocks of blocks were a layout that the text cannot say."""
    shapes = {"I": (6, 10), "O": (6, 10)}
    program = program_of([kernel("O[h,w] = assign neg(I[h,w])", {"h": 6, "w": 10}, shapes)], shapes, ["O"])
    first, _ = run_pass(program, "layout", refs=["I"], block={"1": 4}, interface=True)
    copied, remarks = run_pass(first, "layout", refs=["I"], block={"0": 4})
    assert copied is first
    assert "a copy would read the holes of the layout that it has, which are undefined" in str(remarks[-1])
    again, remarks = run_pass(first, "layout", refs=["I"], block={"2": 3}, interface=True)
    assert again is first
    assert "no tensor of the user may have it" in str(remarks[-1])
    padded, _ = run_pass(program, "layout", refs=["I"], block={"1": 4}, interface=True, pad=0)
    twice, _ = run_pass(padded, "layout", refs=["I"], block={"0": 4})
    assert isinstance(prove_equal(program, twice), Equal)
    output, _ = run_pass(program, "layout", refs=["O"], block={"1": 4}, interface=True, pad=1)
    more_holes, _ = run_pass(output, "layout", refs=["O"], block={"0": 4}, interface=True)
    assert more_holes.entry.ref("O").layout is not None
    assert isinstance(prove_equal(program, more_holes), Equal)


def test_a_nested_buffer_of_the_same_name_has_a_layout_of_its_own() -> None:
    program, _ = run_pass(tiled(x=4, ci=2), "cache", reqs=["conv"], interpreted=False)
    result, _ = run_pass(program, "layout", refs=["I"], block={1: 2}, interface=True)
    assert result.entry.ref("I").sizes == (10, 2, 2)
    assert isinstance(prove_equal(program, result), Equal)


def test_physical_axes_stay() -> None:
    result, _ = run_pass(window(), "layout", refs=["A"], map="(n, c, x) -> (6*c + x | n)", interface=True)
    layout = result.entry.ref("A").layout
    assert layout is not None
    assert str(layout) == "(n:2, c:20, x:6) -> (c, x | n)"


def test_pads_are_for_buffers_of_the_entry() -> None:
    program, _ = run_pass(tiled(x=4, ci=2), "cache", reqs=["conv"], interpreted=False)
    _, remarks = run_pass(program, "layout", alloc_reqs=["cached"], block={1: 3}, pad=0)
    assert "pads are for buffers of the entry that main sees whole, once and by one view" in str(remarks[0])


def test_main_at_several_points_keeps_its_tensors() -> None:
    """Copies of whole tensors would run at each of them."""
    program = load("passes/layout/main_repeated")
    after, remarks = run_pass(program, "layout", reqs=["program"], block={"0": 4}, interpreted=False)
    assert isinstance(prove_equal(program, after), Equal)
    assert "main does not see all of it, once and by one view" in str(remarks)


def test_an_infinite_pad_is_no_finite_input() -> None:
    """Zeros of a hole times an infinite pad are NaN, whatever `allow_nonfinite` grants to inputs."""
    program = stripe.parse(
        "function (X[N=5, C=6], W[C, O=4]) -> (Y) { Y[n, o : 5, 4] = +(X[n, c] * W[c, o]); }"
    )
    padded = stripe.run_passes(
        program,
        'layout{refs=[W],map="(a,b) -> (floor(a/4),b,a mod 4)",interface=true,pad=0},'
        'layout{refs=[X],map="(a,b) -> (a,floor(b/4),b mod 4)",interface=true,pad=-Infinity,allow_nonfinite=true}',
    )
    given = {"X": np.ones((5, 6), np.float32), "W": np.ones((6, 4), np.float32)}
    assert (stripe.run(padded, given)["Y"] == 6).all()
