"""Equality of small programs by enumeration: each point of each block runs once, over terms instead of numbers.

An element of a buffer holds the number of a term in a table that both programs share. Equal numbers are equal terms, so
that two programs are equal when their outputs hold the same numbers. Nothing here but the clock comes from
`stripe.poly` or from the proof: the one is the check of the other. The run also finds accesses out of bounds, reads of
undefined elements, elements assigned twice, and races between the points of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from math import prod
from typing import Any, TypeAlias

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
from stripe.verify.enumerated_terms import TermTable, TooManySteps
from stripe.verify.interface import LogicalForm, owed_pads, packed_names
from stripe.verify.proof.witness import Different, Equal, Side, Unknown, Verdict, Witness

MOST_POINTS = 200_000
"""Programs with more points are not enumerated; Python runs some 10^5 points a second."""
MOST_STEPS = 10_000_000
"""Steps of the runs of two programs: about as many microseconds."""

Integers: TypeAlias = npt.NDArray[np.int64]
Position: TypeAlias = tuple[tuple[int, int], ...]
"""The runs of blocks around a statement, outermost first: the number of the run and the point in it."""


class InvalidProgram(Exception):
    """A program that does something undefined; the text says what, and for which element."""


@dataclass(slots=True)
class _Cells:
    """An allocation in one run of its block: a term for each element that was touched, contributions that wait to be
    merged, and who touched an element at which point of which run of a block (None: at several points). `given` makes
    the term of an element of an input or a constant.
    """

    ref: Refinement
    agg: Agg
    level: int
    is_shared: bool
    given: Callable[[int], int] | None = None
    values: dict[int, int] = field(default_factory=dict[int, int])
    waiting: dict[int, tuple[Agg, list[int]]] = field(default_factory=dict[int, tuple[Agg, list[int]]])
    touched: dict[str, dict[tuple[int, int], int | None]] = field(
        default_factory=dict[str, dict[tuple[int, int], int | None]]
    )

    def touch(self, kind: str, flat: int, position: Position) -> str | None:
        """Notes an access; the kind of an access by another point that conflicts with it, if there is one.

        Two accesses conflict when they are at different points of one run of a block, unless both read or both merge by
        one aggregation.
        """
        found = None
        own = self.touched.setdefault(kind, {})
        for run, point in position[self.level :]:
            key = (flat, run)
            for other, points in self.touched.items():
                if (points is not own or kind == "assign") and points.get(key, point) != point:
                    found = other
            if own.setdefault(key, point) != point:
                own[key] = None
        return found


@dataclass(frozen=True, slots=True)
class _CellView:
    """A refinement at one point: the buffer, and for each box on the way to it the place of the view's origin in it."""

    buffer: _Cells
    boxes: tuple[tuple[Refinement, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class _Places:
    """A view at all points of a run: where its origin lies in the boxes on the way, the element of the buffer (in
    row-major order), and the first box that the origin lies outside of, by its number plus one.
    """

    source: _CellView
    ref: Refinement
    step: Integers
    flat: list[int]
    outside: list[int]

    def at(self, point: int) -> _CellView:
        step = self.step[:, point].tolist()
        outer = tuple(
            (ref, tuple(a + b for a, b in zip(place, step, strict=True))) for ref, place in self.source.boxes
        )
        return _CellView(self.source.buffer, ((self.ref, (0,) * len(step)), *outer))


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
        views: dict[str, _CellView] = {}
        for ref in entry.refinements:
            buffer = self._allocate(entry, ref, 0)
            if ref.name in constants:
                buffer.given = partial(self._constant, constants[ref.name].reshape(-1), ref.dtype)
            elif ref.name in inputs:
                buffer.given = partial(self._terms.element, ref.name, ref.dtype)
            views[ref.name] = _CellView(buffer, ((ref, (0,) * ref.rank),))
        self._statements(entry, {}, views, ())
        return {ref.name: self._final(views[ref.name].buffer) for ref in self._program.outputs}

    def _constant(self, values: npt.NDArray[Any], dtype: DType, flat: int) -> int:
        return self._terms.number(values[flat], dtype)

    def _final(self, buffer: _Cells) -> dict[int, int]:
        found: dict[int, int] = {}
        touched = sorted({*buffer.values, *buffer.waiting})
        for flat in touched if buffer.given is not None else range(buffer.ref.elements):
            term = self._read(buffer, flat)
            if self._terms.is_beginning(term):
                raise InvalidProgram(f"{_element(buffer, flat)} ends undefined")
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

    def _allocate(self, block: Block, ref: Refinement, level: int) -> _Cells:
        facts = self._facts_of(block)
        # Buffers that nothing writes have no conflicts.
        return _Cells(ref, facts.begins[ref.name], level, ref.name in facts.written)

    def _read(self, buffer: _Cells, flat: int) -> int:
        waiting = buffer.waiting.pop(flat, None)
        value = buffer.values.get(flat)
        if value is None and buffer.given is not None:
            value = buffer.values[flat] = buffer.given(flat)
        if waiting is not None:
            agg, contributions = waiting
            if value is None and buffer.agg is not agg:
                raise InvalidProgram(
                    f"{_element(buffer, flat)} begins at the identity of '{buffer.agg.value}' and is merged into by "
                    f"'{agg.value}'"
                )
            base = self._terms.beginning(agg, buffer.ref.dtype) if value is None else value
            value = buffer.values[flat] = self._terms.merge(agg, buffer.ref.dtype, [base, *contributions])
        if value is not None:
            return value
        if buffer.agg is Agg.ASSIGN:
            raise InvalidProgram(f"{_element(buffer, flat)} is read and was not written")
        return self._terms.beginning(buffer.agg, buffer.ref.dtype)

    def _write(self, buffer: _Cells, flat: int, agg: Agg, term: int) -> None:
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
                raise InvalidProgram(f"{_element(buffer, flat)} is merged into and was not written")
            buffer.waiting[flat] = (agg, [term])
        else:
            waiting[1].append(term)

    def _block(
        self, block: Block, values: Mapping[str, int], outer: Mapping[str, _CellView], position: Position
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
            ref.name: _places(ref, outer[ref.source], env, points.size)
            for ref in block.refinements
            if not ref.is_alloc
        }
        self._runs += 1
        run = self._runs
        facts = self._facts_of(block)
        rows = _rows(env, points.size) if facts.uses_indices else repeat(dict[str, int]())
        for n, (point, here) in enumerate(zip(points.tolist(), rows, strict=False)):
            at = (*position, (run, point))
            views: dict[str, _CellView | tuple[_Places, int]] = {
                name: (place, n) for name, place in places.items()
            }
            for ref in facts.allocs:
                views[ref.name] = _CellView(self._allocate(block, ref, len(at)), ((ref, (0,) * ref.rank),))
            self._statements(block, here, views, at)

    def _statements(
        self,
        block: Block,
        values: Mapping[str, int],
        views: Mapping[str, _CellView | tuple[_Places, int]],
        position: Position,
    ) -> None:
        scalars: dict[str, int] = {}
        self._terms.spend(len(block.statements))
        aggs, begun = self._facts_of(block).aggs, self._terms.beginnings
        for statement in block.statements:
            match statement:
                case Load(into, ref):
                    buffer, flat = _origin(views[ref])
                    self._note("read", buffer, flat, position)
                    scalars[into] = self._read(buffer, flat)
                case Store(ref, value):
                    buffer, flat = _origin(views[ref])
                    agg = aggs[ref]
                    self._note(agg.value, buffer, flat, position)
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
                    self._block(statement, values, {n: _whole(view) for n, view in views.items()}, position)

    def _special(
        self, statement: Special, views: Mapping[str, _CellView | tuple[_Places, int]], position: Position
    ) -> None:
        boxes: list[object] = [tuple(statement.tags.entries)]
        for name in statement.inputs:
            view = _whole(views[name])
            ref = view.boxes[0][0]
            boxes.append((ref.dtype.name, ref.sizes))
            self._terms.spend(ref.elements)
            for flat in _box(view):
                self._note("read", view.buffer, flat, position)
                boxes.append(self._read(view.buffer, flat))
        boxes += [_whole(views[name]).boxes[0][0].sizes for name in statement.outputs]
        call = self._terms.call(statement.op, tuple(boxes))
        for number, name in enumerate(statement.outputs):
            view = _whole(views[name])
            ref = view.boxes[0][0]
            self._terms.spend(ref.elements)
            for place, flat in enumerate(_box(view)):
                self._note("assign", view.buffer, flat, position)
                term = self._terms.called(call, number, place, ref.dtype)
                self._write(view.buffer, flat, Agg.ASSIGN, term)

    def _note(self, kind: str, buffer: _Cells, flat: int, position: Position) -> None:
        if buffer.is_shared and (other := buffer.touch(kind, flat, position)) is not None:
            raise InvalidProgram(
                f"two points touch {_element(buffer, flat)}: one by '{other}', one by '{kind}'"
            )


def _rows(env: Mapping[str, Any], points: int) -> Iterator[dict[str, int]]:
    """The values of indices at each point."""
    columns: list[list[int]] = [
        value.tolist() if isinstance(value, np.ndarray) else [value] * points for value in env.values()
    ]
    rows = zip(*columns, strict=True) if columns else repeat((), points)
    return (dict(zip(env, row, strict=True)) for row in rows)


def _places(ref: Refinement, source: _CellView, env: Mapping[str, Any], points: int) -> _Places:
    step = np.empty((ref.rank, points), np.int64)
    for dim, affine in enumerate(ref.access):
        step[dim] = affine.evaluate(env)
    outside = np.zeros(points, np.int64)
    flat = np.zeros(points, np.int64)
    boxes = [(ref, (0,) * ref.rank)]
    if not all(ref.sizes):
        outside[:] = 1
    for number, (box, place) in enumerate(source.boxes):
        boxes.append((box, place))
        last = number == len(source.boxes) - 1
        for dim, (size, origin) in enumerate(zip(box.sizes, place, strict=True)):
            at = step[dim] + origin
            outside[(outside == 0) & ((at < 0) | (at >= size))] = number + 2
            if last:
                flat = flat * size + at
    return _Places(source, ref, step, flat.tolist(), outside.tolist())


def _origin(view: _CellView | tuple[_Places, int]) -> tuple[_Cells, int]:
    """The buffer and the element that the origin of a view is. Raises InvalidProgram where it lies outside of a box."""
    if isinstance(view, _CellView):
        return view.buffer, _flat(view, (0,) * view.boxes[0][0].rank)
    places, point = view
    if places.outside[point]:
        _flat(places.at(point), (0,) * places.ref.rank)
    return places.source.buffer, places.flat[point]


def _flat(view: _CellView, offset: Sequence[int]) -> int:
    flat = 0
    for ref, place in view.boxes:
        flat = 0
        for size, origin, more in zip(ref.sizes, place, offset, strict=True):
            if not 0 <= origin + more < size:
                element = [a + b for a, b in zip(place, offset, strict=True)]
                raise InvalidProgram(
                    f"'{view.boxes[0][0].name}' touches element {element} outside of '{ref.name}'"
                )
            flat = flat * size + origin + more
    return flat


def _box(view: _CellView) -> list[int]:
    """The elements of the whole view, in row-major order."""
    sizes = view.boxes[0][0].sizes
    if not all(sizes):
        return []
    for corner in ((0,) * len(sizes), tuple(size - 1 for size in sizes)):
        _flat(view, corner)
    buffer, place = view.boxes[-1]
    strides = [prod(buffer.sizes[dim + 1 :]) for dim in range(buffer.rank)]
    first = sum(stride * origin for stride, origin in zip(strides, place, strict=True))
    flat = np.full(sizes, first, np.int64)
    for dim, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        flat += (stride * np.arange(size)).reshape(size, *(1,) * (len(sizes) - 1 - dim))
    return flat.reshape(-1).tolist()


def _whole(view: _CellView | tuple[_Places, int]) -> _CellView:
    return view if isinstance(view, _CellView) else view[0].at(view[1])


def _element(buffer: _Cells, flat: int) -> str:
    place = (
        ", ".join(str(int(n)) for n in np.unravel_index(flat, buffer.ref.sizes)) if buffer.ref.rank else ""
    )
    return f"{buffer.ref.name}[{place}]"


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
    elements = {ref.name: ref.elements for ref in after.outputs}
    for ref in before.outputs:
        if elements.get(ref.name) != ref.elements:
            return Different(Witness("the output changed", ref.name, None, Side("before"), Side("after")))
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
