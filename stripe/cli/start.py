"""Where the commands start: an interrupt while their modules load ends them as quietly as later ones do.

Nothing is imported here, since what is imported before the first `try` can be interrupted with a traceback.
"""

from __future__ import annotations

_INTERRUPTED = 130


def opt() -> int:
    """`stripe-opt`."""
    try:
        from stripe.cli.opt import main

        return main()
    except KeyboardInterrupt:
        return _INTERRUPTED


def run() -> int:
    """`stripe-run`."""
    try:
        from stripe.cli.run import main

        return main()
    except KeyboardInterrupt:
        return _INTERRUPTED


def sim() -> int:
    """`stripe-sim`."""
    try:
        from stripe.cli.sim import main

        return main()
    except KeyboardInterrupt:
        return _INTERRUPTED


def reduce() -> int:
    """`stripe-reduce`."""
    try:
        from stripe.cli.reduce import main

        return main()
    except KeyboardInterrupt:
        return _INTERRUPTED
