"""Relations between sets of integer points, over named dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from stripe.ir import Affine
from stripe.poly.encode import (
    IN,
    OUT,
    SET,
    affine_of,
    isl_aff,
    number_of,
)
from stripe.poly.limits import CONTEXT, coalesced
from stripe.poly.private_copy import private_copy
from stripe.poly.sets import Points


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
    def identity(points: Points, suffix: str) -> Relation:
        """Relates each point to itself, the image with `suffix` after its names."""
        return Relation(points.names, tuple(name + suffix for name in points.names), points.raw.identity())

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
        """The relation without pairs."""
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
        return Relation(self.ins, self.outs, private_copy(self.raw).lexmin())

    def last(self) -> Relation:
        """The lexicographically last image of each point."""
        return Relation(self.ins, self.outs, private_copy(self.raw).lexmax())

    def on_domain(self) -> Relation:
        """Relates each point that has an image to itself."""
        return Relation(self.ins, self.ins, self.raw.domain().identity())

    def paired(self) -> Relation:
        """Relates each pair (x, y) of this relation to itself, as flat points."""
        names = tuple(f"{number}" for number in range(len(self.ins) + len(self.outs)))
        return Relation(names, names, self.raw.wrap().flatten().identity())

    def keyed(self, values: Relation) -> Relation:
        """Relates flat pairs (x, y) to (x, z) where `values` relates y to z."""
        same = Relation.identity(Points.universe(self.ins), "'")
        return same.across(values)

    def paired_with(self, values: Relation) -> Relation:
        """Relates flat pairs (x, z) to y where this relates x to y and `values` relates y to z."""
        forth = self.paired().then(self.keyed(values))  # (x, y) -> (x, z)
        names = forth.ins
        seconds = Relation.identity(Points.universe(names), "'").keep(
            [f"{n}'" for n in names[len(self.ins) :]]
        )
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

    def as_affine(self) -> Relation:
        """The function in one piece, where it is one affine function on all of its points."""
        if self.raw.n_basic_map() <= 1:
            return self
        hull = isl.Map.from_basic_map(private_copy(self.raw).affine_hull())
        whole = hull.intersect_domain(coalesced(self.raw.domain()))
        return Relation(self.ins, self.outs, whole) if whole.is_single_valued() else self

    def explicit(self) -> Relation:
        """The same function with each image as floors of its point. Otherwise existentially quantified numbers pile up
        in compositions, and comparing two such relations takes for ever.
        """
        if not any(part.dim(isl.dim_type.div) for part in self.raw.get_basic_maps()):
            return self
        function = isl.PwMultiAff.from_map(private_copy(self.raw))
        return Relation(self.ins, self.outs, coalesced(isl.Map.from_pw_multi_aff(function)))

    def forms(self) -> tuple[Affine, ...] | None:
        """The images as quasi-affines of their points, for a function; None where no piece's form holds for all."""
        found: list[isl.MultiAff] = []
        isl.PwMultiAff.from_map(private_copy(self.raw)).coalesce().foreach_piece(
            lambda _, piece: found.append(piece)
        )
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
        numbers = tuple(number_of(values.get_coordinate_val(SET, n)) for n in range(width))
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
