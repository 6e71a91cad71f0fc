"""The options that the commands share, and their values as typed objects."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from stripe.cli.usage import Parser, file_name, labelled, one_of

VERIFY_LEVELS = ("none", "structural", "exact")
INPUT_FORMATS = ("tile", "stripe")


Group = argparse._ActionsContainer  # pyright: ignore[reportPrivateUsage] - what parsers and their groups share


@dataclass(frozen=True, slots=True)
class Step:
    """One `--config` or `--passes` of the command line."""

    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class InputOptions:
    """What is read and how."""

    path: str | None
    format: str | None
    shapes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """Which passes run for which machine, and who watches them."""

    steps: tuple[Step, ...]
    hardware: str | None
    defines: tuple[str, ...]
    verify: str
    print_all: bool
    print_after: tuple[str, ...]
    dump_dir: str | None
    remarks: bool
    timing: bool
    verify_roundtrip: bool


def add_common(parser: Parser) -> None:
    """The options for input, passes and machine, and for watching the passes."""
    group = parser.add_argument_group("input")
    add_input_file(group, "a .tile or .stripe file, or - for standard input")
    group.add_argument(
        "--shape", action="append", default=[], metavar="NAME=SIZES:DTYPE",
        help="shape of a Tile input, instead of what the file says, as A=64x64:fp32; may be repeated",
    )  # fmt: skip
    _add_pipeline(parser)
    _add_watching(parser)
    other = parser.add_argument_group("other")
    add_listing(other, "passes")
    add_about(other)


def add_input_file(group: Group, what: str) -> None:
    """INPUT, which is `what`, and how to read it."""
    group.add_argument("input", nargs="?", type=file_name, metavar="INPUT", help=what)
    group.add_argument(
        "--input-format", type=one_of(*INPUT_FORMATS), metavar="tile|stripe",
        help="what INPUT holds; known by its suffix, and for - guessed from its beginning",
    )  # fmt: skip


def add_about(group: Group) -> None:
    """What every command says about itself."""
    group.add_argument("--version", action="store_true", help="say the version and end")
    group.add_argument("-h", "--help", action="store_true", help="show this text and end")


def add_listing(group: Group, noun: str) -> None:
    """--list-NOUN, for what can be named with options."""
    group.add_argument(
        f"--list-{noun}",
        nargs="?",
        const="",
        metavar="NAME",
        help=f"list the {noun} with their options, or that of one, and end",
    )


def add_json(group: Group, what: str) -> None:
    """--json, for the results of a command."""
    group.add_argument(
        "--json",
        type=file_name,
        metavar="FILE",
        help=f"write {what} as JSON (- for standard output, and nothing else there)",
    )


def add_schema(group: Group, what: str, known: tuple[str, ...]) -> None:
    """--schema, for the formats of a command."""
    group.add_argument("--schema", type=one_of(*known), metavar="|".join(known), help=f"{what} and end")


def _add_pipeline(parser: Parser) -> None:
    group = parser.add_argument_group("passes and machine")
    group.add_argument(
        "--config",
        action="append",
        type=labelled("config"),
        dest="steps",
        default=[],
        metavar="C",
        help="a pass list, by name (dsp_conv) or path",
    )
    group.add_argument(
        "--passes", action="append", type=labelled("passes"), dest="steps", default=[], metavar="LIST",
        help="passes in place, as 'fusion{a_reqs=[conv]},dce'; --config and --passes run in the order given",
    )  # fmt: skip
    group.add_argument(
        "--hw", metavar="H", help="hardware model, by name or path; default: what the pass list names"
    )
    group.add_argument(
        "-D", action="append", default=[], dest="defines", metavar="NAME=VALUE",
        help="sets a parameter of the hardware model or the pass list; may be repeated",
    )  # fmt: skip


def _add_watching(parser: Parser) -> None:
    group = parser.add_argument_group("watching the passes")
    group.add_argument(
        "--verify", type=one_of(*VERIFY_LEVELS), default="structural", metavar="none|structural|exact",
        help="what is checked after each pass (default: structural; exact proves equality)",
    )  # fmt: skip
    group.add_argument(
        "--verify-roundtrip", action="store_true", help="print and parse after each pass; they must agree"
    )
    group.add_argument(
        "--print-ir-after-all", action="store_true", help="show the program after each pass, on stderr"
    )
    group.add_argument(
        "--print-ir-after", action="append", default=[], metavar="NAME",
        help="show the program after the entry or pass NAME, on stderr; may be repeated",
    )  # fmt: skip
    group.add_argument(
        "--dump-dir",
        type=file_name,
        metavar="DIR",
        help="write the program after each pass, the pass list and the model to DIR; the dumps of an earlier run go",
    )
    group.add_argument(
        "--remarks",
        action="store_true",
        help="say what each pass did and why it left blocks alone, on stderr",
    )
    group.add_argument("--timing", action="store_true", help="show the time of each pass, on stderr")


def input_options(namespace: argparse.Namespace) -> InputOptions:
    """The input options of a parsed command line."""
    return InputOptions(namespace.input, namespace.input_format, tuple(namespace.shape))


def pipeline_options(namespace: argparse.Namespace) -> PipelineOptions:
    """The pass options of a parsed command line."""
    steps: list[tuple[str, str]] = namespace.steps
    return PipelineOptions(
        steps=tuple(Step(kind, value) for kind, value in steps),
        hardware=namespace.hw,
        defines=tuple(namespace.defines),
        verify=namespace.verify,
        print_all=namespace.print_ir_after_all,
        print_after=tuple(namespace.print_ir_after),
        dump_dir=namespace.dump_dir,
        remarks=namespace.remarks,
        timing=namespace.timing,
        verify_roundtrip=namespace.verify_roundtrip,
    )
