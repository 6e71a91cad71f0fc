"""`--verify exact` for the machine: dependences stay complete, and addresses change no result. (Each stage has its own
checks, in `structure`.)
"""

from __future__ import annotations

from collections.abc import Callable

from typing_extensions import override

from stripe.ir import Program, StripeError, walk
from stripe.pipeline.checks.proof import ProofError
from stripe.pipeline.instrument import Instrument, InternalFault, PassEntry
from stripe.verify.proof.running import not_run

SEEDS = (0, 1)


class MachineCheck(Instrument):
    """Statements of main that had all their dependences keep them; at the end the program runs with each buffer at its
    address, and its results have to be equal to the results with buffers apart."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._complete = False

    @override
    def begin(self, program: Program) -> None:
        self._complete = _has_dependences(program) and not _missing(program)

    @override
    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        if after is before or not _has_dependences(after):
            return
        missing = _missing(after)
        if missing and self._complete:
            raise InternalFault(f"pass {entry.label} lost dependences", tuple(missing))
        self._complete = not missing

    @override
    def end(self, program: Program) -> None:
        if not any(ref.offset is not None for _, block in walk(program.entry) for ref in block.allocs):
            return
        too_large = not_run(program)
        if too_large:
            self._write(f"verify: addresses: {too_large}\n")
            return
        differs = run_at_addresses(program)
        if differs:
            raise ProofError(
                f"with its buffers at their addresses the program computes something else\n  {differs}"
            )
        self._write(
            f"verify: addresses: ran with every buffer at its address on {len(SEEDS)} sets of data: equal\n"
        )


def run_at_addresses(program: Program) -> str:
    """The difference of the outputs when buffers lie at their addresses, in one array of bytes for each memory, not
    apart; empty when the bytes are the same."""
    from stripe.exec.data import random_inputs
    from stripe.exec.interp import interpret

    for seed in SEEDS:
        inputs = random_inputs(program, seed)
        try:
            apart = interpret(program, inputs, arenas=False)
            together = interpret(program, inputs, arenas=True)
        except StripeError as error:
            return f"with seed {seed}: {error}"
        for name, values in apart.items():
            if values.tobytes() != together[name].tobytes():
                return f"with seed {seed}: '{name}' differs"
    return ""


def _has_dependences(program: Program) -> bool:
    return any(statement.deps for statement in program.main.statements)


def _missing(program: Program) -> list[str]:
    from stripe.verify.machine.schedule import check_dependences

    return [str(wrong) for wrong in check_dependences(program)]
