"""Sets of integer points and relations between them, over named dimensions: the only place that speaks to isl.

`Points` and `Relation` wrap isl's sets and maps. Dimensions have names, and whoever combines two of them gets them
aligned by name; isl's positions are seen nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import islpy as isl

from stripe.ir import Affine, Domain, Interval
from stripe.poly.encode import (
    IN,
    OUT,
    SET,
    Row,
    affine_of,
    affines_of,
    isl_aff,
    isl_constraint,
    isl_space,
    isl_val,
    rows_of,
)
from stripe.poly.limits import CONTEXT, coalesced


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
        """Those points that also satisfy the given affines."""
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
        return low.to_python(), high.to_python()

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
            name: point.get_coordinate_val(SET, number).to_python() for number, name in enumerate(self.names)
        }

    def lexmin(self) -> dict[str, int] | None:
        """The lexicographically first point; None when there is none."""
        return Points(self.names, self.raw.lexmin()).sample()

    def contains(self, values: Mapping[str, int]) -> bool:
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

    def identity(self, suffix: str) -> Relation:
        """Relates each point to itself, the image with `suffix` after its names."""
        return Relation(self.names, tuple(name + suffix for name in self.names), self.raw.identity())

    def __str__(self) -> str:
        result = self.raw
        for number, name in enumerate(self.names):
            result = result.set_dim_name(SET, number, name if name[:1].isalpha() else f"i{name}")
        return str(result)


@dataclass(frozen=True, eq=False)
class Relation:
    """A set of pairs of points; names of the inner points in `ins`, of the images in `outs`."""

    ins: tuple[str, ...]
    outs: tuple[str, ...]
    raw: isl.Map

    @staticmethod
    def from_points(points: Points, ins: Sequence[str], outs: Sequence[str]) -> Relation:
        """Splits the coordinates of a set into first and second points of pairs."""
        ordered = points.ordered((*ins, *outs)).raw
        result = isl.Map.from_range(ordered).move_dims(IN, 0, OUT, 0, len(ins))
        return Relation(tuple(ins), tuple(outs), result)

    @staticmethod
    def function(domain: Points, values: Mapping[str, Affine]) -> Relation:
        """Takes each point of `domain` to the values of affines over its coordinates."""
        ins, outs = domain.names, tuple(values)
        position = {name: number for number, name in enumerate(ins)}
        space = domain.raw.get_space()
        local = isl.LocalSpace.from_space(space)
        target = isl.Space.alloc(CONTEXT, 0, len(ins), len(outs))
        result = isl.MultiAff.zero(target)
        for number, affine in enumerate(values.values()):
            result = result.set_aff(number, isl_aff(local, affine, position))
        return Relation(ins, outs, isl.Map.from_multi_aff(result).intersect_domain(domain.raw))

    @staticmethod
    def empty(ins: Sequence[str], outs: Sequence[str]) -> Relation:
        return Relation(
            tuple(ins), tuple(outs), isl.Map.empty(isl.Space.alloc(CONTEXT, 0, len(ins), len(outs)))
        )

    def points(self) -> Points:
        """The pairs as one set; first and second points must have no name in common."""
        moved = self.raw.move_dims(OUT, 0, IN, 0, len(self.ins))
        return Points(self.ins + self.outs, moved.range())

    @property
    def domain(self) -> Points:
        return Points(self.ins, self.raw.domain())

    @property
    def range(self) -> Points:
        return Points(self.outs, self.raw.range())

    def reversed(self) -> Relation:
        return Relation(self.outs, self.ins, self.raw.reverse())

    def then(self, other: Relation) -> Relation:
        """First this, then `other`, whose first points are this one's images (matched by position and length)."""
        if len(self.outs) != len(other.ins):
            raise ValueError(f"{self.outs} does not lead into {other.ins}")
        return Relation(self.ins, other.outs, self.raw.apply_range(other.raw))

    def image(self, points: Points) -> Points:
        return Points(self.outs, points.ordered(self.ins).raw.apply(self.raw))

    def within(self, domain: Points) -> Relation:
        """The pairs whose first point is in `domain`."""
        return Relation(self.ins, self.outs, self.raw.intersect_domain(domain.ordered(self.ins).raw))

    def into(self, target: Points) -> Relation:
        """The pairs whose second point is in `target`."""
        return Relation(self.ins, self.outs, self.raw.intersect_range(target.ordered(self.outs).raw))

    def outside(self, domain: Points) -> Relation:
        """The pairs whose first point is not in `domain`."""
        return Relation(self.ins, self.outs, self.raw.subtract_domain(domain.ordered(self.ins).raw))

    def beside(self, other: Relation) -> Relation:
        """Relates x to (y, z) where this relates x to y and `other` relates x to z."""
        return Relation(self.ins, self.outs + other.outs, self.raw.flat_range_product(other.raw))

    def across(self, other: Relation) -> Relation:
        """Relates (x, u) to (y, v) where this relates x to y and `other` relates u to v."""
        return Relation(self.ins + other.ins, self.outs + other.outs, self.raw.flat_product(other.raw))

    def named(self, ins: Sequence[str], outs: Sequence[str]) -> Relation:
        """The same pairs under other names."""
        if (len(ins), len(outs)) != (len(self.ins), len(self.outs)):
            raise ValueError(f"{ins} -> {outs} does not fit {self.ins} -> {self.outs}")
        return Relation(tuple(ins), tuple(outs), self.raw)

    def keep(self, outs: Sequence[str]) -> Relation:
        """Drops all coordinates of the images but `outs` (which stay in their order)."""
        keep, result = set(outs), self.raw
        for number in range(len(self.outs) - 1, -1, -1):
            if self.outs[number] not in keep:
                result = result.project_out(OUT, number, 1)
        return Relation(self.ins, tuple(name for name in self.outs if name in keep), result)

    def __and__(self, other: Relation) -> Relation:
        return Relation(self.ins, self.outs, self.raw.intersect(other.raw))

    def __or__(self, other: Relation) -> Relation:
        return Relation(self.ins, self.outs, self.raw.union(other.raw))

    def __sub__(self, other: Relation) -> Relation:
        return Relation(self.ins, self.outs, self.raw.subtract(other.raw))

    @property
    def is_empty(self) -> bool:
        return self.raw.is_empty()

    @property
    def single_valued(self) -> bool:
        return self.raw.is_single_valued()

    @property
    def injective(self) -> bool:
        return self.raw.is_injective()

    def equals(self, other: Relation) -> bool:
        return self.raw.is_equal(other.raw)

    def subset_of(self, other: Relation) -> bool:
        return self.raw.is_subset(other.raw)

    def first(self) -> Relation:
        """The lexicographically first image of each point."""
        return Relation(self.ins, self.outs, self.raw.lexmin())

    def last(self) -> Relation:
        """The lexicographically last image of each point."""
        return Relation(self.ins, self.outs, self.raw.lexmax())

    def on_domain(self) -> Relation:
        """Relates each point that has an image to itself."""
        return Relation(self.ins, self.ins, self.raw.domain().identity())

    def paired(self) -> Relation:
        """Relates each pair (x, y) of this relation to itself, as flat points."""
        names = tuple(f"{number}" for number in range(len(self.ins) + len(self.outs)))
        return Relation(names, names, self.raw.wrap().flatten().identity())

    def keyed(self, values: Relation) -> Relation:
        """Relates flat pairs (x, y) to (x, z) where `values` relates y to z."""
        same = Points.universe(self.ins).identity("'")
        return same.across(values)

    def paired_with(self, values: Relation) -> Relation:
        """Relates flat pairs (x, z) to y where this relates x to y and `values` relates y to z."""
        forth = self.paired().then(self.keyed(values))  # (x, y) -> (x, z)
        names = forth.ins
        seconds = Points.universe(names).identity("'").keep([f"{n}'" for n in names[len(self.ins) :]])
        result = forth.reversed().then(seconds)
        return Relation(self.ins + values.outs, self.outs, result.raw)

    def shifted_to_origin(self) -> Relation:
        """Relates x to y - (first image of x), for each image y."""
        pairs = self.first().beside(self)
        names = self.outs
        seconds = tuple(f"{name}'" for name in names)
        both = Points.universe((*names, *seconds))
        differences = {name: Affine.var(f"{name}'") - Affine.var(name) for name in names}
        return (
            pairs.named(self.ins, both.names)
            .then(Relation.function(both, differences))
            .named(self.ins, names)
        )

    def distances(self) -> Points:
        """Differences image - point; both have the same number of coordinates."""
        return Points(self.ins, self.raw.deltas())

    def as_affine(self) -> Relation:
        """The same function in one piece where it is one affine function of its points, whatever pieces it came in."""
        if self.raw.n_basic_map() <= 1:
            return self
        hull = isl.Map.from_basic_map(self.raw.affine_hull())
        whole = hull.intersect_domain(coalesced(self.raw.domain()))
        return Relation(self.ins, self.outs, whole) if whole.is_single_valued() else self

    def explicit(self) -> Relation:
        """The same function with each image as floors of its point. Otherwise existentially quantified numbers pile up
        in compositions, and comparing two such relations takes for ever.
        """
        if not any(part.dim(isl.dim_type.div) for part in self.raw.get_basic_maps()):
            return self
        function = isl.PwMultiAff.from_map(self.raw)
        return Relation(self.ins, self.outs, coalesced(isl.Map.from_pw_multi_aff(function)))

    def forms(self) -> tuple[Affine, ...] | None:
        """The images as quasi-affines of their points, for a function; None where no piece's form holds for all."""
        found: list[isl.MultiAff] = []
        isl.PwMultiAff.from_map(self.raw).coalesce().foreach_piece(lambda _, piece: found.append(piece))
        for piece in found:
            forms = tuple(affine_of(piece.get_at(number), self.ins) for number in range(len(self.outs)))
            if self.subset_of(Relation.function(self.domain, dict(zip(self.outs, forms, strict=True)))):
                return forms
        return None

    def coalesced(self) -> Relation:
        return Relation(self.ins, self.outs, coalesced(self.raw))

    def sample_values(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Some pair, always the same, as numbers in the order of the names; None when there is none."""
        values = self.raw.wrap().flatten().sample_point()
        if values.is_void():
            return None
        width = len(self.ins) + len(self.outs)
        numbers = tuple(values.get_coordinate_val(SET, n).to_python() for n in range(width))
        return numbers[: len(self.ins)], numbers[len(self.ins) :]

    def sample(self) -> tuple[dict[str, int], dict[str, int]] | None:
        """Some pair, always the same; None when there is none."""
        found = self.sample_values()
        if found is None:
            return None
        return dict(zip(self.ins, found[0], strict=True)), dict(zip(self.outs, found[1], strict=True))

    def __str__(self) -> str:
        result = self.raw
        for kind, names in ((IN, self.ins), (OUT, self.outs)):
            for number, name in enumerate(names):
                result = result.set_dim_name(kind, number, name if name[:1].isalpha() else f"i{name}")
        return str(result)


@lru_cache(maxsize=2048)
def points_of(domain: Domain) -> Points:
    """The points of an iteration domain."""
    return Points.build(domain.names, domain.ranges, domain.constraints)


def union(parts: Iterable[Points], names: Sequence[str]) -> Points:
    """The union of sets over the coordinates `names`."""
    result = Points.empty(names)
    for part in parts:
        result = result | part
    return result


def pieces(points: Points) -> Iterator[Points]:
    """Disjoint convex (up to explicit floors) parts whose union is the set."""
    known = points.raw.compute_divs()
    disjoint = known if known.n_basic_set() <= 1 else known.make_disjoint().compute_divs()
    for part in disjoint.get_basic_sets():
        yield Points(points.names, isl.Set.from_basic_set(part))
