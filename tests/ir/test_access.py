"""Steps, separation and layouts without integer sets, against enumeration of the points."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripe.ir import (
    Affine,
    Block,
    Interval,
    View,
    determined,
    element_offset,
    is_dense,
    is_row_major,
    nest_at,
    parse_affine,
    parse_program,
    separates,
    separating,
    step,
)
from tests.support.programs import load

NAMES: tuple[str, ...] = ("x", "y", "z")


def written(*views: str) -> Block:
    """A block over x:4, y:8 and z:3 with views of O and P, both of 64 x 64 elements."""
    allocs = "\n".join(f"none new@0x0 {name}[0, 0] fp32(64:64, 64:1)" for name in "OP")
    main = "\n".join(f"inout {name}[0, 0] fp32(64:64, 64:1)" for name in "OP")
    refs = "\n".join(views)
    program = parse_program(
        f"0: #program block [] (\n{allocs}\n) {{ 0: #main block [] (\n{main}\n) {{"
        f" 0: block [x:4, y:8, z:3] (\n{refs}\n) {{ }} }} }}"
    )
    return next(program.main.blocks)


@pytest.mark.parametrize(
    ("view", "moved"),
    [
        ("out O[x, y] fp32(1:64, 1:1)", {"x": 64, "y": 1, "z": 0}),
        ("out O[floor(y/4), y mod 4] fp32(1:64, 1:1)", {"x": 0, "y": None}),
        ("out O[x + y, -2*y] fp32(1:64, 1:1)", {"x": 64, "y": 62}),
        ("out O[floor(y/64), x + y mod 64] fp32(1:64, 1:1)", {"x": 1, "y": 1}),
        ("out O[floor((8*x + y)/64), (8*x + y) mod 64] fp32(1:64, 1:1)", {"x": 8, "y": 1}),
    ],
)
def test_steps(view: str, moved: dict[str, int | None]) -> None:
    ref = written(view).ref("O")
    assert {name: step(ref, name) for name in moved} == moved


def test_the_step_of_a_view_in_its_nest() -> None:
    program = load("ir/access/the_step_of_a_view_in_its_nest")
    view = nest_at(program.entry, (0, 0, 0, 0)).views["O"]
    assert isinstance(view, View)
    assert str(element_offset(view)) == "8*x@2 + x@3"
    assert (step(view, "x@2"), step(view, "x@3")) == (8, 1)


@pytest.mark.parametrize(
    ("views", "apart"),
    [
        (["out O[0, 8*x + y] fp32(1:64, 1:1)"], "x y"),
        (["out O[0, 9*x + y] fp32(1:64, 2:1)"], "x"),
        (["out O[0, 7*x + y] fp32(1:64, 1:1)"], ""),
        (["out O[x + y, y] fp32(1:64, 1:1)"], "x y"),
        (["out O[floor(y/4), y mod 4] fp32(1:64, 1:1)"], "y"),
        (["out O[floor(y/4), y mod 2] fp32(1:64, 1:1)"], ""),
        (["out O[x, y] fp32(1:64, 1:1)", "out P[y, z] fp32(1:64, 1:1)"], "y"),
        (["out O[x, 2*y] fp32(1:64, 1:1)", "out O_1 = O[x, 1 + 2*y] fp32(1:64, 1:1)"], "x y"),
        (["out O[x, y] fp32(1:64, 1:1)", "out O_1 = O[x, 1 + y]:add fp32(1:64, 1:1)"], "x"),
        (["out O[x, 0] fp32(1:64, 1:1)", "out O_1 = O[z, 1] fp32(1:64, 1:1)"], ""),
        ([], ""),
    ],
)
def test_indices_that_keep_points_apart(views: list[str], apart: str) -> None:
    found = written(*views)
    assert separating(found, {}) == tuple(apart.split())
    assert separates(found, apart.split(), {})
    assert not separates(found, ("x", "y", "z"), {})


AFFINES = st.recursive(
    st.builds(lambda name, factor: Affine.var(name) * factor, st.sampled_from(NAMES), st.integers(-9, 9)),
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, n: a.floordiv(n), inner, st.integers(2, 6)),
        st.builds(lambda a, n: a.mod(n), inner, st.integers(2, 6)),
    ),
    max_leaves=4,
)


@given(
    st.lists(st.tuples(AFFINES, st.integers(1, 3)), min_size=1, max_size=3),
    st.lists(st.integers(1, 5), min_size=3, max_size=3),
)
def test_no_two_points_that_differ_in_a_determined_index_meet(
    box: list[tuple[Affine, int]], sizes: list[int]
) -> None:
    ranges: dict[str, Interval] = {name: (0, size - 1) for name, size in zip(NAMES, sizes, strict=True)}
    apart = determined(box, ranges)
    points = [dict(zip(NAMES, values, strict=True)) for values in product(*map(range, sizes))]
    origins = [tuple(affine.evaluate(point) for affine, _ in box) for point in points]
    for first, one in zip(points, origins, strict=True):
        for second, other in zip(points, origins, strict=True):
            if all(abs(a - b) < extent for a, b, (_, extent) in zip(one, other, box, strict=True)):
                assert all(first[name] == second[name] for name in apart)


@given(st.lists(AFFINES, min_size=1, max_size=4))
def test_simplifying_keeps_the_values(parts: list[Affine]) -> None:
    total = sum(parts, Affine())
    ranges: dict[str, Interval] = {"x": (0, 7), "y": (-2, 3), "z": (0, 4)}
    simpler = total.simplified(ranges)
    for values in product(*(range(low, high + 1) for low, high in ranges.values())):
        point = dict(zip(NAMES, values, strict=True))
        assert simpler.evaluate(point) == total.joined().evaluate(point) == total.evaluate(point)


def test_the_parts_of_a_packed_index_join() -> None:
    assert str(parse_affine("8*floor(x/8) + x mod 8").joined()) == "x"
    assert str(parse_affine("16*floor(x/16) + 8*(floor(x/8) mod 2) + x mod 8").joined()) == "x"
    assert str(parse_affine("10*floor(x/8) + x mod 8").joined()) == "10*floor(x/8) + (x mod 8)"


def test_layouts_without_gaps() -> None:
    assert is_dense((4, 8), (8, 1)) and is_dense((4, 8), (1, 4)) and is_dense((1, 8), (99, 1))
    assert not is_dense((4, 8), (9, 1)) and not is_dense((4, 8), (1, 1))
    assert is_row_major((4, 8), (8, 1)) and not is_row_major((4, 8), (1, 4))
