"""State of a program that is drawn: its random numbers, and its buffers as blocks see them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random

from stripe.ir import (
    Affine,
    Agg,
    Constraint,
    Dim,
    Direction,
    DType,
    Index,
    Refinement,
    Role,
    Statement,
)

KINDS = ("i32", "i32", "i32", "i8", "u8", "i16", "fp32", "fp16")
MERGES = (Agg.ADD, Agg.ADD, Agg.MAX, Agg.MIN, Agg.MUL)


@dataclass(frozen=True, slots=True)
class Seen:
    """A buffer as a block sees it. Where the points of a block outside share elements, they all read, or all merge."""

    name: str
    dims: tuple[Dim, ...]
    dtype: DType
    agg: Agg
    reads: bool = True
    writes: bool = True
    merges: bool = True

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(dim.size for dim in self.dims)


Scope = dict[str, Seen]


@dataclass
class Draft:
    """One program on its way: the points of its main, and the buffers of which every element in sight was written."""

    random: Random
    schedulable: bool = False
    points: int = 1
    numbers: Iterator[int] = field(default_factory=count)
    defined: set[str] = field(default_factory=set[str])


@dataclass
class Group:
    """Buffers of a structure, main's views of them, its statements, and what later statements see of it."""

    draft: Draft
    allocs: list[Refinement] = field(default_factory=list[Refinement])
    views: list[Refinement] = field(default_factory=list[Refinement])
    statements: list[Statement] = field(default_factory=list[Statement])
    seen: Scope = field(default_factory=dict[str, Seen])

    def buffer(
        self, name: str, dtype: DType, sizes: tuple[int, ...], *, role: Role, along: int = 0, margin: int = 0
    ) -> Seen:
        """A buffer of which main sees `sizes` behind a margin in the dimension `along`; each point of main sees a part
        of its own."""
        random = self.draft.random
        whole = list(sizes)
        whole[along] = margin + self.draft.points * sizes[along]
        alloc = Refinement.alloc(name, dtype, tuple(whole), role=role)
        access = [Affine()] * len(sizes)
        access[along] = Affine(margin)
        if self.draft.points > 1:
            access[along] += Affine.var("t") * sizes[along]
        dims = tuple(replace(dim, size=size) for dim, size in zip(alloc.dims, sizes, strict=True))
        seen = Seen(name, dims, dtype, random.choice(MERGES))
        self.allocs.append(alloc)
        self.views.append(Refinement(name, Direction.INOUT, name, tuple(access), dtype, dims, seen.agg))
        return seen


def few_points(draft: Draft, indices: tuple[Index, ...]) -> tuple[Constraint, ...]:
    """A constraint that leaves the first points of an index, or none."""
    if not indices:
        return ()
    index = draft.random.choice(indices)
    last = -1 if draft.random.random() < 0.1 else draft.random.randint(1, max(1, index.range - 1))
    bound = Affine(last) - Affine.var(index.name)
    return (Constraint(bound),)
