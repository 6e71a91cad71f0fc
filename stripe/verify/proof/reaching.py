"""Reaching definitions: the writes that a load may read from. Points of a block have no order, so a write comes
before a read only at the same point of the blocks that hold both, and there when its statement stands before: no
lexicographic order over iterations is needed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from stripe.ir import (
    Affine,
    Agg,
    Block,
    Buffer,
    Nest,
    Path,
    Program,
    Refinement,
    scalar_defined,
    scalars_used,
    walk,
)
from stripe.poly import Access, Points, Relation, accesses, element_names, points_of, union
from stripe.verify.interface import packed_names
from stripe.verify.proof.terms import Read


@dataclass(frozen=True)
class Reaching:
    """The accesses of a program, by statement and by buffer."""

    program: Program

    @cached_property
    def root(self) -> Nest:
        return Nest.root(self.program.entry)

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        return accesses(self.root)

    @cached_property
    def by_path(self) -> dict[Path, list[Access]]:
        """The accesses of each statement."""
        found: dict[Path, list[Access]] = {}
        for access in self.accesses:
            found.setdefault(access.path, []).append(access)
        return found

    @cached_property
    def by_statement(self) -> dict[Path, list[Access]]:
        """The accesses below each statement of main, in order."""
        found: dict[Path, list[Access]] = {}
        for access in self.accesses:
            found.setdefault(access.path[:3], []).append(access)
        return found

    @cached_property
    def by_buffer(self) -> dict[Buffer, list[Access]]:
        """The accesses to each buffer in program order."""
        found: dict[Buffer, list[Access]] = {}
        for access in self.accesses:
            found.setdefault(access.buffer, []).append(access)
        return found

    @cached_property
    def writers(self) -> dict[Buffer, list[Access]]:
        """The writes to each buffer in program order."""
        return {
            buffer: [access for access in found if access.is_write]
            for buffer, found in self.by_buffer.items()
        }

    @cached_property
    def allocations(self) -> dict[Buffer, Refinement]:
        """The refinement that allocates each buffer."""
        return {
            Buffer(path, ref.name): ref for path, block in walk(self.program.entry) for ref in block.allocs
        }

    @cached_property
    def start(self) -> dict[Buffer, Agg]:
        """The aggregation at whose identity each allocation starts; ASSIGN where it starts undefined."""
        packed = packed_names(self.program)
        found: dict[Buffer, Agg] = {}
        for buffer in self.allocations:
            aggs = (w.agg for w in self.writers.get(buffer, ()) if w.agg is not Agg.ASSIGN)
            is_packed = buffer.path == (0,) and buffer.name in packed
            found[buffer] = Agg.ASSIGN if is_packed else next(aggs, Agg.ASSIGN)
        return found

    @cached_property
    def inputs(self) -> frozenset[Buffer]:
        return frozenset(Buffer((0,), ref.name) for ref in self.program.inputs)

    @cached_property
    def _scalars(self) -> dict[Path, dict[str, int]]:
        """The number of the statement that defines each scalar, by the path of its block."""
        return {}

    def scalars_behind(self, nest: Nest, name: str) -> dict[str, int]:
        """The scalars of a block that lead to the scalar `name`, and it, with the numbers of their statements, in their
        order."""
        if nest.path not in self._scalars:
            numbered = ((scalar_defined(s), number) for number, s in enumerate(nest.block.statements))
            self._scalars[nest.path] = {scalar: number for scalar, number in numbered if scalar is not None}
        numbers = self._scalars[nest.path]
        needed: dict[str, int] = {}
        wanted = [name]
        while wanted:
            scalar = wanted.pop()
            if scalar not in needed:
                needed[scalar] = numbers[scalar]
                wanted += scalars_used(nest.block.statements[numbers[scalar]])
        return dict(sorted(needed.items(), key=lambda entry: entry[1]))

    def read(self, load: Access) -> Read:
        """The state of a buffer that `load` reads: paths are in program order, and the last write before the load
        parts from it furthest inside."""
        paths = self._writing_paths[load.buffer]
        visible = paths[: bisect_left(paths, load.path)]
        depth = len(load.buffer.path) - 1
        if visible:
            parting = parting_depth(visible[-1], load.path)
            assert parting is not None, "a load is no write"
            depth = max(depth, parting)
        return Read(load.buffer, visible, load.path[: depth + 1], load.nest.prefix(depth), len(load.index))

    @cached_property
    def _writing_paths(self) -> dict[Buffer, tuple[Path, ...]]:
        """The paths of the writes to each buffer, in program order."""
        return {buffer: tuple(w.path for w in writers) for buffer, writers in self.writers.items()}

    @cached_property
    def _reached(self) -> dict[tuple[Buffer, Path, tuple[str, ...]], tuple[int, Points]]:
        """The last result of `written` for each buffer: the number of writes, and the coordinates they reach."""
        return {}

    def written(self, read: Read) -> Points:
        """The coordinates of a read that one of its writes reaches; a later read of the buffer continues from there."""
        key = (read.buffer, read.block, read.prefix)
        done, points = self._reached.get(key, (0, Points.empty(key_names(read))))
        if done > len(read.writers):
            done, points = 0, Points.empty(key_names(read))
        more = self.writers.get(read.buffer, [])[done : len(read.writers)]
        if more:
            points = union([points, *(self.writing(writer, read).domain for writer in more)], points.names)
            points = points.coalesced()
        self._reached[key] = (len(read.writers), points)
        return points

    @cached_property
    def tops(self) -> dict[str, tuple[Buffer, Refinement]]:
        """The buffers of the entry, and those of `main` where both blocks have one point: each has one final state.

        A name that both blocks have is that of the entry's buffer.
        """
        entry = self.program.entry
        found = {ref.name: (Buffer((0,), ref.name), ref) for ref in entry.allocs}
        for number, block in enumerate(entry.statements):
            if isinstance(block, Block) and block.is_main and self.has_one_point:
                for ref in block.allocs:
                    found.setdefault(ref.name, (Buffer((0, number), ref.name), ref))
        return found

    @property
    def has_one_point(self) -> bool:
        """Whether the entry and `main` have no index and no constraint."""
        return not any(
            block.indices or block.constraints for block in (self.program.entry, self.program.main)
        )

    def repeated_together(self, statement: Path) -> Path:
        """The outermost block around a statement of main whose points repeat it and others, or else the statement."""
        around = (statement[:depth] for depth in range(1, len(statement)))
        return next((path for path in around if self.nests[path].own), statement)

    def below(self, path: Path) -> list[Access]:
        """The accesses of a statement of main or of a block around it, in order."""
        if path in self.by_statement:
            return self.by_statement[path]
        return [access for access in self.accesses if access.path[: len(path)] == path]

    def final(self, buffer: Buffer) -> Read:
        """The final state of a buffer among `tops`."""
        writers = tuple(writer.path for writer in self.writers.get(buffer, ()))
        return Read(buffer, writers, buffer.path, (), self.allocations[buffer].rank)

    def is_final(self, read: Read) -> bool:
        """Whether all writes to a buffer among `tops` reach the read."""
        return not read.prefix and len(read.writers) == len(self.writers.get(read.buffer, ()))

    @cached_property
    def nests(self) -> dict[Path, Nest]:
        return {nest.path: nest for nest in self.root.walk()}

    def writing(self, writer: Access, read: Read) -> Relation:
        """From the coordinates of a read to the points at which `writer` writes that element; for a special these
        points include the place in its operand.
        """
        names = operand_names(writer)
        depth = parting_depth(writer.path, (*read.block, -1))
        shared = writer.nest.prefix(-1 if depth is None else depth)[: len(read.prefix)]
        back = _with_prefix(writer, shared).reversed()
        deeper = read.prefix[len(shared) :]
        if not deeper:
            return back.named(key_names(read), names)
        # the write does not depend on the indices further inside
        around = points_of(self.nests[read.block].domain)
        elements = Points.universe(element_names(read.rank))
        keys = around.times(elements)
        narrowed = Relation.identity(keys, "'").keep([f"{name}'" for name in (*shared, *elements.names)])
        return narrowed.then(back).named(key_names(read), names)


def parting_depth(first: Path, second: Path) -> int | None:
    """The depth of the innermost block that holds both statements; None when one statement is the other (or holds
    it)."""
    for depth, (a, b) in enumerate(zip(first[1:], second[1:], strict=False)):
        if a != b:
            return depth
    return None


def key_names(read: Read) -> tuple[str, ...]:
    """The coordinates of a read: the indices around it, then the element."""
    return (*read.prefix, *element_names(read.rank))


def operand_names(access: Access) -> tuple[str, ...]:
    """The coordinates of the points of an access: the indices, and for a special the place in its operand."""
    names = access.nest.domain.names
    return (*names, *(f"r{dim}" for dim in range(len(access.sizes)))) if access.is_whole else names


def reading(load: Access, read: Read) -> Relation:
    """From the points of a load (for a special: with the place in its operand) to the coordinates of the
    elements read."""
    relation = _with_prefix(load, read.prefix)
    return relation.named(relation.ins, key_names(read))


def _with_prefix(access: Access, prefix: Sequence[str]) -> Relation:
    """From the points of an access to the given indices of theirs, and to the element."""
    if not prefix and not access.is_whole:
        return access.relation
    domain = access.nest.domain
    values = {name: Affine.var(name) for name in prefix}
    points = points_of(domain)
    index = access.index
    if access.is_whole:
        places = operand_names(access)[len(domain.names) :]
        box = {name: (0, size - 1) for name, size in zip(places, access.sizes, strict=True)}
        points = points.times(Points.build(places, box))
        index = tuple(affine + Affine.var(place) for affine, place in zip(index, places, strict=True))
    elements = zip(element_names(len(index)), index, strict=True)
    return Relation.function(points, {**values, **dict(elements)})
