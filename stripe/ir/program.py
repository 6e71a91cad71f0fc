"""Programs: an entry block that allocates, its child `main`, and the data of constant buffers."""

from __future__ import annotations

from dataclasses import dataclass

from stripe.ir.block import Block
from stripe.ir.dtypes import DType
from stripe.ir.refinement import Direction, Refinement


@dataclass(frozen=True, slots=True)
class ConstantBuffer:
    """The contents of the entry allocation called `name`: little-endian elements in row-major order of `sizes`."""

    name: str
    dtype: DType
    sizes: tuple[int, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program. Its tensors are the allocations of `entry` tagged `user`; `main` says which it reads
    and writes."""

    entry: Block
    constants: tuple[ConstantBuffer, ...] = ()

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def main(self) -> Block:
        """The block tagged `main` among the statements of the entry; ValueError when there is none."""
        for block in self.entry.blocks:
            if "main" in block.tags:
                return block
        raise ValueError("the program has no block tagged main")

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
        return tuple(ref for ref in self.entry.refinements if "user" in ref.tags and ref.name in wanted)
