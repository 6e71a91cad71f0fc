"""Units that locations name: whether two locations may be one unit at some points of their blocks.

The number of a unit lies in an interval, over the ranges of the indices, and in one class modulo a step, so that
`SRAM[2*i]` and `SRAM[1 + 2*i]` differ. Buffers of two blocks are compared at any two points: the points of a block have
no order, and parallel units may be at different ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from stripe.ir import Affine, Block, Interval, Path, Refinement, walk


@dataclass(frozen=True, slots=True)
class UnitNumbers:
    """Numbers between `low` and `high` at multiples of `step` from `low`; a step of 0 is a single number."""

    low: int
    high: int
    step: int

    @staticmethod
    def of(unit: Affine, intervals: Mapping[str, Interval], banks: int) -> UnitNumbers:
        """The numbers of a unit and of the `banks` - 1 units after it."""
        low, high = unit.bounds(intervals)
        step = 1 if banks > 1 else gcd(*(factor for _, factor in unit.terms))
        return UnitNumbers(low, high + banks - 1, step if low < high + banks - 1 else 0)

    def meets(self, other: UnitNumbers) -> bool:
        """Whether some number is in both: the intervals overlap, and the steps have a common number."""
        apart = self.low - other.low
        step = gcd(self.step, other.step)
        in_step = apart % step == 0 if step else apart == 0
        return in_step and self.low <= other.high and other.low <= self.high


UnitPath = tuple[tuple[str, tuple[UnitNumbers, ...]], ...]
"""The levels of a location: a name, and numbers for each of its axes; an axis without a number is any unit."""


def unit_path(ref: Refinement, intervals: Mapping[str, Interval]) -> UnitPath:
    """The units of an allocation in a block whose indices lie in `intervals`. Its banks lie along the last axis."""
    levels: list[tuple[str, tuple[UnitNumbers, ...]]] = []
    banks = 1 if ref.bank_dim is None else ref.dims[ref.bank_dim].size
    for device in ref.location.devices:
        last = len(device.units) - 1 if device is ref.location.devices[-1] else -1
        numbers = (
            UnitNumbers.of(unit, intervals, banks if axis == last else 1)
            for axis, unit in enumerate(device.units)
        )
        levels.append((device.name, tuple(numbers)))
    return tuple(levels)


def may_alias(first: UnitPath, second: UnitPath) -> bool:
    """Whether two locations may share a unit. A path with fewer levels may name the same unit, or hold it."""
    short, long = sorted((first, second), key=len)
    return _within(short, long)


def _within(short: UnitPath, long: UnitPath) -> bool:
    """Whether the levels of `short`, in their order, may be levels of `long`."""
    if not short:
        return True
    (name, numbers), *rest = short
    return any(
        name == other
        and all(a.meets(b) for a, b in zip(numbers, others, strict=False))
        and _within(tuple(rest), long[level + 1 :])
        for level, (other, others) in enumerate(long)
    )


def aliasing(paths: Sequence[UnitPath]) -> list[list[int]]:
    """The numbers of `paths` in groups such that paths of two groups never alias; in order of appearance."""
    groups: list[list[int]] = []
    for number, path in enumerate(paths):
        near = [group for group in groups if any(may_alias(paths[other], path) for other in group)]
        groups = [group for group in groups if group not in near]
        groups.append(sorted([number, *(other for group in near for other in group)]))
    return sorted(groups)


def index_intervals(entry: Block) -> dict[Path, dict[str, Interval]]:
    """For each block of `entry`, by its path, the intervals of its indices."""
    found: dict[Path, dict[str, Interval]] = {}
    for path, block in walk(entry):
        found[path] = block.intervals(found.get(path[:-1]))
    return found
