"""Tiles of vectors: the innermost loops of a block as straight code, whose results vector variables hold.

A compiler that unrolls and vectorizes loops decides by its own costs whether a tile of results stays in registers. Code
that names each vector leaves it no choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from math import prod

from stripe.emit.loops.bounds import ForLoop, Loops
from stripe.emit.loops.products import dot_factors
from stripe.emit.loops.scope import Area, CodeScope
from stripe.ir import (
    DTYPES,
    INTRINSICS,
    Affine,
    Agg,
    Block,
    Constant,
    DType,
    Intrinsic,
    Load,
    LoadIndex,
    Store,
    Vector,
    result_dtype,
    row_vectors,
    step,
    vectors_along,
)
from stripe.ir.dtypes import BOOL
from stripe.ir.lanes import SUM_COPIES, TILE_VECTORS
from stripe.ir.tags import DOT_TILE

_LONGEST_DOT = 1 << 16
"""Most terms of a sum of products of 8 bits, one factor without a sign: 32 bits hold it."""
_ON_MASKS = ("bit_and", "bit_or", "bit_xor", "bit_not")
"""Operations on bools that make masks of masks."""
_AHEAD = 4
"""Vectors of an iteration where a loop over vectors remains."""


@dataclass(frozen=True, slots=True)
class TilePoint:
    """One copy of the statements: the number of each unrolled loop's iteration, and the vector of elements, from the
    variable of the innermost loop on, or from 0 where that loop is unrolled.
    """

    values: tuple[tuple[str, int], ...]
    vector: Vector

    @property
    def lanes(self) -> int:
        return self.vector.lanes


@dataclass(frozen=True, slots=True)
class VectorTile:
    """The loops from `level` on as straight code: `points` for each iteration of the innermost loop, which goes on by
    `step` elements up to `end` (0: it is unrolled as well), and `rest` after it. `accumulators`: by the number of a
    store, the loop before which its elements are loaded and after which they are stored.
    """

    level: int
    var: str
    points: tuple[TilePoint, ...]
    low: int = 0
    end: int = 0
    step: int = 0
    rest: tuple[TilePoint, ...] = ()
    accumulators: dict[int, int] = field(default_factory=dict[int, int])

    def at(self, affine: Affine, point: TilePoint) -> Affine:
        """An affine over the variables of the loops at the first lane of a point."""
        first = point.vector.first
        start = Affine(first) if not self.step or point in self.rest else Affine.var(self.var) + first
        values = {name: Affine(value) for name, value in point.values}
        return affine.subs({**values, self.var: start})

    def element(self, area: Area, point: TilePoint) -> Affine:
        """The first element of a vector, or the element itself where the innermost loop does not move the area."""
        return self.at(area.origin, point)

    def is_vector(self, area: Area) -> bool:
        """Whether the lanes are elements behind one another."""
        return step(area.origin, self.var) == 1


@dataclass(frozen=True, slots=True)
class DotTile(VectorTile):
    """A tile of sums of products of bytes: each point is one element, along whose sum the vectors run."""


def find_tile(
    block: Block, scope: CodeScope, bounds: Loops, parallel: int, *, overlapping: bool = True
) -> VectorTile | None:
    """The tile of a block that is tagged for vectors or dots; None where straight code does not suit it. `overlapping`
    allows a last vector that begins in the one before, where that changes nothing and takes fewer vectors.
    """
    if DOT_TILE in block.tags:
        return _find_dots(block, scope, bounds, parallel)
    lanes, loops = block.tags.lanes("vector"), bounds.loops
    if lanes < 2 or not loops or not loops[-1].is_plain:
        return None
    areas = _areas(block, scope, loops[-1].var)
    if areas is None:
        return None
    in_registers = [area for area in areas if area.pointer.registers is not None]
    ops = (INTRINSICS[statement.op] for statement in block.statements if isinstance(statement, Intrinsic))
    if in_registers and any(op.steps is not None for op in ops):
        return None  # straight code for all registers would be long
    written = [scope.areas[ref.name] for ref in block.outputs]
    for may_overlap in (True, False) if overlapping else (False,):
        tile = _straight_code(loops, lanes, areas, written, parallel, overlapping=may_overlap)
        if tile is None or not all(_are_held(tile, area) for area in in_registers):
            continue
        accumulators = _accumulators(block, scope, bounds, tile, parallel)
        if accumulators is not None and (not may_overlap or _may_overlap(block, scope, accumulators)):
            return replace(tile, accumulators=accumulators)
    return None


def _straight_code(
    loops: Sequence[ForLoop],
    lanes: int,
    areas: Sequence[Area],
    written: Sequence[Area],
    parallel: int,
    *,
    overlapping: bool,
) -> VectorTile | None:
    """The innermost loops as straight code, with a short sum around them; None where a parallel loop is among them."""
    moving = {loop.var for loop in loops if any(loop.var in area.origin.names() for area in written)}
    in_registers = [area for area in areas if area.pointer.registers is not None]
    level = _level(loops, moving, lanes, in_registers, overlapping=overlapping)
    if level is None or level < parallel:
        return None
    first = _short_sum(loops, level, moving)
    if parallel <= first < level and _copies(loops, first, lanes, overlapping=overlapping) <= SUM_COPIES:
        operands = [area for area in areas if area not in written]
        longer = _by_loads(_unrolled(loops, first, lanes, whole=True, overlapping=overlapping), operands)
        if longer is not None:
            return longer
    whole = bool(in_registers) or level < len(loops) - 1
    return _unrolled(loops, level, lanes, whole=whole, overlapping=overlapping)


def _are_held(tile: VectorTile, area: Area) -> bool:
    """Whether each vector of an area that the tile touches has its variable. Where the area has none yet, all may."""
    vectors, variables = vectors_of(tile, area), area.pointer.registers
    return vectors is not None and (not variables or all(vector[:2] in variables for vector in vectors))


def _may_overlap(block: Block, scope: CodeScope, accumulators: Mapping[int, int]) -> bool:
    """Whether elements may be computed twice: no store to memory changes what a load reads, or merges there. Each
    vector in registers has its elements for itself."""
    loads = [scope.areas[s.ref].pointer for s in block.statements if isinstance(s, Load)]
    for number, statement in enumerate(block.statements):
        if not isinstance(statement, Store):
            continue
        pointer = scope.areas[statement.ref].pointer
        merges = block.ref(statement.ref).agg is not Agg.ASSIGN and number not in accumulators
        if pointer.registers is None and (merges or any(map(pointer.may_alias, loads))):
            return False
    return True


def _find_dots(block: Block, scope: CodeScope, bounds: Loops, parallel: int) -> DotTile | None:
    """The tile of sums of products, straight code for all results inside the loops that sum: compilers make vectors of
    the innermost of these, and instructions that sum products along them.
    """
    loops = bounds.loops
    (result,) = block.outputs if len(block.outputs) == 1 else (None,)
    if result is None or dot_factors(block) is None or not all(loop.is_plain for loop in loops):
        return None
    place = scope.areas[result.name].origin
    level = next((n for n, loop in enumerate(loops) if loop.var in place.names()), len(loops))
    summed, free = loops[:level], loops[level:]
    terms = prod(high - low for low, high in map(interval, summed))
    along = summed[-1].var if summed else ""
    steps = {step(scope.areas[ref.name].origin, along) for ref in block.inputs}
    if level <= parallel or not free or terms > _LONGEST_DOT or steps != {1}:
        return None
    if (
        any(loop.var not in place.names() for loop in free)
        or _copies(loops, level, 1, overlapping=False) > TILE_VECTORS
    ):
        return None
    if any(
        area.pointer.registers is not None for area in (scope.areas[ref.name] for ref in block.refinements)
    ):
        return None
    tile = _unrolled(loops, level, 1, whole=True, overlapping=False)
    accumulators = _accumulators(block, scope, bounds, tile, parallel)
    return DotTile(level, tile.var, tile.points, accumulators=accumulators) if accumulators else None


def interval(loop: ForLoop) -> tuple[int, int]:
    """The bounds of a plain loop."""
    return max(bound.offset for bound in loop.lower), min(bound.offset for bound in loop.upper)


def _areas(block: Block, scope: CodeScope, var: str) -> list[Area] | None:
    """The areas that the statements touch; None where a statement or a view has no vector form along `var`."""
    found: list[Area] = []
    dtypes: dict[str, DType] = {}
    masks: dict[str, int] = {}
    """The bits of the numbers whose comparison gave a bool."""
    for statement in block.statements:
        match statement:
            case Constant(into, _, dtype):
                dtypes[into] = dtype
            case LoadIndex(into, affine) if var not in scope.affine(affine).names():
                dtypes[into] = DTYPES["i32"]
            case Intrinsic(into, op, inputs, target):
                given = [dtypes[name] for name in inputs]
                dtypes[into] = dtype = result_dtype(op, given, target)
                narrowed = dtype.is_integer and given[0].is_float
                if BOOL in (dtype, *given):
                    bits = _mask_bits(statement, dtypes, masks)
                    if bits == 0:
                        return None
                    if dtype == BOOL:
                        masks[into] = bits
                elif narrowed or not INTRINSICS[op].has_vectors(dtype):
                    return None
            case Load(into, ref) if ref in scope.areas and step(scope.areas[ref].origin, var) in (0, 1):
                dtypes[into] = scope.areas[ref].pointer.dtype
                found.append(scope.areas[ref])
            case Store(ref, _) if ref in scope.areas and step(scope.areas[ref].origin, var) == 1:
                found.append(scope.areas[ref])
            case _:
                return None
    numbers = (dtype for name, dtype in dtypes.items() if name not in masks)
    types = {*numbers, *(area.pointer.dtype for area in found)}
    return found if found and not any(dtype.is_narrow or dtype == BOOL for dtype in types) else None


def _mask_bits(statement: Intrinsic, dtypes: Mapping[str, DType], masks: Mapping[str, int]) -> int:
    """The bits of the masks that an operation on vectors makes or takes: it compares numbers, joins masks of
    comparisons of numbers as wide, or selects among numbers as wide. 0 where it has no such form."""
    op, inputs = statement.op, statement.inputs
    if INTRINSICS[op].result == "bool":
        widths = {0 if dtypes[name] == BOOL else dtypes[name].bits for name in inputs}
    elif op == "cond":
        widths = {
            masks.get(inputs[0], 0),
            *(0 if dtypes[name] == BOOL else dtypes[name].bits for name in inputs[1:]),
        }
    elif op in _ON_MASKS:
        widths = {masks.get(name, 0) for name in inputs}
    else:
        widths = set[int]()
    return widths.pop() if len(widths) == 1 else 0


def _level(
    loops: Sequence[ForLoop], moving: set[str], lanes: int, in_registers: Sequence[Area], *, overlapping: bool
) -> int | None:
    """The first loop to unroll: those that walk a tile of results inside a loop that sums, or all that move a buffer in
    registers.
    """
    last = len(loops) - 1
    if in_registers:
        moved = {name for area in in_registers for name in area.origin.names()}
        level = min((n for n, loop in enumerate(loops) if loop.var in moved), default=last)
        plain = all(loop.is_plain for loop in loops[level:])
        if not plain or _copies(loops, level, lanes, overlapping=overlapping) > 4 * TILE_VECTORS:
            return None
    else:
        level = last
        while level and loops[level - 1].is_plain and loops[level - 1].var in moving:
            level -= 1
        sums = any(loop.var not in moving for loop in loops[:level])
        if not sums or _copies(loops, level, lanes, overlapping=overlapping) > TILE_VECTORS:
            return last
    return level


def _short_sum(loops: Sequence[ForLoop], level: int, moving: set[str]) -> int:
    """The first of the loops that sum around `level`, where these are all; else `level`."""
    first = level
    while first and loops[first - 1].is_plain and loops[first - 1].var not in moving:
        first -= 1
    return first if all(loop.var in moving for loop in loops[:first]) else level


def _copies(loops: Sequence[ForLoop], level: int, lanes: int, *, overlapping: bool) -> int:
    low, high = interval(loops[-1])
    sizes = [interval(loop) for loop in loops[level:-1]]
    vectors = vectors_along(high - low, lanes, overlapping=overlapping)
    return prod(end - start for start, end in sizes) * vectors


def _unrolled(
    loops: Sequence[ForLoop], level: int, lanes: int, *, whole: bool, overlapping: bool
) -> VectorTile:
    low, high = interval(loops[-1])
    var = loops[-1].var
    step = 0 if whole or high - low <= _AHEAD * lanes else _AHEAD * lanes
    end = low + (high - low) // step * step if step else low
    ranges = [[(loop.var, value) for value in range(*interval(loop))] for loop in loops[level:-1]]
    vectors = list(row_vectors(end, high, lanes, first=low, overlapping=overlapping))
    rest = [TilePoint(at, vector) for at in product(*ranges) for vector in vectors]
    if not step:
        return VectorTile(level, var, tuple(rest))
    points = [TilePoint((), vector) for vector in row_vectors(0, step, lanes, overlapping=False)]
    return VectorTile(level, var, tuple(points), low, end, step, tuple(rest))


def _by_loads(tile: VectorTile, areas: Sequence[Area]) -> VectorTile | None:
    """A tile with its sum, in an order in which points come together that load the same element of the operand with
    most elements: registers hold it once. None for a long one where no points share loads.
    """
    places = [[tile.element(area, point).offset for point in tile.points] for area in areas]
    key = max(places, key=lambda found: len(set(found))) if places else range(0)
    if len(set(key)) == len(key):
        return tile if len(key) <= 4 * TILE_VECTORS else None
    ordered = sorted(zip(key, tile.points, strict=True), key=lambda pair: pair[0])
    return replace(tile, points=tuple(point for _, point in ordered))


def _accumulators(
    block: Block, scope: CodeScope, bounds: Loops, tile: VectorTile, parallel: int
) -> dict[int, int] | None:
    """The loops before which accumulators open; None where stores and loads may meet in other elements."""
    touched = [(s, scope.areas[s.ref]) for s in block.statements if isinstance(s, Load | Store)]
    found: dict[int, int] = {}
    for number, statement in enumerate(block.statements):
        if not isinstance(statement, Store):
            continue
        area = scope.areas[statement.ref]
        for other, place in touched:
            if (
                other is not statement
                and place.pointer.may_alias(area.pointer)
                and place.origin != area.origin
            ):
                return None
        shared = [other for other, place in touched if place.pointer.may_alias(area.pointer)]
        if (
            area.pointer.registers is not None
            or len(shared) > 1
            or block.ref(statement.ref).agg is Agg.ASSIGN
            or tile.step
        ):
            continue
        level = _first_level(area, scope, bounds, tile.level, parallel)
        base = area.origin.subs({loop.var: Affine() for loop in bounds.loops[tile.level :]})
        vectors = _vectors_at([tile.element(area, point) - base for point in tile.points], tile, area)
        if vectors is None or distinct_vectors(vectors) is None:
            return None
        if level < tile.level or len(set(vectors)) < len(vectors):
            found[number] = level
    return found


def _first_level(area: Area, scope: CodeScope, bounds: Loops, last: int, parallel: int) -> int:
    """The outermost loop from which on, up to `last`, the vectors stay the same and may be touched in any case."""
    level = max(bounds.still_from(area.origin, last), parallel)
    may_touch = not (scope.private or parallel) and area.stays_inside(bounds.intervals)
    while level < last and not (may_touch or all(loop.is_plain for loop in bounds.loops[level:last])):
        level += 1
    return level


def vectors_of(tile: VectorTile, area: Area) -> list[Vector] | None:
    """The vectors of a buffer in registers that the tile touches; None where one is at no constant element."""
    return _vectors_at([tile.element(area, point) for point in tile.points], tile, area)


def _vectors_at(places: Sequence[Affine], tile: VectorTile, area: Area) -> list[Vector] | None:
    """The vectors of an area at the `places` of the points of a tile; None where one is no constant."""
    if not all(place.is_constant for place in places):
        return None
    alone = Vector(0, 1)
    shapes = [point.vector if tile.is_vector(area) else alone for point in tile.points]
    return [shape._replace(first=place.offset) for place, shape in zip(places, shapes, strict=True)]


def distinct_vectors(vectors: Sequence[Vector]) -> list[Vector] | None:
    """The vectors in order, each once; None where two differ and share elements beside those of an `overlap`."""
    ordered = sorted(set(vectors), key=lambda vector: vector.first + vector.overlap)
    apart = all(a.end <= b.first + b.overlap for a, b in pairwise(ordered))
    return ordered if apart else None
