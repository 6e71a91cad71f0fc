"""Equality of small programs by enumeration: each point of each block runs once, over terms instead of numbers.

An element of a buffer holds the number of a term in a table that both programs share. Equal numbers are equal terms, so
that two programs are equal when their outputs hold the same numbers. Of `stripe.poly` and of the proof nothing is used
but the clock, the words of a witness, and the form of user tensors: the one is the check of the other. The run also
finds accesses out of bounds, reads of undefined elements, elements assigned twice, and races between the points of a
block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from stripe.exec import arith
from stripe.exec.layout import constant_array
from stripe.ir import (
    DTYPES,
    Agg,
    Block,
    Constant,
    DType,
    Intrinsic,
    Load,
    LoadIndex,
    Program,
    Refinement,
    Special,
    Store,
    beginnings,
    writes_of,
)
from stripe.poly import PolyLimit
from stripe.verify.assumptions import in_order
from stripe.verify.enumerated_cells import (
    Cells,
    CellView,
    InvalidProgram,
    Places,
    Position,
    element_name,
    elements_of,
    origin_of,
    places_of,
    whole_view,
)
from stripe.verify.enumerated_terms import TermTable, TooManySteps
from stripe.verify.interface import LogicalForm, interface_change, owed_pads, packed_names
from stripe.verify.proof.witness import Different, Equal, Side, Unknown, Verdict, Witness

MOST_POINTS = 200_000
"""Programs with more points are not enumerated; Python runs some 10^5 points a second."""
MOST_STEPS = 10_000_000
"""Steps of the runs of two programs: about as many microseconds."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """The facts of a block for all its runs: the aggregations at whose identities its allocations start, the names that
    it writes, the aggregations of its refinements, its allocations, and whether it uses the values of indices."""

    begins: dict[str, Agg]
    written: set[str]
    aggs: dict[str, Agg]
    allocs: tuple[Refinement, ...]
    uses_indices: bool


class _TermInterpreter:
    """One program, run over terms."""

    def __init__(self, program: Program, terms: TermTable) -> None:
        self._program = program
        self._terms = terms
        self._runs = 0
        self._facts: dict[int, _Facts] = {}

    def outputs(self) -> dict[str, dict[int, int]]:
        """The terms of the elements of each output, but of those that keep what an input holds. Raises
        InvalidProgram."""
        entry = self._program.entry
        constants = {buffer.name: constant_array(buffer) for buffer in self._program.constants}
        inputs = {ref.name for ref in self._program.inputs}
        views: dict[str, CellView] = {}
        for ref in entry.refinements:
            buffer = self._allocate(entry, ref, 0)
            if ref.name in constants:
                buffer.given = partial(self._constant, constants[ref.name].reshape(-1), ref.dtype)
            elif ref.name in inputs:
                buffer.given = partial(self._terms.element, ref.name, ref.dtype)
            views[ref.name] = CellView(buffer, ((ref, (0,) * ref.rank),))
        self._statements(entry, {}, views, ())
        return {ref.name: self._final(views[ref.name].buffer) for ref in self._program.outputs}

    def _constant(self, values: npt.NDArray[Any], dtype: DType, flat: int) -> int:
        return self._terms.number(values[flat], dtype)

    def _final(self, buffer: Cells) -> dict[int, int]:
        found: dict[int, int] = {}
        touched = sorted({*buffer.values, *buffer.waiting})
        for flat in touched if buffer.given is not None else range(buffer.ref.elements):
            term = self._read(buffer, flat)
            if self._terms.is_beginning(term):
                raise InvalidProgram(f"{element_name(buffer, flat)} ends undefined")
            found[flat] = term
        return found

    def _facts_of(self, block: Block) -> _Facts:
        if id(block) not in self._facts:
            begins = beginnings(block)
            if block is self._program.entry:
                begins |= dict.fromkeys(packed_names(self._program), Agg.ASSIGN)
            self._facts[id(block)] = _Facts(
                begins,
                {name for s in block.statements for name in writes_of(s)},
                {ref.name: ref.agg for ref in block.refinements},
                block.allocs,
                any(isinstance(s, Block | LoadIndex) for s in block.statements),
            )
        return self._facts[id(block)]

    def _allocate(self, block: Block, ref: Refinement, level: int) -> Cells:
        facts = self._facts_of(block)
        # Buffers that nothing writes have no conflicts.
        return Cells(ref, facts.begins[ref.name], level, ref.name in facts.written)

    def _read(self, buffer: Cells, flat: int) -> int:
        waiting = buffer.waiting.pop(flat, None)
        value = buffer.values.get(flat)
        if value is None and buffer.given is not None:
            value = buffer.values[flat] = buffer.given(flat)
        if waiting is not None:
            agg, contributions = waiting
            if value is None and buffer.agg is not agg:
                raise InvalidProgram(
                    f"{element_name(buffer, flat)} begins at the identity of '{buffer.agg.value}' and is merged into "
                    f"by '{agg.value}'"
                )
            base = self._terms.beginning(agg, buffer.ref.dtype) if value is None else value
            value = buffer.values[flat] = self._terms.merge(agg, buffer.ref.dtype, [base, *contributions])
        if value is not None:
            return value
        if buffer.agg is Agg.ASSIGN:
            raise InvalidProgram(f"{element_name(buffer, flat)} is read and was not written")
        return self._terms.beginning(buffer.agg, buffer.ref.dtype)

    def _write(self, buffer: Cells, flat: int, agg: Agg, term: int) -> None:
        if agg is Agg.ASSIGN:
            buffer.waiting.pop(flat, None)
            buffer.values[flat] = term
            return
        waiting = buffer.waiting.get(flat)
        if waiting is not None and waiting[0] is not agg:
            self._read(buffer, flat)
            waiting = None
        if waiting is None:
            if buffer.agg is Agg.ASSIGN and buffer.given is None and flat not in buffer.values:
                raise InvalidProgram(f"{element_name(buffer, flat)} is merged into and was not written")
            buffer.waiting[flat] = (agg, [term])
        else:
            waiting[1].append(term)

    def _block(
        self, block: Block, values: Mapping[str, int], outer: Mapping[str, CellView], position: Position
    ) -> None:
        """One run of a block: all its points, one after the other."""
        ranges = [index.range for index in block.iterated]
        grid = np.indices(ranges, np.int64).reshape(len(ranges), prod(ranges))
        env: dict[str, Any] = {
            index.name: index.affine.evaluate(values) for index in block.passed if index.affine is not None
        }
        env.update(zip((index.name for index in block.iterated), grid, strict=True))
        keep = np.ones(grid.shape[1], np.bool_)
        for constraint in block.constraints:
            keep &= np.asarray(constraint.affine.evaluate(env)) >= 0
        points = np.flatnonzero(keep)
        if not points.size:
            return
        env = {name: value[points] if isinstance(value, np.ndarray) else value for name, value in env.items()}
        places = {
            ref.name: places_of(ref, outer[ref.source], env, points.size)
            for ref in block.refinements
            if not ref.is_alloc
        }
        self._runs += 1
        run = self._runs
        facts = self._facts_of(block)
        rows = _rows(env, points.size) if facts.uses_indices else repeat(dict[str, int]())
        for n, (point, here) in enumerate(zip(points.tolist(), rows, strict=False)):
            at = (*position, (run, point))
            views: dict[str, CellView | tuple[Places, int]] = {
                name: (place, n) for name, place in places.items()
            }
            for ref in facts.allocs:
                views[ref.name] = CellView(self._allocate(block, ref, len(at)), ((ref, (0,) * ref.rank),))
            self._statements(block, here, views, at)

    def _statements(
        self,
        block: Block,
        values: Mapping[str, int],
        views: Mapping[str, CellView | tuple[Places, int]],
        position: Position,
    ) -> None:
        scalars: dict[str, int] = {}
        self._terms.spend(len(block.statements))
        aggs, begun = self._facts_of(block).aggs, self._terms.beginnings
        for statement in block.statements:
            match statement:
                case Load(into, ref):
                    buffer, flat = origin_of(views[ref])
                    self._note("read", buffer, flat, position)
                    scalars[into] = self._read(buffer, flat)
                case Store(ref, value):
                    buffer, flat = origin_of(views[ref])
                    agg = aggs[ref]
                    self._note(agg.value, buffer, flat, position)
                    if scalars[value] in begun and (
                        agg is Agg.ASSIGN or scalars[value] != self._terms.beginning(agg, buffer.ref.dtype)
                    ):
                        raise InvalidProgram(f"block '{block.name}' copies an element that was not written")
                    self._write(buffer, flat, agg, scalars[value])
                case Constant(into, value, dtype):
                    scalars[into] = self._terms.number(arith.constant(value, dtype), dtype)
                case LoadIndex(into, affine):
                    dtype = DTYPES["i32"]
                    number = np.asarray(affine.evaluate(values), np.int64).astype(np.int32)
                    scalars[into] = self._terms.number(number, dtype)
                case Intrinsic(into, op, names, target):
                    args = tuple([scalars[name] for name in names])
                    if op != "ident" and not begun.isdisjoint(args):
                        raise InvalidProgram(
                            f"'{op}' in block '{block.name}' uses an element that was not written"
                        )
                    scalars[into] = self._terms.operation(op, args, target)
                case Special():
                    self._special(statement, views, position)
                case Block():
                    self._block(
                        statement, values, {n: whole_view(view) for n, view in views.items()}, position
                    )

    def _special(
        self, statement: Special, views: Mapping[str, CellView | tuple[Places, int]], position: Position
    ) -> None:
        boxes: list[object] = []
        for name in statement.inputs:
            view = whole_view(views[name])
            ref = view.boxes[0][0]
            boxes.append((ref.dtype.name, ref.sizes))
            self._terms.spend(ref.elements)
            for flat in elements_of(view):
                self._note("read", view.buffer, flat, position)
                boxes.append(element := self._read(view.buffer, flat))
                if element in self._terms.beginnings:
                    raise InvalidProgram(f"'{statement.op}' reads an element that was not written")
        boxes += [whole_view(views[name]).boxes[0][0].sizes for name in statement.outputs]
        call = self._terms.call(statement.op, tuple(boxes))
        for number, name in enumerate(statement.outputs):
            view = whole_view(views[name])
            ref = view.boxes[0][0]
            self._terms.spend(ref.elements)
            for place, flat in enumerate(elements_of(view)):
                self._note("assign", view.buffer, flat, position)
                term = self._terms.called(call, number, place, ref.dtype)
                self._write(view.buffer, flat, Agg.ASSIGN, term)

    def _note(self, kind: str, buffer: Cells, flat: int, position: Position) -> None:
        if buffer.is_shared and (other := buffer.touch(kind, flat, position)) is not None:
            raise InvalidProgram(
                f"two points touch {element_name(buffer, flat)}: one by '{other}', one by '{kind}'"
            )


def _rows(env: Mapping[str, Any], points: int) -> Iterator[dict[str, int]]:
    """The values of indices at each point."""
    columns: list[list[int]] = [
        value.tolist() if isinstance(value, np.ndarray) else [value] * points for value in env.values()
    ]
    rows = zip(*columns, strict=True) if columns else repeat((), points)
    return (dict(zip(env, row, strict=True)) for row in rows)


def points(program: Program) -> int:
    """The number of runs of all blocks, constraints not counted."""

    def runs(block: Block) -> int:
        return prod(index.range for index in block.iterated) * (
            1 + sum(runs(inner) for inner in block.blocks)
        )

    return runs(program.entry)


def decide(
    before: Program, after: Program, *, most_points: int = MOST_POINTS, most_steps: int = MOST_STEPS
) -> Verdict:
    """Whether `after` computes what `before` computes, for all inputs, by enumeration.

    *Different* means that the terms differ, or that `after` does something undefined. *Unknown* is the answer for
    programs of more than `most_points` points, and for a run of both that takes more than `most_steps` steps: a
    statement, an element of an operand of a special, a contribution to a merge; a term takes ten. `before` is taken to
    be valid: InvalidProgram is raised when it is not.
    """
    owed = owed_pads(after, before)
    before, after = (LogicalForm.of(program, owed).program for program in (before, after))
    if (changed := interface_change(before, after)) is not None:
        return Different(Witness.of_interface(changed), certain=True)
    for program in (before, after):
        if (count := points(program)) > most_points:
            return Unknown(f"{count} points are more than {most_points}")
    found: Verdict | None = None
    for chains, finite in ((False, False), (True, False), (True, True)):
        try:
            again = _decide(before, after, TermTable(most_steps, chains=chains, finite=finite))
        except (TooManySteps, PolyLimit) as limit:
            return Unknown(str(limit))
        found = again if found is None or isinstance(again, Equal) else found
        if isinstance(found, Equal) or (isinstance(found, Different) and found.certain):
            break
    assert found is not None
    return found


def _decide(before: Program, after: Program, terms: TermTable) -> Verdict:
    first = _TermInterpreter(before, terms).outputs()
    try:
        second = _TermInterpreter(after, terms).outputs()
    except InvalidProgram as reason:
        witness = Witness(str(reason), after.name, None, Side("it is defined"), Side("it is not"))
        return Different(witness, certain=True)
    for ref in before.outputs:
        sides_of = first[ref.name], second[ref.name]
        for flat in sorted(sides_of[0].keys() | sides_of[1].keys()):
            # an element that no statement writes holds what the input has there
            old, new = (
                side[flat] if flat in side else terms.element(ref.name, ref.dtype, flat) for side in sides_of
            )
            if old != new:
                element = tuple(int(n) for n in np.unravel_index(flat, ref.sizes)) if ref.rank else ()
                sides = Side(terms.show(old)), Side(terms.show(new))
                return Different(Witness("it is defined by other operands", ref.name, element, *sides))
    return Equal(in_order(terms.relied))
