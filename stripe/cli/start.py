"""Entry points of the commands: an interrupt while their modules load ends them as quietly as a later one.

Nothing is imported here, since an import before the first `try` can be interrupted with a traceback.
"""

from __future__ import annotations

_INTERRUPTED = 130


def opt(argv: list[str] | None = None) -> int:
    """`stripe-opt`: performs the command line, and gives the exit status."""
    return _performed("opt", argv)


def run(argv: list[str] | None = None) -> int:
    """`stripe-run`."""
    return _performed("run", argv)


def sim(argv: list[str] | None = None) -> int:
    """`stripe-sim`."""
    return _performed("sim", argv)


def reduce(argv: list[str] | None = None) -> int:
    """`stripe-reduce`."""
    return _performed("reduce", argv)


def _performed(command: str, argv: list[str] | None) -> int:
    """The exit status; `argv` is None where the process belongs to the command."""
    try:
        if argv is None:
            from os import environ

            # Else pydantic reads the metadata of all installed packages, for plugins that no command has.
            environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        from importlib import import_module

        from stripe.cli.guard import guarded
        from stripe.garbage import collected_seldom

        arguments = import_module(f"stripe.cli.arguments.{command}")
        with collected_seldom():
            status = guarded(getattr(arguments, f"{command.capitalize()}Spec"), argv)
            if argv is None:
                import gc

                gc.freeze()  # the process ends: no search for cycles among all that was loaded
            return status
    except KeyboardInterrupt:
        return _INTERRUPTED


def sweep(argv: list[str] | None = None) -> int:
    """`stripe-sweep`, which looks for cycles and for plugins as usual: it runs for long, and with other libraries."""
    try:
        import sys

        from stripe.cli.arguments.sweep import subcommand
        from stripe.cli.guard import guarded

        return guarded(*subcommand(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        return _INTERRUPTED
