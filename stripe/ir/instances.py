"""Instances of an allocation at points that run at the same time, on units that share the work of a block."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import takewhile
from math import gcd, prod

from stripe.ir.affine import Affine
from stripe.ir.block import Block
from stripe.ir.location import Location
from stripe.ir.nest import Nest
from stripe.ir.refinement import Refinement


def unit_numbers(nest: Nest) -> frozenset[Affine]:
    """The numbers that tell units apart at points of the innermost block which may run at one time, over the names of
    its domain: spatial indices of blocks around it, and numbers in locations of these, and of all blocks in the nearest
    one that runs on a unit of a number, one point after the other. Tiles in flight compute one after the other, as do
    the points of `main`.
    """
    names = frozenset(nest.domain.names) - names_in_turn(nest)
    if not names:
        return frozenset()
    found = {
        part for number, known in _numbers(nest) if known & names for part in _part(number, known & names)
    }
    return frozenset(affine for affine in found if affine.names())


def buffer_instances(nest: Nest, ref: Refinement | None = None) -> int:
    """The most instances at one time of an allocation of the innermost block, in one unit of its memory, or of any
    allocation there, where all have the same unit. A location without a number may be one unit for all."""
    location = Location() if ref is None or ref.bank_dim is not None else ref.location.subs(nest.local)
    own = [unit for device in location.devices for unit in device.units]
    crowded = [
        number
        for number in unit_numbers(nest)
        if not any((number - unit).is_constant or (number + unit).is_constant for unit in own)
    ]
    names = frozenset[str]().union(*(number.names() for number in crowded))
    return min(prod(_values(number, nest) for number in crowded), nest.domain.volume(names))


def names_in_turn(nest: Nest) -> frozenset[str]:
    """The names in the domain of blocks around whose points compute one after the other, and of values from outside."""
    found = set(nest.prefix(-1))
    for depth, block in enumerate(nest.blocks):
        if block.is_main or min(block.pipeline_depth or 1, block.points) > 1:
            found.update(nest.domain.names[nest.widths[depth] : nest.widths[depth + 1]])
    return frozenset(found)


def _numbers(nest: Nest) -> Iterator[tuple[Affine, frozenset[str]]]:
    """Numbers of units, each with the names of its block that `nest` has too."""
    around: Nest | None = nest
    while around is not None:
        known = frozenset(around.domain.names)
        yield from ((number, known) for number in _located(around))
        yield from ((around.local[index.name], known) for index in around.block.iterated if index.is_spatial)
        around = around.outer
    holder = nest
    while holder.outer is not None and not holder.outer.block.is_main and not any(_located(holder)):
        holder = holder.outer
    for inner in holder.walk():
        both = zip(inner.path, nest.path, strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both)) - len(holder.path)
        known = frozenset(nest.prefix(holder.depth + shared))
        yield from ((number, known) for number in _located(inner))


def _located(nest: Nest) -> Iterator[Affine]:
    block: Block = nest.block
    for device in block.location.subs(nest.local).devices if block.location else ():
        yield from device.units


def _part(affine: Affine, names: AbstractSet[str]) -> Iterator[Affine]:
    """The affine, where all its names are among `names`; else those of its names that are."""
    if affine.names() <= names:
        yield affine - affine.offset
    else:
        yield from map(Affine.var, sorted(affine.names() & names))


def _values(affine: Affine, nest: Nest) -> int:
    """The most values of an affine over the domain."""
    low, high = affine.bounds(nest.domain.ranges)
    return (high - low) // gcd(*(factor for _, factor in affine.terms)) + 1
