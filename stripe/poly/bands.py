"""Integer points between parallel hyperplanes: their exact bounding box and the constraints that the box leaves over.

A set is given as bands low <= vector . y <= high. It splits into components of indices that share no band, which keeps
each question to isl small; a component whose bands all follow from plain intervals needs no isl at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stripe.poly.lattice import Polynomial, Vector

Band: TypeAlias = tuple[int | None, int | None]
"""Inclusive lower and upper end, None where there is none."""

Bands: TypeAlias = tuple[tuple[Vector, Band], ...]


class EmptyDomain(ValueError):
    """No integer point satisfies all ranges; `cause` is the polynomial that shows it, when one does alone."""

    def __init__(self, reason: str, cause: Polynomial | None = None) -> None:
        super().__init__(reason)
        self.cause = cause


class UnboundedIndex(ValueError):
    """The points are infinitely many in the direction of the index `name`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"index '{name}' is not bounded")
        self.name = name


@dataclass(frozen=True, slots=True)
class BoundedSet:
    """Points y with `box` (inclusive, attained) per name and vector . y + offset >= 0 for each of `constraints`."""

    names: tuple[str, ...]
    box: tuple[tuple[int, int], ...]
    constraints: tuple[tuple[Vector, int], ...]


def bound_bands(names: tuple[str, ...], bands: Bands) -> BoundedSet:
    """The exact box of the points in all `bands`, and the constraints that neither box nor others imply.

    Raises EmptyDomain, UnboundedIndex, and PolyLimit when isl would take too long.
    """
    box: list[tuple[int, int]] = [(0, 0)] * len(names)
    kept: set[tuple[Vector, int]] = set()
    for members in _components(len(names), bands):
        inside = tuple((vector, band) for vector, band in bands if any(vector[place] for place in members))
        intervals, constraints = _solve_component(names, members, inside)
        for place, interval in zip(members, intervals, strict=True):
            box[place] = interval
        kept.update(constraints)
    ordered = [
        inequality for vector, band in bands for inequality in _sides(vector, band) if inequality in kept
    ]
    return BoundedSet(names, tuple(box), tuple(ordered))


def _components(count: int, bands: Bands) -> list[list[int]]:
    """Indices grouped by the bands that they share, in order."""
    group = list(range(count))
    for vector, _ in bands:
        live = [place for place, value in enumerate(vector) if value]
        roots = {group[place] for place in live}
        if len(roots) > 1:
            target = min(roots)
            group = [target if root in roots else root for root in group]
    return [[place for place in range(count) if group[place] == root] for root in sorted(set(group))]


def _sides(vector: Vector, band: Band) -> list[tuple[Vector, int]]:
    """The one or two inequalities of a band."""
    low, high = band
    lower = [(vector, -low)] if low is not None else []
    return lower + ([(tuple(-value for value in vector), high)] if high is not None else [])


def _solve_component(
    names: Sequence[str], members: list[int], bands: Bands
) -> tuple[list[tuple[int, int]], list[tuple[Vector, int]]]:
    single: dict[int, Band] = {}
    for vector, band in bands:
        live = [place for place in members if vector[place]]
        if len(live) == 1:
            single[live[0]] = band
    wide = [(vector, band) for vector, band in bands if sum(map(bool, vector)) > 1]
    known = {
        place: (low, high) for place, (low, high) in single.items() if low is not None and high is not None
    }
    if len(known) == len(members) and not _left_over(wide, known):
        return [known[place] for place in members], []
    if not wide:
        raise UnboundedIndex(names[next(place for place in members if place not in known)])
    box = _exact_box(names, members, bands)
    left = _left_over(wide, dict(zip(members, box, strict=True)))
    if len({frozenset((vector, tuple(-v for v in vector))) for vector, _ in left}) > 1:
        left = _without_implied(members, box, left)
    return box, left


def _left_over(
    bands: Iterable[tuple[Vector, Band]], box: dict[int, tuple[int, int]]
) -> list[tuple[Vector, int]]:
    """The inequalities of `bands` that some point of the box violates."""
    return [
        (vector, offset)
        for source, band in bands
        for vector, offset in _sides(source, band)
        if offset
        + sum(
            min(value * box[place][0], value * box[place][1]) for place, value in enumerate(vector) if value
        )
        < 0
    ]


def _text(members: Sequence[int], inequalities: Iterable[tuple[Vector, int]]) -> str:
    """isl's text of a set over the members."""
    parts = [" + ".join([*(f"{vector[place]}*y{place}" for place in members if vector[place]), f"{offset}"]) + " >= 0"
             for vector, offset in inequalities]  # fmt: skip
    coordinates = ", ".join(f"y{place}" for place in members)
    return f"{{ [{coordinates}] : {' and '.join(parts) or 'true'} }}"


def _exact_box(names: Sequence[str], members: Sequence[int], bands: Bands) -> list[tuple[int, int]]:
    import islpy as isl

    from stripe.poly.limits import CONTEXT, operation_limit

    with operation_limit():
        inequalities = [side for vector, band in bands for side in _sides(vector, band)]
        points = isl.Set(_text(members, inequalities), context=CONTEXT)
        if points.is_empty():
            raise EmptyDomain("no integer point satisfies all conditions")
        box: list[tuple[int, int]] = []
        for position, place in enumerate(members):
            low, high = points.dim_min_val(position), points.dim_max_val(position)
            if not (low.is_int() and high.is_int()):
                raise UnboundedIndex(names[place])
            box.append((low.to_python(), high.to_python()))
        return box


def _without_implied(
    members: Sequence[int], box: Sequence[tuple[int, int]], inequalities: list[tuple[Vector, int]]
) -> list[tuple[Vector, int]]:
    """Drops each inequality that the box and the remaining ones imply, the later ones first."""
    import islpy as isl

    from stripe.poly.limits import CONTEXT, operation_limit

    width = len(inequalities[0][0])
    edges: list[tuple[Vector, int]] = []
    for place, (low, high) in zip(members, box, strict=True):
        unit = tuple(int(column == place) for column in range(width))
        edges += _sides(unit, (low, high))
    kept = list(inequalities)
    with operation_limit():
        for inequality in reversed(inequalities):
            others = [other for other in kept if other != inequality]
            vector, offset = inequality
            violated = (tuple(-value for value in vector), -offset - 1)
            if isl.Set(_text(members, [*edges, *others, violated]), context=CONTEXT).is_empty():
                kept = others
    return kept
