"""Properties of index maps as integer sets: image, injectivity, inverse, holes."""

from __future__ import annotations

from collections.abc import Sequence

from stripe.ir import Affine, ConfigError, Domain
from stripe.ir.digits import digits_of_map
from stripe.ir.index_map import IndexMap
from stripe.poly.access import element_names
from stripe.poly.coverage import Collision
from stripe.poly.limits import operation_limit
from stripe.poly.relations import Relation
from stripe.poly.sets import Points, points_of


def relation(index_map: IndexMap, sizes: Sequence[int]) -> Relation:
    """The map on a logical box of `sizes`, into elements named by `element_names`

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


def holes(index_map: IndexMap, sizes: Sequence[int], box: Sequence[int] = ()) -> Points:
    """The elements of an allocation of the sizes `box`, by default the smallest, that hold no logical one."""
    image = relation(index_map, sizes).range
    ranges = {
        name: (0, size - 1)
        for name, size in zip(image.names, box or physical_sizes(index_map, sizes), strict=True)
    }
    return (Points.build(image.names, ranges) - image).coalesced()


def inverse(index_map: IndexMap, sizes: Sequence[int]) -> IndexMap:
    """The logical indices over the physical ones, called by `element_names`; it holds on the image.

    Raises ConfigError, naming two elements, for a map that is not injective, and for an inverse that is no single
    quasi-affine form.
    """
    found = collision(index_map, sizes)
    if found is not None:
        first, second = (tuple(point.values()) for point in (found.first, found.second))
        raise ConfigError(
            f"the elements {list(first)} and {list(second)} both lie at {list(found.element)}",
            where=f"index map {str(index_map)!r}",
            hint="a layout keeps elements apart: add a result that distinguishes them, such as floor(i/2)",
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
