"""Accesses without integer sets: how far an index moves a view, which indices keep points apart, dense layouts.

Every answer is never wrong and not always given; `stripe.poly` decides the rest with integer sets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from stripe.ir.affine import Affine, Atom, FloorDiv, Interval, Mod
from stripe.ir.block import Block
from stripe.ir.nest import UNKNOWN, View
from stripe.ir.refinement import Refinement, compact_strides

Box: TypeAlias = tuple[tuple[Affine, int], ...]
"""The origin and the extent of some elements in each dimension."""

Ranges: TypeAlias = Mapping[str, Interval]
"""The inclusive interval of each index."""


def element_offset(view: Refinement | View) -> Affine:
    """The offset of a refinement in its source, in elements, over the indices of its block; of a view in a nest the
    offset in its allocation, over the indices of the nest."""
    if isinstance(view, View):
        return linearized(view.origin, view.ref.strides)
    return linearized(view.access, view.strides)


def linearized(index: Iterable[Affine], strides: Iterable[int]) -> Affine:
    """The offset of an element under `strides`, in elements; the two parts of a packed index are joined."""
    return Affine.sum([affine * stride for affine, stride in zip(index, strides, strict=True)]).joined()


def step(view: Refinement | View | Affine, name: str) -> int | None:
    """Elements by which a step of the index `name` moves a view (or an offset); None where a floor or a mod makes the
    steps uneven."""
    place = view if isinstance(view, Affine) else element_offset(view)
    coefficient = place.coeff(name)
    if place.is_linear or name not in (place - Affine.var(name) * coefficient).names():
        return coefficient
    return None


def separating(block: Block, buffers: Mapping[str, object]) -> tuple[str, ...]:
    """The iterated indices of more than one value such that points that differ in any of them write different elements
    of every output. `buffers` has the buffer of each source that may have another name: two of one buffer keep no
    points apart."""
    apart = _apart(block, buffers)
    return tuple(index.name for index in block.iterated if index.range > 1 and index.name in apart)


def separates(block: Block, names: Iterable[str], buffers: Mapping[str, object]) -> bool:
    """Whether points of `block` that differ in any of the indices `names` write different elements of every output."""
    return _apart(block, buffers).issuperset(names)


def shared_names(entry: Block) -> dict[str, str]:
    """One name for all names of one buffer in some block of a program: of those names that have another beside them."""
    found: dict[str, str] = {}

    def visit(block: Block, outside: Mapping[str, object]) -> None:
        buffers: dict[str, object] = {
            ref.name: ref if ref.is_alloc else outside.get(ref.source, ref.source)
            for ref in block.refinements
        }
        names: dict[int, str] = {}
        for name, buffer in buffers.items():
            if (first := names.setdefault(id(buffer), name)) != name:
                _unite(found, first, name)
        for inner in block.blocks:
            visit(inner, buffers)

    visit(entry, {})
    return found


def _unite(found: dict[str, str], name: str, other: str) -> None:
    one, two = found.setdefault(name, name), found.setdefault(other, other)
    found.update({each: one for each, known in found.items() if known == two})


def _apart(block: Block, buffers: Mapping[str, object]) -> frozenset[str]:
    sources = {ref.source for ref in block.outputs}
    if len({id(buffers.get(source, source)) for source in sources}) < len(sources):
        return frozenset()
    ranges = {index.name: UNKNOWN if index.is_passed else (0, index.range - 1) for index in block.indices}
    passed = [index.name for index in block.passed]
    boxes: dict[str, Box | None] = {}  # by source: two views of it may meet in one element
    for ref in block.outputs:
        box: Box = tuple(zip(ref.access, ref.sizes, strict=True))
        boxes[ref.source] = _hull(boxes[ref.source], box) if ref.source in boxes else box
    found = [frozenset[str]() if box is None else determined(box, ranges, passed) for box in boxes.values()]
    return found[0].intersection(*found) if found else frozenset()


def _hull(first: Box | None, second: Box) -> Box | None:
    """The box around two that move together; None where they do not."""
    if first is None:
        return None
    dims: list[tuple[Affine, int]] = []
    for (origin, extent), (other, size) in zip(first, second, strict=True):
        shift = other - origin
        if not shift.is_constant:
            return None
        low = min(0, shift.offset)
        dims.append((origin + low, max(extent, shift.offset + size) - low))
    return tuple(dims)


def determined(
    box: Iterable[tuple[Affine, int]], ranges: Ranges, known: Iterable[str] = ()
) -> frozenset[str]:
    """The indices that are equal at any two points whose boxes meet, given that the ones in `known` are.

    `box` gives the origin and the extent in each dimension: where boxes meet, the origins differ by less than the
    extent. Read as a number in mixed radix, its upper digits are then equal. Digits are indices, floors and remainders.
    An equal floor bounds the difference of its argument; an equal remainder does away with a difference below the
    modulus. That may settle further digits, until nothing new follows.
    """
    equal: set[Atom] = {*known, *(name for name, (low, high) in ranges.items() if low == high)}
    extents: dict[Affine, int] = {}
    for affine, extent in box:
        extents[affine] = min(extent, extents.get(affine, extent))
    while True:
        digits = {digit for item in extents.items() for digit in _upper_digits(*item, equal, ranges)}
        if not digits:
            return frozenset(atom for atom in equal if isinstance(atom, str))
        equal |= digits
        for floor in [atom for atom in equal if isinstance(atom, FloorDiv)]:
            extents[floor.arg] = min(floor.divisor, extents.get(floor.arg, floor.divisor))
        for mod in [atom for atom in equal if isinstance(atom, Mod)]:
            difference = _most_apart(mod.arg, equal, ranges)
            if min(difference, extents.get(mod.arg, difference + 1) - 1) < mod.modulus:
                extents[mod.arg] = 1


def _upper_digits(affine: Affine, extent: int, equal: Collection[Atom], ranges: Ranges) -> list[Atom]:
    """The digits of `affine` that are equal where it differs by less than `extent`: each has a step of at least the
    extent and all that the smaller digits can make up, and so have all digits above it."""
    upper: list[Atom] = []
    reach = extent
    for atom, coefficient in sorted(affine.terms, key=lambda term: abs(term[1])):
        difference = _most_apart(Affine(0, ((atom, abs(coefficient)),)), equal, ranges)
        if difference:
            upper = [*upper, atom] if abs(coefficient) >= reach else []
            reach += difference
    return upper


def _most_apart(affine: Affine, equal: Collection[Atom], ranges: Ranges) -> int:
    """An upper bound of the difference between two values of `affine`, given the atoms that are equal in both."""
    total = 0
    for atom, coefficient in affine.terms:
        if atom in equal:
            continue
        low, high = Affine(0, ((atom, 1),)).bounds(ranges)
        difference = high - low
        if not isinstance(atom, str):
            inside = _most_apart(atom.arg, equal, ranges)
            if isinstance(atom, FloorDiv):
                difference = min(difference, -(-inside // atom.divisor))
            elif not inside:
                difference = 0
        total += abs(coefficient) * difference
    return total


def is_dense(sizes: Iterable[int], strides: Iterable[int]) -> bool:
    """Whether the elements of a box lie in memory without gaps, in some order of the dimensions."""
    extent = 1
    for stride, size in sorted((abs(stride), size) for size, stride in zip(sizes, strides, strict=True)):
        if size > 1 and stride != extent:
            return False
        extent *= max(size, 1)
    return True


def is_row_major(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements of a box lie in memory without gaps, the last dimension side by side."""
    compact = compact_strides(sizes, range(len(sizes)))
    return all(size == 1 or one == other for size, one, other in zip(sizes, strides, compact, strict=True))
