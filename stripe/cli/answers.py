"""What the commands say about themselves: version, passes, schemas, machines."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from stripe.cli.usage import Parser

if TYPE_CHECKING:
    from stripe.cli.engines import Engine
    from stripe.config.registry import Registry
    from stripe.emit.targets import Target


def asked(parser: Parser, namespace: argparse.Namespace) -> str | None:
    """The answer, when a command is asked about itself instead of being run: its help, its version, its passes."""
    if namespace.help:
        return parser.format_help()
    if namespace.version:
        return version(parser.prog)
    if (name := getattr(namespace, "list_passes", None)) is not None:
        return passes(name)
    if (name := getattr(namespace, "list_targets", None)) is not None:
        from stripe.emit.targets import TARGETS

        return listing(TARGETS, name)
    if (name := getattr(namespace, "list_engines", None)) is not None:
        from stripe.cli.engines import ENGINES

        return listing(ENGINES, name)
    return None


def version(prog: str) -> str:
    """`stripe-opt 0.1.0`."""
    from stripe import __version__

    return f"{prog} {__version__}\n"


def passes(name: str) -> str:
    """The pass called `name` with its options; all passes when no name is given."""
    from stripe.pipeline.describe import describe_pass, list_passes

    return describe_pass(name) if name else list_passes()


def listing(registry: Registry[Target] | Registry[Engine], name: str) -> str:
    """The class called `name` with its options; all classes when no name is given."""
    from stripe.pipeline.describe import describe_model

    names = [name] if name else registry.names()
    return "\n".join("\n".join(describe_model(name, registry.find(name))) for name in names)


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
