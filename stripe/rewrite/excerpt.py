"""Excerpts: some statements of a program as a program, and their content without names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from stripe.ir import (
    Affine,
    Block,
    Direction,
    Program,
    Refinement,
    Role,
    Statement,
    content_key,
    fresh,
    keep_statements,
    reads_of,
    refs_used,
    with_directions,
    writes_of,
)
from stripe.ir.frozen import replace
from stripe.rewrite.prune import drop_constants

MAIN = 2
"""The length of the path of `main`: the entry, and the block in it."""


def excerpt(program: Program, numbers: Iterable[int]) -> Program:
    """The program of the statements `numbers` of main. Buffers that other statements use too become tensors of the
    user, so that their contents come from outside and stay for others.
    """
    main, chosen = program.main, sorted(numbers)
    kept = [main.statements[number] for number in chosen]
    used = {name for statement in kept for name in refs_used(statement)}
    apart = set(range(len(main.statements))).difference(chosen)
    # Two names of main may be one buffer.
    buffers = {ref.name: (ref.is_alloc, ref.source or ref.name) for ref in main.refinements}
    crossing = {buffers[name] for number in apart for name in refs_used(main.statements[number])}
    outer = {ref.name: ref for ref in program.entry.refinements}
    allocs: list[Refinement] = []
    views: list[Refinement] = []
    for ref in main.refinements:
        if ref.name not in used:
            continue
        crosses = buffers[ref.name] in crossing
        if ref.is_alloc and crosses:
            # An allocation of main that others use as well: the entry has it, and main a view of it.
            name = fresh(ref.name, outer)
            allocs.append(replace(ref, name=name, role=Role.USER))
            origin = (Affine(),) * ref.rank
            ref = replace(ref, dir=Direction.INOUT, source=name, access=origin, offset=None, role=None)
        elif not ref.is_alloc:
            buffer = outer[ref.source]
            allocs.append(replace(buffer, role=Role.USER) if crosses and not buffer.is_kept else buffer)
        views.append(ref)
    small = keep_statements(replace(main, refinements=tuple(views)), chosen)
    refs = tuple(dict.fromkeys(allocs))
    entry = with_directions(replace(program.entry, refinements=refs, statements=(small,)))
    return drop_constants(replace(program, entry=entry))


class Companies:
    """For each of the statements of `main` those that may come to run with it."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self._statements = statements
        self._inits: dict[str, list[int]] = {}
        """The statements that initialize each buffer, in order."""
        self._last_reader: dict[str, int] = {}
        for number, statement in enumerate(self._statements):
            self._last_reader |= dict.fromkeys(reads_of(statement), number)
            if "init" in statement.tags:
                for name in writes_of(statement):
                    self._inits.setdefault(name, []).append(number)

    def of(self, number: int) -> tuple[int, ...]:
        """The company of statement `number`: the initializations of its outputs, and the element-wise chain behind it,
        up to statements that wait for the chain by way of others."""
        written = set(writes_of(self._statements[number]))
        found = sorted({n for name in written for n in self._inits.get(name, ()) if n < number})
        found.append(number)
        behind: set[str] = set()  # buffers that other statements write from results of the chain
        last = self._last_read(written)
        later = number + 1
        while later <= last:
            statement = self._statements[later]
            reads = set(reads_of(statement))
            joins = isinstance(statement, Block) and "eltwise" in statement.tags and not reads & behind
            if reads & (written if joins else written | behind):
                (written if joins else behind).update(writes_of(statement))
                if joins:
                    found.append(later)
                    last = self._last_read(written)
            later += 1
        return tuple(found)

    def _last_read(self, written: Iterable[str]) -> int:
        return max((self._last_reader.get(name, -1) for name in written), default=-1)


def unnamed(block: Block, named: frozenset[str] = frozenset()) -> Block:
    """`block` without the tags that name its statement, except tags that options of passes name: equal layers of a
    network then have one content and are searched once."""
    names = [tag for tag in block.tags if names_statement(tag) and tag not in named]
    return replace(block, tags=block.tags.remove(*names)) if names else block


def names_statement(tag: str) -> bool:
    """Whether front ends give the tag to a statement as its name: `pid`, and `node_NAME` from ONNX."""
    return tag == "pid" or tag.startswith("node_")


Content: TypeAlias = tuple[object, ...]
"""The statements of a program without names, and its buffers."""


def content_of_program(program: Program, named: frozenset[str] = frozenset()) -> Content:
    """The content of a program whose `main` holds blocks: equal for programs that differ in names alone."""
    main = program.main
    outer = {ref.name: ref for ref in program.entry.refinements}
    numbers: dict[str, int] = {}
    statements: list[object] = []
    for block in main.blocks:
        for ref in block.refinements:
            if ref.source:
                numbers.setdefault(ref.source, len(numbers))
        statements.append((content_key(unnamed(block, named), numbers), block.deps))
    origins: dict[str, int] = {}  # two names of main may be one buffer
    buffers: list[object] = []
    for name, number in numbers.items():
        ref = main.ref(name)
        origin = origins.setdefault(ref.source or name, number)
        far = outer.get(ref.source)
        buffers.append((origin, replace(ref, name="", source=""), far and replace(far, name="")))
    return (*statements, *buffers)
