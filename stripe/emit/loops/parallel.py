"""Which points of a block write different memory, so that threads may run them at the same time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stripe.ir import Affine, Block, Refinement

PARALLEL_TAGS = ("thread", "parallel")
_ITEMS = 64
"""Iterations of a parallel loop that balance well over the cores of a machine."""


def separating_indices(block: Block) -> tuple[str, ...]:
    """The iterated indices (range over 1) such that points that differ in any of them write disjoint elements.

    Sufficient, not necessary: an index counts when in each output some dimension's access is linear in it and its steps
    clear the boxes of all points that agree in it (a mixed radix, so also `4*x.o + x.i`). Indices are taken in order,
    as many as go together.
    """
    ranges = {index.name: index.range for index in block.iterated if index.range > 1}
    chosen: tuple[str, ...] = ()
    for name in ranges:
        if _separate(block.outputs, (*chosen, name), ranges):
            chosen = (*chosen, name)
    return chosen if block.outputs else ()


def enough_items(block: Block, names: tuple[str, ...], order: Sequence[str]) -> tuple[str, ...]:
    """The first of `names` in `order` that make enough items for any number of threads: what remains stays a plain loop
    inside, which vectors like better than one call per point.
    """
    chosen: list[str] = []
    items = 1
    for name in (name for name in order if name in names):
        if items >= _ITEMS:
            break
        chosen.append(name)
        items *= block.index(name).range
    return tuple(chosen)


def separates(block: Block, name: str) -> bool:
    """Whether points that differ in the index `name` alone write disjoint elements."""
    return _separate(block.outputs, (name,), {name: block.index(name).range})


def _separate(outputs: Sequence[Refinement], names: tuple[str, ...], ranges: Mapping[str, int]) -> bool:
    return all(set(names) <= _distinguished(ref, frozenset(names), ranges) for ref in outputs)


def _distinguished(ref: Refinement, names: frozenset[str], ranges: Mapping[str, int]) -> set[str]:
    """The indices of `names` that some dimension tells apart."""
    found: set[str] = set()
    for access, dim in zip(ref.access, ref.dims, strict=True):
        found |= _distinguished_by(access, dim.size, names, ranges)
    return found


def _distinguished_by(
    access: Affine, size: int, names: frozenset[str], ranges: Mapping[str, int]
) -> set[str]:
    """The indices of `names` in `access` when a box of `size` elements at it differs for any two values of them."""
    varying = frozenset(ranges)
    extent = size
    steps: list[tuple[int, str]] = []
    for atom, coefficient in access.terms:
        if not isinstance(atom, str):
            if atom.arg.names() & varying:
                return set()
        elif atom in names:
            steps.append((abs(coefficient), atom))
        elif atom in varying:
            extent += abs(coefficient) * (ranges[atom] - 1)
    for step, name in sorted(steps):
        if step < extent:
            return set()
        extent += step * (ranges[name] - 1)
    return {name for _, name in steps}
