"""Sets of integer points over named dimensions.

`Points` wraps isl's sets, and `Relation` (`stripe.poly.relations`) its maps. Dimensions have names, and a combination
of two sets aligns them by name; isl's positions are seen nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, Self, TypeVar

import islpy as isl

from stripe.ir import Affine, Domain, Interval
from stripe.poly.encode import (
    SET,
    Row,
    affines_of,
    isl_aff,
    isl_constraint,
    isl_space,
    isl_val,
    number_of,
    rows_of,
)
from stripe.poly.limits import coalesced
from stripe.poly.private_copy import private_copy


@dataclass(frozen=True, eq=False)
class Points:
    """A set of integer points whose coordinates are called `names`."""

    names: tuple[str, ...]
    raw: isl.Set

    @staticmethod
    def universe(names: Sequence[str]) -> Points:
        return Points(tuple(names), isl.Set.universe(isl_space(len(names))))

    @staticmethod
    def empty(names: Sequence[str]) -> Points:
        return Points(tuple(names), isl.Set.empty(isl_space(len(names))))

    @staticmethod
    def build(
        names: Sequence[str],
        bounds: Mapping[str, Interval],
        at_least_zero: Iterable[Affine] = (),
        zero: Iterable[Affine] = (),
    ) -> Points:
        """The points with each coordinate in its inclusive interval (free without one) and all of
        `at_least_zero` >= 0 and `zero` = 0.
        """
        names = tuple(names)
        position = {name: number for number, name in enumerate(names)}
        space = isl_space(len(names))
        local = isl.LocalSpace.from_space(space)
        result = isl.BasicSet.universe(space)
        for name, (low, high) in bounds.items():
            result = result.add_constraint(
                isl_constraint(local, Affine.var(name) - low, position, equality=False)
            )
            result = result.add_constraint(
                isl_constraint(local, high - Affine.var(name), position, equality=False)
            )
        for equality, affines in ((False, at_least_zero), (True, zero)):
            for affine in affines:
                if affine.is_linear:
                    result = result.add_constraint(isl_constraint(local, affine, position, equality=equality))
                else:
                    aff = isl_aff(local, affine, position)
                    made = (
                        isl.Constraint.equality_from_aff if equality else isl.Constraint.inequality_from_aff
                    )
                    result = result.intersect(isl.BasicSet.from_constraint(made(aff)))
        return Points(names, isl.Set.from_basic_set(result))

    @staticmethod
    def descending(names: Sequence[str], first: Sequence[str], second: Sequence[str]) -> Points:
        """The points where the coordinates `first` come lexicographically after the coordinates `second`."""
        result = Points.empty(names)
        same: list[Affine] = []
        for one, two in zip(first, second, strict=True):
            difference = Affine.var(one) - Affine.var(two)
            result = result | Points.build(names, {}, [difference - 1], same)
            same.append(difference)
        return result

    @staticmethod
    def point(values: Mapping[str, int]) -> Points:
        return Points.build(tuple(values), {name: (value, value) for name, value in values.items()})

    def _same(self, other: Points) -> isl.Set:
        """The isl set of `other` with its dimensions in the order of this one."""
        return other.raw if other.names == self.names else other.ordered(self.names).raw

    def ordered(self, names: Sequence[str]) -> Points:
        """The same points with the coordinates in another order."""
        names = tuple(names)
        if names == self.names:
            return self
        if sorted(names) != sorted(self.names):
            raise ValueError(f"coordinates {names} are not {self.names}")
        result, order = self.raw, list(self.names)
        for target, name in enumerate(names):
            source = order.index(name)
            if source != target:  # isl moves dimensions between kinds only, so one goes over a parameter
                result = result.move_dims(isl.dim_type.param, 0, SET, source, 1)
                result = result.move_dims(SET, target, isl.dim_type.param, 0, 1)
                order.insert(target, order.pop(source))
        return Points(names, result)

    def renamed(self, names: Mapping[str, str]) -> Points:
        return Points(tuple(names.get(name, name) for name in self.names), self.raw)

    def __and__(self, other: Points) -> Points:
        return Points(self.names, self.raw.intersect(self._same(other)))

    @property
    def only_point(self) -> tuple[int, ...] | None:
        """The only point, where the constraints say plainly that there is at most one; None where they do not."""
        found: list[int] = []
        for number in range(len(self.names)):
            value = self.raw.plain_get_val_if_fixed(SET, number)
            if not value.is_int():
                return None
            found.append(number_of(value))
        return tuple(found)

    def __or__(self, other: Points) -> Points:
        return Points(self.names, self.raw.union(self._same(other)))

    def __sub__(self, other: Points) -> Points:
        return Points(self.names, self.raw.subtract(self._same(other)))

    @property
    def is_empty(self) -> bool:
        return self.raw.is_empty()

    def subset_of(self, other: Points) -> bool:
        return self.raw.is_subset(self._same(other))

    def equals(self, other: Points) -> bool:
        return self.raw.is_equal(self._same(other))

    def disjoint(self, other: Points) -> bool:
        return self.raw.is_disjoint(self._same(other))

    def where(self, at_least_zero: Iterable[Affine] = (), zero: Iterable[Affine] = ()) -> Points:
        """The points that also satisfy the given affines."""
        return self & Points.build(self.names, {}, at_least_zero, zero)

    def onto(self, names: Sequence[str]) -> Points:
        """The projection onto the coordinates `names`, in that order."""
        keep = set(names)
        result, left = self.raw, list(self.names)
        for number in range(len(self.names) - 1, -1, -1):
            if self.names[number] not in keep:
                result = result.project_out(SET, number, 1)
                del left[number]
        return Points(tuple(left), result).ordered(names)

    def bounds(self, name: str) -> Interval | None:
        """Exact least and greatest value of a coordinate; None for the empty set. ValueError when unbounded."""
        if self.is_empty:
            return None
        position = self.names.index(name)
        low, high = self.raw.dim_min_val(position), self.raw.dim_max_val(position)
        if not (low.is_int() and high.is_int()):
            raise ValueError(f"'{name}' is unbounded")
        return number_of(low), number_of(high)

    def box(self) -> dict[str, Interval] | None:
        """The exact interval of each coordinate: the smallest box that holds the set; None when it is empty."""
        if self.is_empty:
            return None
        result: dict[str, Interval] = {}
        for name in self.names:
            found = self.bounds(name)
            assert found is not None
            result[name] = found
        return result

    def sample(self) -> dict[str, int] | None:
        """Some point of the set, always the same; None when there is none."""
        point = self.raw.sample_point()
        if point.is_void():
            return None
        return {
            name: number_of(point.get_coordinate_val(SET, number)) for number, name in enumerate(self.names)
        }

    def lexmin(self) -> dict[str, int] | None:
        """The lexicographically first point; None when there is none."""
        return Points(self.names, private_copy(self.raw).lexmin()).sample()

    def contains(self, values: Mapping[str, int]) -> bool:
        """Whether the point with these coordinates is in the set."""
        fixed = self.raw
        for number, name in enumerate(self.names):
            fixed = fixed.fix_val(SET, number, isl_val(values[name]))
        return not fixed.is_empty()

    def affines(self) -> tuple[Affine, ...]:
        """Affines that are all >= 0 at exactly the points of the set; an equality comes as two of them.

        Raises ValueError for a set of several pieces; see `pieces`.
        """
        parts = self.raw.compute_divs().get_basic_sets()
        if len(parts) != 1:
            raise ValueError(f"{len(parts)} pieces have no common list of constraints")
        return tuple(affines_of(parts[0], self.names))

    def rows(self) -> tuple[list[Row], list[Row], list[tuple[Row, int]]]:
        """The constraints of a set of one piece: rows that are 0, rows that are at least 0, and its floors; see
        `rows_of`."""
        (part,) = self.raw.compute_divs().get_basic_sets()
        return rows_of(part)

    def coalesced(self) -> Points:
        """The same set in fewer pieces, where isl finds a way."""
        return Points(self.names, coalesced(self.raw))

    def gist(self, context: Points) -> Points:
        """A simpler set that agrees with this one inside `context`."""
        return Points(self.names, self.raw.gist(self._same(context)))

    def times(self, other: Points) -> Points:
        """All pairs of a point of this set and one of `other`."""
        return Points(self.names + other.names, self.raw.flat_product(other.raw))

    def __str__(self) -> str:
        result = self.raw
        for number, name in enumerate(self.names):
            result = result.set_dim_name(SET, number, name if name[:1].isalpha() else f"i{name}")
        return str(result)


@lru_cache(maxsize=2048)
def points_of(domain: Domain) -> Points:
    """The points of an iteration domain."""
    return Points.build(domain.names, domain.ranges, domain.constraints)


def union(parts: Iterable[Points], names: Sequence[str]) -> Points:
    """The union of sets over the coordinates `names`."""
    return united([Points.empty(names), *parts])


_Set = TypeVar("_Set", bound="SupportsUnion")


class SupportsUnion(Protocol):
    """A set or a relation."""

    def __or__(self, other: Self, /) -> Self: ...


def united(parts: Sequence[_Set]) -> _Set:
    """The union of at least one set or relation, by halves: isl copies both sides, so that one after the other would
    take time with the square of their number."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return united(parts[:middle]) | united(parts[middle:])


def pieces(points: Points) -> Iterator[Points]:
    """Disjoint convex (up to explicit floors) parts whose union is the set."""
    known = points.raw.compute_divs()
    disjoint = known if known.n_basic_set() <= 1 else known.make_disjoint().compute_divs()
    for part in disjoint.get_basic_sets():
        yield Points(points.names, isl.Set.from_basic_set(part))
