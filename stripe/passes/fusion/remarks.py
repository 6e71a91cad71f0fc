"""Remarks on fused blocks: the indices that both blocks share, the elements alive at once, and the costs."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

from stripe.ir import Block, Refinement
from stripe.passes.fusion.build import Fused
from stripe.passes.fusion.candidates import Contents
from stripe.passes.fusion.legality import FusionPlan
from stripe.passes.fusion.reach import output_indices

if TYPE_CHECKING:
    from stripe.passes.fusion.rings import RingBlock

Buffers = Mapping[str, Refinement]
"""The buffers of the block around, by name."""


def fusion_remark(
    a: Block, b: Block, fused: Fused, plan: FusionPlan, contents: Contents, buffers: Buffers
) -> str:
    """The remark on the block of `a`, which has the `contents`, and `b`."""
    read = {ref.source for ref in b.refinements if ref.dir.reads}
    block = fused.block
    parts = [f"{a.name} and {b.name} share [{_counts(plan)}]"]
    for source in sorted({ref.source for ref in contents.views(a.refinements, read) if ref.dir.writes}):
        if fused.changed is not None:  # the first views are the producer's
            view = block.refinements[contents.by_source[source][0]]
        elif source in fused.local:
            view = block.ref(fused.local[source])
        else:
            view = next(ref for ref in block.refinements if ref.source == source)
        parts.append(f"{view.elements} of {buffers[source].elements} elements of {source} in each point")
    if plan.local:
        parts.append(f"{a.name} computes {plan.recompute:.4g} times as much")
    merged = prod(entry.count for entry in plan.shared if entry.b_index not in output_indices(b))
    if merged > 1:
        parts.append(f"each result of {b.name} is merged {merged} times")
    points = prod(entry.count for entry in plan.shared)
    parallel = [
        (prod(i.range for i in block.iterated if i.name in moving), block.name)
        for block, moving in ((a, contents.moving), (b, output_indices(b)))
    ]
    lost = [f"{before} of {name}" for before, name in parallel if before > points]
    if lost:
        parts.append(f"{points} points run in parallel instead of {' and '.join(lost)}")
    return "; ".join(parts)


def ring_remark(a: Block, b: Block, kept: RingBlock, plan: FusionPlan, buffers: Buffers) -> str:
    """The remark on the block of `a` and `b` in steps."""
    parts = [f"{a.name} and {b.name} run in {kept.steps} steps"]
    if plan.shared:
        parts.append(f"they share [{_counts(plan)}]")
    for name, length in kept.rings.items():
        source = kept.sources[name]
        held, whole = kept.block.ref(name).elements, buffers[source].elements
        parts.append(f"a ring of {length} holds {held} of {whole} elements of {source}")
    if plan.recompute > 1:
        parts.append(f"{a.name} computes {plan.recompute:.4g} times as much")
    return "; ".join(parts)


def _counts(plan: FusionPlan) -> str:
    return ", ".join(f"{entry.name}:{entry.count}" for entry in plan.shared)
