"""The comparison of some buffers as a problem of its own: the statements that lead to them from arrays that both
programs know, as two small programs without names.

The answer follows from the two programs and from nothing else. The layers of a network repeat, and so do their
problems: one proof serves all equal ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from stripe.ir import (
    Block,
    Buffer,
    ConstantBuffer,
    Direction,
    Path,
    Program,
    Refinement,
    Role,
    Statement,
    canonical_names,
    refs_used,
    retarget,
)
from stripe.ir.frozen import replace
from stripe.verify.proof.unchanged import Label, Unchanged
from stripe.verify.proof.vanishing import nonfinite_of_constant

Known: TypeAlias = Mapping[Buffer, str]
Names: TypeAlias = dict[object, str]
"""The names of arrays that both programs know, by label."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A program that computes `results` from tensors of the user, which are the known arrays."""

    program: Program
    results: tuple[Buffer, ...]


Problem: TypeAlias = tuple[Excerpt, Excerpt]


class Excerpts:
    """The problems that the comparisons of buffers pose."""

    def __init__(self, unchanged: Unchanged) -> None:
        self._unchanged = unchanged

    def problem(self, pairs: Sequence[tuple[Buffer, Buffer]], known: tuple[Known, Known]) -> Problem | None:
        """The statements that lead to the buffers of some pairs. None where other statements than blocks and specials
        do, where blocks around them repeat them, or where a constant is written.

        An array is known in both excerpts or in none: a fused statement of one program reads it while it makes it.
        """
        while True:
            names: Names = {}
            writers = [_ExcerptWriter(self._unchanged, side, known[side], names) for side in (0, 1)]
            first = writers[0].excerpt([pair[0] for pair in pairs])
            second = None if first is None else writers[1].excerpt([pair[1] for pair in pairs])
            if first is None or second is None:
                return None
            made = {label for writer in writers for label in writer.made_labels}
            if made.isdisjoint(names):
                return first, second
            known = (_without(known[0], made), _without(known[1], made))


class _ExcerptWriter:
    """Writes the excerpt of one program. `arrays` are the names of known arrays, which both excerpts share."""

    def __init__(self, unchanged: Unchanged, side: int, known: Known, arrays: Names) -> None:
        self._unchanged, self._side = unchanged, side
        self._known, self._arrays = known, arrays
        self._made: dict[Buffer, str] = {}
        """The names of buffers that the excerpt computes."""
        self._allocations: dict[str, Refinement] = {}
        self._constants: dict[str, ConstantBuffer] = {}
        self._views: dict[Refinement, str] = {}
        """The refinements of main, without their names, in order."""
        self._inside: dict[str, Refinement] = {}
        """The allocations of main."""

    def excerpt(self, buffers: Sequence[Buffer]) -> Excerpt | None:
        found = self._leading(buffers)
        if found is None:
            return None
        paths, known_reads = found
        for number, buffer in enumerate(buffers):
            self._name(buffer, f"result{number}")
        statements: list[Statement] = []
        for path in paths:
            statement = self._unchanged.statement(self._side, path)
            views = {
                name: self._view(path, name, known_reads) for name in dict.fromkeys(refs_used(statement))
            }
            if isinstance(statement, Block):
                statements.append(canonical_names(statement, views))
            else:
                statements.append(retarget(statement, views))
        refs = (*self._inside.values(), *(replace(ref, name=name) for ref, name in self._views.items()))
        main = Block("", (), (), refs, tuple(statements), is_main=True)
        entry = Block("", (), (), tuple(self._allocations.values()), (main,))
        names = (self._made[buffer] for buffer in buffers)
        results = tuple(Buffer((0,) if name in self._allocations else (0, 0), name) for name in names)
        return Excerpt(Program(entry, tuple(self._constants.values())), results)

    @property
    def made_labels(self) -> Iterator[str]:
        """The labels of known buffers that the excerpt computes."""
        return (self._known[buffer] for buffer in self._made if buffer in self._known)

    def _leading(self, buffers: Sequence[Buffer]) -> tuple[list[Path], set[tuple[Path, Buffer]]] | None:
        """The statements of main that lead to some buffers from known arrays, in order, and which of them reads which
        known array: one that is complete before the statement begins.
        """
        unchanged, side = self._unchanged, self._side
        paths: set[Path] = set()
        known: set[tuple[Path, Buffer]] = set()
        seen, wanted = set(buffers), list(buffers)
        while wanted:
            made = wanted.pop()
            writers = unchanged.writers(side, made)
            if not writers or isinstance(unchanged.begins_with(side, made), tuple):
                return None
            for path in writers:
                if path in paths:
                    continue
                if not unchanged.is_plain(side, path):
                    return None
                paths.add(path)
                for read in unchanged.reads(side, path):
                    complete = all(writer < path for writer in unchanged.writers(side, read))
                    if complete and unchanged.label(side, read, self._known) is not None:
                        known.add((path, read))
                    elif read not in seen:
                        seen.add(read)
                        wanted.append(read)
        return sorted(paths), known

    def _name(self, buffer: Buffer, name: str) -> str:
        """The name of a buffer that is computed; of a tensor of the user, which begins with contents, the same in both
        programs.
        """
        begins = self._unchanged.begins_with(self._side, buffer)
        if begins is not None:
            name = self._arrays.setdefault(("given", begins), f"given{len(self._arrays)}")
        return self._made.setdefault(buffer, name)

    def _view(self, path: Path, name: str, known_reads: set[tuple[Path, Buffer]]) -> str:
        """The name in main of the buffer that a statement calls `name`, with its allocation."""
        buffer, chain = self._unchanged.view(self._side, path, name)
        view, allocation = chain[0], chain[-1]
        if (path, buffer) in known_reads:
            label = self._unchanged.label(self._side, buffer, self._known)
            assert label is not None
            source, role = self._array(label), Role.CONSTANT if _contents_decide(label) else Role.USER
            view = replace(view, dir=Direction.IN, source=source)
        else:
            source = self._made.get(buffer) or self._name(buffer, f"made{len(self._made)}")
            if view.is_alloc:
                self._inside[source] = replace(view, name=source)
                return source
            given = self._unchanged.begins_with(self._side, buffer) is not None
            role = Role.USER if given else Role.TEMPORARY
            view = replace(view, dir=Direction.INOUT, source=source)
        self._allocations[source] = replace(allocation, name=source, role=role)
        return self._views.setdefault(view, f"view{len(self._views)}")

    def _array(self, label: Label) -> str:
        """The name of a known array."""
        name = self._arrays.setdefault(label, f"known{len(self._arrays)}")
        if not isinstance(label, str) and _contents_decide(label):
            self._constants[name] = ConstantBuffer(name, *label)
        return name


def _without(known: Known, labels: set[str]) -> Known:
    return {buffer: label for buffer, label in known.items() if label not in labels}


def _contents_decide(label: Label) -> bool:
    """Whether the contents of an array have an influence on the proof: a number that all elements of a constant have is
    computed with, and 0 times an infinity is not 0."""
    if isinstance(label, str):
        return False
    dtype, sizes, data = label
    return data == data[: dtype.bytes] * prod(sizes) or bool(nonfinite_of_constant(data, dtype))
