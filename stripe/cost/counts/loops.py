"""The elements that enter a level of memory over the run of a loop nest, by reasoning about its loops alone.

The loops outside a box run like an odometer. When loop j counts on, the loops inside it go back from their last
values to 0. So the box moves by a distance that depends on j alone as long as its origin is linear, and the number of
such steps is a product of ranges. Boxes that are clipped, or whose origins have floors, are counted as integer sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from stripe.ir import Affine, Interval, coordinates
from stripe.poly import Access, Points, Relation, count_points, distinct_values, element_names, touched_at

Halo = Literal["refetch", "keep"]
HALOS: tuple[Halo, ...] = ("refetch", "keep")


@dataclass(frozen=True)
class Box:
    """The elements that an access touches per point of `loops`: sizes[d] from origin[d] on, in each dimension."""

    origin: tuple[Affine, ...]
    sizes: tuple[int, ...]

    @property
    def volume(self) -> int:
        """Elements of the box."""
        return prod(self.sizes)


def entering(access: Access, loops: Sequence[str], halo: Halo, instances: Sequence[str] = ()) -> int:
    """The number of elements that enter the level while `loops` (names of the domain, outermost first) run.

    An element counts once for each point of `instances`, each of which has a box of its own; the other indices of the
    domain span the box.
    """
    ranges = access.nest.domain.ranges
    running = tuple(name for name in loops if ranges[name][0] < ranges[name][1])
    box = _box(access, (*loops, *instances))
    if box is not None and not access.nest.domain.constraints:
        copies = access.nest.domain.volume(instances)
        return copies * _entering_box(box, [(n, ranges[n][1] + 1) for n in running], halo)
    return entering_by_sets(access, running, tuple(instances), halo)


def _box(access: Access, fixed: Sequence[str]) -> Box | None:
    """The box over `fixed` when the other indices fill one without gaps, each dimension with indices of its own."""
    keep = set(fixed)
    ranges = access.nest.domain.ranges
    origin: list[Affine] = []
    sizes: list[int] = []
    used: set[str] = set()
    index = [affine.simplified(ranges) for affine in access.index]
    for coordinate in coordinates(index, access.sizes):
        affine, size = coordinate.affine, coordinate.size
        inner = affine.names() - keep
        if not affine.is_linear or inner & used:
            return None
        used |= inner
        terms = [(affine.coeff(n), ranges[n][1] - ranges[n][0] + 1) for n in sorted(inner)]
        span = size + sum(abs(coefficient) * (extent - 1) for coefficient, extent in terms)
        if distinct_values([*terms, (1, size)]) != span:
            return None
        low = sum(min(affine.coeff(n) * ranges[n][0], affine.coeff(n) * ranges[n][1]) for n in inner)
        origin.append(affine.subs({n: Affine() for n in inner}) + low)
        sizes.append(span)
    return Box(tuple(origin), tuple(sizes))


def _entering_box(box: Box, loops: Sequence[tuple[str, int]], halo: Halo) -> int:
    """The closed form: the first box whole, then for each kind of step its new elements times the number of such
    steps."""
    total = box.volume
    outer = 1
    for position, (name, extent) in enumerate(loops):
        inner = loops[position + 1 :]
        move = [
            affine.coeff(name) - sum(affine.coeff(other) * (size - 1) for other, size in inner)
            for affine in box.origin
        ]
        if any(move):
            kept = prod(max(0, size - abs(by)) for size, by in zip(box.sizes, move, strict=True))
            total += outer * (extent - 1) * (box.volume - (kept if halo == "keep" else 0))
        outer *= extent
    return total


def entering_by_sets(access: Access, loops: tuple[str, ...], instances: tuple[str, ...], halo: Halo) -> int:
    """By integer sets: pairs of a point after a step and an element that enters there."""
    ranges = access.nest.domain.ranges
    names = (*loops, *instances)
    elements = element_names(len(access.index))
    touched = Relation.from_points(touched_at(access, names), names, elements)
    start = Points.build(names, {**{n: ranges[n] for n in names}, **dict.fromkeys(loops, (0, 0))})
    total = count_points(touched.within(start).points())
    for after, before in _steps(loops, {name: ranges[name] for name in names}):
        now = touched.within(after)
        back = {name: before.get(name, Affine.var(name)) for name in names}
        renamed = {name: f"{name}'" for name in names}
        step = Relation.function(after, {renamed[n]: affine for n, affine in back.items()})
        earlier = touched.named(tuple(renamed.values()), elements)
        if halo == "keep":
            total += count_points((now - step.then(earlier)).points())
        elif _moves_on(access, names, before):
            total += count_points(now.points())
        else:
            other = step.then(earlier)
            moved = (now - other).domain | (other - now).domain
            total += count_points(touched.within(moved).points())
    return total


def _moves_on(access: Access, names: tuple[str, ...], before: dict[str, Affine]) -> bool:
    """Whether the origin of the box moves at all points after a step by one distance, which is not 0."""
    zero = {n: Affine() for affine in access.index for n in affine.names() - {*names}}
    origins = [affine.subs(zero) for affine in access.index]
    moves = [origin - origin.subs(before) for origin in origins]
    return any(move.is_constant and move.offset for move in moves)


def _steps(loops: tuple[str, ...], ranges: dict[str, Interval]) -> Iterator[tuple[Points, dict[str, Affine]]]:
    """For each loop that counts on: the points right after, and the indices before as affines over those after."""
    for position, name in enumerate(loops):
        inner = loops[position + 1 :]
        where: dict[str, Interval] = {**ranges, name: (1, ranges[name][1]), **dict.fromkeys(inner, (0, 0))}
        before = {name: Affine.var(name) - 1, **{other: Affine(ranges[other][1]) for other in inner}}
        yield Points.build(tuple(ranges), where), before
