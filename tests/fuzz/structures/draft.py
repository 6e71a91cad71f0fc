"""State of a program that is drawn: its random numbers, and its buffers as blocks see them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random

from stripe.ir import (
    Affine,
    Agg,
    Constraint,
    Dim,
    DType,
    Index,
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
    """One program on its way; `defined` has the buffers of which every element in sight was written."""

    random: Random
    schedulable: bool = False
    numbers: Iterator[int] = field(default_factory=count)
    defined: set[str] = field(default_factory=set[str])


def few_points(draft: Draft, indices: tuple[Index, ...]) -> tuple[Constraint, ...]:
    if not indices:
        return ()
    index = draft.random.choice(indices)
    last = -1 if draft.random.random() < 0.1 else draft.random.randint(1, max(1, index.range - 1))
    bound = Affine(last) - Affine.var(index.name)
    return (Constraint(bound),)
