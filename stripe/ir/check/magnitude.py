"""Numbers of a program that 64-bit arithmetic cannot hold: the C code, numpy and the passes count with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stripe.ir.affine import Affine, Interval
from stripe.ir.block import Block, Constraint, Index, LoadIndex
from stripe.ir.check.diagnostic import CheckedBlock, Diagnostic
from stripe.ir.program import Program
from stripe.ir.refinement import Refinement
from stripe.ir.walk import Path

LARGEST = 1 << 62
"""Half of the largest number of 64 bits, so that a sum of two such numbers does not overflow."""


def check_magnitude(program: Program) -> list[Diagnostic]:
    """Numbers beyond `LARGEST` in a structurally valid program: ranges, sizes, and values of affines."""
    return list(_check_block(program.entry, (0,), {}))


def check_block_magnitude(block: Block) -> list[Diagnostic]:
    """The same for one block that no index is passed into."""
    return list(_check_block(block, (), {}))


def _check_block(block: Block, path: Path, outside: Mapping[str, Interval]) -> Iterator[Diagnostic]:
    ranges = {
        index.name: (0, index.range - 1) if index.affine is None else index.affine.bounds(outside)
        for index in block.indices
    }
    scope = CheckedBlock(block, path, None, {}, {})
    for what, about, reached in _extents(block, ranges, outside):
        if reached > LARGEST:
            number = about if isinstance(about, int) else None
            part = None if isinstance(about, int) else about
            yield scope.say(f"{what} reaches {reached}", "numbers stay below 2^62", number, part)
            return  # whatever else is too large follows from this more often than not
    for number, statement in enumerate(block.statements):
        if isinstance(statement, Block):
            yield from _check_block(statement, (*path, number), ranges)


def _extents(
    block: Block, ranges: Mapping[str, Interval], outside: Mapping[str, Interval]
) -> Iterator[tuple[str, Index | Constraint | Refinement | int, int]]:
    """The numbers of `block`: each in words, as a part of it or the number of a statement, and with the largest
    magnitude.
    """
    for index in block.indices:
        yield (
            f"index '{index.name}'",
            index,
            index.range - 1 if index.affine is None else _reach(index.affine, outside),
        )
    for constraint in block.constraints:
        yield f"the constraint {constraint}", constraint, _reach(constraint.affine, ranges)
    for ref in block.refinements:
        yield f"the size of '{ref.name}'", ref, max((ref.bytes, *ref.sizes))
        yield f"the address of '{ref.name}'", ref, (ref.offset or 0) + ref.bytes if ref.is_alloc else 0
        yield f"the access of '{ref.name}'", ref, _place(ref, ranges)
    for number, statement in enumerate(block.statements):
        if isinstance(statement, LoadIndex):
            yield f"the value of '${statement.into}'", number, _reach(statement.affine, ranges)


def _place(ref: Refinement, ranges: Mapping[str, Interval]) -> int:
    """Where the view begins: the coordinate or the element in memory that lies farthest out."""
    linear = Affine()
    far: list[int] = []
    for affine, dim in zip(ref.access, ref.dims, strict=True):
        far.append(_reach(affine, ranges))
        linear = linear + affine * dim.stride
    return max(*far, _reach(linear, ranges)) if far else 0


def _reach(affine: Affine, ranges: Mapping[str, Interval]) -> int:
    """The largest number on the way to the value, in whichever order terms are added, and inside floor and mod."""
    value = max(map(abs, affine.bounds(ranges)))
    if value > LARGEST:
        return value
    terms = (Affine(0, (term,)).bounds(ranges) for term in affine.terms)
    partial = abs(affine.offset) + sum(max(map(abs, bounds)) for bounds in terms)
    return max(
        [partial, *(_reach(atom.arg, ranges) for atom, _ in affine.terms if not isinstance(atom, str))]
    )
