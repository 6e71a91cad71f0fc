"""The interpreter: the meaning of a program, computed with numpy.

A block runs at all its points at once. Each index with more than one value becomes an axis of numpy broadcasting; an
index value is an arange along its axis, a scalar an array that broadcasts against the axes it does not depend on, the
constraints a mask, an allocation a copy of the buffer for each lane of the block that holds it. Statements run in their
order over all points, which is a legal order as points have none. A store reduces over the axes on which its address
does not depend, then merges into memory. Where a block has too many points for that, its outermost indices are split
into chunks that a Python loop runs one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stripe.exec import arith
from stripe.exec.access import load, store
from stripe.exec.arena import ArenaMemory
from stripe.exec.arith import Array
from stripe.exec.errors import ExecutionError
from stripe.exec.frame import Frame, LaneBox, PointsView, open_view
from stripe.exec.lanes import (
    BoolArray,
    LaneValue,
    axis_value,
    constant_value,
    evaluate,
    lane_count,
)
from stripe.exec.layout import check_inputs, constant_array, logical_array, places, with_dimension
from stripe.exec.memory import Memory
from stripe.exec.specials import run_special
from stripe.exec.variation import Variation
from stripe.ir import (
    DTYPES,
    Affine,
    Agg,
    Block,
    Constant,
    DType,
    Intrinsic,
    Load,
    LoadIndex,
    Path,
    Program,
    Refinement,
    Special,
    Statement,
    Store,
    aggregations,
    beginnings,
    result_dtype,
    scalars_used,
    walk,
)

DEFAULT_BUDGET = 1 << 30
MAX_LANES = 1 << 20
"""Lanes that run at once: enough to hide Python's cost, few enough for the caches. Below 2^31 by far, so that the axes
with two lanes or more are never more than numpy allows."""
_LANE_COST = 40
"""Bytes per lane beside its scalars: an address, a mask, temporaries."""

Scalars = dict[str, tuple[Array, DType]]
Chunk = tuple[tuple[int, int], ...]
"""First value and number of values of each iterated index."""


def interpret(
    program: Program,
    inputs: Mapping[str, Array],
    *,
    memory_budget: int = DEFAULT_BUDGET,
    checks: bool = True,
    arenas: bool = True,
    variation: Variation | None = None,
) -> dict[str, Array]:
    """Runs a structurally valid program and returns its outputs by name, as C-contiguous arrays in logical shape.

    `inputs` has one array per tensor of `program.inputs`, in its logical shape and dtype; they are not changed.
    `memory_budget` limits the bytes that the interpreter takes beside the buffers of the entry and of main. `checks`
    finds reads of undefined elements and elements assigned by two points; accesses out of bounds are always found. With
    `arenas`, allocations that have an address live there, in one byte array per memory, so that a placement that
    overlaps live buffers shows; without, they have memory of their own like all others. `variation` changes numbers on
    their way.

    Raises ExecutionError for inputs that do not fit, and for undefined behaviour of the program."""
    given = check_inputs(program, inputs)
    given.update({buffer.name: constant_array(buffer) for buffer in program.constants})
    memory = ArenaMemory(program, checks=checks) if arenas else Memory(checks=checks)
    with np.errstate(all="ignore"):
        return _Interpreter(program, memory, memory_budget, variation).run(given)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The facts of a block for all its runs: bytes per lane of its allocations and of the largest below it, bytes per
    lane of its scalars, the number of its first statement, the scalars without a use after each statement, the
    aggregations at whose identities its allocations start, and of each index in a constraint the index, its factor and
    the rest.
    """

    lane_bytes: int
    scalar_bytes: int
    first_writer: int
    dying: tuple[tuple[str, ...], ...]
    serial: bool
    begins: dict[str, Agg]
    bounded: tuple[tuple[str, int, Affine], ...]


class _Interpreter:
    def __init__(
        self, program: Program, memory: Memory, budget: int, variation: Variation | None = None
    ) -> None:
        self.program = program
        self.memory = memory
        self.budget = budget
        self.plans = _make_plans(program, memory)
        self.variation = variation
        self.merged: dict[int, frozenset[Agg]] = {}
        """Where numbers vary, the aggregations of each buffer that lives, by its identity."""
        self.infinite: set[int] = set()
        """Where numbers vary, the buffers into which an infinity or NaN was stored."""

    def run(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """Executes the entry and takes the outputs out of its buffers."""
        entry = self.program.entry
        frame = Frame(entry, (0,), (), {}, None, None)
        for ref in entry.refinements:
            self._allocate(frame, ref, given.get(ref.name))
        self._run_statements(frame)
        found = {ref.name: _read_output(frame.views[ref.name]) for ref in self.program.outputs}
        if self.variation is not None:
            for ref in self.program.outputs:
                buffer = id(frame.views[ref.name].buffer)
                if ref.dtype.is_float and (aggs := self.merged[buffer]):
                    finite = np.asarray(buffer not in self.infinite)
                    found[ref.name] = self.variation.merged(found[ref.name], ref.dtype, aggs, finite=finite)
        return found

    def _allocate(self, frame: Frame, ref: Refinement, initial: Array | None) -> None:
        agg = self.plans[frame.path].begins[ref.name]
        buffer = self.memory.allocate(frame, ref, agg, initial)
        here = (constant_value(0, len(frame.extents)),) * ref.rank
        frame.views[ref.name] = PointsView(ref, buffer, (LaneBox(ref, here),), inside=True)
        if self.variation is not None:
            found = aggregations(frame.block, (ref.name,)).get(ref.name, ())
            self.merged[id(buffer)] = frozenset(found) - {Agg.ASSIGN}
            self.infinite.discard(id(buffer))

    def _run_block(self, block: Block, path: Path, outer: Frame) -> None:
        plan = self.plans[path]
        lanes = lane_count(outer.extents)
        limit = min(MAX_LANES, self.budget // 2 // (_LANE_COST + plan.scalar_bytes)) // lanes
        limit = min(limit, self.budget // 2 // (lanes * max(1, plan.lane_bytes)))
        passed = {i.name: evaluate(i.affine, outer.values, outer.extents) for i in block.passed if i.affine}
        reached = _reached(block, plan.bounded, passed, outer.extents)
        for chunk in _chunks(reached, 1 if plan.serial else limit) if reached is not None else ():
            frame = _enter(block, path, outer, passed, chunk)
            if frame is None:
                continue
            for ref in block.refinements:
                if ref.is_alloc:
                    self._allocate(frame, ref, None)
                else:
                    frame.views[ref.name] = open_view(frame, ref, outer.views[ref.source])
            self._run_statements(frame)

    def _run_statements(self, frame: Frame) -> None:
        plan = self.plans[frame.path]
        scalars: Scalars = {}
        written = {
            id(view.buffer) for view in frame.views.values() if view.ref.dir.writes or view.ref.is_alloc
        }
        for number, statement in enumerate(frame.block.statements):
            writer = plan.first_writer + number
            match statement:
                case Block():
                    self._run_block(statement, (*frame.path, number), frame)
                case Store(ref, value):
                    store(frame, frame.views[ref], scalars[value][0], writer)
                    if self.variation is not None and not _finite(scalars[value][0]).all():
                        self.infinite.add(id(frame.views[ref].buffer))
                case Special():
                    run_special(frame, statement, writer)
                    self._copy_merged(frame, statement)
                case _:
                    found = _define(frame, statement, scalars, written)
                    scalars[statement.into] = self._varied(frame, statement, scalars, found)
            for name in plan.dying[number]:
                scalars.pop(name, None)

    def _copy_merged(self, frame: Frame, special: Special) -> None:
        """Results of a special hold what its operands were merged of."""
        if self.variation is not None:
            given = [id(frame.views[name].buffer) for name in special.inputs]
            aggs = frozenset[Agg]().union(*(self.merged[buffer] for buffer in given))
            for name in special.outputs:
                buffer = id(frame.views[name].buffer)
                self.merged[buffer] |= aggs
                self.infinite |= set() if self.infinite.isdisjoint(given) else {buffer}

    def _varied(
        self, frame: Frame, statement: Statement, scalars: Scalars, found: tuple[Array, DType]
    ) -> tuple[Array, DType]:
        """The number that the variation has in the place of the result of a statement."""
        value, dtype = found
        if self.variation is None or not dtype.is_float:
            return found
        match statement:
            case Load(_, ref):
                buffer = id(frame.views[ref].buffer)
                aggs, finite = self.merged[buffer], np.asarray(buffer not in self.infinite)
            case Intrinsic(_, "mul", names, _):
                return self.variation.product(value, [scalars[name][0] for name in names]), dtype
            case Intrinsic(_, "add" | "min" | "max" as op, names, _):
                aggs = frozenset((Agg(op),))
                first, *others = (_finite(scalars[name][0]) for name in names)
                finite = np.logical_and(first, *others)
            case _:
                return found
        return (self.variation.merged(value, dtype, aggs, finite=finite) if aggs else value), dtype


def _finite(value: Array) -> Array:
    """The mask of the elements that are no infinities and no NaN."""
    return np.isfinite(value.astype(np.float64))


def _define(
    frame: Frame, statement: Load | LoadIndex | Constant | Intrinsic, scalars: Scalars, written: set[int]
) -> tuple[Array, DType]:
    match statement:
        case Load(_, ref):
            view = frame.views[ref]
            return load(frame, view, keep=id(view.buffer) in written), view.ref.dtype
        case LoadIndex(_, affine):
            value = evaluate(affine, frame.values, frame.extents).array(frame.extents)
            return value.astype(np.int32), DTYPES["i32"]
        case Constant(_, value, dtype):
            return arith.constant(value, dtype).reshape((1,) * len(frame.extents)), dtype
        case Intrinsic(_, op, names, target):
            args = [scalars[name][0] for name in names]
            dtypes = [scalars[name][1] for name in names]
            result = result_dtype(op, dtypes, target)
            if op == "cast":
                return np.asarray(arith.cast(args[0], dtypes[0], result)), result
            return np.asarray(arith.apply(op, args, dtypes[-1])), result


def _enter(
    block: Block, path: Path, outer: Frame, passed: Mapping[str, LaneValue], chunk: Chunk
) -> Frame | None:
    """The frame of one chunk of the points of `block`; None when the constraints leave no point."""
    added = sum(count > 1 for _, count in chunk)
    first = len(outer.extents)
    rank = first + added
    axes = iter(range(first, rank))
    values = {name: value.widen(added) for name, value in passed.items()}
    for index, (start, count) in zip(block.iterated, chunk, strict=True):
        values[index.name] = axis_value(start, next(axes), rank) if count > 1 else constant_value(start, rank)
    extents = outer.extents + tuple(count for _, count in chunk if count > 1)
    given = None if outer.mask is None else outer.mask.reshape(outer.mask.shape + (1,) * added)
    mask: BoolArray | None = given
    for constraint in block.constraints:
        value = evaluate(constraint.affine, values, extents)
        low, high = value.bounds(extents)
        if high < 0:
            return None
        if low < 0:
            holds = value.array(extents) >= 0
            mask = holds if mask is None else mask & holds
    if mask is not given and mask is not None:
        if not mask.any():
            return None
        mask = None if mask.all() else mask
    return Frame(block, path, extents, values, mask, outer)


def _bounded(block: Block) -> Iterator[tuple[str, int, Affine]]:
    own = {index.name for index in block.iterated}
    for constraint in block.constraints:
        for atom, coefficient in constraint.affine.terms:
            if isinstance(atom, str) and atom in own:
                yield atom, coefficient, constraint.affine - Affine.var(atom) * coefficient


def _reached(
    block: Block,
    bounded: Sequence[tuple[str, int, Affine]],
    passed: Mapping[str, LaneValue],
    extents: tuple[int, ...],
) -> list[tuple[int, int]] | None:
    """First value and number of values of each iterated index; None for no point. Constraints may leave a few values of
    vast ranges."""
    box = {index.name: (0, index.range - 1) for index in block.iterated}
    if bounded:
        around = {name: value.bounds(extents) for name, value in passed.items()} | box
        for name, coefficient, rest in (*bounded, *bounded):
            low, high = around[name]
            _, most = rest.bounds(around)
            if coefficient > 0:
                low = max(low, -(most // coefficient))
            else:
                high = min(high, most // -coefficient)
            if low > high:
                return None
            box[name] = around[name] = (low, high)
    return [(low, high - low + 1) for low, high in box.values()]


def _chunks(box: Sequence[tuple[int, int]], limit: int) -> Iterator[Chunk]:
    """Splits a box of points into boxes of at most `limit` points (at least one), the outermost indices first."""
    ranges = [size for _, size in box]
    counts = [1] * len(ranges)
    room = max(1, limit)
    for axis in reversed(range(len(ranges))):
        pieces = -(-ranges[axis] // min(ranges[axis], room))
        counts[axis] = -(-ranges[axis] // pieces)
        room //= counts[axis]
        if counts[axis] < ranges[axis]:
            break
    return _boxes(tuple((first, size, count) for (first, size), count in zip(box, counts, strict=True)))


def _boxes(axes: tuple[tuple[int, int, int], ...]) -> Iterator[Chunk]:
    """All boxes; an axis is its first value, the number of its values and that of a box. One by one, as there may be
    very many."""
    if not axes:
        yield ()
        return
    (first, size, count), *rest = axes
    for start in range(0, size, count):
        for others in _boxes(tuple(rest)):
            yield ((first + start, min(count, size - start)), *others)


def _make_plans(program: Program, memory: Memory) -> dict[Path, _Plan]:
    plans: dict[Path, _Plan] = {}
    writer = 2  # above the stamps of undefined and initial elements
    for path, block in reversed(list(walk(program.entry))):  # inner before outer
        children = [plans[*path, n] for n, s in enumerate(block.statements) if isinstance(s, Block)]
        last = {name: number for number, s in enumerate(block.statements) for name in scalars_used(s)}
        dying: list[list[str]] = [[] for _ in block.statements]
        for name, number in last.items():
            dying[number].append(name)
        own = sum(ref.bytes * (1 + 4 // ref.dtype.bytes) for ref in block.allocs)  # with stamps
        plans[path] = _Plan(
            lane_bytes=own + max((child.lane_bytes for child in children), default=0),
            scalar_bytes=8 * sum(not isinstance(s, Block | Store | Special) for s in block.statements),
            first_writer=writer,
            dying=tuple(map(tuple, dying)),
            begins=beginnings(block),
            bounded=tuple(_bounded(block)),
            serial=memory.serial(block) or any(child.serial for child in children),
        )
        writer += len(block.statements)
    return plans


def _read_output(view: PointsView) -> Array:
    """The elements of an output at the end of the program; each must have been written."""
    buffer, layout = view.buffer, view.ref.layout
    buffer.touch()
    missing = buffer.undefined(buffer.whole)
    if missing is not None and layout is not None and layout.pad is None:
        missing = with_dimension(missing)[places(layout)]
    if missing is not None and missing.any():
        element = [int(p) for p in np.argwhere(missing)[0]]
        raise ExecutionError(
            f"the output '{view.ref.name}' ends with its element {element}, {buffer.why_undefined}"
            f" ({int(missing.sum())} such elements)",
            hint="an output that is only assigned must be assigned everywhere",
        )
    return logical_array(view.ref, buffer.whole.view(buffer.data))
