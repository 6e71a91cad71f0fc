"""Numbers of a program that 64-bit arithmetic cannot hold: the C code, numpy and the passes count with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stripe.ir.affine import Affine, FloorDiv, Interval
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
    for what, about, reached in _extents(block, ranges, outside):
        if reached > LARGEST:
            scope = CheckedBlock(block, path, None, {}, {})
            number = about if isinstance(about, int) else None
            part = None if isinstance(about, int) else about
            message = f"{what.format(_spelled(block, about))} reaches {_shown(reached)}"
            yield scope.say(message, "numbers stay below 2^62", number, part)
            return  # whatever else is too large follows from this more often than not
    for number, statement in enumerate(block.statements):
        if isinstance(statement, Block):
            yield from _check_block(statement, (*path, number), ranges)


def _shown(number: int) -> str:
    """The number, or its size where it has too many digits to be read."""
    return str(number) if number < 10**40 else f"more than 2^{number.bit_length() - 1}"


def _spelled(block: Block, about: Index | Constraint | Refinement | int) -> str:
    if isinstance(about, Constraint):
        return str(about)
    if not isinstance(about, int):
        return about.name
    statement = block.statements[about]
    return statement.into if isinstance(statement, LoadIndex) else ""


def _extents(
    block: Block, ranges: Mapping[str, Interval], outside: Mapping[str, Interval]
) -> Iterator[tuple[str, Index | Constraint | Refinement | int, int]]:
    """The numbers of `block`: each in words with a place for its name (few are ever shown), as a part of it or the
    number of a statement, and with the largest magnitude.
    """
    for index in block.indices:
        reached = index.range - 1 if index.affine is None else _reach(index.affine, outside)
        yield "index '{}'", index, reached
    for constraint in block.constraints:
        yield "the constraint {}", constraint, _reach(constraint.affine, ranges)
    for ref in block.refinements:
        size = ref.bytes
        yield "the size of '{}'", ref, max((size, *ref.sizes))
        yield "a stride of '{}'", ref, max([abs(dim.stride) for dim in ref.dims], default=0)
        if ref.is_alloc:
            yield "the address of '{}'", ref, (ref.offset or 0) + ref.reserved_bytes
        yield "the access of '{}'", ref, _place(ref, ranges)
    for number, statement in enumerate(block.statements):
        if isinstance(statement, LoadIndex):
            yield "the value of '${}'", number, _reach(statement.affine, ranges)


def _place(ref: Refinement, ranges: Mapping[str, Interval]) -> int:
    """Where the view begins: the coordinate or the element in memory that lies farthest out."""
    far = [_reach(affine, ranges) for affine in ref.access]
    strides = [dim.stride for dim in ref.dims]
    bound = sum([reach * abs(stride) for reach, stride in zip(far, strides, strict=True)])
    if bound <= LARGEST:  # coordinates may cancel out in the element, and need not
        return max(*far, bound) if far else 0
    linear = Affine()
    for affine, stride in zip(ref.access, strides, strict=True):
        linear = linear + affine * stride
    return max(*far, _reach(linear, ranges))


def _reach(affine: Affine, ranges: Mapping[str, Interval]) -> int:
    """The largest number on the way to the value, in whichever order terms are added, and inside floor and mod; or the
    largest factor, divisor or modulus."""
    partial, written = abs(affine.offset), 0
    for atom, coefficient in affine.terms:
        low, high = ranges[atom] if isinstance(atom, str) else Affine(0, ((atom, 1),)).bounds(ranges)
        partial += abs(coefficient) * max(abs(low), abs(high))
        written = max(written, abs(coefficient))
        if not isinstance(atom, str):
            written = max(written, atom.divisor if isinstance(atom, FloorDiv) else atom.modulus)
    if written > LARGEST:
        return written
    value = max(map(abs, affine.bounds(ranges))) if partial > LARGEST else 0
    if value > LARGEST or affine.is_linear:
        return value if value > LARGEST else partial
    return max(
        [partial, *(_reach(atom.arg, ranges) for atom, _ in affine.terms if not isinstance(atom, str))]
    )
