"""Parts of two programs that are unchanged, and need no proof."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from typing import TypeAlias

from stripe.ir import (
    Agg,
    Block,
    Buffer,
    Constraint,
    DType,
    Location,
    Path,
    Program,
    Refinement,
    Special,
    Stage,
    Statement,
    Tags,
    reads_of,
    writes_of,
)
from stripe.ir.frozen import replace
from stripe.verify.interface import packed_names
from stripe.verify.proof.reaching import Reaching
from stripe.verify.proof.terms import Term, number

Label: TypeAlias = str | tuple[DType, tuple[int, ...], bytes]
"""The contents of a buffer: a name that both programs share, or the contents of a constant."""


def stripped(statement: Statement) -> Statement:
    """The statement without its parts that have no meaning: tags, locations,
    comments, names of blocks, dependences, addresses."""
    match statement:
        case Block():
            return replace(
                statement,
                name="",
                indices=tuple(replace(index, tags=Tags()) for index in statement.indices),
                constraints=tuple(Constraint(c.affine) for c in statement.constraints),
                refinements=tuple(map(_stripped_ref, statement.refinements)),
                statements=tuple(stripped(inner) for inner in statement.statements),
                location=Location(),
                comments=(),
                deps=(),
                tags=Tags(),
                stage=Stage.TILED,
                pipeline_depth=None,
            )
        case _:
            return replace(statement, deps=(), tags=Tags())


def _stripped_ref(ref: Refinement) -> Refinement:
    return replace(
        ref, location=Location(), offset=None, bank_dim=None, tags=Tags(), role=None, copies=1, pitch=None
    )


def same_meaning(before: Program, after: Program) -> bool:
    """Whether the programs are equal but for parts without meaning."""
    roles = [
        ([ref.name for ref in program.inputs], [ref.name for ref in program.outputs], program.constants)
        for program in (before, after)
    ]
    return roles[0] == roles[1] and stripped(before.entry) == stripped(after.entry)


class Unchanged:
    """The buffers of the entry that both programs write by the same statements from the same buffers."""

    def __init__(self, before: Reaching, after: Reaching) -> None:
        self._reachings = (before, after)
        self._stripped: dict[tuple[int, Path], Statement] = {}
        self._common: dict[Buffer, int] = {}
        """The number of first writes to a buffer by unchanged statements."""
        self._writing = tuple(
            {
                buffer: list(dict.fromkeys(writer.path[:3] for writer in writers))
                for buffer, writers in reaching.writers.items()
                if len(buffer.path) <= 2
            }
            for reaching in self._reachings
        )
        """The statements of main that write each buffer, in order."""
        self._reads = tuple(
            {
                path: {a.buffer for a in accesses if not a.is_write and len(a.buffer.path) <= 2}
                for path, accesses in reaching.by_statement.items()
            }
            for reaching in self._reachings
        )
        """The buffers that each statement of main reads."""
        packed = packed_names(after.program)
        self._merged_on: dict[Path, set[Buffer]] = {
            path: {
                a.buffer for a in accesses if a.is_write and a.buffer.path == (0,) and a.buffer.name in packed
            }
            for path, accesses in (after.by_statement.items() if packed else ())
        }
        """The packed buffers that each statement of the second main writes: a merge reads what is there."""

    def buffer(
        self, pair: tuple[Buffer, Buffer], known: tuple[Mapping[Buffer, str], Mapping[Buffer, str]]
    ) -> bool:
        """Whether a buffer of both programs ends up equal because its writers are unchanged and read only buffers that
        are complete and `known` under the same label in both programs."""
        if _place(pair[0]) != _place(pair[1]):
            return False  # one statement may write both
        first, second = (writing.get(buffer, []) for writing, buffer in zip(self._writing, pair, strict=True))
        if len(first) != len(second) or self.begins_with(0, pair[0]) != self.begins_with(1, pair[1]):
            return False
        return all(
            self._same_statement(a, b)
            and self._complete(0, a, pair[0], known[0])
            and self._complete(1, b, pair[1], known[1])
            and self._labels(0, a, known[0]) == self._labels(1, b, known[1])
            for a, b in zip(first, second, strict=True)
        )

    def changed(self) -> list[Path]:
        """The statements of the second program's main that the first lacks."""
        return [path for path, old in self._origins.items() if not old]

    def exposed(self) -> set[tuple[Path, Buffer]]:
        """The unchanged statements of the second program's main, each with a buffer that it reads or merges into and
        other statements write before it."""
        return {
            (path, read)
            for path, old in self._origins.items()
            for read in ({*self._reads[1].get(path, ()), *self._merged_on.get(path, ())} if old else ())
            if not any(self._same_past(origin, path, read) for origin in old)
        }

    @cached_property
    def _origins(self) -> dict[Path, list[Path]]:
        """For each statement of the second program's main the equal statements of the first."""
        old: dict[object, list[Path]] = {}
        for path in self._reachings[0].by_statement:
            old.setdefault((self.statement(0, path), self._views(0, path)), []).append(path)
        return {
            path: [
                each
                for each in old.get((self.statement(1, path), self._views(1, path)), [])
                if self._same_statement(each, path)
            ]
            for path in self._reachings[1].by_statement
        }

    def _same_past(self, first: Path, second: Path, buffer: Buffer) -> bool:
        """Whether a buffer starts equal in both programs, and the statements that write it before these two are
        unchanged."""
        before = [
            bisect_left(writing.get(buffer, []), path)
            for writing, path in zip(self._writing, (first, second), strict=True)
        ]
        starts = [
            (self.begins_with(side, buffer) is None, reaching.start.get(buffer))
            for side, reaching in enumerate(self._reachings)
        ]
        if starts[0] != starts[1] or before[0] != before[1]:
            return False
        if buffer not in self._common:
            pairs = zip(*(writing.get(buffer, ()) for writing in self._writing), strict=False)
            self._common[buffer] = sum(1 for _ in takewhile(lambda pair: self._same_statement(*pair), pairs))
        return before[0] <= self._common[buffer]

    def _same_statement(self, first: Path, second: Path) -> bool:
        """Whether two statements are equal, and the blocks around them neither repeat nor restrict them. A store is
        no answer: it leaves open the scalar that it stores."""
        return (
            isinstance(self.statement(0, first), Block | Special)
            and self.statement(0, first) == self.statement(1, second)
            and self._views(0, first) == self._views(1, second)
            and self._is_plain(0, first)
            and self._is_plain(1, second)
        )

    def _is_plain(self, side: int, path: Path) -> bool:
        """Whether the blocks around a statement have one point, as in all programs that lowering makes."""
        around = (_statement(self._reachings[side].program, path[:depth]) for depth in range(1, len(path)))
        return not any(block.indices or block.constraints for block in around if isinstance(block, Block))

    def writers(self, side: int, buffer: Buffer) -> Sequence[Path]:
        """The statements of main that write a buffer of the entry or of main, in order."""
        return self._writing[side].get(buffer, ())

    def reads(self, side: int, path: Path) -> Collection[Buffer]:
        """The buffers of the entry and of main that a statement of main reads."""
        return self._reads[side].get(path, ())

    def is_plain(self, side: int, path: Path) -> bool:
        """Whether a statement is a block or a special of main, and the blocks around it neither repeat nor restrict
        it.
        """
        whole = len(path) == 3 and isinstance(self.statement(side, path), Block | Special)
        return whole and self._is_plain(side, path)

    def view(self, side: int, path: Path, name: str) -> tuple[Buffer, tuple[Refinement, ...]]:
        """The buffer behind a refinement of the block around a statement, and the refinement and the buffer's
        allocation without names."""
        program = self._reachings[side].program
        around = _statement(program, path[:-1])
        assert isinstance(around, Block)
        ref = around.ref(name)
        buffer = Buffer(path[:-1], name) if ref.is_alloc else Buffer((0,), ref.source)
        chain = (ref,) if ref.is_alloc else (ref, program.entry.ref(ref.source))
        return buffer, tuple(replace(_stripped_ref(each), name="", source="") for each in chain)

    def label(self, side: int, buffer: Buffer, known: Mapping[Buffer, str]) -> Label | None:
        """The final contents of a buffer, where both programs know them."""
        if buffer in known:
            return known[buffer]
        return None if self.writers(side, buffer) else self.begins_with(side, buffer)

    def statement(self, side: int, path: Path) -> Statement:
        """A statement of main without its parts that have no meaning."""
        key = (side, path)
        if key not in self._stripped:
            self._stripped[key] = stripped(_statement(self._reachings[side].program, path))
        return self._stripped[key]

    def _views(self, side: int, path: Path) -> tuple[Refinement, ...]:
        """The refinements of main through which a statement of main reaches buffers, and the allocations of these."""
        program = self._reachings[side].program
        statement, main = _statement(program, path), _statement(program, path[:-1])
        assert isinstance(main, Block)
        if isinstance(statement, Block):
            names = {ref.source for ref in statement.refinements if not ref.is_alloc}
        else:
            names = {*reads_of(statement), *writes_of(statement)}
        views = [main.ref(name) for name in sorted(names)]
        allocations = [program.entry.ref(view.source) for view in views if not view.is_alloc]
        return tuple(_stripped_ref(ref) for ref in (*views, *allocations))

    def _labels(self, side: int, path: Path, known: Mapping[Buffer, str]) -> dict[tuple[int, str], Label]:
        """The known contents of each buffer that a statement reads."""
        reads = self._reads[side].get(path, set())
        labels = {_place(read): known.get(read) or self.begins_with(side, read) for read in reads}
        return {place: label for place, label in labels.items() if label is not None}

    def begins_with(self, side: int, buffer: Buffer) -> Label | None:
        """The contents of a buffer before the first write; None when it has none."""
        reaching = self._reachings[side]
        if buffer in reaching.inputs:
            return f"in:{buffer.name}"
        constants = reaching.program.constants if buffer.path == (0,) else ()
        found = next((constant for constant in constants if constant.name == buffer.name), None)
        return None if found is None else (found.dtype, found.sizes, found.data)

    def begin_alike(self, pair: tuple[Buffer, Buffer]) -> bool:
        """Whether elements that no statement writes hold the same in two buffers, or in one of them nothing that may be
        read. An input is written as a whole: it keeps what it is given.
        """
        held: list[Label | Term | None] = []
        for side, buffer in enumerate(pair):
            reaching = self._reachings[side]
            begins, agg = self.begins_with(side, buffer), reaching.start[buffer]
            if isinstance(begins, str):
                held.append(None)
            elif begins is None and agg is not Agg.ASSIGN:
                dtype = reaching.allocations[buffer].dtype
                held.append(number(agg.identity(dtype), dtype))
            else:
                held.append(begins)
        return None in held or held[0] == held[1]

    def _complete(self, side: int, path: Path, buffer: Buffer, known: Mapping[Buffer, str]) -> bool:
        """Whether all buffers that the statement reads (besides `buffer`) are known and written before it, or given."""
        for read in self._reads[side].get(path, set()):
            writers = self._writing[side].get(read, [])
            if read == buffer:
                continue
            if any(writer[1:] >= path[1:] for writer in writers):
                return False
            if read not in known and (writers or self.begins_with(side, read) is None):
                return False
        return True


def _place(buffer: Buffer) -> tuple[int, str]:
    """The block of a buffer, the entry or main, and its name there. Other blocks may stand before main."""
    return len(buffer.path), buffer.name


def _statement(program: Program, path: Path) -> Statement:
    statement: Statement = program.entry
    for place in path[1:]:
        assert isinstance(statement, Block)
        statement = statement.statements[place]
    return statement
