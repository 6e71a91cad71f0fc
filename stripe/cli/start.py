"""Where the commands start: an interrupt while their modules load ends them as quietly as later ones do.

Nothing is imported here, since what is imported before the first `try` can be interrupted with a traceback.
"""

from __future__ import annotations

_INTERRUPTED = 130


def opt(argv: list[str] | None = None) -> int:
    """`stripe-opt`: performs the command line, and gives the exit status."""
    try:
        from stripe.cli.arguments.opt import OptSpec
        from stripe.cli.guard import guarded

        return guarded(OptSpec, argv)
    except KeyboardInterrupt:
        return _INTERRUPTED


def run(argv: list[str] | None = None) -> int:
    """`stripe-run`."""
    try:
        from stripe.cli.arguments.run import RunSpec
        from stripe.cli.guard import guarded

        return guarded(RunSpec, argv)
    except KeyboardInterrupt:
        return _INTERRUPTED


def sim(argv: list[str] | None = None) -> int:
    """`stripe-sim`."""
    try:
        from stripe.cli.arguments.sim import SimSpec
        from stripe.cli.guard import guarded

        return guarded(SimSpec, argv)
    except KeyboardInterrupt:
        return _INTERRUPTED


def reduce(argv: list[str] | None = None) -> int:
    """`stripe-reduce`."""
    try:
        from stripe.cli.arguments.reduce import ReduceSpec
        from stripe.cli.guard import guarded

        return guarded(ReduceSpec, argv)
    except KeyboardInterrupt:
        return _INTERRUPTED
