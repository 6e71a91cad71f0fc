"""The pass `constant_fold`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from stripe.ir import (
    Affine,
    Block,
    ConstantBuffer,
    Direction,
    Index,
    Program,
    Refinement,
    Role,
    Special,
    Statement,
    Tags,
    fresh,
    keep_statements,
    reads_of,
    with_entry,
    with_main,
    writes_of,
)
from stripe.ir.frozen import replace
from stripe.passes.base import Pass, PassContext, PassGroup, Reqs
from stripe.poly.definitions import DefinedElements
from stripe.rewrite.copy import Element, copy_block, main_view, names_in
from stripe.rewrite.prune import drop_constants, prune_refinements, user_tensors

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_MAX_POINTS = 1 << 24
"""The most points at which a kernel runs while compiling."""


MAX_BYTES = 1 << 22
"""Larger buffers stay: a program with their values would be longer than its computation is worth."""


class ConstantFold(Pass):
    """Computes buffers that depend on constants alone while compiling, and keeps them as constants.

        #const none new W[0] (64:1)                    #const none new S[0] (64:1)
        #tmp none new S[0] (64:1)                      0: #kernel block [x:9, k:64] (
        0: #kernel block [i:64] (                          in S[k]
            in W[i]                             =>         out O[x]:add
            out S[i]                                   ) { … }
        ) { … }
        1: #kernel block [x:9, k:64] (
            in S[k]
            out O[x]:add
        ) { … }

    A temporary becomes a constant when every statement of main that writes it reads only constants, or
    temporaries that become constants, and writes nothing else. The interpreter computes it, so that the bits are those
    that the program means.
    """

    pass_name: ClassVar[str] = "constant_fold"
    group: ClassVar[PassGroup] = PassGroup.DATA

    reqs: Reqs = ("kernel",)

    def run(self, program: Program, context: PassContext) -> Program:
        main = program.main
        # an allocation of main itself counts by a name that no buffer of the entry has
        sources = {ref.name: ref.source or f"{ref.name} of main" for ref in main.refinements}
        flows = [
            _StatementUses(
                statement,
                frozenset(sources[name] for name in reads_of(statement)),
                frozenset(sources[name] for name in writes_of(statement)),
            )
            for statement in main.statements
        ]
        buffers = self._foldable(program, flows, context)
        writers = [number for number, flow in enumerate(flows) if buffers & flow.outputs]
        if not writers:
            return program
        if context.evaluate is None:
            context.missed(main, f"{', '.join(sorted(buffers))} not folded: no evaluator is given")
            return program
        rest = sorted(set(range(len(flows))) - set(writers))
        used = {name for number in rest for name in flows[number].inputs}
        needed = [ref for ref in program.entry.allocs if ref.name in buffers & used]
        results = _result_names(program, needed)
        values: Mapping[str, npt.NDArray[np.generic]] = {}
        if needed:
            values = context.evaluate(_part(program, writers, needed, results), {})
        for number in writers:
            statement = main.statements[number]
            label = statement.name if isinstance(statement, Block) else "a special"
            context.applied(label, f"folded into {', '.join(sorted(flows[number].outputs))}")
        return _with_constants(program, rest, {ref.name: values[results[ref.name]] for ref in needed})

    def _foldable(self, program: Program, flows: Sequence[_StatementUses], context: PassContext) -> set[str]:
        """The temporaries of the entry that become constants: the most that support each other."""
        constants = {buffer.name for buffer in program.constants}
        written = {name for flow in flows for name in flow.outputs}
        views: dict[str, list[Refinement]] = {}
        for view in program.main.refinements:
            views.setdefault(view.source, []).append(view)
        found: set[str] = set()
        for ref in program.entry.allocs:
            # main sees the temporary by one view, which is all of it
            seen = views.get(ref.name, [])
            whole = len(seen) == 1 and seen[0].sizes == ref.sizes and {*seen[0].access} <= {Affine()}
            if ref.role is Role.USER or ref.name not in written or not whole:
                continue
            if ref.bytes <= MAX_BYTES:
                found.add(ref.name)
            elif all(flow.inputs <= constants for flow in flows if ref.name in flow.outputs):
                limit = f"at most {MAX_BYTES} are allowed"
                context.missed(ref.name, f"not folded: {ref.bytes} bytes, {limit}")
        self._keep_supported(found, flows, constants)
        if not found:
            return found
        definitions = DefinedElements.of(program)
        for ref in program.entry.allocs:
            if ref.name in found and definitions.has_gaps(ref):
                context.missed(ref.name, "not folded: some of its elements are never written")
                found.discard(ref.name)
        self._keep_supported(found, flows, constants)
        return found

    def _keep_supported(self, found: set[str], flows: Sequence[_StatementUses], constants: set[str]) -> None:
        """Takes out of `found` the outputs of statements that cannot run while compiling or use other buffers, and
        buffers that a remaining statement reads before their last write."""
        size = -1
        while size != len(found):
            size = len(found)
            read: set[str] = set()
            for flow in flows:
                found -= flow.outputs & read
                match flow.statement:
                    case Special():
                        runs = "all" in self.reqs
                    case Block() as block:
                        runs = block.words.has_all(self.reqs) and _points(block) <= _MAX_POINTS
                    case _:
                        runs = False
                if not (runs and flow.inputs <= constants | found and flow.outputs <= found):
                    found -= flow.outputs
                    read |= flow.inputs


@dataclass(frozen=True, slots=True)
class _StatementUses:
    """A statement of main with the buffers of the entry that it reads and writes."""

    statement: Statement
    inputs: frozenset[str]
    outputs: frozenset[str]


def _points(block: Block) -> int:
    """Upper bound on the runs of the innermost statements of a nest."""
    return block.points * max(1, sum(map(_points, block.blocks)))


def _result_names(program: Program, needed: list[Refinement]) -> dict[str, str]:
    """Names for outputs that hold the buffers `needed`, which no buffer has."""
    taken = names_in(program.entry)
    names: dict[str, str] = {}
    for ref in needed:
        names[ref.name] = fresh(f"{ref.name}.folded", taken)
        taken.add(names[ref.name])
    return names


def _part(
    program: Program, writers: list[int], needed: list[Refinement], results: Mapping[str, str]
) -> Program:
    """A program without inputs that runs the statements `writers` and gives the buffers `needed`, as outputs of the
    names in `results`."""
    main = program.main
    outputs = [replace(ref, name=results[ref.name], tags=Tags(), role=Role.USER) for ref in needed]
    copies = [
        copy_block(
            f"give_{ref.name}",
            [Index(f"d{dim}", size) for dim, size in enumerate(ref.sizes)],
            Element(view, tuple(Affine.var(f"d{dim}") for dim in range(ref.rank))),
            Element(output, tuple(Affine.var(f"d{dim}") for dim in range(ref.rank))),
            Tags(),
        )
        for ref, output in zip(needed, outputs, strict=True)
        for view in main.refinements
        if view.source == ref.name
    ]
    kept = keep_statements(main, writers)
    seen = (replace(main_view(output), dir=Direction.OUT) for output in outputs)
    kept = replace(kept, refinements=(*main.refinements, *seen), statements=(*kept.statements, *copies))
    kept = prune_refinements(kept, frozenset())
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
    main = prune_refinements(main, user_tensors(entry))
    refs = tuple(replace(ref, role=Role.CONSTANT) if ref.name in values else ref for ref in entry.refinements)
    entry = prune_refinements(replace(with_main(entry, lambda _: main), refinements=refs), frozenset())
    new: list[ConstantBuffer] = []
    for ref in entry.refinements:
        if ref.name in values:
            array = values[ref.name]
            if array.dtype.byteorder == ">":
                array = array.byteswap()
            new.append(ConstantBuffer(ref.name, ref.dtype, ref.sizes, array.tobytes(order="C")))
    return drop_constants(replace(with_entry(program, entry), constants=(*program.constants, *new)))
