"""Equality of merges: sets of operand tuples as relations, then how often each occurs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stripe.poly import Points, Relation, count_points
from stripe.verify.proof.contributions import Contribution, Images, by_term, image
from stripe.verify.proof.reaching import operand_names
from stripe.verify.proof.rules import Unprovable
from stripe.verify.proof.terms import Term

_REGIONS = 40


@dataclass(frozen=True)
class OperandTuple:
    """One contribution to one element: the term, the coordinates of its leaves, the store it comes from and its
    point."""

    contribution: Contribution
    coordinates: tuple[int, ...]
    point: dict[str, int]


@dataclass(frozen=True)
class Mismatch:
    """A key at which two definitions differ, the operand tuple of either side that the other lacks, and how they
    differ."""

    key: dict[str, int]
    before: OperandTuple | None
    after: OperandTuple | None
    how: str


def mismatch(
    before: Sequence[Contribution], after: Sequence[Contribution], *, counted: bool, keys: Sequence[str]
) -> Mismatch | None:
    """The first difference between two collections of contributions over the same keys; None when they are equal.

    With `counted` it matters how often an operand tuple contributes, as for sums; for minima it does not.
    """
    left, right = by_term(before), by_term(after)
    images = [
        ({term: image(contributions) for term, contributions in side.items()}) for side in (left, right)
    ]
    for term in [*left, *(term for term in right if term not in left)]:
        first, second = images[0].get(term), images[1].get(term)
        if first is not None and second is not None and first.equals(second):
            continue
        for mine, other, swapped in ((first, second, False), (second, first, True)):
            extra = mine if other is None or mine is None else mine - other
            if extra is None or extra.is_empty:
                continue
            key, coordinates = sampled(extra, keys)
            own = operand_at((right if swapped else left)[term], key, coordinates)
            theirs = _instead((left, right), images, key, swapped)
            pair = (theirs, own) if swapped else (own, theirs)
            alone = "only after" if swapped else "only before"
            return Mismatch(key, *pair, "other operands" if theirs is not None else alone)
    if not counted:
        return None
    for term, contributions in left.items():
        if term not in right:  # its contributions are all empty
            continue
        found = _miscounted(contributions, right[term], images[0][term], keys)
        if found is not None:
            return found
    return None


def sampled(relation: Relation, keys: Sequence[str]) -> tuple[dict[str, int], tuple[int, ...]]:
    """One pair of a relation that is not empty: the key by name, and the values."""
    sampled = relation.sample_values()
    assert sampled is not None
    return dict(zip(keys, sampled[0], strict=True)), sampled[1]


def _fixed(names: Sequence[str], values: Iterable[int]) -> Points:
    return Points.point(dict(zip(names, values, strict=True)))


def _numbered(names: Sequence[str]) -> tuple[str, ...]:
    """Distinct names: those of several reads side by side may repeat."""
    return tuple(f"{number}" for number in range(len(names)))


def _at_key(relation: Relation, key: dict[str, int]) -> Relation:
    renamed = relation.named(_numbered(relation.ins), relation.outs)
    return renamed.within(_fixed(renamed.ins, key.values()))


def operand_at(
    contributions: Sequence[Contribution], key: dict[str, int], coordinates: Sequence[int]
) -> OperandTuple:
    """A contribution with the given coordinates."""
    for contribution in contributions:
        points = _at_key(contribution.points, key)
        at = contribution.at.named(points.outs, _numbered(contribution.at.outs))
        here = points.then(at.into(_fixed(at.outs, coordinates)).on_domain()).sample_values()
        if here is not None:
            # the point of the store is made of the last coordinates
            names = () if contribution.origin is None else operand_names(contribution.origin)
            point = dict(zip(names, here[1][len(here[1]) - len(names) :], strict=True))
            return OperandTuple(contribution, tuple(coordinates), point)
    raise AssertionError("the coordinates come from one of the contributions")


def anything(
    contributions: Iterable[Contribution], key: dict[str, int], unlike: OperandTuple | None = None
) -> OperandTuple | None:
    """Some contribution to the element, if possible one with other operands than `unlike`."""
    found: OperandTuple | None = None
    for contribution in contributions:
        here = _at_key(contribution.image, key)
        if unlike is not None and contribution.term == unlike.contribution.term:
            other = here.named(here.ins, _numbered(here.outs))
            other = other.into(Points.universe(other.outs) - _fixed(other.outs, unlike.coordinates))
            values = other.sample_values()
            if values is not None:
                return operand_at([contribution], key, values[1])
        values = here.sample_values()
        if values is not None:
            found = operand_at([contribution], key, values[1])
            if unlike is None or contribution.term != unlike.contribution.term:
                return found
    return found


def _instead(
    sides: tuple[Images, Images], images: Sequence[dict[Term, Relation]], key: dict[str, int], swapped: bool
) -> OperandTuple | None:
    """An operand tuple at the key that the other side has and this one lacks."""
    other, mine = (0, 1) if swapped else (1, 0)
    for term, relation in images[other].items():
        here = _at_key(relation, key)
        same = images[mine].get(term)
        missing = here if same is None else here - _at_key(same, key)
        sampled = missing.sample_values()
        if sampled is not None:
            return operand_at(sides[other][term], key, sampled[1])
    return None


def _miscounted(
    left: Sequence[Contribution], right: Sequence[Contribution], shared: Relation, keys: Sequence[str]
) -> Mismatch | None:
    """Whether an operand tuple contributes a different number of times; both sides have the same tuples."""
    for sample, _, (before, after) in _counted(left, right, shared):
        if before != after:
            key = dict(zip(keys, sample[: len(keys)], strict=True))
            own, theirs = (operand_at(side, key, sample[len(keys) :]) for side in (left, right))
            return Mismatch(key, own, theirs, f"{before} times before, {after} times after")
    return None


def miscounted_keys(left: Sequence[Contribution], right: Sequence[Contribution], keys: Points) -> Points:
    """The keys to which some operand tuple contributes a different number of times; both sides have the same
    tuples."""
    found = Points.empty(keys.names)
    sides = by_term(left), by_term(right)
    for term, contributions in sides[0].items():
        for _, region, (before, after) in _counted(contributions, sides[1][term], image(contributions)):
            if before != after:
                found = found | Points(keys.names, region.onto(region.names[: len(keys.names)]).raw)
    return found


def _counted(
    left: Sequence[Contribution], right: Sequence[Contribution], shared: Relation
) -> Iterator[tuple[tuple[int, ...], Points, tuple[int, int]]]:
    """Regions of (key, operand tuple) with how often the tuple contributes on either side, and a sample of each."""
    if once_each(left) and once_each(right):
        return
    names = _numbered((*shared.ins, *shared.outs))
    fibres = [[_Fibres.of(c, names) for c in side] for side in (left, right)]
    rest = Points(names, shared.raw.wrap().flatten())
    for _ in range(_REGIONS):
        sample = rest.sample()
        if sample is None:
            return
        region = rest
        totals = [0, 0]
        for side, contributions in enumerate(fibres):
            for each in contributions:
                here, number = each.region(sample)
                region = region & here
                totals[side] += number
        yield tuple(sample.values()), region, (totals[0], totals[1])
        rest = rest - region
    raise Unprovable("how often an operand tuple contributes varies too much")


def once_each(contributions: Sequence[Contribution]) -> bool:
    """Whether no operand tuple contributes twice to a key."""
    for contribution in contributions:
        if contribution.at.injective:  # the operands tell the point even without the key
            continue
        if not contribution.points.paired().then(contribution.points.keyed(contribution.at)).injective:
            return False
    seen = contributions[0].image
    for contribution in contributions[1:]:
        if not (seen & contribution.image).is_empty:
            return False
        seen = seen | contribution.image
    return True


@dataclass(frozen=True)
class _Fibres:
    """From each (key, operand tuple) to the points at which a contribution has it, over names for them all; where there
    are any, and the same points less the first of them."""

    points: Relation
    inside: Points
    shifted: Relation

    @staticmethod
    def of(contribution: Contribution, names: Sequence[str]) -> _Fibres:
        points = contribution.points.paired().then(contribution.points.keyed(contribution.at)).reversed()
        points = points.named(names, _numbered(points.outs))
        return _Fibres(points, points.domain, points.shifted_to_origin())

    def region(self, sample: dict[str, int]) -> tuple[Points, int]:
        """Where the points are those at `sample`, but for a shift, and how many these are."""
        here = Points.point(sample)
        at_sample = self.points.image(here)
        if at_sample.is_empty:
            return Points.universe(self.inside.names) - self.inside, 0
        constant = all_pairs(self.inside, self.shifted.image(here))
        different = (self.shifted - constant).domain | (constant - self.shifted).domain
        return self.inside - different, count_points(at_sample)


def all_pairs(domain: Points, image_: Points) -> Relation:
    """Relates every point of the domain to all of the image."""
    primed = image_.renamed({name: f"{name}'" for name in image_.names})
    return Relation.from_points(domain.times(primed), domain.names, primed.names)
