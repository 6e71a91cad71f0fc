"""Claims of a program about a machine, before passes begin: locations, addresses, dependences, the schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stripe.ir import Diagnostic, Program, StripeError, path_text
from stripe.ir.check.stages import has_claims
from stripe.ir.errors import combine_by_place

if TYPE_CHECKING:
    from stripe.hw.schema import HardwareModel


def at_block(finding: Diagnostic) -> StripeError:
    """A finding as an error at its block, which has a name or a path."""
    where = f"block {finding.name or path_text(finding.path)}"
    return StripeError(finding.message, where=where, hint=finding.hint or None)


def require_claims(
    program: Program, hardware: HardwareModel | None, place: Callable[[Diagnostic], StripeError] = at_block
) -> None:
    """Raises StripeError for errors in what a valid program says of the machine, each at its `place`."""
    if not has_claims(program):
        return
    # loads isl: only for programs with claims about a machine
    from stripe.verify.machine.claims import check_claims

    if found := check_claims(program, hardware):
        raise combine_by_place(map(place, found))
