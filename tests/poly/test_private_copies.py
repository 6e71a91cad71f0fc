"""Questions about sets leave all sets as they are, also those with parts in common with the set that is asked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import product

import islpy as isl
import pytest

from stripe.ir import parse_affine
from stripe.poly import Points, Relation, count_points, union
from stripe.poly.private_copy import private_copy

DOMAINS = [
    ({"a": (-1, 0), "b": (-1, 2), "x": (-1, 2), "y": (1, 2)}, ["b + x", "((1 - b - 2*x + y) mod 4) - 2 - y"]),
    ({"a": (0, 1), "b": (0, 3), "x": (0, 3), "y": (1, 2)}, ["((1 - b - 2*x + y) mod 4) - 2 - y"]),
    ({"a": (-1, 0), "b": (0, 3), "x": (-1, 3), "y": (0, 1)}, ["((3 + 2*b - 2*x) mod 4) - 3"]),
    ({"a": (-1, 0), "b": (-1, 2), "x": (0, 4), "y": (0, 1)}, ["((b + 2*x - y) mod 4) - 3", "x - b"]),
]
"""Their constraints leave an equality with a floor in isl, of a form that it changes where it looks for equalities."""

NAMES = ("a", "b", "x", "y")
FAR = Points.point(dict.fromkeys(NAMES, 100))


def build(number: int) -> tuple[Points, set[tuple[int, ...]]]:
    """A domain, and its points by enumeration."""
    bounds, constraints = DOMAINS[number]
    affines = [parse_affine(text) for text in constraints]
    points = product(*(range(low, high + 1) for low, high in bounds.values()))
    inside = {p for p in points if all(c.evaluate(dict(zip(NAMES, p, strict=True))) >= 0 for c in affines)}
    return union([Points.build(NAMES, bounds, affines)], NAMES), inside


def elements(points: Points) -> set[tuple[int, ...]]:
    found: set[tuple[int, ...]] = set()
    width = range(len(points.names))
    ordered = points.ordered(sorted(points.names)).raw
    ordered.foreach_point(
        lambda p: found.add(tuple(p.get_coordinate_val(isl.dim_type.set, n).to_python() for n in width))
    )
    return found


def if_function(question: Callable[[], object]) -> None:
    """Asks it; isl looks for equalities before it refuses a relation that is no function."""
    with suppress(isl.Error):
        question()


RELATIONS: dict[str, Callable[[Relation], object]] = {
    "first": Relation.first,
    "last": Relation.last,
    "as_affine": lambda relation: (relation | relation.first()).as_affine(),
    "explicit": lambda relation: if_function(relation.explicit),
    "explicit of first": lambda relation: relation.first().explicit(),
    "forms": lambda relation: if_function(relation.forms),
    "shifted_to_origin": Relation.shifted_to_origin,
    "coalesced": Relation.coalesced,
    "sample": Relation.sample,
    "is_empty": lambda relation: relation.is_empty,
    "single_valued": lambda relation: relation.single_valued,
    "injective": lambda relation: relation.injective,
    "domain": lambda relation: relation.domain.is_empty,
    "keep": lambda relation: relation.keep(["x"]).first(),
    "equals": lambda relation: relation.equals(relation.first()),
    "reversed": lambda relation: relation.reversed().last(),
    "then": lambda relation: relation.then(relation.reversed()).first(),
}

SETS: dict[str, Callable[[Points], object]] = {
    "lexmin": Points.lexmin,
    "count": count_points,
    "box": Points.box,
    "sample": Points.sample,
    "coalesced": Points.coalesced,
    "gist": lambda points: points.gist(Points.build(NAMES, {"a": (-1, 0), "y": (0, 2)})),
    "affines": Points.affines,
    "onto": lambda points: points.onto(["b", "x"]).lexmin(),
    "ordered": lambda points: points.ordered(["y", "x", "b", "a"]).lexmin(),
    "subset_of": lambda points: points.subset_of(points.coalesced()),
}


@pytest.mark.parametrize("question", RELATIONS)
@pytest.mark.parametrize("number", range(len(DOMAINS)))
def test_questions_leave_relations_as_they_are(number: int, question: str) -> None:
    points, inside = build(number)
    relation = Relation.from_points(points, NAMES[:2], NAMES[2:])
    both = relation | Relation.from_points(FAR, NAMES[:2], NAMES[2:])
    RELATIONS[question](relation)
    assert elements(relation.points()) == inside
    assert elements(both.points()) == inside | {(100,) * 4}
    assert elements(points) == inside


@pytest.mark.parametrize("question", SETS)
@pytest.mark.parametrize("number", range(len(DOMAINS)))
def test_questions_leave_sets_as_they_are(number: int, question: str) -> None:
    given, inside = build(number)
    points = Relation.from_points(given, NAMES[:2], NAMES[2:]).points()
    both = points | FAR
    SETS[question](points)
    assert elements(points) == inside
    assert elements(both) == inside | {(100,) * 4}
    assert elements(given) == inside


@pytest.mark.parametrize("number", range(len(DOMAINS)))
def test_first_and_last_images(number: int) -> None:
    points, inside = build(number)
    relation = Relation.from_points(points, NAMES[:2], NAMES[2:])
    images = {p[:2]: sorted(q[2:] for q in inside if q[:2] == p[:2]) for p in inside}
    assert elements(relation.first().points()) == {(*p, *found[0]) for p, found in images.items()}
    assert elements(relation.last().points()) == {(*p, *found[-1]) for p, found in images.items()}


def test_isl_has_the_fault_still() -> None:
    """Without it private copies may go."""
    points, inside = build(0)
    relation = Relation.from_points(points, NAMES[:2], NAMES[2:])
    relation.raw.lexmin()
    assert elements(relation.points()) > inside


def test_a_private_copy_is_the_same_set() -> None:
    points, _ = build(0)
    relation = Relation.from_points(points, NAMES[:2], NAMES[2:])
    assert str(private_copy(points.raw)) == str(points.raw)
    assert str(private_copy(relation.raw)) == str(relation.raw)
