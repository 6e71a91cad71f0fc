"""The stages of a program, and what each demands beyond the structure that every program has."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from stripe.ir.check.diagnostic import Check, Diagnostic, Scope


class Stage(IntEnum):
    """How far a program has come; each stage includes the demands of those before it."""

    TILED = 0
    LOCATED = 1
    SCHEDULED = 2
    PLACED = 3


def _is_main(scope: Scope) -> bool:
    """Whether this is the program's main: blocks further inside may be given any tags, that one too."""
    return len(scope.path) == 2 and "main" in scope.block.tags


def check_located(scope: Scope) -> Iterator[Diagnostic]:
    """Stage `located`: each kernel has a location, and so has each buffer of the entry and of main."""
    block = scope.block
    if "kernel" in block.tags and not block.location:
        yield scope.say("the kernel has no location", "run locate_block")
    if scope.parent is None or _is_main(scope):
        for ref in block.allocs:
            if not ref.location:
                yield scope.say(f"the buffer '{ref.name}' has no location", "run locate_memory", about=ref)


def check_scheduled(scope: Scope) -> Iterator[Diagnostic]:
    """Stage `scheduled`: main is tagged so. `stripe.verify.machine` proves that dependences order conflicts."""
    if _is_main(scope) and "scheduled" not in scope.block.tags:
        yield scope.say("main is not scheduled", "run schedule")


def check_placed(scope: Scope) -> Iterator[Diagnostic]:
    """Stage `placed`: every buffer of the entry and of main has an address, marked by the tag `placed`."""
    if scope.parent is None or _is_main(scope):
        for ref in scope.block.allocs:
            if "placed" not in ref.tags:
                yield scope.say(f"the buffer '{ref.name}' has no address", "run memory_placement", about=ref)


STAGE_CHECKS: tuple[tuple[Stage, Check], ...] = (
    (Stage.LOCATED, check_located),
    (Stage.SCHEDULED, check_scheduled),
    (Stage.PLACED, check_placed),
)
