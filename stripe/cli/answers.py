"""What the commands say about themselves: version, passes, schemas, machines."""

from __future__ import annotations

import argparse
import json

from stripe.cli.usage import Parser


def asked(parser: Parser, namespace: argparse.Namespace) -> str | None:
    """The answer, when a command is asked about itself instead of being run: its help, its version, its passes."""
    if namespace.help:
        return parser.format_help()
    if namespace.version:
        return version(parser.prog)
    listed: str | None = getattr(namespace, "list_passes", None)
    return None if listed is None else passes(listed)


def version(prog: str) -> str:
    """`stripe-opt 0.1.0`."""
    from stripe import __version__

    return f"{prog} {__version__}\n"


def passes(name: str) -> str:
    """The pass called `name` with its options; all passes when no name is given."""
    from stripe.pipeline.describe import describe_pass, list_passes

    return describe_pass(name) if name else list_passes()


def schema(what: str) -> str:
    """The JSON Schema of pass lists, of hardware models, or of the IR as JSON."""
    from stripe.pipeline import describe

    made = {"config": describe.config_schema, "hw": describe.hardware_schema, "ir": describe.ir_schema}
    return json.dumps(made[what](), indent=2) + "\n"


def machine(name: str, defines: tuple[str, ...], form: str) -> str:
    """A hardware model: the graph of its units, or its rendered data."""
    from stripe.cli.compile import parse_defines
    from stripe.hw import load_hardware, to_dot

    model = load_hardware(name, parse_defines(defines))
    if form == "dot":
        return to_dot(model)
    return json.dumps(model.model_dump(mode="json", exclude_defaults=True), indent=2) + "\n"
