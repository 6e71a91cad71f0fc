"""The layouts of a whole network: for each tensor the dimension that lies innermost, for all tensors together.

Cost: the memory operations of all kernels, a vector of elements counting as one, and of the copies of user tensors. A
kernel runs vectors along the index that makes its accesses cheapest, so that its cost depends on the layouts of all
its tensors. The sum over kernels is least for some choice, which is found exactly by eliminating one tensor after the
other: all factors with that tensor are added up, and only its best layout for each choice of its neighbours is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TypeAlias

from stripe.ir import Affine, Buffer, Path, Refinement, Role
from stripe.poly import Access

MOST_ENTRIES = 100_000
"""The largest table of an elimination; a tensor with more choices together with its neighbours keeps its layout."""

Choice: TypeAlias = Mapping[Buffer, int]
"""The innermost dimension of each tensor."""


@dataclass(frozen=True, slots=True)
class FreeTensor:
    """A tensor with the dimensions that may lie innermost, the present one first."""

    ref: Refinement
    labels: tuple[int, ...]

    def conversion(self, label: int, lanes: int) -> float:
        """Memory operations of the copy in or out of a user tensor."""
        if self.ref.role is not Role.USER or label == self.labels[0]:
            return 0.0
        return self.ref.elements * (1 + 1 / lanes)


@dataclass(frozen=True, slots=True)
class Factor:
    """A part of the cost, by the labels of its tensors."""

    tensors: tuple[Buffer, ...]
    costs: Mapping[tuple[int, ...], float]


def choose(
    tensors: Mapping[Buffer, FreeTensor], accesses: Sequence[Access], vector_bytes: int
) -> dict[Buffer, int]:
    """The innermost dimension of each tensor for the least cost; the present ones where others gain nothing."""
    factors = [_kernel_factor(group, tensors, vector_bytes) for group in _by_kernel(accesses)]
    for buffer, tensor in tensors.items():
        lanes = max(1, vector_bytes // tensor.ref.dtype.bytes)
        factors.append(Factor((buffer,), {(d,): tensor.conversion(d, lanes) for d in tensor.labels}))
    return least_choice(factors, {buffer: tensor.labels for buffer, tensor in tensors.items()})


def _by_kernel(accesses: Sequence[Access]) -> list[list[Access]]:
    groups: dict[Path, list[Access]] = {}
    for access in accesses:
        groups.setdefault(access.nest.path, []).append(access)
    return list(groups.values())


def _kernel_factor(
    group: Sequence[Access], tensors: Mapping[Buffer, FreeTensor], vector_bytes: int
) -> Factor:
    ranges = group[0].nest.domain.ranges
    points = prod(high - low + 1 for low, high in ranges.values())
    own = [name for name in group[0].nest.own if ranges[name][1] > ranges[name][0]]
    involved = tuple(dict.fromkeys(access.buffer for access in group if access.buffer in tensors))
    costs: dict[tuple[int, ...], float] = {}
    for labels in product(*(tensors[buffer].labels for buffer in involved)):
        choice = dict(zip(involved, labels, strict=True))
        # Scalars, or vectors along one of the indices.
        along = (
            sum(_share(a, choice, name, ranges[name][1] + 1, vector_bytes) for a in group) for name in own
        )
        costs[labels] = points * min(along, default=float(len(group)))
    return Factor(involved, costs)


def _share(access: Access, choice: Choice, name: str, extent: int, vector_bytes: int) -> float:
    """Memory operations for each point when vectors run along the index `name` of `extent` values."""
    lanes = max(1, vector_bytes // access.nest.block.ref(access.ref).dtype.bytes)
    vectors = -(-extent // lanes) / extent
    moved = [dim for dim, affine in enumerate(access.index) if name in affine.names()]
    if not moved:
        return 1.0 if access.is_write else vectors
    innermost = choice.get(access.buffer)
    if innermost is None:
        ref = access.nest.block.ref(access.ref)
        innermost = next((dim for dim, stride in enumerate(ref.strides) if stride == 1), -1)
    affine = access.index[moved[0]]
    even = affine - Affine.var(name) * affine.coeff(name)
    contiguous = moved == [innermost] and affine.coeff(name) == 1 and name not in even.names()
    return vectors if contiguous else 1.0


def least_choice(factors: list[Factor], labels: Mapping[Buffer, Sequence[int]]) -> dict[Buffer, int]:
    """The labels with the least sum of factors; among equals the first ones."""
    left = dict(labels)
    best: list[tuple[Buffer, tuple[Buffer, ...], dict[tuple[int, ...], int]]] = []
    while left:
        around = {buffer: _neighbours(buffer, factors, left) for buffer in left}
        buffer = min(left, key=lambda b: prod(len(left[n]) for n in around[b]))
        if prod(len(left[n]) for n in (buffer, *around[buffer])) > MOST_ENTRIES:
            left[buffer] = (left[buffer][0],)
            continue
        mine = [factor for factor in factors if buffer in factor.tensors]
        factors = [factor for factor in factors if buffer not in factor.tensors]
        costs: dict[tuple[int, ...], float] = {}
        chosen: dict[tuple[int, ...], int] = {}
        for others in product(*(left[n] for n in around[buffer])):
            here = dict(zip(around[buffer], others, strict=True))
            for label in left[buffer]:
                here[buffer] = label
                total = sum(factor.costs[tuple(here[t] for t in factor.tensors)] for factor in mine)
                if others not in costs or total < costs[others]:
                    costs[others], chosen[others] = total, label
        factors.append(Factor(around[buffer], costs))
        best.append((buffer, around[buffer], chosen))
        del left[buffer]
    found: dict[Buffer, int] = {}
    for buffer, others, chosen in reversed(best):
        found[buffer] = chosen[tuple(found[other] for other in others)]
    return found


def _neighbours(buffer: Buffer, factors: Sequence[Factor], left: Collection[Buffer]) -> tuple[Buffer, ...]:
    """The other tensors that share a factor with one."""
    shared = (t for factor in factors if buffer in factor.tensors for t in factor.tensors)
    return tuple(dict.fromkeys(t for t in shared if t != buffer and t in left))
