"""Unfolding on random nests: the same elements are touched as often, and loops that can follow a layout do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.ir import (
    DTYPES,
    Affine,
    Agg,
    Block,
    Constraint,
    Dim,
    Direction,
    Index,
    Load,
    Refinement,
    Store,
    coordinates,
    unfolded,
)


def view(name: str, direction: Direction, access: tuple[Affine, ...]) -> Refinement:
    dims = tuple(Dim(1, 100**number) for number in reversed(range(len(access))))
    agg = Agg.ADD if direction is Direction.OUT else Agg.ASSIGN
    return Refinement(name, direction, name, access, DTYPES["fp32"], dims, agg)


def points(block: Block, outside: dict[str, int]) -> Iterator[dict[str, int]]:
    for values in product(*(range(index.range) for index in block.iterated)):
        here = dict(zip((index.name for index in block.iterated), values, strict=True))
        here |= {i.name: i.affine.evaluate(outside) for i in block.indices if i.affine is not None}
        if all(constraint.affine.evaluate(here) >= 0 for constraint in block.constraints):
            yield here


def touched(block: Block, outside: dict[str, int], origin: tuple[int, ...] = ()) -> Iterator[object]:
    """The accessed elements at each point; those of the innermost block lie relative to the outer view."""
    for here in points(block, outside):
        places = tuple(tuple(a.evaluate(here) for a in ref.access) for ref in block.refinements)
        inner = list(block.blocks)
        if not inner:
            yield places
        for one in inner:
            for found in touched(one, here):
                yield places, found


@st.composite
def affines(draw: st.DrawFn, names: tuple[str, ...], depth: int = 2) -> Affine:
    terms = {name: draw(st.integers(0, 3)) for name in names}
    total = Affine.linear(terms, draw(st.integers(0, 2)))
    if depth and draw(st.booleans()):
        inner = draw(affines(names, depth - 1))
        width = draw(st.sampled_from([2, 3, 4, 6]))
        total = total + (inner.floordiv(width) if draw(st.booleans()) else inner.mod(width))
    return total


@st.composite
def nests(draw: st.DrawFn) -> Block:
    x, y = draw(st.integers(1, 12)), draw(st.integers(1, 7))
    leaf_refs = (
        view("I", Direction.IN, (draw(affines(("x", "y"))), draw(affines(("x", "y"))))),
        view("O", Direction.OUT, (Affine.var("x"), draw(affines(("y",))))),
    )
    leaf = Block("leaf", (Index("x", x), Index("y", y)), (), leaf_refs, (Load("$v", "I"), Store("O", "$v")))
    if draw(st.booleans()):
        return leaf
    z = draw(st.integers(1, 9))
    passed = Index("p", 1, draw(affines(("z",))))
    inner_refs = (
        view("I", Direction.IN, (draw(affines(("p", "y"))), draw(affines(("p",))))),
        view("O", Direction.OUT, (Affine.var("y"), Affine())),
    )
    inner = Block(
        "inner",
        (Index("y", y), passed),
        (Constraint(draw(affines(("p", "y"))) - draw(st.integers(0, 4))),),
        inner_refs,
        (Load("$v", "I"), Store("O", "$v")),
    )
    outer_refs = (
        view("I", Direction.IN, (draw(affines(("z",))), Affine())),
        view("O", Direction.OUT, (Affine.var("z"),) * 2),
    )
    return Block("outer", (Index("z", z),), (), outer_refs, (inner,))


@pytest.mark.long
@settings(max_examples=300)
@given(nests())
def test_the_same_elements_are_touched(block: Block) -> None:
    assert Counter(touched(unfolded(block), {})) == Counter(touched(block, {}))


@settings(max_examples=200)
@given(st.lists(affines(("x", "y")), min_size=2, max_size=3), st.integers(1, 8), st.integers(1, 6))
def test_coordinates_keep_elements_apart(access: list[Affine], x: int, y: int) -> None:
    found = coordinates(access, [1] * len(access))
    here = [{"x": a, "y": b} for a, b in product(range(x), range(y))]
    old = {point: tuple(a.evaluate(env) for a in access) for point, env in enumerate(here)}
    new = {point: tuple(c.affine.evaluate(env) for c in found) for point, env in enumerate(here)}
    for one, two in product(old, old):
        assert (old[one] == old[two]) == (new[one] == new[two])


def packed(*access: Affine, **ranges: int) -> Block:
    indices = tuple(Index(name, size) for name, size in ranges.items())
    return Block("b", indices, (), (view("I", Direction.IN, access),), (Load("$v", "I"),))


C, H, R = Affine.var("c"), Affine.var("h"), Affine.var("r")


@pytest.mark.parametrize(
    ("access", "ranges", "expected"),
    [
        ((C.floordiv(32), C.mod(32)), {"c": 128}, "c.32:4 c.1:32"),
        ((C.floordiv(32), C.mod(32).floordiv(4), C.mod(4)), {"c": 128}, "c.32:4 c.4:8 c.1:4"),
        ((C.floordiv(4), C.mod(4)), {"c": 10}, "c.4:3 c.1:4"),
        ((C.floordiv(4), C.mod(4)), {"c": 4}, "c:4"),
        (((4 * H + R).floordiv(32), (4 * H + R).mod(32)), {"h": 64, "r": 4}, "h.8:8 h.1:8 r:4"),
        (((H + R).floordiv(8), (H + R).mod(8)), {"h": 62, "r": 3}, "h:62 r:3"),
    ],
)
def test_digits(access: tuple[Affine, ...], ranges: dict[str, int], expected: str) -> None:
    found = unfolded(packed(*access, **ranges))
    assert " ".join(f"{index.name}:{index.range}" for index in found.indices) == expected


def test_a_block_without_floors_is_the_same_object() -> None:
    block = packed(C, c=128)
    assert unfolded(block) is block
