"""What the pass `fusion` says of a fused block: what is shared, what is live at once, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from stripe.ir import Block, Refinement
from stripe.passes.fusion.keep import Kept
from stripe.passes.fusion.plan import Plan


def summary(buffers: Mapping[str, Refinement], a: Block, b: Block, fused: Block, plan: Plan) -> str:
    """What was shared, what is live at once now, and what it costs."""
    indices = ", ".join(f"{entry.name}:{entry.count}" for entry in plan.shared)
    read = {ref.source for ref in b.refinements if ref.dir.reads}
    parts = [f"{a.name} and {b.name} share [{indices}]"]
    for source in sorted({ref.source for ref in a.outputs} & read):
        whole = buffers[source]
        view = next(ref for ref in fused.refinements if source in (ref.source, ref.name))
        parts.append(f"{view.elements} of {whole.elements} elements of {source} in each point")
    if plan.local:
        parts.append(f"{a.name} computes {plan.recompute:.4g} times as much")
    merged = _merges(b, plan)
    if merged > 1:
        parts.append(f"each result of {b.name} is merged {merged} times")
    points = prod(entry.count for entry in plan.shared)
    lost = [f"{_parallel(block)} of {block.name}" for block in (a, b) if _parallel(block) > points]
    if lost:
        parts.append(f"{points} points run in parallel instead of {' and '.join(lost)}")
    return "; ".join(parts)


def kept_summary(buffers: Mapping[str, Refinement], a: Block, b: Block, kept: Kept, plan: Plan) -> str:
    """As `summary`, of a block in steps."""
    indices = ", ".join(f"{entry.name}:{entry.count}" for entry in plan.shared)
    parts = [f"{a.name} and {b.name} run in {kept.steps} steps"]
    if indices:
        parts.append(f"they share [{indices}]")
    for name, length in kept.rings.items():
        parts.append(
            f"a ring of {length} holds {kept.block.ref(name).elements} of {buffers[kept.sources[name]].elements} "
            f"elements of {kept.sources[name]}"
        )
    if plan.recompute > 1:
        parts.append(f"{a.name} computes {plan.recompute:.4g} times as much")
    return "; ".join(parts)


def _parallel(block: Block) -> int:
    """How many points of a block contribute to different elements, by the ranges of the indices that outputs use."""
    return prod(output_ranges(block))


def _merges(b: Block, plan: Plan) -> int:
    """How many fused points contribute to one element of what the consumer writes."""
    kept = {name for ref in b.outputs for affine in ref.access for name in affine.names()}
    times = 1
    for entry in plan.shared:
        times *= 1 if entry.b_index in kept else entry.count
    return times


def output_ranges(block: Block) -> list[int]:
    """The ranges of the indices that the outputs run over, sorted."""
    names = {name for ref in block.outputs for affine in ref.access for name in affine.names()}
    return sorted(index.range for index in block.iterated if index.name in names)
