"""Parts of one buffer, each with a view of its own in main, which touch or overlap."""

from __future__ import annotations

from dataclasses import replace

from stripe.ir import DTYPES, Affine, Role
from tests.fuzz.structures.draft import KINDS, MERGES, Draft, Group, Scope
from tests.fuzz.structures.kernels import kernel


def parts(draft: Draft, scope: Scope) -> Group:
    """A buffer in two or three parts, which kernels assign, and which others read, merge into and update apart."""
    random = draft.random
    group = Group(draft)
    lengths = [random.randint(1, 4) for _ in range(random.choice((2, 2, 3)))]
    columns = random.choice(((), (random.randint(1, 3),)))
    role = Role.USER if random.random() < 0.4 else Role.TEMPORARY
    whole = group.buffer("Q", DTYPES[random.choice(KINDS)], (sum(lengths), *columns), role=role)
    (view,) = group.views
    group.views.clear()
    agg = random.choice(MERGES)
    start = 0
    for number, length in enumerate(lengths):
        name = f"Q_{number}"
        overlap = min(start, random.choice((0, 0, 0, 1)))
        size = length + overlap
        dims = (replace(whole.dims[0], size=size), *whole.dims[1:])
        access = (view.access[0] + Affine(start - overlap), *view.access[1:])
        group.views.append(replace(view, name=name, access=access, dims=dims, agg=agg))
        seen = replace(whole, name=name, dims=dims, agg=agg)
        group.seen[name] = seen
        first = kernel(draft, scope | group.seen, seen)
        if first is not None:
            group.statements.append(first)
        start += length
    return group
