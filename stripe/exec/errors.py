"""The error of undefined behaviour found while running, or of data that do not fit the program."""

from __future__ import annotations

from stripe.ir import StripeError


class ExecutionError(StripeError):
    """Raised while a program runs: an access out of bounds, an undefined element, two writers of one, unfit inputs.

    `where` is the path of the block and its name, as in diagnostics of the verifier.
    """
