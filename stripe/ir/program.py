"""Programs: an entry block that allocates, its child `main`, and the data of constant buffers."""

from __future__ import annotations

from typing_extensions import override

from stripe.ir.block import Block
from stripe.ir.dtypes import DType
from stripe.ir.frozen import frozen, replace
from stripe.ir.printable import Printable
from stripe.ir.refinement import Direction, Refinement, Role
from stripe.ir.stage import Stage


@frozen
class ConstantBuffer:
    """The contents of the entry allocation called `name`: little-endian elements in row-major order of `sizes`."""

    name: str
    dtype: DType
    sizes: tuple[int, ...]
    data: bytes


@frozen
class Program(Printable):
    """A whole program. Its tensors are the allocations of `entry` with the role of the user; `main` says which it
    reads and writes."""

    entry: Block
    constants: tuple[ConstantBuffer, ...] = ()

    @override
    def __repr__(self) -> str:
        """The program by its tensors; the text has the rest."""
        inputs, outputs = (", ".join(ref.name for ref in refs) for refs in (self.inputs, self.outputs))
        return f"<Program {self.name}: {inputs} -> {outputs}>"

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def main(self) -> Block:
        """The body: the block of the entry with `is_main`; ValueError when there is none."""
        for block in self.entry.blocks:
            if block.is_main:
                return block
        raise ValueError("the program has no block tagged main")

    @property
    def stage(self) -> Stage:
        """The stage that main has reached."""
        return next((block.stage for block in self.entry.blocks if block.is_main), Stage.TILED)

    def at_stage(self, stage: Stage) -> Program:
        """The program whose main has that stage."""
        statements = tuple(
            replace(statement, stage=stage)
            if isinstance(statement, Block) and statement.is_main
            else statement
            for statement in self.entry.statements
        )
        return replace(self, entry=replace(self.entry, statements=statements))

    @property
    def inputs(self) -> tuple[Refinement, ...]:
        """User tensors that `main` reads, in order."""
        return self._user_tensors(reads=True)

    @property
    def outputs(self) -> tuple[Refinement, ...]:
        """User tensors that `main` writes, in order."""
        return self._user_tensors(reads=False)

    def _user_tensors(self, *, reads: bool) -> tuple[Refinement, ...]:
        wanted = {
            ref.source
            for block in self.entry.blocks
            for ref in block.refinements
            if (ref.dir is not Direction.NONE and (ref.dir.reads if reads else ref.dir.writes))
        }
        return tuple(ref for ref in self.entry.refinements if ref.role is Role.USER and ref.name in wanted)
