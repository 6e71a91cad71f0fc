"""Small programs that the tests of pipeline and command lines share, and passes that misbehave on purpose."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from stripe.ir import Block, ConfigError, Index, Program, Stage, rewrite_blocks, with_entry
from stripe.passes.base import Pass, PassContext

MATMUL = """\
0: #program block [] ( // mm
    #user none new@0x00000000<[0]> A[0, 0] fp32(8:6, 6:1)
    #user none new@0x00000000<[0]> B[0, 0] fp32(6:4, 4:1)
    #user none new@0x00000000<[0]> C[0, 0] fp32(8:4, 4:1)
) {
  0: #main block [] ( // main
      in<[0]> A[0, 0] fp32(8:6, 6:1)
      in<[0]> B[0, 0] fp32(6:4, 4:1)
      out<[0]> C[0, 0]:assign fp32(8:4, 4:1)
  ) {
    0: #agg_op_add #comb_op_mul #contraction #kernel block [i:8, j:4, k:6, one:1] ( // kernel_0
        in<[0]> A[i, k] fp32(1:6, 1:1)
        in<[0]> B[k, j] fp32(1:4, 1:1)
        out<[0]> C[i, j]:add fp32(1:4, 1:1)
    ) {
      0: $A = load(A)
      1: $B = load(B)
      2: $C = mul($A, $B)
      3: C = store($C)
    }
  }
}
"""
"""A matrix product; its index `one` is there for `prune_indexes` to drop."""


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
    """Says that the program is located afterwards, and does nothing for it."""

    pass_name: ClassVar[str] = "says_located"
    ensures: ClassVar[Stage | None] = Stage.LOCATED

    def run(self, program: Program, context: PassContext) -> Program:
        return program


MISBEHAVING: tuple[type[Pass], ...] = (Crash, Invalid, Wrong, Refuses, NeedsPlaces, EnsuresLocated)
"""Registered by the fixture `bad_passes`."""
