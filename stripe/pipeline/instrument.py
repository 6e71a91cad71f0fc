"""The one interface through which dumps, timing, verification, remarks and reproducers watch a run of passes."""

from __future__ import annotations

from stripe.ir import Program
from stripe.passes.base import Remark
from stripe.pipeline.entry import PassEntry


class Instrument:
    """Watches a run; each method does nothing unless a client overrides it.

    Of several clients, `before` is called from the last to the first and all others from the first to the last, so that
    the first client stands closest to the pass.
    """

    def begin(self, program: Program) -> None:
        """The program before the first pass."""

    def before(self, entry: PassEntry, program: Program) -> None:
        """Just before a pass."""

    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        """Just after a pass; the same object twice when it changed nothing. An exception ends the run."""

    def depends_on_list(self, entry: PassEntry) -> None:
        """The result of the running pass depends on the other entries: on the price of a candidate, which those behind
        it decide too, or on the words of all."""

    def remark(self, entry: PassEntry, remark: Remark) -> None:
        """A remark of the running pass."""

    def failed(self, entry: PassEntry, program: Program, error: Exception) -> None:
        """The pass, or a client after it, raised `error`; `program` is the input of the pass."""

    def end(self, program: Program) -> None:
        """The program after the last pass."""
