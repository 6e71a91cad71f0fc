"""The options that compiling commands share: input, passes and machine, and watching the passes."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, get_args

from stripe.cli.option import OTHER, Option, Spec, filled_by, option
from stripe.cli.usage import file_name, number, one_of
from stripe.frontends.frontend import ReadOptions
from stripe.frontends.registry import BUILTIN, BUILTIN_SUFFIXES, languages
from stripe.verify.assumptions import Assumption
from stripe.verify.policy import Unproved, Verify

if TYPE_CHECKING:
    from stripe.pipeline.setup import PassSource


def _flags(text: str) -> str:
    """An argparse type for `all`, `none`, or assumptions with commas between them."""
    words = [] if text in ("all", "none") else text.split(",")
    flag = one_of(*Assumption)
    return ",".join(map(flag, words)) if words else text


def _dimension(text: str) -> tuple[str, int]:
    """An argparse type for `N=1`."""
    name, equal, size = text.rpartition("=")
    if not equal or not name or not size.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is no size of a dimension; write NAME=1")
    return name, int(size)


_input = partial(option, group="input")
_passes = partial(option, group="passes and machine", replayed=False)
_watch = partial(option, group="watching the passes", replayed=False)
_about = partial(option, group=OTHER, replayed=False)


@dataclass(frozen=True, kw_only=True)
class InputSpec(Spec):
    """A command that reads one program. (A crash reproducer holds the program itself, and its language.)"""

    input: str | None = _input(
        metavar="INPUT", read=file_name, complete="files", replayed=False,
        help=f"a file ({BUILTIN_SUFFIXES}), or - for standard input",
    )  # fmt: skip
    input_format: str | None = _input(
        "--input-format", choices=tuple(BUILTIN), more=languages, complete="languages", replayed=False,
        help="language of INPUT; known by its suffix, and for - guessed from its beginning",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CompileSpec(InputSpec):
    """A command that compiles. (A crash reproducer holds the passes and the machine as they were read.)"""

    shape: tuple[str, ...] = _input(
        "--shape", metavar="NAME=SIZES:DTYPE", many=True,
        help="shape of a Tile input, instead of that in the file, as A=64x64:fp32; may be repeated",
    )  # fmt: skip
    dim: tuple[tuple[str, int], ...] = _input(
        "--dim", metavar="NAME=SIZE", read=_dimension, many=True,
        help="size of a symbolic dimension of a network, as N=1; may be repeated",
    )  # fmt: skip
    operators: tuple[str, ...] = _input(
        "--operators", metavar="DIR", read=file_name, many=True, complete="files",
        help="folder of operators for networks (*.tile.j2), looked up before those that ship; may be repeated",
    )  # fmt: skip
    random_weights: bool = _input(
        "--random-weights", help="draw the weights of a network instead of reading them"
    )
    pass_sources: tuple[PassSource, ...] = filled_by(
        Option(
            ("--config",), "passes and machine", "a pass list, by name (dsp_conv) or path",
            metavar="C", read=lambda name: ("config", name), many=True, replayed=False, complete="optconfigs",
        ),
        Option(
            ("--passes",), "passes and machine",
            "passes in place, as 'fusion{a_reqs=[conv]},dce'; --config and --passes run in the order given",
            metavar="LIST", read=lambda text: ("passes", text), many=True, replayed=False, complete="passes",
        ),
        default=(),
    )  # fmt: skip
    hw: str | None = _passes(
        "--hw", metavar="H", complete="hwmodels",
        help="hardware model, by name or path; default: the model that the pass list names",
    )  # fmt: skip
    define: tuple[str, ...] = _passes(
        "-D", metavar="NAME=VALUE", many=True,
        help="sets a parameter of the hardware model or the pass list; may be repeated",
    )  # fmt: skip
    tune: int | None = _passes(
        "--tune", metavar="N", read=number(2),
        help="try the N best settings of each choice of the passes on this machine, and keep the fastest",
    )  # fmt: skip
    verify: str = option(
        "--verify", group="watching the passes", choices=get_args(Verify), default="structural",
        help="checks after each pass (default: structural; exact proves equality)",
    )  # fmt: skip
    assume: str = option(
        "--assume", group="watching the passes", metavar="FLAGS", read=_flags, default="all",
        complete=("all", "none", *Assumption),
        help="what a proof may rely on: all (the default), none, or flags such as float-order,zero-sign",
    )  # fmt: skip
    verify_unknown: str = option(
        "--verify-unknown", group="watching the passes", choices=get_args(Unproved), default="run",
        help="without a proof: run both programs and compare (the default), or fail",
    )  # fmt: skip
    verify_roundtrip: bool = option(
        "--verify-roundtrip", group="watching the passes",
        help="print and parse after each pass; they must agree",
    )  # fmt: skip
    print_ir_before: tuple[str, ...] = _watch(
        "--print-ir-before", metavar="NAME", many=True, complete="passes",
        help="show the program before the entry or pass NAME, on stderr; may be repeated",
    )  # fmt: skip
    print_ir_after: tuple[str, ...] = _watch(
        "--print-ir-after", metavar="NAME", many=True, complete="passes",
        help="show the program after the entry or pass NAME, on stderr; may be repeated",
    )  # fmt: skip
    print_ir_after_all: bool = _watch(
        "--print-ir-after-all", help="show the program after each pass, on stderr"
    )
    print_ir_after_change: bool = _watch(
        "--print-ir-after-change", help="show the program after each pass that changed it, on stderr"
    )
    dump_dir: str | None = _watch(
        "--dump-dir", metavar="DIR", read=file_name, complete="files",
        help="write the program after each pass, the pass list and the model to DIR; the dumps of an earlier run go",
    )  # fmt: skip
    remarks: bool = _watch("--remarks", help="say what each pass did and why it left blocks alone, on stderr")
    timing: bool = _watch("--timing", help="show the time of each pass, on stderr")
    list_passes: str | None = _about(
        "--list-passes", metavar="NAME", optional=True, complete="passes",
        help="list the passes with their options, or that of one, and end",
    )  # fmt: skip
    list_models: str | None = _about(
        "--list-models", metavar="NAME", optional=True, complete="hwmodels",
        help="list the hardware models with their parameters, or that of one, and end",
    )  # fmt: skip

    @property
    def reading(self) -> ReadOptions:
        """The options for the front end."""
        return ReadOptions(self.shape, self.dim, self.operators, self.random_weights)

    def question(self) -> bool:
        return self.list_passes is not None or self.list_models is not None or super().question()


@dataclass(frozen=True, kw_only=True)
class PassDiffSpec(CompileSpec):
    """A command that compiles, and can show what each pass changed."""

    diff: bool = _watch(
        "--diff", help="show the lines that each pass changed, as a unified diff of the program, on stderr"
    )
