"""The pass `constant_fold`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from stripe.ir import (
    Affine,
    Agg,
    Block,
    ConstantBuffer,
    Direction,
    Index,
    Program,
    Refinement,
    Special,
    Statement,
    Tags,
    allocation_agg,
    keep_statements,
    reads_of,
    with_entry,
    with_statements,
    writes_of,
)
from stripe.passes.base import Pass, PassContext, Reqs
from stripe.passes.copies import Place, copy_block, main_view
from stripe.passes.prune_refinements import drop_constants, prune_block
from stripe.poly import Buffer, accesses, untouched

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class ConstantFold(Pass):
    """Computes what depends on constants alone while compiling, and keeps the result as constants.

        #const none new@…<[0]> W[0, 0] fp32(64:64, 64:1)      #const none new@…<[0]> S[0, 0] fp32(64:64, 64:1)
        #tmp none new@…<[0]> S[0, 0] fp32(64:64, 64:1)        …
        …                                                =>   0: #kernel block [x:9, k:64, y:64] ( in S[k, y] …
        0: #kernel block [i:64, j:64] ( in W[i, j], out S[i, j] ) …
        1: #kernel block [x:9, k:64, y:64] ( in S[k, y] …

    A temporary becomes a constant when every statement of main that writes it reads only constants, or
    temporaries that become constants, and writes nothing else. The interpreter computes it, so that the bits are those
    that the program means.
    """

    pass_name: ClassVar[str] = "constant_fold"

    reqs: Reqs = ("kernel",)
    max_bytes: int = Field(
        default=1 << 22, ge=1, description="leave buffers alone that would be larger constants"
    )
    max_points: int = Field(
        default=1 << 24, ge=1, description="leave kernels alone that run at more points while compiling"
    )

    def run(self, program: Program, context: PassContext) -> Program:
        main = program.main
        buffers = self._folded(program, context)
        writers = [n for n, s in enumerate(main.statements) if buffers & _sources(main, writes_of(s))]
        if not writers:
            return program
        if context.evaluate is None:
            context.missed(
                main, f"{', '.join(sorted(buffers))} not folded: nobody computes at compile time here"
            )
            return program
        rest = [n for n in range(len(main.statements)) if n not in writers]
        needed = [
            ref
            for ref in program.entry.allocs
            if ref.name in buffers
            and any(ref.name in _sources(main, reads_of(main.statements[n])) for n in rest)
        ]
        values: Mapping[str, npt.NDArray[np.generic]] = {}
        if needed:
            values = context.evaluate(_part(program, writers, needed), {})
        for number in writers:
            statement = main.statements[number]
            label = statement.name if isinstance(statement, Block) else "a special"
            context.applied(label, f"folded into {', '.join(sorted(_sources(main, writes_of(statement))))}")
        return _with_constants(program, rest, {ref.name: values[_output_name(ref.name)] for ref in needed})

    def _folded(self, program: Program, context: PassContext) -> set[str]:
        """The temporaries of the entry that become constants: the most that support each other."""
        main = program.main
        constants = {buffer.name for buffer in program.constants}
        written = {name for s in main.statements for name in _sources(main, writes_of(s))}
        found = {ref.name for ref in program.entry.allocs if ref.name in written and _is_whole(main, ref)}
        for ref in program.entry.allocs:
            if ref.name in found and ref.bytes > self.max_bytes:
                found.discard(ref.name)
                self._too_large(ref, main, constants, context)
        while found:
            self._keep_supported(found, main, constants)
            partial = {
                ref.name for ref in program.entry.allocs if ref.name in found and _has_gaps(program, ref)
            }
            if not partial:
                break
            found -= partial
            for name in sorted(partial):
                context.missed(name, "not folded: some of its elements are never written")
        return found

    def _keep_supported(self, found: set[str], main: Block, constants: set[str]) -> None:
        """Takes out of `found` what a statement writes that needs or makes something else, and what is read by a
        statement that stays before it holds its last value."""
        while True:
            broken: set[str] = set()
            read: set[str] = set()
            for statement in main.statements:
                inputs = _sources(main, reads_of(statement))
                outputs = _sources(main, writes_of(statement))
                broken |= outputs & read
                if not (self._runs(statement) and inputs <= constants | found and outputs <= found):
                    broken |= outputs
                    read |= inputs
            if not broken & found:
                return
            found -= broken

    def _runs(self, statement: Statement) -> bool:
        """Whether the statement may run while compiling."""
        if isinstance(statement, Special):
            return "all" in self.reqs
        return (
            isinstance(statement, Block)
            and statement.tags.has_all(self.reqs)
            and _points(statement) <= self.max_points
        )

    def _too_large(self, ref: Refinement, main: Block, constants: set[str], context: PassContext) -> None:
        """Says so where only the size keeps a buffer from being folded."""
        writers = [s for s in main.statements if ref.name in _sources(main, writes_of(s))]
        if all(_sources(main, reads_of(s)) <= constants for s in writers):
            context.missed(ref.name, f"not folded: {ref.bytes} bytes, at most {self.max_bytes} are allowed")


def _sources(main: Block, names: tuple[str, ...]) -> set[str]:
    """The buffers of the entry behind refinements of main; an allocation of main itself by its own name."""
    refs = {ref.name: ref.source or f"{ref.name} of main" for ref in main.refinements}
    return {refs[name] for name in names}


def _is_whole(main: Block, ref: Refinement) -> bool:
    """Whether main sees a temporary by one view, which is all of it."""
    views = [view for view in main.refinements if view.source == ref.name]
    return (
        "user" not in ref.tags
        and len(views) == 1
        and views[0].sizes == ref.sizes
        and all(affine == Affine() for affine in views[0].access)
    )


def _has_gaps(program: Program, ref: Refinement) -> bool:
    """Whether an element of the buffer stays undefined."""
    if allocation_agg(program.entry, ref.name) is not Agg.ASSIGN:
        return False
    writes = [a for a in accesses(program.entry) if a.is_write and a.buffer == Buffer((0,), ref.name)]
    return not untouched(ref.sizes, writes).is_empty


def _points(block: Block) -> int:
    """How often the innermost statements of a nest run in all."""
    return block.points * max(1, sum(map(_points, block.blocks)))


def _output_name(name: str) -> str:
    return f"{name}.folded"


def _part(program: Program, writers: list[int], needed: list[Refinement]) -> Program:
    """A program without inputs that runs the statements `writers` and gives the buffers `needed`."""
    main = program.main
    outputs = [replace(ref, name=_output_name(ref.name), tags=Tags.of("user")) for ref in needed]
    copies = [
        copy_block(
            f"give_{ref.name}",
            [Index(f"d{dim}", size) for dim, size in enumerate(ref.sizes)],
            Place(view, tuple(Affine.var(f"d{dim}") for dim in range(ref.rank))),
            Place(output, tuple(Affine.var(f"d{dim}") for dim in range(ref.rank))),
            Tags(),
        )
        for ref, output in zip(needed, outputs, strict=True)
        for view in main.refinements
        if view.source == ref.name
    ]
    kept = keep_statements(main, writers)
    seen = (replace(main_view(output), dir=Direction.OUT) for output in outputs)
    kept = replace(kept, refinements=(*main.refinements, *seen), statements=(*kept.statements, *copies))
    kept = prune_block(kept, frozenset())
    entry = replace(program.entry, refinements=(*program.entry.refinements, *outputs), statements=(kept,))
    used = {ref.source for ref in kept.refinements}
    refs = tuple(ref for ref in entry.refinements if ref.name in used)
    return drop_constants(with_entry(program, replace(entry, refinements=refs)))


def _with_constants(
    program: Program, rest: list[int], values: Mapping[str, npt.NDArray[np.generic]]
) -> Program:
    """`program` with only the statements `rest` of main, and constants with `values` in the place of temporaries."""
    entry = program.entry
    main = keep_statements(program.main, rest)
    main = replace(
        main,
        refinements=tuple(
            replace(ref, dir=Direction.IN) if ref.source in values else ref for ref in main.refinements
        ),
    )
    main = prune_block(main, frozenset(ref.name for ref in entry.refinements if "user" in ref.tags))
    statements = [main if isinstance(s, Block) and "main" in s.tags else s for s in entry.statements]
    refs = tuple(
        replace(ref, tags=ref.tags.remove("tmp").add("const")) if ref.name in values else ref
        for ref in entry.refinements
    )
    entry = prune_block(
        with_statements(replace(entry, refinements=refs), statements),
        frozenset(),
    )
    new = tuple(_constant_buffers(entry, values))
    return drop_constants(replace(with_entry(program, entry), constants=(*program.constants, *new)))


def _constant_buffers(
    entry: Block, values: Mapping[str, npt.NDArray[np.generic]]
) -> Iterator[ConstantBuffer]:
    for ref in entry.refinements:
        if ref.name in values:
            array = values[ref.name]
            if array.dtype.byteorder == ">":
                array = array.byteswap()
            yield ConstantBuffer(ref.name, ref.dtype, ref.sizes, array.tobytes(order="C"))
