"""Prices of decisions beside the times in the program that the whole list made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stripe.ir import Program, StripeError
from stripe.passes.base import Remark, RemarkKind
from stripe.pipeline.entry import PassEntry

if TYPE_CHECKING:
    from stripe.hw.schema import HardwareModel

CLOSE = 0.02
"""Part of a price by which the time of a statement may differ without a remark."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The price of a statement, which the pass of `entry` decided by."""

    entry: PassEntry
    statement: str
    cycles: float


def predictions(entry: PassEntry, remark: Remark) -> Iterator[Prediction]:
    """The predictions that a remark on a decision holds."""
    for name, cycles in remark.cycles:
        yield Prediction(entry, name, cycles)


def differences(
    found: Mapping[str, Prediction], program: Program, model: HardwareModel
) -> Iterator[tuple[PassEntry, Remark]]:
    """A remark for each statement of the finished program whose time is not its price. In a program of several kernels
    a later pass may keep in a memory what the price moves, and the other way round.
    """
    from stripe.cost.time.simulate import simulate_program

    try:
        costs = simulate_program(program, model).costs if found else ()
    except StripeError:
        return  # a list may end before all kernels have a place
    for cost in costs:
        known = found.get(cost.name)
        if known is not None and abs(cost.cycles - known.cycles) > CLOSE * known.cycles:
            share = (cost.cycles / known.cycles - 1) * 100
            text = f"{cost.cycles:.6g} cycles in the program, priced {known.cycles:.6g} ({share:+.1f} %)"
            yield known.entry, Remark(RemarkKind.ANALYSIS, cost.name, text)
