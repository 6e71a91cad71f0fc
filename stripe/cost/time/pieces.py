"""A statement of `main` as the cost models see it: a tree of moves, of computing, and of loops over them.

Numbers are totals over the whole run of the statement, exact where the sets can be counted; `runs` says over how many
points they spread. Where constraints make points unequal, one of them costs the mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from math import prod
from typing import TypeAlias

from typing_extensions import override

from stripe.cost.counts.operations import Operations, point_operations, scalar_dtypes
from stripe.cost.counts.transfers import Copies, Transfer, as_transfer, location_of, own_accesses
from stripe.ir import (
    Affine,
    Agg,
    Block,
    Constant,
    Direction,
    Index,
    Location,
    Nest,
    Statement,
    indices_of,
    nest_at,
    refs_used,
    scalar_defined,
    scalars_used,
    unfolded_nest,
    with_directions,
)
from stripe.ir.frozen import replace
from stripe.poly import (
    Access,
    count_domain,
    count_touched,
    within,
)

_BUDGET = 2_000_000
"""isl operations that one count may take before a bound replaces it."""


@dataclass(frozen=True)
class Stream:
    """The reads or writes of one buffer by computing: bytes in all, each distinct element once per leaf block.

    `bound` says that the number is an upper bound, because the exact one took too long.
    """

    buffer: str
    location: Location
    writes: bool
    bytes: int
    bound: bool = False


@dataclass(frozen=True)
class Move:
    """A transfer."""

    name: str
    nest: Nest
    transfer: Transfer
    location: Location
    runs: int
    bytes: int
    bound: bool = False
    back: int = 0
    """Bytes of partial results that it reads where it writes, to add to them: all but the first contribution of each
    element."""


@dataclass(frozen=True)
class Compute:
    """Blocks that compute, with no transfer among them."""

    name: str
    nest: Nest
    leaves: tuple[Nest, ...]
    points: tuple[int, ...]
    """The points of each leaf, over all runs."""
    location: Location
    runs: int
    operations: Operations
    streams: tuple[Stream, ...]


@dataclass(frozen=True)
class Loop:
    """A block that repeats pieces of which some are transfers; `deps` are the pieces that each waits for."""

    name: str
    nest: Nest
    runs: int
    """The number of runs of the whole loop."""
    trips: int
    """Points of the loop over all its runs."""
    pieces: tuple[Piece, ...]
    deps: tuple[tuple[int, ...], ...]
    even: bool
    """Whether all points have equal work."""


Piece: TypeAlias = Move | Compute | Loop


@dataclass(frozen=True, slots=True)
class StatementContent:
    """The content of a statement that decides on its piece: its block without dependences, and the places of the views
    around it. `nest` is a nest with this content."""

    block: Block
    outside: tuple[object, ...]
    nest: Nest = field(compare=False)
    digest: int = field(compare=False)

    @override
    def __hash__(self) -> int:
        return self.digest  # blocks are deep, and dictionaries ask several times


def content_of(nest: Nest, merging: Set[str]) -> StatementContent | None:
    """The content of a statement of the block around it; None where that block has indices, or where the statement
    shares one of the views `merging` of that block with transfers that may add to results."""
    outer = nest.outer
    sources = dict.fromkeys(ref.source for ref in nest.block.refinements if ref.source)
    if outer is None or outer.local or merging & sources.keys():
        return None
    views = (outer.views[source] for source in sources)
    outside = tuple((view.buffer.name, view.ref.location, view.ref.dims, view.origin) for view in views)
    block = replace(nest.block, deps=())
    return StatementContent(block, outside, nest, hash((block, outside)))


def merging_views(block: Block) -> frozenset[str]:
    """The views of a block that direct statements without blocks inside use while they add to results."""
    leaves = (inner for inner in block.blocks if not any(inner.blocks))
    merging = (leaf for leaf in leaves if any(ref.agg is not Agg.ASSIGN for ref in leaf.outputs))
    return frozenset(ref.source for leaf in merging for ref in leaf.refinements)


@lru_cache(maxsize=1024)
def piece_of_content(content: StatementContent, units: Sequence[str]) -> Piece:
    """`piece_of` for a statement, whatever the machine: points of a sweep simulate the same programs on many."""
    return piece_of(unfolded_nest(content.nest), units)


def piece_of(
    nest: Nest, units: Sequence[str], location: Location = Location(), runs: int | None = None
) -> Piece:
    """The innermost block of `nest` as a piece; `location` is where the blocks around it run, `runs` their points."""
    if runs is None:
        runs = _points(nest.outer, 1)[0] if nest.outer is not None else 1
    block = nest.block
    here = block.location.subs(nest.local) or location
    transfer = _moved(nest, units)
    if transfer is not None:
        number, bound = _points(nest, runs)
        size = block.ref(transfer.read.ref).dtype.bytes
        back = max(0, number - _first_contributions(nest, transfer.written, number, units)) * size
        return Move(block.name, nest, transfer, here, runs, number * size, bound, back)
    if all(_moved(inner, units) is None for inner in nest.walk()):
        # blocks inside on units of several kinds are pieces of their own
        places = {place.name for _, place in _leaf_places(nest, location)}
        if len(places) <= 1 or not all(isinstance(statement, Block) for statement in block.statements):
            return _compute(nest, here, runs)
    trips, _ = _points(nest, runs)
    parts = list(_parts(nest))
    pieces = tuple(piece_of(part.nest, units, here, trips) for part in parts)
    # each part waits for the earlier parts that conflict with it: touch the same buffer, one writing it
    deps = tuple(
        tuple(n for n, earlier in enumerate(parts[:number]) if part.conflicts(earlier))
        for number, part in enumerate(parts)
    )
    even = not any(c.affine.names() for inner in nest.walk() for c in inner.block.constraints)
    return Loop(block.name, nest, runs, trips, pieces, deps, even)


@dataclass(frozen=True, slots=True)
class _Part:
    """A block among the statements of another one, or the statements between two of them as a block; the names that it
    reads and writes there, `$x` for the scalar x."""

    nest: Nest
    reads: frozenset[str]
    writes: frozenset[str]

    def conflicts(self, other: _Part) -> bool:
        return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)


def _parts(nest: Nest) -> Iterator[_Part]:
    """The parts of the innermost block, in order."""
    block = nest.block
    for is_block, group in groupby(
        range(len(block.statements)), lambda n: isinstance(block.statements[n], Block)
    ):
        numbers = list(group)
        if is_block:
            inner = map(nest.enter, numbers)
            yield from (_Part(child, *reads_and_writes(child.block)) for child in inner)
            continue
        first, statements = numbers[0], [block.statements[number] for number in numbers]
        used = {name for statement in statements for name in scalars_used(statement)}
        defined = {name for statement in statements if (name := scalar_defined(statement))}
        beside = _block_of(block, statements, sorted(used - defined))
        around = [*block.statements[:first], beside, *block.statements[first + 1 :]]
        reads, writes = reads_and_writes(beside)
        part = nest.with_block(replace(block, statements=tuple(around))).enter(first)
        yield _Part(part, reads | {f"${name}" for name in used}, writes | {f"${name}" for name in defined})


def _block_of(block: Block, statements: Sequence[Statement], scalars: Sequence[str]) -> Block:
    """Some statements of a block as a block inside of it, of one point, with constants for `scalars` of others."""
    names = {name for statement in statements for name in refs_used(statement)}
    views = (
        replace(
            ref,
            source=ref.name,
            dir=Direction.INOUT,
            access=(Affine(),) * ref.rank,
            role=None,
            offset=None,
            copies=1,
        )
        for ref in block.refinements
        if ref.name in names
    )
    passed = tuple(Index(index.name, 1, Affine.var(index.name)) for index in block.indices)
    dtypes = scalar_dtypes(block) if scalars else {}
    constants = (Constant(name, 0, dtypes[name]) for name in scalars)
    inner = Block(block.name, passed, refinements=tuple(views), statements=(*constants, *statements))
    return with_directions(inner)


def pieces_below(piece: Piece) -> Iterator[Move | Compute]:
    """The moves and computing of a piece."""
    if isinstance(piece, Loop):
        for inner in piece.pieces:
            yield from pieces_below(inner)
    else:
        yield piece


def _moved(nest: Nest, units: Sequence[str]) -> Transfer | None:
    """The innermost block as a transfer of its own: on a transfer unit, or between two memories. A copy inside one
    memory is work of the execution unit through which it goes."""
    transfer = as_transfer(nest, units)
    if transfer is None or nest.block.location.name in units:
        return transfer
    return transfer if transfer.source.name != transfer.sink.name else None


def _leaf_places(nest: Nest, location: Location) -> Iterator[tuple[Nest, Location]]:
    """The blocks that compute, each with its location: its own, or the location of the nearest block around it."""
    here = nest.block.location.subs(nest.local) or location
    if any(not isinstance(statement, Block) for statement in nest.block.statements):
        yield nest, here
    for _, child in nest.children():
        yield from _leaf_places(child, here)


def _points(nest: Nest, runs: int) -> tuple[int, bool]:
    """The points of a nest, and whether that is only a bound."""
    found = within(_BUDGET, lambda: count_domain(nest.domain))
    return (found, False) if found is not None else (runs * nest.block.points, True)


def _compute(nest: Nest, location: Location, runs: int) -> Compute:
    placed = list(_leaf_places(nest, location))
    leaves = tuple(inner for inner, _ in placed)
    points = tuple(_points(leaf, runs)[0] for leaf in leaves)
    done = (point_operations(leaf.block).times(times) for leaf, times in zip(leaves, points, strict=True))
    streams: dict[tuple[str, bool], Stream] = {}
    for stream in (stream for leaf in leaves for stream in _streams(leaf, nest)):
        key = (stream.buffer, stream.writes)
        if key in streams:
            known = streams[key]
            size, bound = known.bytes + stream.bytes, known.bound or stream.bound
            stream = replace(known, bytes=size, bound=bound)
        streams[key] = stream
    place = placed[-1][1] if placed else location
    operations = Operations.sum(done)
    return Compute(nest.block.name, nest, leaves, points, place, runs, operations, tuple(streams.values()))


def _streams(leaf: Nest, root: Nest) -> Iterator[Stream]:
    seen: set[tuple[str, bool]] = set()
    for access in own_accesses(leaf):
        ref = leaf.block.ref(access.ref)
        key = (access.ref, access.is_write)
        if key in seen or (not ref.location and len(access.buffer.path) > len(root.path) - 1):
            continue  # allocations of a kernel without a location are in registers
        seen.add(key)
        count, bound = _per_run(leaf, access)
        location = location_of(access)
        yield Stream(access.buffer.name, location, access.is_write, count * ref.dtype.bytes, bound)
        if access.is_write and _comes_back(leaf, access):
            yield Stream(access.buffer.name, location, False, count * ref.dtype.bytes, bound)


def _comes_back(leaf: Nest, access: Access) -> bool:
    """Whether runs of the leaf accumulate into elements that earlier runs left partial."""
    if access.agg is Agg.ASSIGN:
        return False
    inside = leaf.prefix(max(len(access.buffer.path) - 1, 0))
    outer = leaf.prefix(leaf.depth - 1)
    used = indices_of(access.index)
    ranges = leaf.domain.ranges
    return any(n not in inside and n not in used and ranges[n][0] < ranges[n][1] for n in outer)


def _first_contributions(leaf: Nest, access: Access, number: int, units: Sequence[str]) -> int:
    """The elements, out of the `number` that a transfer writes, without a partial result before: neither of their own
    nor of the tensor that they copy."""
    if not _comes_back(leaf, access):
        return number
    around = [nest_at(leaf.blocks[0], leaf.path[:depth]) for depth in range(1, len(leaf.path))]
    found = (as_transfer(child, units) for nest in around for _, child in nest.children())
    access = Copies(each for each in found if each is not None and each.aggregates).rooted(access)
    inside = leaf.prefix(max(len(access.buffer.path) - 1, 0))
    first = within(_BUDGET, lambda: count_touched(access, inside))
    return number if first is None else first


def _per_run(leaf: Nest, access: Access) -> tuple[int, bool]:
    """Distinct elements of each run of the leaf block, over all its runs."""
    outer = leaf.prefix(leaf.depth - 1)
    ranges = leaf.domain.ranges
    outer = tuple(name for name in outer if ranges[name][0] < ranges[name][1])
    exact = within(_BUDGET, lambda: count_touched(access, outer))
    if exact is not None:
        return exact, False
    box = prod(
        size + sum(abs(a.coeff(n)) * (ranges[n][1] - ranges[n][0]) for n in a.names() - set(outer))
        for a, size in zip(access.index, access.sizes, strict=True)
    )
    return leaf.domain.volume(outer) * box, True


def reads_and_writes(statement: Block) -> tuple[frozenset[str], frozenset[str]]:
    """The names outside that a block reads, and the names that it writes."""
    reads = frozenset(ref.source for ref in statement.refinements if ref.dir.reads and ref.source)
    writes = frozenset(ref.source for ref in statement.refinements if ref.dir.writes and ref.source)
    return reads, writes
