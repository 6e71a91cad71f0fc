"""Mappings of loop nests onto levels of memory: as Stripe, and counted by walking through every step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

from stripe.ir import (
    Affine,
    Agg,
    Block,
    Dim,
    Direction,
    Index,
    Intrinsic,
    Load,
    Location,
    Program,
    Refinement,
    Role,
    Statement,
    Store,
    Tags,
)
from stripe.ir.dtypes import I8

Expr = Mapping[str, int]
"""An element's coordinate: coefficients of problem dimensions."""
Loop = tuple[str, int]


@dataclass(frozen=True)
class Mapped:
    """Loops outermost first; `within[operand]` lists (memory, how many innermost loops lie inside), outer memories
    first; the last operand is the output, which accumulates."""

    name: str
    operands: Mapping[str, tuple[Expr, ...]]
    loops: tuple[Loop, ...]
    spatial: tuple[Loop, ...]
    within: Mapping[str, tuple[tuple[str, int], ...]]
    comments: tuple[str, ...] = ()

    @property
    def output(self) -> str:
        return list(self.operands)[-1]

    def strides(self) -> list[int]:
        """The stride of each temporal loop in its dimension: inner loops and spatial ones come first."""
        return [
            prod(size for other, size in (*self.loops[n + 1 :], *self.spatial) if other == dim)
            for n, (dim, _) in enumerate(self.loops)
        ]

    def extents(self, inside: int) -> dict[str, int]:
        """The range of each dimension within the innermost loops."""
        found: dict[str, int] = {}
        for dim, size in (*self.loops[len(self.loops) - inside :], *self.spatial):
            found[dim] = found.get(dim, 1) * size
        return found

    def box(self, operand: str, inside: int) -> tuple[int, ...]:
        extents = self.extents(inside)
        return tuple(
            1 + sum(c * (extents.get(dim, 1) - 1) for dim, c in expr.items())
            for expr in self.operands[operand]
        )


CONV3X3 = Mapped(
    "conv3x3",
    {
        "I": ({"ox": 1, "fx": 1}, {"oy": 1, "fy": 1}, {"c": 1}),
        "W": ({"fx": 1}, {"fy": 1}, {"c": 1}, {"k": 1}),
        "O": ({"ox": 1}, {"oy": 1}, {"k": 1}),
    },
    (("k", 2), ("oy", 4), ("k", 2), ("oy", 14), ("c", 4), ("fy", 3), ("fx", 3), ("ox", 56)),
    (("k", 16), ("c", 16)),
    {"I": (("SRAM", 6),), "W": (("SRAM", 6), ("Wreg", 1)), "O": (("SRAM", 6), ("Orf", 4))},
    ("3x3, 64 to 64 channels, 56x56 outputs; padding already in the input",),
)
MATMUL = Mapped(
    "matmul",
    {"I": ({"m": 1}, {"k": 1}), "W": ({"k": 1}, {"n": 1}), "O": ({"m": 1}, {"n": 1})},
    (("k", 2), ("n", 8), ("m", 4), ("m", 2), ("k", 4), ("n", 4), ("k", 4), ("m", 64)),
    (("n", 16), ("k", 16)),
    {"I": (("SRAM", 5),), "W": (("SRAM", 5), ("Wreg", 1)), "O": (("SRAM", 5), ("Orf", 2))},
    ("512x512x512, O[m, n] += I[m, k] * W[k, n]",),
)


def as_stripe(mapping: Mapped) -> Program:
    """The mapping as nested blocks: a block for each group of loops between two boundaries, copies where levels lie."""
    whole = {operand: mapping.box(operand, len(mapping.loops)) for operand in mapping.operands}
    allocs = tuple(
        Refinement.alloc(name, I8, sizes, location=Location.of("DRAM", 0), role=Role.USER)
        for name, sizes in whole.items()
    )
    kernel = _level(mapping, len(mapping.loops), {ref.name: ref for ref in allocs})
    main = Block(
        "main", refinements=tuple(_view(mapping, ref) for ref in allocs), statements=(kernel,), is_main=True
    )  # fmt: skip
    entry = Block(mapping.name, refinements=allocs, statements=(main,), tags=Tags.of("program"))
    return Program(entry)


def _view(mapping: Mapped, ref: Refinement) -> Refinement:
    way = Direction.OUT if ref.name == mapping.output else Direction.IN
    zeros = (Affine(),) * ref.rank
    return Refinement(ref.name, way, ref.name, zeros, I8, ref.dims, location=ref.location)


def _level(mapping: Mapped, inside: int, outer: Mapping[str, Refinement]) -> Block:
    """The block of the loops from `inside` innermost ones down to the next boundary."""
    cuts = {count for levels in mapping.within.values() for _, count in levels if count < inside}
    top = inside == len(mapping.loops)
    if inside == 0:
        return _leaf(mapping, outer)
    below = max(cuts, default=0)
    numbers = range(len(mapping.loops) - inside, len(mapping.loops) - below)
    strides = mapping.strides()
    names = {n: f"{mapping.loops[n][0]}{n}" for n in numbers}
    refs: list[Refinement] = []
    views: dict[str, Refinement] = {}
    loads: list[Statement] = []
    stores: list[Statement] = []
    for operand, exprs in mapping.operands.items():
        source, sizes = outer[operand], mapping.box(operand, below)
        access = tuple(
            sum((Affine.var(names[n]) * (strides[n] * expr.get(mapping.loops[n][0], 0)) for n in numbers), Affine())
            for expr in exprs
        )  # fmt: skip
        is_out = operand == mapping.output
        dims = tuple(Dim(size, dim.stride) for size, dim in zip(sizes, source.dims, strict=True))
        memory = next((m for m, count in mapping.within[operand] if count == below), None)
        view = Refinement(
            operand if memory is None else f"{operand}_raw", Direction.OUT if is_out else Direction.IN, operand,
            access, I8, dims, Agg.ADD if is_out else Agg.ASSIGN, source.location,
        )  # fmt: skip
        refs.append(view)
        views[operand] = view
        if memory is not None:
            location = Location.of(memory, 0) if memory == "SRAM" else Location.of(memory)
            copy = Refinement.alloc(operand, I8, sizes, location=location, tags=Tags.of("cached"))
            refs.append(copy)
            views[operand] = copy
            (stores if is_out else loads).append(_transfer(view, copy, load=not is_out))
    inner = _level(mapping, below, views)
    tags = ("kernel", "contraction", "agg_op_add", "comb_op_mul") if top else ()
    return Block(
        mapping.name if top else f"within_{inside}",
        tuple(Index(names[n], mapping.loops[n][1]) for n in numbers),
        (), tuple(refs), (*loads, inner, *stores), comments=mapping.comments if top else (), tags=Tags.of(*tags),
    )  # fmt: skip


def _transfer(far: Refinement, near: Refinement, *, load: bool) -> Block:
    indices = tuple(Index(f"d{n}", size) for n, size in enumerate(near.sizes))
    at = tuple(Affine.var(index.name) for index in indices)
    source, sink = (far, near) if load else (near, far)
    agg = Agg.ASSIGN if load else far.agg
    refs = tuple(
        Refinement(
            ref.name, way, ref.name, at, I8, tuple(Dim(1, dim.stride) for dim in ref.dims),
            agg if way is Direction.OUT else Agg.ASSIGN, ref.location,
        )
        for ref, way in ((source, Direction.IN), (sink, Direction.OUT))
    )  # fmt: skip
    body = (Load(near.name, source.name), Store(sink.name, near.name))
    word = "load" if load else "store"
    return Block(f"{word}_{near.name}", indices, (), refs, body, tags=Tags.of("cache", f"cache_{word}"))


def _leaf(mapping: Mapped, outer: Mapping[str, Refinement]) -> Block:
    """One step: all parallel units at once."""
    names = [dim for dim, _ in mapping.spatial]
    indices = tuple(Index(dim, size, is_spatial=True) for dim, size in mapping.spatial)
    refs: list[Refinement] = []
    for operand, exprs in mapping.operands.items():
        access = tuple(Affine.linear({dim: expr.get(dim, 0) for dim in names}) for expr in exprs)
        source, is_out = outer[operand], operand == mapping.output
        refs.append(
            Refinement(
                operand, Direction.OUT if is_out else Direction.IN, operand, access, I8,
                tuple(Dim(1, dim.stride) for dim in source.dims), Agg.ADD if is_out else Agg.ASSIGN, source.location,
            )
        )  # fmt: skip
    *inputs, out = mapping.operands
    body: list[Statement] = [Load(name, name) for name in inputs]
    body += [Intrinsic(out, "mul", tuple(inputs)), Store(out, out)]
    return Block("array", indices, (), tuple(refs), tuple(body))


Elements = frozenset[tuple[int, ...]]


def walk_steps(mapping: Mapped, halo: str) -> dict[tuple[str, str, str], int]:
    """The counts, by walking through all steps and holding each box as a set."""
    counts: dict[tuple[str, str, str], int] = {}
    for operand in mapping.operands:
        levels = [("DRAM", len(mapping.loops)), *mapping.within[operand]]
        memories = [memory for memory, _ in levels]
        for (far, _), (near, inside) in pairwise(levels):
            moved, back = _walk_level(mapping, operand, inside, halo)
            if operand == mapping.output:
                counts[operand, near, far], counts[operand, far, near] = moved, back
            else:
                counts[operand, far, near] = moved
        used, first = _walk_array(mapping, operand)
        if operand == mapping.output:
            counts[operand, "array", memories[-1]], counts[operand, memories[-1], "array"] = (
                used,
                used - first,
            )
        else:
            counts[operand, memories[-1], "array"] = used
    return counts


def _walk_level(mapping: Mapped, operand: str, inside: int, halo: str) -> tuple[int, int]:
    """Elements that enter the level, and how many of those were there before."""
    entered = again = 0
    seen: set[tuple[int, ...]] = set()
    held: Elements = frozenset()
    for point in _points(mapping.loops[: len(mapping.loops) - inside]):
        box = _filled(_elements(mapping, operand, point, inside))
        if box == held:
            continue
        new = box if halo == "refetch" else box - held
        entered += len(new)
        again += len(new & seen)
        seen |= box
        held = box
    return entered, again


def _walk_array(mapping: Mapped, operand: str) -> tuple[int, int]:
    used = 0
    seen: set[tuple[int, ...]] = set()
    for point in _points(mapping.loops):
        box = _elements(mapping, operand, point, 0)
        used += len(box)
        seen |= box
    return used, len(seen)


def _filled(elements: Elements) -> Elements:
    """The box around elements: a level holds boxes, gaps of strided windows included."""
    dims = list(zip(*elements, strict=True))
    return frozenset(product(*(range(min(dim), max(dim) + 1) for dim in dims)))


def _points(loops: Sequence[Loop]) -> Iterator[tuple[int, ...]]:
    return product(*(range(size) for _, size in loops))


def _elements(mapping: Mapped, operand: str, point: tuple[int, ...], inside: int) -> Elements:
    """What the operand needs at a point of the outer loops: every element, by running the inner loops."""
    strides = mapping.strides()
    base: dict[str, int] = {}
    for n, value in enumerate(point):
        dim = mapping.loops[n][0]
        base[dim] = base.get(dim, 0) + value * strides[n]
    extents = mapping.extents(inside)
    dims = sorted({dim for expr in mapping.operands[operand] for dim in expr})
    found: set[tuple[int, ...]] = set()
    for values in product(*(range(extents.get(dim, 1)) for dim in dims)):
        at = {dim: base.get(dim, 0) + value for dim, value in zip(dims, values, strict=True)}
        found.add(tuple(sum(c * at[dim] for dim, c in expr.items()) for expr in mapping.operands[operand]))
    return frozenset(found)
