"""Exact counts against enumeration, and how little work large domains take."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.ir import Affine, Interval, parse_affine
from stripe.poly import (
    Points,
    PolyLimit,
    Relation,
    count_points,
    distinct_values,
    operation_limit,
    tile_elements,
)
from stripe.poly.count import rows

NAMES = "abcd"
WIDTHS = (40, 16, 8, 5)
OPERATIONS = 100_000
"""Of isl, for a count; one that enumerates takes some for each point."""


def brute(bounds: Mapping[str, Interval], constraints: list[Affine]) -> list[dict[str, int]]:
    axes = [range(low, high + 1) for low, high in bounds.values()]
    points = (dict(zip(bounds, values, strict=True)) for values in itertools.product(*axes))
    return [point for point in points if all(c.evaluate(point) >= 0 for c in constraints)]


@st.composite
def domains(draw: st.DrawFn) -> tuple[dict[str, Interval], list[Affine]]:
    size = draw(st.integers(1, 4))
    bounds: dict[str, Interval] = {}
    for name in NAMES[:size]:
        low = draw(st.integers(-3, 3))
        bounds[name] = (low, low + draw(st.integers(0, WIDTHS[size - 1])))
    constraints: list[Affine] = []
    for _ in range(draw(st.integers(0, 3))):
        affine = Affine.linear({n: draw(st.integers(-3, 3)) for n in bounds}, draw(st.integers(-10, 20)))
        if draw(st.booleans()):
            inner = Affine.var(draw(st.sampled_from(list(bounds)))) * draw(st.integers(1, 3)) + 1
            divisor = draw(st.integers(2, 5))
            affine = affine + (inner.floordiv(divisor) if draw(st.booleans()) else inner.mod(divisor)) * -2
        constraints.append(affine)
    return bounds, constraints


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(domains())
def test_counts_as_enumeration_does(case: tuple[dict[str, Interval], list[Affine]]) -> None:
    bounds, constraints = case
    points = Points.build(tuple(bounds), bounds, constraints)
    found = brute(bounds, constraints)
    for few in (0, rows._FEW):  # by slices, and by a test of each point
        with mock.patch.object(rows, "_FEW", few):
            rows.count_rows.cache_clear()
            assert count_points(points) == len(found)
    image = Relation.function(points, {"e": Affine.linear({n: k + 1 for k, n in enumerate(bounds)})})
    assert count_points(image.range) == len({sum((k + 1) * p[n] for k, n in enumerate(p)) for p in found})


@given(st.lists(st.tuples(st.integers(-12, 12), st.integers(1, 7)), min_size=1, max_size=4))
def test_distinct_values_of_strided_sums(terms: list[tuple[int, int]]) -> None:
    axes = [range(number) for _, number in terms]
    values = {sum(c * i for (c, _), i in zip(terms, p, strict=True)) for p in itertools.product(*axes)}
    assert distinct_values(terms) in (None, len(values))


@given(
    st.integers(1, 9), st.integers(1, 9), st.integers(1, 3),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5)), min_size=1, max_size=5),
)  # fmt: skip
def test_tiles_of_many_candidates(a: int, b: int, size: int, tiles: list[tuple[int, int]]) -> None:
    access = (Affine.linear({"x": a, "k": b}, -1),)
    columns = {"x": np.array([t[0] for t in tiles]), "k": np.array([t[1] for t in tiles])}
    counts = tile_elements(access, (size,), columns)
    for number, (x, k) in enumerate(tiles):
        touched = {a * i + b * j + s for i in range(x) for j in range(k) for s in range(size)}
        assert counts[number] == len(touched)


@pytest.mark.parametrize(
    ("names", "high", "constraints", "expected"),
    [
        ("i j k", 1023, ["j - i", "k - j"], 1024 * 1025 * 1026 // 6),
        ("i j k l", 1023, ["j - i", "k - j", "l - k - 1"], 45902419200),
        ("i j k", 99999, ["3*i + 2*j - k", "7*k - j - i"], 829360972213889),
    ],
)
def test_large_coupled_sets_are_not_enumerated(
    names: str, high: int, constraints: list[str], expected: int
) -> None:
    bounds = dict.fromkeys(names.split(), (0, high))
    with operation_limit(OPERATIONS):
        points = Points.build(tuple(bounds), bounds, [parse_affine(c) for c in constraints])
        assert count_points(points) == expected


def test_the_layer_of_the_slides_takes_few_operations() -> None:
    bounds = {"x": (0, 1023), "y": (0, 1023), "kx": (0, 2), "ky": (0, 2), "ci": (0, 31), "co": (0, 63)}
    inside = ["x + kx - 1", "1024 - x - kx", "y + ky - 1", "1024 - y - ky"]
    with operation_limit(OPERATIONS // 10):
        points = Points.build(tuple(bounds), bounds, [parse_affine(text) for text in inside])
        assert count_points(points) == (3 * 1024 - 2) ** 2 * 32 * 64


def test_an_infinite_set_has_no_count() -> None:
    with pytest.raises(ValueError, match="infinite"):
        count_points(Points.build(("x",), {}, [Affine.var("x")]))


def test_counting_keeps_the_limit_around_it() -> None:
    """It has a limit of its own, which lifts no tighter one."""
    thirds = Points.build(
        ("x", "y"), {"x": (0, 99), "y": (0, 99)}, [(Affine.var("x") + Affine.var("y")).mod(3) - 1]
    )
    assert count_points(thirds) == sum((x + y) % 3 >= 1 for x in range(100) for y in range(100))
    with pytest.raises(PolyLimit), operation_limit(1):
        count_points(thirds)
