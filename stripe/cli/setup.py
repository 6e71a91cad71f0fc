"""The configuration of a command line: passes and machine, and a check of the entries at which programs are shown."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from stripe.cli.arguments.compile import CompileSpec
from stripe.config.defines import parse_define
from stripe.ir import ConfigError
from stripe.ir.errors import did_you_mean
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.setup import read_setup

if TYPE_CHECKING:
    from stripe.config.model import Scalar
    from stripe.hw.schema import HardwareModel


def setup_of(spec: CompileSpec) -> tuple[tuple[PassEntry, ...], HardwareModel | None]:
    """The passes and the machine. Raises ConfigError."""
    entries, hardware = read_setup(spec.pass_sources, spec.hw, parse_defines(spec.define))
    if hardware is not None:
        from stripe.config.files import NATIVE
        from stripe.hw.checks import find_gaps
        from stripe.pipeline.native import native_remarks

        for remark in native_remarks() if spec.hw == NATIVE else ():
            print(f"remark: --hw {NATIVE}: {remark}", file=sys.stderr)
        for gap in find_gaps(hardware):
            print(f"warning: hardware model '{hardware.name}': {gap}", file=sys.stderr)
    known = sorted({name for entry in entries for name in (entry.name, entry.pass_.pass_name)})
    for option, names in (
        ("--print-ir-before", spec.print_ir_before),
        ("--print-ir-after", spec.print_ir_after),
    ):
        for name in names:
            if name not in known:
                hint = did_you_mean(name, known, f"there are {', '.join(known) or 'none'}")
                raise ConfigError(f"{option}: no pass '{name}' runs here", hint=hint)
    return entries, hardware


def parse_defines(texts: tuple[str, ...]) -> dict[str, Scalar]:
    """`-D NAME=VALUE` as texts; their type is that of the parameter. Raises ConfigError."""
    return dict(parse_define(text) for text in texts)
