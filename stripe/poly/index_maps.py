"""Properties of index maps as integer sets: image, injectivity, inverse, holes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from stripe.ir import Affine, Atom, ConfigError, Domain, FloorDiv, Mod
from stripe.ir.index_map import IndexMap
from stripe.poly.access import element_names
from stripe.poly.coverage import Collision
from stripe.poly.limits import operation_limit
from stripe.poly.relations import Relation
from stripe.poly.sets import Points, points_of


def relation(index_map: IndexMap, sizes: Sequence[int]) -> Relation:
    """The map on a logical box of `sizes`, into elements named `e0`, `e1`, …

    Raises ConfigError where the rank differs.
    """
    if len(sizes) != len(index_map.names):
        reason = f"the map has {len(index_map.names)} indices, and the tensor {len(sizes)} dimensions"
        raise ConfigError(
            reason, where=f"index map {str(index_map)!r}", hint="give one index for each dimension"
        )
    domain = Domain.of({name: (0, size - 1) for name, size in zip(index_map.names, sizes, strict=True)})
    names = element_names(len(index_map.results))
    return Relation.function(points_of(domain), dict(zip(names, index_map.results, strict=True)))


def physical_sizes(index_map: IndexMap, sizes: Sequence[int]) -> tuple[int, ...]:
    """The sizes of the smallest physical box from the origin that holds the image.

    Raises ConfigError, with the element, where a physical coordinate is negative.
    """
    found: list[int] = []
    image = relation(index_map, sizes)
    for name, result in zip(image.outs, index_map.results, strict=True):
        bounds = image.range.bounds(name)
        assert bounds is not None, "a tensor has elements"
        if bounds[0] < 0:
            low = Points.universe(image.outs).where(at_least_zero=[Affine(-1) - Affine.var(name)])
            element = image.into(low).domain.lexmin()
            raise ConfigError(
                f"{result} is negative for the element {list((element or {}).values())}",
                where=f"index map {str(index_map)!r}",
                hint="physical coordinates begin at 0",
            )
        found.append(bounds[1] + 1)
    return tuple(found)


def collision(index_map: IndexMap, sizes: Sequence[int]) -> Collision | None:
    """Two logical elements in one physical place; None for an injective map."""
    pairs = relation(index_map, sizes)
    if pairs.injective:
        return None
    same = pairs.then(pairs.reversed())
    different = same - Relation.identity(same.domain, "")
    found = different.sample()
    assert found is not None
    first, second = found[0], dict(zip(index_map.names, found[1].values(), strict=True))
    return Collision(index_map.evaluate(first), first, second)


def holes(index_map: IndexMap, sizes: Sequence[int]) -> Points:
    """The physical elements, inside of the box, that hold no logical one."""
    image = relation(index_map, sizes).range
    box = dict(zip(image.names, physical_sizes(index_map, sizes), strict=True))
    return (
        Points.build(image.names, {name: (0, size - 1) for name, size in box.items()}) - image
    ).coalesced()


def inverse(index_map: IndexMap, sizes: Sequence[int]) -> IndexMap:
    """The logical indices over the physical ones, called `e0`, `e1`, …; it holds on the image.

    Raises ConfigError, naming two elements, for a map that is not injective, and for an inverse that is no single
    quasi-affine form.
    """
    found = collision(index_map, sizes)
    if found is not None:
        first, second = (tuple(point.values()) for point in (found.first, found.second))
        raise ConfigError(
            f"the elements {list(first)} and {list(second)} both lie at {list(found.element)}",
            where=f"index map {str(index_map)!r}",
            hint="a layout keeps elements apart: add what tells them from each other, such as floor(i/2)",
        )
    with operation_limit():
        back = relation(index_map, sizes).reversed()
        forms = _by_digits(index_map, sizes)
        if forms is None or not back.equals(
            Relation.function(back.domain, dict(zip(back.outs, forms, strict=True)))
        ):
            forms = back.forms()
    if forms is None:
        raise ConfigError("its inverse is not one expression", where=f"index map {str(index_map)!r}")
    return IndexMap.of(back.ins, forms)


@dataclass(frozen=True, slots=True)
class Digit:
    """`floor(a / place) mod count` of the coordinate a in dimension `dim`; without a count the floor alone."""

    dim: int
    place: int = 1
    count: int | None = None

    def of(self, value: Affine, below: int) -> Affine:
        """The digit of a value in [0, `below`)."""
        whole = self.place * (self.count or 1)
        if self.count is not None and whole < below:
            value = value.mod(whole)
        return value.floordiv(self.place)

    def values(self, size: int) -> int:
        """The number of its values over `size` coordinates from 0 on."""
        blocks = -(-size // self.place)
        return blocks if self.count is None else min(self.count, blocks)


Placed: TypeAlias = tuple[tuple[Digit, int], ...]
"""A physical coordinate as a sum of digits with their factors, by rising factor."""


def digits_of_map(index_map: IndexMap, sizes: Sequence[int]) -> tuple[Placed, ...] | None:
    """The results of the map as numbers in mixed radix of digits of its indices, each index with all its digits; None
    for other maps.

    Each factor is above all that the digits with smaller ones make up. The highest digit of an index has no count.
    """
    results: list[Placed] = []
    for result in index_map.results:
        placed: list[tuple[Digit, int]] = []
        reach = 0
        for atom, factor in sorted(result.terms, key=lambda term: term[1]):
            digit = _digit(atom, index_map.names)
            if digit is None or factor <= reach:
                return None
            placed.append((digit, factor))
            reach += factor * (digit.values(sizes[digit.dim]) - 1)
        if result.offset:
            return None
        results.append(tuple(placed))
    highest: dict[int, Digit] = {}
    for dim, size in enumerate(sizes):
        found = sorted(
            (d for result in results for d, _ in result if d.dim == dim), key=lambda digit: digit.place
        )
        reached = 1
        for digit in found:
            if digit.place != reached or (digit.count is None and digit is not found[-1]):
                return None
            reached *= digit.values(size) if digit is found[-1] else digit.count or 1
        if reached < size:
            return None
        highest |= {dim: found[-1]} if found else {}
    return tuple(
        tuple((replace(d, count=None) if d is highest[d.dim] else d, factor) for d, factor in result)
        for result in results
    )


def _by_digits(index_map: IndexMap, sizes: Sequence[int]) -> tuple[Affine, ...] | None:
    """The inverse of a map whose results are numbers in mixed radix of digits: a digit is `floor((p mod next factor) /
    factor)` of its result p, and an index is the sum of places times digits. None for other maps."""
    results = digits_of_map(index_map, sizes)
    if results is None:
        return None
    forms = [Affine()] * len(sizes)
    for name, result in zip(element_names(len(results)), results, strict=True):
        above = [factor for _, factor in result[1:]]
        for number, (digit, factor) in enumerate(result):
            value = Affine.var(name)
            if number < len(above):
                value = value.mod(above[number])
            forms[digit.dim] = forms[digit.dim] + value.floordiv(factor) * digit.place
    return tuple(forms)


def _digit(atom: Atom, names: Sequence[str]) -> Digit | None:
    """The atom as a digit of one index; None for another."""
    if isinstance(atom, str):
        return Digit(names.index(atom))
    if atom.arg.offset or len(atom.arg.terms) != 1 or atom.arg.terms[0][1] != 1:
        return None
    inner = _digit(atom.arg.terms[0][0], names)
    divisor = atom.divisor if isinstance(atom, FloorDiv) else atom.modulus
    if inner is None or (inner.count is not None and inner.count % divisor):
        return None
    if isinstance(atom, Mod):
        return replace(inner, count=divisor)
    count = None if inner.count is None else inner.count // divisor
    return Digit(inner.dim, inner.place * divisor, count)
