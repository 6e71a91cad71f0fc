"""Constants that lie otherwise in one program than in the other: their elements under one name.

A pass that stores a constant in another order, or in blocks, changes bytes. The proof compares constants by these, so
that the later program gets the earlier one's constant and a block that packs it, in a layout that is checked by value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice, permutations

import numpy as np

from stripe.exec.layout import constant_array, holes, places, with_dimension
from stripe.ir import (
    Affine,
    Block,
    ConstantBuffer,
    Index,
    Program,
    Refinement,
    Role,
    fresh,
    retarget,
    with_entry,
)
from stripe.ir.frozen import replace
from stripe.ir.index_map import IndexMap, PhysicalLayout
from stripe.poly import check_time
from stripe.verify.interface import LogicalForm, copied_elements, filled


def with_constants_of(before: Program, after: Program) -> LogicalForm:
    """`after` with the constants of `before` that it has in another layout."""
    known = {buffer.name: buffer for buffer in before.constants}
    layouts: dict[str, PhysicalLayout] = {}
    for buffer in after.constants:
        old = known.get(buffer.name)
        if old is not None and old.data != buffer.data and old.dtype == buffer.dtype:
            layout = layout_between(old, buffer)
            if layout is not None:
                layouts[buffer.name] = layout
    if not layouts:
        return LogicalForm(after, 0)
    taken = {ref.name for ref in after.entry.refinements}
    refs: list[Refinement] = []
    packs: list[Block] = []
    names: dict[str, str] = {}
    for ref in after.entry.refinements:
        layout = layouts.get(ref.name)
        if layout is None:
            refs.append(ref)
            continue
        logical = Refinement.alloc(ref.name, ref.dtype, layout.sizes, role=Role.CONSTANT)
        names[ref.name] = fresh(f"{ref.name}.physical", taken)
        physical = replace(ref, name=names[ref.name], role=Role.TEMPORARY, offset=None, copies=1, pitch=None)
        refs += [logical, physical]
        indices = [Index(name, size) for name, size in zip(layout.map.names, layout.sizes, strict=True)]
        element = [Affine.var(name) for name in layout.map.names]
        packs += [] if layout.pad is None else [filled(physical, layout.pad)]
        packs.append(
            copied_elements(f"pack_{ref.name}", indices, logical, element, physical, layout.map.results)
        )
    statements = [retarget(statement, names) for statement in after.entry.statements]
    entry = replace(after.entry, refinements=tuple(refs), statements=(*packs, *statements))
    constants = tuple(known[b.name] if b.name in layouts else b for b in after.constants)
    return LogicalForm(replace(with_entry(after, entry), constants=constants), len(packs))


MOST_DIMENSIONS = 8
MOST_MAPS = 2_000
"""Limits of the search for a layout: dimensions of the constant in memory, and maps that are tried."""
FEW_MAPS = 8
"""Maps that are tried before the elements are counted."""


def layout_between(logical: ConstantBuffer, physical: ConstantBuffer) -> PhysicalLayout | None:
    """A layout in which the elements of one constant lie as the other has them; None where none is found."""
    values, found = constant_array(logical), constant_array(physical)
    if len(physical.sizes) > MOST_DIMENSIONS:
        return None
    for number, index_map in enumerate(islice(_maps(logical.sizes, physical.sizes), MOST_MAPS)):
        check_time()
        if number == FEW_MAPS and not _may_hold(found, values):
            return None
        layout = PhysicalLayout(index_map, logical.sizes)
        if with_dimension(found)[places(layout)].tobytes() == values.tobytes():
            rest = found[holes(physical.sizes, layout)]
            if not rest.size:
                return layout
            # The program may read the holes: each has the number of the first one.
            if rest.tobytes() == rest[:1].tobytes() * rest.size:
                return replace(layout, pad=rest[0].item())
    return None


def _may_hold(found: np.ndarray, values: np.ndarray) -> bool:
    """Whether an array has all elements of another, and beside them one number alone, which fills holes."""
    bits = f"u{values.itemsize}"
    wanted, counts = np.unique(values.view(bits), return_counts=True)
    there, more = np.unique(found.view(bits), return_counts=True)
    left = dict(zip(there.tolist(), more.tolist(), strict=True))
    for element, count in zip(wanted.tolist(), counts.tolist(), strict=True):
        left[element] = left.get(element, 0) - count
    rest = [count for count in left.values() if count]
    return len(rest) <= 1 and all(count > 0 for count in rest)


def _maps(logical: Sequence[int], physical: Sequence[int]) -> Iterator[IndexMap]:
    """The orders of dimensions, some of them in blocks, that give these sizes."""
    rank, names = len(logical), [f"d{dim}" for dim in range(len(logical))]
    for blocked in combinations(range(rank), max(0, len(physical) - rank)):
        # the place of each dimension, or of its blocks, then the places of elements in blocks
        for order in permutations(range(len(physical)), rank + len(blocked)):
            inner = {dim: physical[order[rank + n]] for n, dim in enumerate(blocked)}
            outer = [-(-size // inner.get(dim, 1)) for dim, size in enumerate(logical)]
            if len(order) != len(physical) or any(physical[order[d]] != outer[d] for d in range(rank)):
                continue
            results = [Affine()] * len(physical)
            for dim, name in enumerate(names):
                results[order[dim]] = Affine.var(name).floordiv(inner.get(dim, 1))
            for number, (dim, width) in enumerate(inner.items()):
                results[order[rank + number]] = Affine.var(names[dim]).mod(width)
            yield IndexMap.of(names, results)
