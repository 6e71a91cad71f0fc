"""Pads: holes of packed buffers hold a value, so that kernels run over full blocks without a test.

A constraint of a kernel falls, and a range fills its last block, where each point in addition is harmless: it reads
defined elements, and it contributes the identity of the aggregation, or it writes into a hole the value that is there,
or any value where the hole has none. The holes that no kernel fills get a block of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isfinite
from typing import TypeAlias

from stripe.ir import (
    Affine,
    Agg,
    Around,
    Block,
    Constant,
    Constraint,
    FloorDiv,
    Nest,
    Program,
    Refinement,
    Statement,
    Store,
    Tags,
    replace_at,
    surround,
    value_key,
    with_entry,
)
from stripe.ir.frozen import replace
from stripe.passes.base import PassContext
from stripe.poly import (
    Access,
    Points,
    accesses,
    box_points,
    element_names,
    pieces,
    points_of,
    union,
    untouched,
)
from stripe.poly.access import leaf_accesses
from stripe.rewrite.contribution import output_of, stored_number
from stripe.rewrite.copy import beside, fill_block
from stripe.rewrite.refusal import Refusal

Number: TypeAlias = bool | int | float


@dataclass(frozen=True, slots=True)
class Holes:
    """The elements of a buffer of the entry that hold no logical one, and their value; None: undefined."""

    elements: Points
    pad: Number | None


def with_pads(
    program: Program,
    holes: Mapping[str, Holes],
    padded: Sequence[str],
    context: PassContext,
    *,
    allow_nonfinite: bool,
) -> Program:
    """`program` with kernels that run over full blocks where its `holes` permit it; those of the buffers `padded`,
    which the program owes their value, are filled. `allow_nonfinite`: 0 times any float is 0."""
    (place,) = (n for n, s in enumerate(program.entry.statements) if isinstance(s, Block) and s.is_main)
    users = _UsedBuffers.of(program)
    holes = {**_filled(program, users), **holes}
    statements = list(program.main.statements)
    for number, statement in enumerate(statements):
        if (
            isinstance(statement, Block)
            and not statement.allocs
            and isinstance(output_of(statement), Refinement)
        ):
            nest = Nest.root(program.entry).enter(place).enter(number)
            finite = frozenset(ref.name for ref in statement.inputs) if allow_nonfinite else frozenset[str]()
            statements[number] = _Wider(nest, number, program, holes, users, finite).kernel(context)
    main = replace(program.main, statements=tuple(statements))
    program = with_entry(program, replace_at(program.entry, (0, place), lambda _: main))
    around: dict[int, Around] = {}
    users = _UsedBuffers.of(program)
    for name in padded:
        first = min(users.statements[name], default=None)
        if first is None or (pad := holes[name].pad) is None:
            continue
        missing = untouched(program.entry.ref(name).sizes, users.writes.get(name, ())) & holes[name].elements
        view = next(view for view in main.refinements if view.source == name)
        fills = tuple(
            _fill(view, piece, pad, main.statements[first]) for piece in pieces(missing.coalesced())
        )
        known = around.get(first, Around())
        around[first] = Around((*known.before, *fills), known.after)
    if not any(item.before for item in around.values()):
        return program
    return with_entry(program, replace_at(program.entry, (0, place), lambda main: surround(main, around)))


def _fill(view: Refinement, piece: Points, pad: Number, user: Statement) -> Block:
    """The block that fills a convex set of elements of a buffer."""
    box = piece.box()
    assert box is not None, "a piece has elements"
    cuts = dict.fromkeys(affine for affine in piece.affines() if affine.bounds(box)[0] < 0)
    tags = Tags.of("init", "kernel")
    block = fill_block(f"fill_{view.name}", view, list(box.values()), pad, tags, location=beside(user))
    (element,) = (dict(zip(box, ref.access, strict=True)) for ref in block.refinements)
    return replace(block, constraints=tuple(Constraint(affine.subs(element)) for affine in cuts))


@dataclass(frozen=True, slots=True)
class _UsedBuffers:
    """By the name of each buffer of the entry: its writes, and the numbers of the statements of main that use it."""

    writes: Mapping[str, tuple[Access, ...]]
    statements: Mapping[str, frozenset[int]]

    @staticmethod
    def of(program: Program) -> _UsedBuffers:
        writes: dict[str, list[Access]] = {}
        statements: dict[str, set[int]] = {ref.name: set() for ref in program.entry.allocs}
        for access in accesses(program.entry):
            if access.buffer.path != (0,) or len(access.path) < 3:
                continue
            statements[access.buffer.name].add(access.path[2])
            if access.is_write:
                writes.setdefault(access.buffer.name, []).append(access)
        return _UsedBuffers(
            {name: tuple(found) for name, found in writes.items()},
            {name: frozenset(found) for name, found in statements.items()},
        )

    def last_write(self, name: str) -> int:
        """The number of the last statement of main that writes a buffer; -1 where none does."""
        return max((access.path[2] for access in self.writes.get(name, ())), default=-1)


def _filled(program: Program, users: _UsedBuffers) -> dict[str, Holes]:
    """The elements of temporaries that blocks before have filled with one value and that no other block writes."""
    found: dict[str, Holes] = {}
    for name, writes in users.writes.items():
        fills = [access for access in writes if (access.agg, len(access.path)) == (Agg.ASSIGN, 4)]
        stored = (_filling(access.nest.block) for access in fills)
        values = {value_key(value): value for value in stored if value is not None}
        if program.entry.ref(name).is_kept or len(values) != 1:
            continue
        names = element_names(program.entry.ref(name).rank)
        mine = [access for access in fills if _filling(access.nest.block) is not None]
        others = union([access.footprint for access in writes if access not in mine], names)
        found[name] = Holes(union([access.footprint for access in mine], names) - others, *values.values())
    return found


def _filling(block: Block) -> Number | None:
    """The value that a block stores everywhere; None for other blocks."""
    match block.statements:
        case (Constant(into, value), Store(_, stored)) if into == stored:
            return value
        case _:
            return None


def _widths(block: Block, name: str) -> frozenset[int]:
    """The widths of the blocks that the accesses of `block` cut the index `name` into."""
    divisors = {
        atom.divisor if isinstance(atom, FloorDiv) else atom.modulus
        for ref in block.refinements
        for affine in ref.access
        for atom, _ in affine.terms
        if not isinstance(atom, str) and atom.arg == Affine.var(name)
    }
    return frozenset(divisors)


def with_range(block: Block, name: str, size: int) -> Block:
    """`block` with another range of an index."""
    indices = tuple(replace(i, range=size) if i.name == name else i for i in block.indices)
    return replace(block, indices=indices)


@dataclass(frozen=True, slots=True)
class _Wider:
    """A kernel of main that may get points for which a constraint holds no more."""

    nest: Nest
    number: int
    program: Program
    holes: Mapping[str, Holes]
    users: _UsedBuffers
    finite: frozenset[str]

    def kernel(self, context: PassContext) -> Block:
        """The kernel without needless constraints and with ranges that fill the blocks of its layouts; as it is where
        nothing of that keeps its meaning."""
        block = self.nest.block
        if not {access.buffer.name for access in self._accesses(block)} & self.holes.keys():
            return block
        gained: list[str] = []
        for constraint in block.constraints:
            kept = tuple(other for other in block.constraints if other is not constraint)
            wide = replace(block, constraints=kept)
            if self._harm(block, wide) is None:
                block = wide
                gained.append(f"{constraint} is needless")
        for index in block.iterated:
            raised = [-(-index.range // width) * width for width in _widths(block, index.name)]
            for size in sorted({size for size in raised if size > index.range}, reverse=True):
                wide = with_range(block, index.name, size)
                refusal = self._harm(block, wide)
                if refusal is None:
                    block = wide
                    gained.append(f"{index.name}:{index.range} is {size}")
                    break
                if "layout_copy" not in block.tags:
                    context.missed(block, f"{index.name}:{index.range} does not become {size}: {refusal}")
        if gained:
            context.applied(block, f"with pads {', '.join(gained)}")
        return block

    def _accesses(self, block: Block) -> list[Access]:
        nest = self.nest.with_block(block)
        return [a for number in range(len(block.statements)) for a in leaf_accesses(nest, number)]

    def _harm(self, block: Block, wide: Block) -> Refusal | None:
        """The harm that a point of `wide` does that `block` has not."""
        added = points_of(self.nest.with_block(wide).domain) - points_of(self.nest.with_block(block).domain)
        if added.is_empty:
            return None
        found = self._accesses(wide)
        (write,) = (access for access in found if access.is_write)
        reads = [access for access in found if not access.is_write]
        for access in found:
            name = access.buffer.name
            outside = access.relation.within(added).range - self._defined(access)
            element = outside.lexmin()
            if element is not None:
                lack = "is no element" if access.is_write else "has no value"
                return Refusal(f"it would touch {name}{list(element.values())}, which {lack}")
        harmful = added - self._harmless(write, reads, added)
        point = harmful.lexmin()
        if point is None:
            if write.agg is Agg.ASSIGN and not write.relation.injective:
                return Refusal(f"two points would assign one element of {write.buffer.name}")
            return None
        target = f"{write.buffer.name}{[affine.evaluate(point) for affine in write.index]}"
        holes = self.holes.get(write.buffer.name)
        if (
            holes is not None
            and holes.pad is not None
            and write.relation.image(harmful).subset_of(holes.elements)
        ):
            return Refusal(f"the hole {target} would not hold {holes.pad}")
        return Refusal(f"{target} would get another value")

    def _known(self, access: Access) -> Holes | None:
        """The holes of the buffer that a read meets with their value."""
        name = access.buffer.name
        found = self.holes.get(name) if access.buffer.path == (0,) else None
        return found if found is not None and self.users.last_write(name) < self.number else None

    def _defined(self, access: Access) -> Points:
        """The elements of the buffer of an access that hold a value for a read, or may be written."""
        name = access.buffer.name
        sizes = self.program.entry.ref(name).sizes if access.buffer.path == (0,) else ()
        names = element_names(len(access.index))
        if not sizes:
            return Points.empty(names)
        box = box_points(sizes)
        if access.is_write:
            return box
        known = self._known(access)
        writes = [write for write in self.users.writes.get(name, ()) if write.path[2] < self.number]
        if any(write.path[2] >= self.number for write in self.users.writes.get(name, ())):
            return Points.empty(names)
        if self.program.entry.ref(name).is_kept:
            return box - known.elements if known is not None and known.pad is None else box
        written = box - untouched(sizes, writes)
        return written if known is None or known.pad is None else written | known.elements

    def _harmless(self, write: Access, reads: Sequence[Access], added: Points) -> Points:
        """The points among `added` at which the kernel does no harm."""
        target = self.holes.get(write.buffer.name) if write.buffer.path == (0,) else None
        parts: list[Points] = []
        into_holes = Points.empty(added.names)
        if target is not None:
            into_holes = write.relation.into(target.elements).domain & added
            if target.pad is None:
                parts.append(into_holes)
        for known, points in _contents(reads, [self._known(read) for read in reads], added):
            stored = stored_number(write.nest.block, known, self.finite)
            if stored is None:
                continue
            if write.agg is Agg.ASSIGN:
                if (
                    target is not None
                    and target.pad is not None
                    and value_key(stored) == value_key(target.pad)
                ):
                    parts.append(points & into_holes)
            elif stored == (begin := write.agg.identity(self.program.entry.ref(write.buffer.name).dtype)):
                # (a hole that begins with 0.0 stays so whatever the sign of the zeros that are added)
                same = target is None or target.pad is None or value_key(begin) == value_key(target.pad)
                parts.append(points if same else points - into_holes)
        return union(parts, added.names)


def _contents(
    reads: Sequence[Access], known: Sequence[Holes | None], added: Points
) -> Iterator[tuple[dict[str, Number], Points]]:
    """The reads that meet holes, by the value that they read there, and the points of `added` where they all do."""
    options: list[tuple[tuple[str, Number] | None, Points]]
    choices: list[list[tuple[tuple[str, Number] | None, Points]]] = []
    for read, found in zip(reads, known, strict=True):
        options = [(None, added)]
        if found is not None and found.pad is not None:
            points = read.relation.into(found.elements).domain & added
            if not points.is_empty:
                options.append(((read.ref, found.pad), points))
                if not isfinite(
                    found.pad
                ):  # what is read there is none of the numbers of an input that is finite
                    options[0] = None, added - points
        choices.append(options)
    for chosen in product(*choices):
        points = added
        for _, where in chosen:
            points = points & where
        yield dict(item for item, _ in chosen if item is not None), points
