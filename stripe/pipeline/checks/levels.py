"""The levels of `--verify`: which checks watch the passes at each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stripe.pipeline.instrument import Instrument
from stripe.verify.policy import Policy

if TYPE_CHECKING:
    from stripe.hw.schema import HardwareModel


def checks_of(
    level: str,
    hardware: HardwareModel | None,
    policy: Policy,
    write: Callable[[str], None] = lambda _: None,
    name: str = "the input",
) -> list[Instrument]:
    """The checks after each pass at the level `none`, `structural` or `exact`. `write` gets the answers of proofs about
    the program that users know as `name`; those that `policy` does not accept end the run."""
    if level == "none":
        return []
    from stripe.pipeline.checks.structure import StructureCheck

    checks: list[Instrument] = [StructureCheck(hardware)]
    if level == "exact":
        from stripe.pipeline.checks.dependences import DependenceCheck
        from stripe.pipeline.checks.proof import ExactCheck  # loads the prover

        checks += [ExactCheck(write, policy, name), DependenceCheck()]
    return checks
