"""Reasons to doubt the results of a sweep: better machines with worse results, axes without effect, and how much each
objective follows each axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from stripe.config.model import Scalar
from stripe.sweeps.results import PointResult
from stripe.sweeps.space import PASSES

TOLERANCE = 0.01
"""Share by which a faster machine may take longer: ties between candidates."""

Values = Mapping[str, Sequence[Scalar]]
"""The values of each axis, in order."""


LATENCY = "latency_us"


@dataclass(frozen=True, slots=True)
class Reversal:
    """A machine that can only be faster, and is slower: two points that differ in one axis alone."""

    axis: str
    slower_machine: PointResult
    faster_machine: PointResult

    @property
    def factor(self) -> float:
        """The latency on the faster machine by that on the slower one."""
        return self.faster_machine.metrics[LATENCY] / self.slower_machine.metrics[LATENCY]


def reversals(
    results: Sequence[PointResult], axes: Values, faster: Mapping[str, Literal["more", "less"]]
) -> tuple[Reversal, ...]:
    """All pairs of neighbours on an axis, the rest equal, of which the faster machine takes longer, by more than
    `TOLERANCE`; the largest first. `faster` has the direction of axes along which a machine can only get faster.
    """
    found: list[Reversal] = []
    for axis, direction in faster.items():
        for chain in _chains(results, axis, axes[axis]):
            for a, b in pairwise(chain):
                reversal = Reversal(axis, a, b) if direction == "more" else Reversal(axis, b, a)
                if reversal.factor > 1 + TOLERANCE:
                    found.append(reversal)
    return tuple(sorted(found, key=lambda reversal: -reversal.factor))


def without_effect(results: Sequence[PointResult], axes: Values, metrics: Sequence[str]) -> tuple[str, ...]:
    """The axes along which none of the metrics ever changed, though there were points to compare."""
    silent: list[str] = []
    for axis, values in axes.items():
        chains = [chain for chain in _chains(results, axis, values) if len(chain) > 1]
        pairs = ((a.metrics, b.metrics) for chain in chains for a, b in pairwise(chain))
        if chains and all(a.get(name) == b.get(name) for a, b in pairs for name in metrics):
            silent.append(axis)
    return tuple(silent)


def sensitivity(results: Sequence[PointResult], axes: Values, metric: str) -> dict[str, float]:
    """The effect of each axis on a metric: the mean, over all groups of points that differ in it alone, of the
    largest value by the smallest, less 1.
    """
    found: dict[str, float] = {}
    for axis, values in axes.items():
        ratios: list[float] = []
        for chain in _chains(results, axis, values):
            numbers = [r.value(metric) for r in chain]
            if len(numbers) > 1 and min(numbers) > 0:
                ratios.append(max(numbers) / min(numbers) - 1)
        found[axis] = sum(ratios) / len(ratios) if ratios else 0.0
    return found


def _chains(
    results: Sequence[PointResult], axis: str, values: Sequence[Scalar]
) -> Iterator[tuple[PointResult, ...]]:
    """The feasible points that differ in one axis alone, in the order of its values."""
    groups: dict[tuple[tuple[str, Scalar], ...], dict[Scalar, PointResult]] = {}
    for result in results:
        if not result.metrics:
            continue
        place = {PASSES: result.point.passes, **result.point.choices}
        value = place.pop(axis, None)
        if value is not None:
            groups.setdefault(tuple(sorted(place.items())), {})[value] = result
    for group in groups.values():
        yield tuple(group[value] for value in values if value in group)
