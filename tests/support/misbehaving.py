"""Passes that misbehave on purpose, and a pytest plugin: the fixture that registers them."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import ClassVar

import pytest

from stripe.ir import Block, ConfigError, Index, Program, Stage, rewrite_blocks, with_entry, with_main
from stripe.passes import registry
from stripe.passes.base import Pass, PassContext


class Crash(Pass):
    """Raises what no pass should."""

    pass_name: ClassVar[str] = "crash"

    def run(self, program: Program, context: PassContext) -> Program:
        raise RuntimeError("the pass fell over")


class Invalid(Pass):
    """Leaves IR that the verifier rejects."""

    pass_name: ClassVar[str] = "invalid"

    def run(self, program: Program, context: PassContext) -> Program:
        def spoil(block: Block) -> Block:
            return (
                replace(block, indices=(*block.indices, Index("bad", 0))) if "kernel" in block.tags else block
            )

        return with_entry(program, rewrite_blocks(program.entry, spoil))


class Wrong(Pass):
    """Changes what the program computes: the kernel skips its last row."""

    pass_name: ClassVar[str] = "wrong"

    def run(self, program: Program, context: PassContext) -> Program:
        def spoil(block: Block) -> Block:
            first, *rest = block.indices or (Index("none"),)
            return (
                replace(block, indices=(replace(first, range=first.range - 1), *rest))
                if "kernel" in block.tags
                else block
            )

        return with_entry(program, rewrite_blocks(program.entry, spoil))


class Outside(Pass):
    """Moves the views of the kernels so far that accesses leave their buffers: a defect that the structure hides."""

    pass_name: ClassVar[str] = "outside"

    def run(self, program: Program, context: PassContext) -> Program:
        def spoil(block: Block) -> Block:
            if "kernel" not in block.tags:
                return block
            moved = [
                replace(ref, access=tuple([affine + 1000 for affine in ref.access]))
                for ref in block.refinements
            ]
            return replace(block, refinements=tuple(moved))

        return with_entry(program, rewrite_blocks(program.entry, spoil))


class Forgets(Pass):
    """Drops the first statement of main: nothing writes the buffer that the second reads."""

    pass_name: ClassVar[str] = "forgets"

    def run(self, program: Program, context: PassContext) -> Program:
        entry = with_main(program.entry, lambda main: replace(main, statements=main.statements[1:]))
        return with_entry(program, entry)


class Refuses(Pass):
    """Finds an error that the user can change, and says a remark before."""

    pass_name: ClassVar[str] = "refuses"

    def run(self, program: Program, context: PassContext) -> Program:
        context.missed("kernel_0", "not done: 3 of 4")
        raise ConfigError("this machine cannot do that", hint="take another")


class NeedsPlaces(Pass):
    """Wants a scheduled program."""

    pass_name: ClassVar[str] = "needs_schedule"
    requires: ClassVar[Stage] = Stage.SCHEDULED

    def run(self, program: Program, context: PassContext) -> Program:
        return program


class EnsuresLocated(Pass):
    """Sets the stage `located`, and does nothing for it."""

    pass_name: ClassVar[str] = "says_located"
    ensures: ClassVar[Stage | None] = Stage.LOCATED

    def run(self, program: Program, context: PassContext) -> Program:
        return program.at_stage(Stage.LOCATED)


class SetsPlaced(Pass):
    """Sets the stage `placed` without a declaration."""

    pass_name: ClassVar[str] = "says_placed"

    def run(self, program: Program, context: PassContext) -> Program:
        return program.at_stage(Stage.PLACED)


MISBEHAVING: tuple[type[Pass], ...] = (
    Crash,
    Invalid,
    Wrong,
    Outside,
    Forgets,
    Refuses,
    NeedsPlaces,
    EnsuresLocated,
    SetsPlaced,
)
"""Registered by the fixture `bad_passes`."""


@pytest.fixture
def bad_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """These passes under their names, as if this module were one of `stripe.passes`."""
    monkeypatch.setitem(sys.modules, "stripe.passes.misbehaving", sys.modules[__name__])
    for pass_class in MISBEHAVING:
        monkeypatch.setitem(registry.BUILTIN, pass_class.pass_name, f"misbehaving:{pass_class.__name__}")
