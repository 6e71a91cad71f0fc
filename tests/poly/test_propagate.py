"""Intervals under linear constraints: never too small, and exact where they say so."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.ir import Affine, Domain
from stripe.poly.propagate import propagated
from stripe.poly.simplify import feasible, implied, tighten

NAMES: tuple[str, ...] = ("x", "y", "z")

affines = st.builds(
    lambda values, offset: Affine.linear(dict(zip(NAMES, values, strict=True)), offset),
    st.tuples(*(st.integers(-3, 3) for _ in NAMES)),
    st.integers(-6, 6),
)
boxes = st.tuples(*(st.integers(0, 4) for _ in NAMES))


def points(tops: tuple[int, ...], constraints: list[Affine]) -> list[dict[str, int]]:
    every = (dict(zip(NAMES, values, strict=True)) for values in product(*(range(top + 1) for top in tops)))
    return [point for point in every if all(c.evaluate(point) >= 0 for c in constraints)]


@settings(max_examples=300, deadline=None)
@given(boxes, st.lists(affines, max_size=3), affines)
def test_boxes_are_those_of_all_points(
    tops: tuple[int, ...], constraints: list[Affine], asked: Affine
) -> None:
    found = points(tops, constraints)
    ranges = {name: (0, top) for name, top in zip(NAMES, tops, strict=True)}
    hull = (
        {name: (min(p[name] for p in found), max(p[name] for p in found)) for name in NAMES}
        if found
        else None
    )
    box = propagated(ranges, constraints)
    if box is None:
        assert hull is None
    elif box.is_exact:
        assert dict(box.ranges) == hull
        if box.attains(asked):
            assert min(asked.evaluate(p) for p in found) == asked.bounds(box.ranges)[0]
    elif hull is not None:
        assert all(box.ranges[n][0] <= hull[n][0] and hull[n][1] <= box.ranges[n][1] for n in NAMES)


@settings(max_examples=300, deadline=None)
@given(boxes, st.lists(affines, max_size=3), affines)
def test_questions_get_the_answers_of_all_points(
    tops: tuple[int, ...], constraints: list[Affine], asked: Affine
) -> None:
    found = points(tops, constraints)
    domain = Domain.of({name: (0, top) for name, top in zip(NAMES, tops, strict=True)}, tuple(constraints))
    assert feasible(domain) == bool(found)
    if found:
        assert implied(asked, domain) == all(asked.evaluate(p) >= 0 for p in found)
    want = {n: (min(p[n] for p in found), max(p[n] for p in found)) for n in NAMES} if found else None
    assert tighten(domain) == want
