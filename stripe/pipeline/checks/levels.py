"""The levels of `--verify`: which checks watch the passes at each.

Before the passes `require_claims` (`claims.py`) asks whether the program is what it says of a machine, at all levels
but `none`; at the level `exact` its proof begins with `require_sound` (`proof.py`), which looks for accesses out of
bounds, races and unwritten elements. Code that checks nothing needs that at the level `structural` as well, where the
language of the input does not rule them out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stripe.pipeline.instrument import Instrument
from stripe.verify.policy import Policy

if TYPE_CHECKING:
    from stripe.hw.schema import HardwareModel
    from stripe.pipeline.checks.proof import ExactCheck
    from stripe.pipeline.entry import PassEntry


def checks_of(
    level: str,
    hardware: HardwareModel | None,
    policy: Policy,
    write: Callable[[str], None] = lambda _: None,
    name: str = "the input",
    unchecked: Sequence[PassEntry] | None = None,
) -> list[Instrument]:
    """The checks of passes at a level of `Verify`. `write` gets the answers of proofs about the program that users know
    as `name`; those that `policy` does not accept end the run. Where the result becomes code without checks,
    `unchecked` has the entries of the list, and the accesses of the result are looked at. Raises ValueError for another
    level."""
    checks: list[Instrument]
    match level:
        case "none":
            return []
        case "structural":
            from stripe.pipeline.checks.structure import StructureCheck

            checks = [StructureCheck(hardware)]
        case "exact":
            from stripe.pipeline.checks.proof import ExactCheck  # loads the prover

            checks = exact_checks(hardware, ExactCheck(write, policy, name))
        case _:
            raise ValueError(f"no level of checks: {level}")
    if unchecked is not None:
        from stripe.pipeline.checks.bounds import BoundsCheck

        checks.append(BoundsCheck(unchecked, hardware, write, policy))
    return checks


def exact_checks(hardware: HardwareModel | None, proof: ExactCheck) -> list[Instrument]:
    """The checks of the level `exact`, of which `proof` knows afterwards what it proved."""
    from stripe.pipeline.checks.dependences import DependenceCheck
    from stripe.pipeline.checks.structure import StructureCheck

    return [StructureCheck(hardware), proof, DependenceCheck()]
