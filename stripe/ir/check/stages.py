"""The demands of each stage beyond the structure of every program."""

from __future__ import annotations

from collections.abc import Iterator

from stripe.ir.check.diagnostic import Check, CheckedBlock, Diagnostic, Part
from stripe.ir.program import Program
from stripe.ir.stage import Stage
from stripe.ir.walk import walk


def check_located(scope: CheckedBlock) -> Iterator[Diagnostic]:
    """Stage `located`: each block of main has a location, and so has each buffer of the entry and of main."""
    block = scope.block
    if scope.parent is not None and scope.parent.is_main and not block.location:
        yield scope.say("the kernel has no location", "run locate_block")
    if scope.parent is None or block.is_main:
        for ref in block.allocs:
            if not ref.location:
                yield scope.say(f"the buffer '{ref.name}' has no location", "run locate_memory", about=ref)


def check_scheduled(scope: CheckedBlock) -> Iterator[Diagnostic]:
    """Stage `scheduled`: main has a schedule. `stripe.verify.machine` proves that dependences order conflicts."""
    if scope.block.is_main and scope.block.stage < Stage.SCHEDULED:
        yield scope.say("main is not scheduled", "run schedule")


def check_placed(scope: CheckedBlock) -> Iterator[Diagnostic]:
    """Stage `placed`: every buffer of the entry and of main has an address."""
    if scope.parent is None or scope.block.is_main:
        for ref in scope.block.allocs:
            if ref.offset is None:
                yield scope.say(f"the buffer '{ref.name}' has no address", "run memory_placement", about=ref)


def check_addresses(program: Program) -> Iterator[Diagnostic]:
    """All buffers in one memory have addresses, or none has."""
    allocs = [
        (path, block, ref) for path, block in walk(program.entry) for ref in block.allocs if ref.location
    ]
    memories = {ref.location.name: ref.name for _, _, ref in allocs if ref.offset is not None}
    for path, block, ref in allocs:
        other = memories.get(ref.location.name)
        if ref.offset is None and other is not None:
            part: Part = ("refinement", block.refinements.index(ref))
            message = f"the buffer '{ref.name}' has no address, and '{other}' in the same memory has one"
            hint = "mark it #placed at its address, or run memory_placement"
            yield Diagnostic(message, path, block.name, hint, part)


def has_claims(program: Program) -> bool:
    """Whether a program says anything of a machine: a stage, a location, an address, a dependence."""
    return (
        program.stage > Stage.TILED
        or any(statement.deps for statement in program.main.statements)
        or any(
            block.location or any(ref.location or ref.offset is not None for ref in block.refinements)
            for _, block in walk(program.entry)
        )
    )


STAGE_CHECKS: tuple[tuple[Stage, Check], ...] = (
    (Stage.LOCATED, check_located),
    (Stage.SCHEDULED, check_scheduled),
    (Stage.PLACED, check_placed),
)
