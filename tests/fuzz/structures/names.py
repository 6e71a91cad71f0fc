"""Several names of a buffer in main, of all or of a part of it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from stripe.ir import (
    Block,
    Refinement,
    fresh,
    map_statements,
)


def twins(random: Random, main: Block) -> Block:
    """Main has further names of some buffers, of all or of a part of them, and blocks use one or the other."""
    more: list[Refinement] = []
    known = {ref.name: ref for ref in main.refinements}

    def through(block: Block) -> Block:
        refs: list[Refinement] = []
        for ref in block.refinements:
            outside = known.get(ref.source)
            if outside is None or outside.is_alloc or random.random() < 0.5:
                refs.append(ref)
                continue
            low = [a.bounds(block.intervals())[0] for a in ref.access]
            first = [random.choice((0, max(0, n))) for n in low]
            if any(n < 0 for n in low):
                refs.append(ref)
                continue
            name = fresh(f"{ref.source}_t", {*known, *(r.name for r in more)})
            twin = replace(
                outside, name=name, access=tuple(a + n for a, n in zip(outside.access, first, strict=True)),
                dims=tuple(replace(d, size=d.size - n) for d, n in zip(outside.dims, first, strict=True)),
            )  # fmt: skip
            more.append(twin)
            access = tuple(a - n for a, n in zip(ref.access, first, strict=True))
            refs.append(replace(ref, source=name, access=access))
        return replace(block, refinements=tuple(refs))

    main = map_statements(main, lambda s: through(s) if isinstance(s, Block) else s)
    return replace(main, refinements=(*main.refinements, *more))
