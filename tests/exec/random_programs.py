"""Random nests: floors, remainders, constraints, buffers inside, all aggregations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hypothesis import strategies as st

from stripe.ir import (
    Affine,
    Agg,
    Block,
    Constraint,
    Dim,
    Direction,
    Index,
    Intrinsic,
    Load,
    LoadIndex,
    Program,
    Refinement,
    Role,
    Store,
    Tags,
    row_major,
)
from stripe.ir.dtypes import I32

AGGS = st.sampled_from([Agg.ADD, Agg.MUL, Agg.MIN, Agg.MAX])
_FACTORS, _KINDS = st.sampled_from([1, 1, 2, 3, -1]), st.sampled_from(["plain", "plain", "floor", "mod"])
_OFFSETS, _SHIFTS, _DIVISORS = st.integers(-2, 2), st.integers(0, 2), st.integers(2, 3)
_RANGES, _COUNTS, _RANKS = st.integers(1, 4), st.integers(1, 3), st.integers(1, 2)
_OPS, _STORED = st.sampled_from(["add", "mul"]), st.sampled_from(["a", "b", "i"])


@cache
def _some(names: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), max_size=3) if names else st.just([])


@cache
def affines(names: tuple[str, ...]) -> st.SearchStrategy[Affine]:
    """A few indices with small coefficients, sometimes under a floor or a mod."""
    return _affines(names)


@st.composite
def _affines(draw: st.DrawFn, names: tuple[str, ...]) -> Affine:
    total = Affine(draw(_OFFSETS))
    for name in draw(_some(names)):
        term = Affine.var(name) * draw(_FACTORS)
        match draw(_KINDS):
            case "floor":
                term = (term + draw(_SHIFTS)).floordiv(draw(_DIVISORS))
            case "mod":
                term = (term + draw(_SHIFTS)).mod(draw(_DIVISORS))
            case _:
                pass
        total = total + term
    return total


def indices(draw: st.DrawFn, prefix: str, outer: tuple[str, ...]) -> tuple[Index, ...]:
    own = [Index(f"{prefix}{n}", draw(_RANGES)) for n in range(draw(_COUNTS))]
    passed = [Index(f"{prefix}p", affine=draw(affines(outer)))] if outer and draw(st.booleans()) else []
    return (*passed, *own)


def view(
    name: str, source: str, access: Sequence[Affine], dims: Sequence[Dim], agg: Agg | None
) -> Refinement:
    direction = Direction.IN if agg is None else Direction.OUT
    return Refinement(name, direction, source, tuple(access), I32, tuple(dims), agg=agg or Agg.ASSIGN)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A tile loop around a kernel that reads A twice, and sums into a local buffer or straight into O.

    Tensors are as large as the accesses need: what lies below 0 is moved up by a constant.
    """
    agg = draw(AGGS)
    outer = indices(draw, "t", ())
    outer_names = tuple(index.name for index in outer)
    inner = indices(draw, "i", outer_names)
    inner_names = tuple(index.name for index in inner)
    ranges = {i.name: (0, i.range - 1) for i in outer}
    inner_ranges = {i.name: (0, i.range - 1) if i.affine is None else i.affine.bounds(ranges) for i in inner}
    rank = draw(_RANKS)

    def accesses(names: tuple[str, ...]) -> list[Affine]:
        return [draw(affines(names)) for _ in range(rank)]

    tile, reads, local = accesses(outer_names), accesses(inner_names), accesses(inner_names)
    tile = [affine - min(0, affine.bounds(ranges)[0]) for affine in tile]
    reads = [affine - min(0, affine.bounds(inner_ranges)[0]) for affine in reads]
    box = [affine.bounds(inner_ranges)[1] + 1 for affine in reads]
    size = [affine.bounds(ranges)[1] + n for affine, n in zip(tile, box, strict=True)]
    local = [affine - min(0, affine.bounds(inner_ranges)[0]) for affine in local]
    local_size = tuple(affine.bounds(inner_ranges)[1] + 1 for affine in local)
    target = [a - min(0, a.bounds(ranges)[0]) for a in accesses(outer_names)]
    out_size = tuple(a.bounds(ranges)[1] + n for a, n in zip(target, local_size, strict=True))
    a_dims, l_dims, o_dims = row_major(tuple(size)), row_major(local_size), row_major(out_size)
    constraints = tuple(Constraint(draw(affines(inner_names))) for _ in range(draw(_SHIFTS)))
    buffered = draw(st.booleans())
    written = "L" if buffered else "O"
    kernel = Block(
        "kernel",
        inner,
        constraints,
        (
            view("A", "A", reads, [Dim(1, d.stride) for d in a_dims], None),
            view("W", written, local, [Dim(1, d.stride) for d in (l_dims if buffered else o_dims)], agg),
        ),
        (
            Load("a", "A"),
            LoadIndex("i", draw(affines(inner_names))),
            Intrinsic("b", draw(_OPS), ("a", "i")),
            Store("W", draw(_STORED)),
        ),
    )
    refs = [
        view("A", "A", tile, [Dim(s, d.stride) for s, d in zip(box, a_dims, strict=True)], None),
        view("O", "O", target, [Dim(s, d.stride) for s, d in zip(local_size, o_dims, strict=True)], agg),
    ]
    statements: list[Block] = [kernel]
    if buffered:
        refs.append(Refinement.alloc("L", I32, local_size))
        copy = [Affine.var(f"c{n}") for n in range(rank)]
        statements.append(
            Block(
                "back",
                tuple(Index(f"c{n}", s) for n, s in enumerate(local_size)),
                (),
                (
                    view("L", "L", copy, [Dim(1, d.stride) for d in l_dims], None),
                    view("O", "O", copy, [Dim(1, d.stride) for d in o_dims], agg),
                ),
                (Load("l", "L"), Store("O", "l")),
            )
        )
    tiles = Block("tiles", outer, (), tuple(refs), tuple(statements), tags=Tags.of("kernel"))
    zero = (Affine(),) * rank
    main = Block(
        "main",
        refinements=(view("A", "A", zero, a_dims, None), view("O", "O", zero, o_dims, agg)),
        statements=(tiles,),
        is_main=True,
    )
    allocs = (
        Refinement.alloc("A", I32, tuple(size), role=Role.USER),
        Refinement.alloc("O", I32, out_size, role=Role.USER),
    )
    return Program(Block("program", refinements=allocs, statements=(main,), tags=Tags.of("program")))
