"""Faults of physical layouts: maps that shrink, collide or leave the allocation, and pads that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, product

from stripe.ir.digits import digits_of_map
from stripe.ir.dtypes import DType
from stripe.ir.index_map import IndexMap, PhysicalLayout
from stripe.ir.text.names import is_name

_MOST_ELEMENTS = 100_000
"""The number of elements that a search for two in one place looks at."""


def layout_fault(layout: PhysicalLayout, sizes: tuple[int, ...], dtype: DType) -> str | None:
    """The reason why an allocation of `sizes` cannot have the layout; None where it can."""
    reason = _map_fault(layout.map, layout.sizes, sizes)
    if reason is not None or layout.pad is None:
        return reason
    return pad_fault(layout.pad, dtype)


@lru_cache(maxsize=256)
def _map_fault(index_map: IndexMap, logical: tuple[int, ...], sizes: tuple[int, ...]) -> str | None:
    if len(index_map.results) != len(sizes):
        return f"the map has {len(index_map.results)} results, the allocation {len(sizes)} dimensions"
    if not all(map(is_name, index_map.names)):
        odd = next(name for name in index_map.names if not is_name(name))
        return f"{odd!r} cannot be the name of an index"
    if len(set(index_map.names)) < len(index_map.names):
        return "two of its indices have one name"
    unknown = sorted(frozenset[str]().union(*(r.names() for r in index_map.results)) - {*index_map.names})
    if unknown:
        return f"the map uses the unknown index '{unknown[0]}'; its indices are {', '.join(index_map.names)}"
    if len(logical) != len(index_map.names):
        return f"the map has {len(index_map.names)} indices, and {len(logical)} logical sizes"
    if any(size < 1 for size in logical):
        return "a logical size is below 1"
    digits = digits_of_map(index_map, logical)
    if digits is None:
        return (
            _collision(index_map, logical)
            or f"the results of {index_map} are no sums of digits of its indices"
        )
    for dim, (result, size) in enumerate(zip(digits, sizes, strict=True)):
        last = sum(factor * (digit.values(logical[digit.dim]) - 1) for digit, factor in result)
        if last >= size:
            return f"{index_map.results[dim]} reaches {last}, and dimension {dim} has {size} elements"
    return None


def pad_fault(pad: bool | int | float, dtype: DType) -> str | None:
    """The reason why elements of `dtype` cannot hold `pad`."""
    kind = float if dtype.is_float else bool if dtype.kind == "bool" else int
    if type(pad) is not kind:
        return f"the pad {pad} is no value of {dtype}"
    if dtype.is_integer and not dtype.min_value <= pad <= dtype.max_value:
        return f"the pad {pad} overflows {dtype}, which holds {dtype.min_value} to {dtype.max_value}"
    if dtype.is_float:
        import numpy as np

        with np.errstate(over="ignore"):
            held = float(np.asarray(pad).astype(dtype.numpy()))
        if held != pad:
            return f"the pad {pad} is not exact in {dtype}, where it is {held}"
    return None


def _collision(index_map: IndexMap, sizes: Sequence[int]) -> str | None:
    """Two elements in one place, among the first ones."""
    seen: dict[tuple[int, ...], Sequence[int]] = {}
    for element in islice(product(*map(range, sizes)), _MOST_ELEMENTS):
        place = index_map.evaluate(dict(zip(index_map.names, element, strict=True)))
        other = seen.setdefault(place, element)
        if other is not element:
            return f"the elements {list(other)} and {list(element)} both lie at {list(place)}"
    return None
