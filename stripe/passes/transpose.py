"""The pass `transpose`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stripe.ir import Block, Buffer, IndexMap, Path, Program, Refinement, Role, indices_of, with_entry
from stripe.passes.base import Pass, PassContext, PassGroup, Reqs
from stripe.poly import accesses
from stripe.rewrite.strides import layout_text, mapped, memory_order, movable


class Transpose(Pass):
    """Gives stride 1 to the dimension of a buffer that the loops which read it accumulate over.

        #tmp none new W[0, 0] (32:64, 64:1)      #tmp none new W[0, 0] (32:1, 64:32)
        0: #kernel block [i:32, j:64] (          0: #kernel block [i:32, j:64] (
            out W[i, j]                              out W[i, j] (1:1, 1:32)
        ) { … }                                  ) { … }
        1: #kernel block [ci:32, co:64] (   =>   1: #kernel block [ci:32, co:64] (
            in W[ci, co]                             in W[ci, co] (1:1, 1:32)
            out O[co]:add                            out O[co]:add (1:1)
        ) { … }                                  ) { … }

    The blocks that match `reqs` vote: for each dimension the ranges of the accumulation indices in its accesses are
    summed over all reads; a dimension without any counts by the range of the innermost loop. The dimension
    with the most goes innermost, the others follow by their votes; equals keep their order. Only
    allocations change, constants among them (their data has a logical order); `layout` changes tensors of the user.
    """

    pass_name: ClassVar[str] = "transpose"
    group: ClassVar[PassGroup] = PassGroup.DATA

    reqs: Reqs = ("kernel",)

    def run(self, program: Program, context: PassContext) -> Program:
        entry = program.entry
        chosen: dict[Path, dict[str, IndexMap]] = {}
        votes = _votes(entry, self.reqs)
        for path, ref in movable(entry):
            vote = votes.get(Buffer(path, ref.name))
            if vote is None:
                context.missed(ref.name, "not transposed: no matching block reads it")
                continue
            index_map = IndexMap.blocked(vote.order(ref), {})
            strides = index_map.strides(ref.sizes)
            if strides == ref.strides:
                continue
            context.applied(ref.name, f"transposed: {layout_text(ref, strides)}; {vote.text()}")
            chosen.setdefault(path, {})[ref.name] = index_map
        for ref in entry.allocs:
            vote = votes.get(Buffer((0,), ref.name))
            if ref.role is Role.USER and vote is not None and vote.order(ref) != memory_order(ref):
                context.missed(
                    ref.name, f"not transposed: its layout is the user's ({vote.text()}); see layout"
                )
        return with_entry(program, mapped(entry, chosen))


@dataclass(frozen=True, slots=True)
class _Vote:
    """For each dimension of a buffer the summed ranges of accumulation indices, and those of innermost loops."""

    accumulated: tuple[int, ...]
    innermost: tuple[int, ...]

    def plus(self, other: _Vote) -> _Vote:
        return _Vote(
            tuple(a + b for a, b in zip(self.accumulated, other.accumulated, strict=True)),
            tuple(a + b for a, b in zip(self.innermost, other.innermost, strict=True)),
        )

    def order(self, ref: Refinement) -> tuple[int, ...]:
        """The dimensions, outermost first."""
        present = {dim: place for place, dim in enumerate(memory_order(ref))}
        return tuple(
            sorted(present, key=lambda dim: (self.accumulated[dim], self.innermost[dim], present[dim]))
        )

    def text(self) -> str:
        accumulated = ", ".join(map(str, self.accumulated))
        return f"accumulation walks {accumulated}, inner loops {', '.join(map(str, self.innermost))}"


def _votes(entry: Block, reqs: tuple[str, ...]) -> dict[Buffer, _Vote]:
    """The votes of all reads below a block that matches."""
    found = accesses(entry)
    written: dict[tuple[int, ...], set[str]] = {}
    for access in found:
        if access.is_write:
            names = written.setdefault(access.nest.path, set())
            names.update(indices_of(access.index))
    votes: dict[Buffer, _Vote] = {}
    for access in found:
        if access.is_write or not any(block.words.has_all(reqs) for block in access.nest.blocks):
            continue
        domain = access.nest.domain
        ranges = {name: high - low + 1 for name, (low, high) in domain.ranges.items() if high > low}
        summed = ranges.keys() - written.get(access.nest.path, set())
        inner = [name for name in domain.names if name in ranges][-1:]
        vote = _Vote(
            tuple(sum(ranges[name] for name in affine.names() & summed) for affine in access.index),
            tuple(sum(ranges[name] for name in affine.names() & {*inner}) for affine in access.index),
        )
        known = votes.get(access.buffer)
        votes[access.buffer] = vote if known is None else known.plus(vote)
    return votes
