"""A mapping problem: a loop nest with its operands, and the levels and grid of the machine that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from stripe.ir.frozen import replace
from stripe.poly.connected import connected

Coefficients = Mapping[str, int]
"""One dimension of a tensor as a linear form over the indices of the nest."""
Numbers: TypeAlias = npt.NDArray[Any]
Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Operand:
    """A tensor of the nest. `index` has the coefficients of each of its dimensions; the output accumulates."""

    name: str
    index: tuple[Coefficients, ...]
    is_output: bool = False
    element_bytes: int = 1

    @cached_property
    def indices(self) -> frozenset[str]:
        """The indices on which the accessed element depends."""
        return frozenset(name for form in self.index for name, coefficient in form.items() if coefficient)

    def elements(self, extents: Mapping[str, int]) -> int:
        """The elements that the access touches while each index runs over that many successive values."""
        values = {name: np.asarray(extent) for name, extent in extents.items()}
        return prod(int(touched(form, values)[1]) for form in self.index)


def touched(form: Coefficients, extents: Mapping[str, Numbers]) -> tuple[Numbers, Numbers]:
    """The size of the box that a linear form touches while each index runs over so many successive values, and the
    elements in it that are touched: a stride that is longer than the window leaves gaps. `extents` are numbers or
    arrays of them. Where a third stride meets such gaps only in part, the elements are an upper bound.
    """
    size: Numbers = np.ones(())
    count = size
    for name, c in sorted(form.items(), key=lambda item: abs(item[1])):
        if c and name in extents:
            longer = size + abs(c) * (extents[name] - 1)
            apart = count * extents[name]  # as if the values met in no element
            whole = (count == size) & (abs(c) <= size)
            count = np.where(whole, longer, np.minimum(apart, longer))
            size = longer
    return size, count


@dataclass(frozen=True)
class LoopNest:
    """A perfect nest: the range of each index and the operands of its one statement, the output last."""

    ranges: Mapping[str, int]
    operands: tuple[Operand, ...]

    @property
    def output(self) -> Operand:
        return self.operands[-1]

    @property
    def points(self) -> int:
        return prod(self.ranges.values())

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The indices, those that share a dimension of an operand together (`x + k` of a window): the number of
        elements of any box is a product with one factor for each group."""
        forms = (form for operand in self.operands for form in operand.index)
        linked = ([name for name, coefficient in form.items() if coefficient] for form in forms)
        order = list(self.ranges)
        groups = connected([*([name] for name in order), *linked])
        return tuple(tuple(sorted(group, key=order.index)) for group in groups)

    @cached_property
    def numbers(self) -> Mapping[str, str]:
        """The indices with their names in the canonical nest, in its order: by where they occur, then by range."""

        def place(name: str) -> tuple[object, ...]:
            return (*(form.get(name, 0) for o in self.operands for form in o.index), self.ranges[name])

        return {name: str(number) for number, name in enumerate(sorted(self.ranges, key=place))}

    @cached_property
    def canonical(self) -> LoopNest:
        """The nest with numbers for names: equal layers of a network have the same."""
        names = self.numbers
        operands = tuple(
            replace(
                operand,
                name=str(number),
                index=tuple({names[n]: c for n, c in sorted(form.items()) if c} for form in operand.index),
            )
            for number, operand in enumerate(self.operands)
        )
        return LoopNest({number: self.ranges[name] for name, number in names.items()}, operands)


@dataclass(frozen=True)
class Axis:
    """A dimension of the grid of parallel units: at most `size` values of `indices` run along it at one time.

    Elements that several positions need are read once and multicast; results that they add to one element are summed
    on the way.
    """

    name: str
    size: int
    indices: frozenset[str]


@dataclass(frozen=True)
class Level:
    """A memory. `capacity` in bytes is that of one instance and shared by the operands that it holds (None: no limit).

    There is an instance at each position of the axes `along`, and it holds the part of its position; each tile that is
    filled more than once is there `copies` times, for tiles in flight. Energies are in pJ for a byte. An operand in
    `optional` may bypass the level, one in `whole` is held all at once. With `keeps_halo` it gets of a new box only the
    elements that the box before did not hold, else all of it. `sizes` fixes extents of indices inside of the level.
    """

    memory: str
    operands: frozenset[str]
    capacity: int | None = None
    read_pJ: float = 0.0
    write_pJ: float = 0.0
    along: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    keeps_halo: bool = False
    whole: frozenset[str] = frozenset()
    copies: int = 1
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class Link:
    """A bus, the ports of a memory or a transfer unit, and the cycles for which a byte needs it. One that is `apart`
    belongs to one position of the grid, and each position has its like. Each transfer takes `latency` cycles besides.
    """

    resource: str
    cycles: float
    apart: bool = False
    latency: float = 0.0


@dataclass(frozen=True)
class Hierarchy:
    """The machine: levels from the outermost, which holds everything, to the innermost; axes of the grid.

    `compute_pJ` is the energy of one point of the nest. Unless `shares_diagonals`, only one index of a window runs in
    space. A step of the grid takes `step_cycles`, a cycle `leakage_pJ` of static energy; `links` are the resources
    between two memories, or a memory and the grid (""), where time counts. Units that `hold_operands` do not work
    in step: each runs the loops inside of the last node, reads each operand of them once, whether others read it
    or not, and writes each result once. `routes` are, by operand, the pairs of memories between which it moves without
    another memory of the levels, "" being the grid; an operand that is not among them moves between all.
    """

    levels: tuple[Level, ...]
    axes: tuple[Axis, ...] = ()
    compute_pJ: float = 0.0
    shares_diagonals: bool = True
    step_cycles: float = 0.0
    leakage_pJ: float = 0.0
    hold_operands: bool = False
    links: Mapping[tuple[str, str], tuple[Link, ...]] = field(
        default_factory=dict[tuple[str, str], "tuple[Link, ...]"]
    )
    routes: Mapping[str, frozenset[tuple[str, str]]] = field(
        default_factory=dict[str, "frozenset[tuple[str, str]]"]
    )
