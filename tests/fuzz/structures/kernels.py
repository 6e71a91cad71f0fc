"""Kernels that assign, merge, update in place or store several times."""

from __future__ import annotations

from stripe.ir import (
    Affine,
    Agg,
    Block,
    Constraint,
    Index,
    Tags,
)
from tests.fuzz.structures.draft import Draft, Scope, Seen, few_points
from tests.fuzz.structures.scalars import Body


def kernel(draft: Draft, scope: Scope, target: Seen | None = None) -> Block | None:
    """A kernel that assigns, merges, updates in place, or stores several times."""
    random = draft.random
    any_target = target is None
    targets = list(scope.values()) if target is None else [target]
    targets = [seen for seen in targets if seen.writes or seen.merges]
    if not targets:
        return None
    target = random.choice(targets)
    assigns = target.writes and (target.name not in draft.defined or random.random() < 0.5)
    if target.merges and not target.writes:
        assigns = False
    indices = [Index(f"i{dim}", size) for dim, size in enumerate(target.sizes) if size > 1]
    if not assigns and random.random() < 0.6:
        indices.append(Index("k", random.choice((2, 3, 4))))
    body = Body(random, tuple(indices), scope, draft.defined)
    access = [Affine.var(f"i{dim}") if size > 1 else Affine() for dim, size in enumerate(target.sizes)]
    constraints: tuple[Constraint, ...] = ()
    if random.random() < 0.2:
        constraints = few_points(draft, tuple(indices))
    complete = not constraints
    if assigns and target.reads and target.name in draft.defined and random.random() < 0.4:
        body.read(target, access)  # in place
    for _ in range(random.choice((0, 1, 1, 2)) if any_target else 2):
        body.read_some(not_of=target.name)
    agg = Agg.ASSIGN if assigns else target.agg
    even = assigns and complete and len(target.sizes) == 1 and target.sizes[0] % 2 == 0 and not body.code
    if even and random.random() < 0.3:
        body.indices = (Index("i0", target.sizes[0] // 2),)
        body.store(target, [access[0] * 2], agg)
        body.store(target, [access[0] * 2 + 1], agg)
    else:
        body.store(target, access, agg)
        if random.random() < 0.25:
            second_store(draft, body, target, access, assigns)
    if complete:
        draft.defined.add(target.name)
    tags = random.choice((("kernel",), ("kernel",), ("kernel", "init"), ("kernel", "eltwise"), ()))
    if not assigns:
        tags = (*tags, "contraction", f"agg_op_{agg.value}")
    return body.block(f"kernel_{next(draft.numbers)}", constraints, Tags.of(*tags))


def second_store(draft: Draft, body: Body, target: Seen, access: list[Affine], assigns: bool) -> None:
    """The same element again, by another name and its aggregation, or an element of another buffer."""
    if target.merges and draft.random.random() < 0.5:
        body.store(target, access, target.agg)
        return
    others = [seen for seen in body.scope.values() if seen.sizes == target.sizes and seen is not target]
    if not others:
        return
    other = draft.random.choice(others)
    if other.name in {ref.source for ref in body.refs}:
        return
    if other.writes and assigns:
        body.store(other, access, Agg.ASSIGN)
    elif other.merges:
        body.store(other, access, other.agg)
