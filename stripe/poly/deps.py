"""Dependences between the statements of a block, exact to the element; overlaps, and races between its points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from stripe.ir import (
    Affine,
    Agg,
    Block,
    Buffer,
    Domain,
    Interval,
    Nest,
    beginnings,
    determined,
    indices_of,
    scalar_defined,
    scalars_used,
    transitive_reduction,
    with_statements,
)
from stripe.ir.frozen import replace
from stripe.poly.access import Access, accesses, element_names, leaf_accesses
from stripe.poly.footprint import box_of
from stripe.poly.relations import Relation
from stripe.poly.sets import Points, union


@dataclass(frozen=True, eq=False)
class _Use:
    """The reads or the writes of one buffer by one statement of the innermost block of `nest`."""

    nest: Nest
    statement: int
    write: bool
    buffer: Buffer
    parts: tuple[Access, ...]

    @cached_property
    def box(self) -> tuple[Interval, ...] | None:
        """The box around all elements; None where there are none."""
        return box_of(self.parts)

    @cached_property
    def region(self) -> Points:
        """The elements, over the block's indices and theirs."""
        prefix = self.nest.prefix(self.nest.depth)
        names = (*prefix, *element_names(len(self.parts[0].index)))
        return union((touched_at(part, prefix) for part in self.parts), names).coalesced()

    def common(self, other: _Use) -> Points | None:
        """The elements that both touch; None where there are none."""
        if self.box is None or other.box is None:
            return None
        if not all(a[0] <= b[1] and b[0] <= a[1] for a, b in zip(self.box, other.box, strict=True)):
            return None
        both = self.region & other.region
        return None if both.is_empty else both


def statement_deps(root: Block | Nest, *, reduced: bool = True) -> tuple[tuple[int, ...], ...]:
    """For each direct statement of the block the statements that must run before it, at the same point; without
    transitive ones when `reduced`. Two merges by one aggregation depend on each other as two writes do. The first
    statement that uses a buffer which begins at an identity fills it: the others wait for it, whichever elements they
    use.
    """
    nest = root if isinstance(root, Nest) else Nest.root(root)
    count = len(nest.block.statements)
    before: list[set[int]] = [set() for _ in range(count)]
    for number, defining in enumerate(_scalar_dependences(nest.block)):
        before[number] |= defining
    uses = [*_uses(nest)]
    for filling, users in _filling(nest, uses):
        for number in users - {filling}:
            before[number].add(filling)
    pairs: list[list[tuple[_Use, _Use]]] = [[] for _ in range(count)]
    for earlier, use in _candidates(uses):
        pairs[use.statement].append((earlier, use))
    order: list[int] = []  # bit n: statement n runs before
    for number, mine in enumerate(pairs):
        # The latest first: a conflict with a statement that these wait for already adds nothing.
        waits = 0
        for dep in before[number]:
            waits |= 1 << dep | order[dep]
        for earlier, use in sorted(mine, key=lambda pair: -pair[0].statement):
            dep = earlier.statement
            known = waits >> dep & 1 if reduced else dep in before[number]
            if not known and earlier.common(use) is not None:
                before[number].add(dep)
                waits |= 1 << dep | order[dep]
        order.append(waits)
    return transitive_reduction(before) if reduced else tuple(tuple(sorted(deps)) for deps in before)


def with_exact_deps(nest: Nest, *, keep: bool) -> Block:
    """The innermost block with the dependences of `statement_deps`, without transitive ones; `keep` adds those that it
    declares."""
    statements = nest.block.statements
    old = (statement.deps if keep else () for statement in statements)
    found = zip(statement_deps(nest, reduced=False), old, strict=True)
    every = transitive_reduction([{*exact, *given} for exact, given in found])
    return with_statements(
        nest.block,
        [s if s.deps == deps else replace(s, deps=deps) for s, deps in zip(statements, every, strict=True)],
    )


def _candidates(found: Sequence[_Use]) -> Iterator[tuple[_Use, _Use]]:
    """Pairs of uses of one buffer by an earlier and a later statement, one of which writes."""
    uses: dict[Buffer, list[_Use]] = {}
    writes: dict[Buffer, list[_Use]] = {}
    for use in found:
        for earlier in (uses if use.write else writes).get(use.buffer, ()):
            if earlier.statement != use.statement:
                yield earlier, use
        uses.setdefault(use.buffer, []).append(use)
        if use.write:
            writes.setdefault(use.buffer, []).append(use)


def _filling(nest: Nest, uses: Sequence[_Use]) -> Iterator[tuple[int, set[int]]]:
    """For each buffer that begins at an identity in a statement of the block, that statement and all that use it:
    allocations of the block, and of the entry where the block is main."""
    users: dict[Buffer, list[int]] = {}
    for use in uses:
        users.setdefault(use.buffer, []).append(use.statement)
    for holder in [nest, *([nest.outer] if nest.outer is not None and nest.block.is_main else [])]:
        begins = beginnings(holder.block)
        for ref in holder.block.allocs:
            numbers = users.get(Buffer(holder.path, ref.name))
            if numbers and begins[ref.name] is not Agg.ASSIGN:
                yield numbers[0], {*numbers}


def _scalar_dependences(block: Block) -> Iterator[set[int]]:
    """For each statement those that define the scalars that it uses."""
    defined: dict[str, int] = {}
    for number, statement in enumerate(block.statements):
        yield {defined[name] for name in scalars_used(statement) if name in defined}
        scalar = scalar_defined(statement)
        if scalar is not None:
            defined[scalar] = number


def _uses(nest: Nest) -> Iterator[_Use]:
    """The uses of buffers from around, statement by statement."""
    for number, statement in enumerate(nest.block.statements):
        found = accesses(nest.enter(number)) if isinstance(statement, Block) else leaf_accesses(nest, number)
        groups: dict[tuple[bool, Buffer], list[Access]] = {}
        for access in found:
            # an allocation inside the statement concerns it alone
            if len(access.buffer.path) <= len(nest.path):
                groups.setdefault((access.is_write, access.buffer), []).append(access)
        for (write, buffer), parts in groups.items():
            yield _Use(nest, number, write, buffer, tuple(parts))


def touched_at(access: Access, prefix: Sequence[str]) -> Points:
    """The touched elements for each value of the indices `prefix`, as one set over prefix and element names."""
    elements = element_names(len(access.index))
    return access.relation.points().onto((*prefix, *elements))


def overlap(first: Access, second: Access) -> Points:
    """The elements that two accesses to one buffer both touch, at any of their points."""
    return (first.footprint & second.footprint).coalesced()


def common_depth(first: Access, second: Access) -> int:
    """The depth of the innermost block that both accesses lie in."""
    depth = -1
    for a, b in zip(first.nest.path, second.nest.path, strict=False):
        if a != b:
            break
        depth += 1
    return depth


def conflicts(first: Access, second: Access) -> Relation:
    """Pairs of points of the two accesses, equal in the indices of the blocks outside the allocation (and in that of
    its own block), that touch the same element. The names of the second have a prime.
    """
    outer = first.nest.prefix(max(len(first.buffer.path) - 1, -1))
    left = first.nest.domain.names
    right = tuple(f"{name}'" for name in second.nest.domain.names)
    same = first.relation.then(second.relation.reversed()).named(left, right)
    if not outer:
        return same
    return same & _equal_in(first.nest.domain, second.nest.domain, outer)


def _equal_in(first: Domain, second: Domain, names: Sequence[str]) -> Relation:
    left, right = first.names, tuple(f"{name}'" for name in second.names)
    equal = [Affine.var(name) - Affine.var(f"{name}'") for name in names]
    return Relation.from_points(Points.build((*left, *right), {}, (), equal), left, right)


def race(first: Access, second: Access) -> tuple[dict[str, int], dict[str, int]] | None:
    """Two different points of a block that both accesses lie in, neither ordered before the other, at which they touch
    one element of a buffer that both share, one of them writing; None when there are none.

    Merges by the same aggregation may meet. The names of the second point have a prime.
    """
    if first.buffer != second.buffer or not (first.is_write or second.is_write):
        return None
    if first.is_write and second.is_write and first.agg is second.agg and first.agg is not Agg.ASSIGN:
        return None
    depth = common_depth(first, second)
    shared = first.nest.prefix(depth)
    outer = first.nest.prefix(max(len(first.buffer.path) - 1, -1))
    varying = shared[len(outer) :]
    if not varying:
        return None
    # a quick proof: both use the same expressions, which determine the indices
    if first.index == second.index and not (first.is_whole or second.is_whole):
        known = determined(((affine, 1) for affine in first.index), first.nest.domain.ranges, outer)
        used = indices_of(first.index)
        if known.issuperset(varying) and used <= {*outer, *varying}:
            return None
    meeting = conflicts(first, second)
    return (meeting - _equal_in(first.nest.domain, second.nest.domain, shared)).sample()
