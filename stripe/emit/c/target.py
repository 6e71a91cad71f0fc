"""The target `c`."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from stripe.emit.c.module import emit_c
from stripe.emit.c.options import COptions
from stripe.emit.targets import ProgramTarget
from stripe.ir import Program


class CTarget(COptions, ProgramTarget):
    """One self-contained C11 file with one entry function. No option changes a bit of the results."""

    target_name: ClassVar[str] = "c"
    unchecked: ClassVar[bool] = True

    @override
    def emit(self, program: Program) -> str:
        return emit_c(program, self)
