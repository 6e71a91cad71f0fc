"""The layouts of a whole network: for each tensor the dimension that lies innermost, for all tensors together.

Cost: the memory operations of all kernels, a vector of elements counting as one, and of the copies of user tensors. A
kernel runs vectors along the index that makes its accesses cheapest, so that its cost depends on the layouts of all
its tensors. The sum over kernels is least for some choice, which is found exactly by eliminating one tensor after the
other: all factors with that tensor are added up, and only its best layout for each choice of its neighbours is kept.

Rows of a dimension that is no multiple of a vector lie at odd places, and their vectors take two accesses, unless
several results share them. With a pad the dimension may be cut into blocks of a vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count, product
from math import prod
from typing import TypeAlias

from stripe.ir import Affine, Buffer, Load, Path, Refinement, Role, Store, indices_of, step, vectors_along
from stripe.poly import Access

MOST_ENTRIES = 4096
"""The largest table of an elimination; a tensor with more choices together with its neighbours keeps its layout."""

_WIDEN = 3.0
"""Operations for a vector of narrow integers whose products are wide: it is loaded and widened, and multiplied apart
from the sum, since integers have no multiply-add.
"""
_PACK = 3.0
"""Accesses for a vector at an odd place that is copied: it is read in two, and stored."""

Label: TypeAlias = tuple[int, int]
"""An innermost dimension, and the elements of a block of it: 1 where it is whole."""

Choice: TypeAlias = Mapping[Buffer, Label]
"""The layout of each tensor."""


@dataclass(frozen=True, slots=True)
class FreeTensor:
    """A tensor with the layouts that it may have, the present one first. Another takes a copy of so many memory
    operations for each element: of user tensors."""

    ref: Refinement
    labels: tuple[Label, ...]
    copy_cost: float

    def conversion(self, label: Label, lanes: int) -> float:
        """Memory operations of the copy, if any, and of a sweep, so that a layout changes only where that saves more
        than the estimate may be wrong.
        """
        if label == self.labels[0]:
            return 0.0
        return self.ref.elements * (self.copy_cost + 1 / lanes)


@dataclass(frozen=True, slots=True)
class Factor:
    """A part of the cost, by the labels of its tensors."""

    tensors: tuple[Buffer, ...]
    costs: Mapping[tuple[Label, ...], float]


def choose(
    tensors: Mapping[Buffer, FreeTensor], accesses: Sequence[Access], vector_bytes: int, *, dots: bool
) -> dict[Buffer, Label]:
    """The layout of each tensor for the least cost; the present ones where others gain nothing.

    `dots`: instructions sum products of narrow integers along a vector, so that a vector of factors is a whole one. One
    of results has the lanes of wide integers.
    """
    factors = [_Kernel.of(group, tensors, vector_bytes, dots=dots).factor() for group in _by_kernel(accesses)]
    for buffer, tensor in tensors.items():
        lanes = max(1, vector_bytes // tensor.ref.dtype.bytes)
        factors.append(Factor((buffer,), {(d,): tensor.conversion(d, lanes) for d in tensor.labels}))
    return least_choice(factors, {buffer: tensor.labels for buffer, tensor in tensors.items()})


def _by_kernel(accesses: Sequence[Access]) -> list[list[Access]]:
    groups: dict[Path, list[Access]] = {}
    for access in accesses:
        groups.setdefault(access.nest.path, []).append(access)
    return list(groups.values())


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The accesses of a kernel. `results` are the indices along which its results lie, `lane_bytes` the bytes of a lane
    of a vector along an index, where these are more than those of its elements."""

    accesses: Sequence[Access]
    tensors: Mapping[Buffer, FreeTensor]
    vector_bytes: int
    results: frozenset[str]
    lane_bytes: Mapping[str, int]

    @staticmethod
    def of(
        accesses: Sequence[Access], tensors: Mapping[Buffer, FreeTensor], vector_bytes: int, *, dots: bool
    ) -> _Kernel:
        block = accesses[0].nest.block
        results = indices_of(affine for access in accesses if access.is_write for affine in access.index)
        widest = max((ref.dtype.bytes for ref in block.refinements), default=1)
        lane_bytes = dict.fromkeys(results, widest) if dots and "widening" in block.tags else {}
        return _Kernel(accesses, tensors, vector_bytes, results, lane_bytes)

    def factor(self) -> Factor:
        nest = self.accesses[0].nest
        ranges = nest.domain.ranges
        points = prod(high - low + 1 for low, high in ranges.values())
        own = [name for name in nest.own if ranges[name][1] > ranges[name][0]]
        involved = tuple(dict.fromkeys(a.buffer for a in self.accesses if a.buffer in self.tensors))
        is_copy = all(isinstance(statement, Load | Store) for statement in nest.block.statements)
        scalars = sum(1.0 / _terms(a) if a.is_write else 1.0 for a in self.accesses)
        costs: dict[tuple[Label, ...], float] = {}
        for labels in product(*(self.tensors[buffer].labels for buffer in involved)):
            choice = dict(zip(involved, labels, strict=True))
            # Scalars, or vectors along one of the indices. Where lanes of one access lie apart, all are scalars, except
            # in a copy, whose vectors registers turn.
            along = ([self._operations(a, choice, name) for a in self.accesses] for name in own)
            sums = [
                sum(1.0 if count is None else count for count in each)
                for each in along
                if is_copy or None not in each
            ]
            costs[labels] = points * min(sums, default=scalars)
        return Factor(involved, costs)

    def _operations(self, access: Access, choice: Choice, name: str) -> float | None:
        """Memory operations for each point when vectors run along the index `name`; None where their lanes lie apart.

        Registers hold a sum until it is whole, unless its lanes lie apart. One along the vectors is merged lane by
        lane.
        """
        ref = access.nest.block.ref(access.ref)
        lanes = max(1, self.vector_bytes // max(ref.dtype.bytes, self.lane_bytes.get(name, 1)))
        extent = access.nest.domain.ranges[name][1] + 1
        vectors = vectors_along(extent, lanes) / extent
        moved = [dim for dim, affine in enumerate(access.index) if name in affine.names()]
        terms = _terms(access) if access.is_write else 1
        if not moved:
            return min(lanes / terms, 1.0) if access.is_write else vectors
        innermost, width = choice.get(access.buffer, (-1, 1))
        if innermost < 0:
            innermost = next((dim for dim, stride in enumerate(ref.strides) if stride == 1), -1)
        affine = access.index[moved[0]]
        if moved != [innermost] or step(affine, name) != 1:
            return None
        if width > 1 and (affine - Affine.var(name)).terms:
            return None  # a vector from the middle of a block on
        ranges = access.nest.domain.ranges
        uses = prod(ranges[other][1] + 1 for other in self.results - indices_of(access.index))
        along_sum = name not in self.results
        cost = vectors / terms
        if along_sum and uses > 1 and not self.lane_bytes:
            cost *= 2  # each result loads its factors; along results, and for dots, registers hold one for several
        elif not access.is_write and ref.dtype.bytes < self.lane_bytes.get(name, 0):
            cost *= _WIDEN
        tensor = self.tensors.get(access.buffer)
        # Constants are stored as tiles read them.
        if tensor is None or tensor.ref.role is Role.CONSTANT or width > 1:
            return cost
        if tensor.ref.sizes[innermost] % lanes == 0:
            return cost
        # Vectors begin at odd places. A copy for all uses has whole rows, but not of windows.
        is_copied = not along_sum and len(affine.names()) == 1
        return cost * (1 + min(1.0, _PACK / (uses if is_copied else 1)))


def _terms(access: Access) -> int:
    """The number of points of a block that write one element."""
    ranges, moving = access.nest.domain.ranges, indices_of(access.index)
    return prod(ranges[name][1] + 1 for name in access.nest.own if name not in moving)


@dataclass(frozen=True, slots=True)
class FactorGraph:
    """Tensors whose labels are open, and the factors on them. `around` has the tensors that share a factor with a
    tensor, `sizes` the number of choices of their labels.
    """

    labels: dict[Buffer, Sequence[Label]]
    factors: dict[Buffer, dict[int, Factor]] = field(default_factory=dict[Buffer, dict[int, Factor]])
    around: dict[Buffer, dict[Buffer, None]] = field(default_factory=dict[Buffer, dict[Buffer, None]])
    sizes: dict[Buffer, int] = field(default_factory=dict[Buffer, int])
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        for buffer in self.labels:
            self.factors[buffer], self.around[buffer], self.sizes[buffer] = {}, {}, 1

    def add(self, factor: Factor) -> None:
        """Adds a factor on open tensors, which become neighbours of each other."""
        number = next(self._numbers)
        for tensor in factor.tensors:
            self.factors[tensor][number] = factor
            for other in factor.tensors:
                if other != tensor and other not in self.around[tensor]:
                    self.around[tensor][other] = None
                    self.sizes[tensor] *= len(self.labels[other])

    def take(self, buffer: Buffer) -> tuple[list[Factor], tuple[Buffer, ...]]:
        """The factors of a tensor and those around it; all of these leave the graph with it."""
        taken, others = self.factors.pop(buffer), tuple(self.around.pop(buffer))
        for number, factor in taken.items():
            for tensor in factor.tensors:
                if tensor != buffer:
                    del self.factors[tensor][number]
        for other in others:
            del self.around[other][buffer]
            self.sizes[other] //= len(self.labels[buffer])
        del self.labels[buffer]
        return list(taken.values()), others

    def fix(self, buffer: Buffer) -> tuple[Buffer, ...]:
        """Takes a tensor out with its first label; gives the tensors around it."""
        label = self.labels[buffer][0]
        factors, others = self.take(buffer)
        for factor in factors:
            place = factor.tensors.index(buffer)
            rest = {
                (*labels[:place], *labels[place + 1 :]): cost
                for labels, cost in factor.costs.items()
                if labels[place] == label
            }
            self.add(Factor((*factor.tensors[:place], *factor.tensors[place + 1 :]), rest))
        return others


def least_choice(factors: Sequence[Factor], labels: Mapping[Buffer, Sequence[Label]]) -> dict[Buffer, Label]:
    """The labels with the least sum of factors; among equals the first ones."""
    graph = FactorGraph(dict(labels))
    for factor in factors:
        graph.add(factor)
    best: list[tuple[Buffer, tuple[Buffer, ...], dict[tuple[Label, ...], Label]]] = []
    found = {buffer: choices[0] for buffer, choices in labels.items()}
    for buffer, choices in labels.items():
        if len(choices) == 1:
            graph.fix(buffer)
    places = {buffer: place for place, buffer in enumerate(labels)}

    def entry(buffer: Buffer) -> tuple[int, int, Buffer]:
        return graph.sizes[buffer], places[buffer], buffer

    # The tensor whose neighbours have the fewest labels comes first. An entry that is no longer right is skipped.
    queue = [entry(buffer) for buffer in graph.labels]
    heapify(queue)
    while graph.labels:
        size, _, buffer = first = heappop(queue)
        if buffer not in graph.labels or entry(buffer) != first:
            continue
        if len(graph.labels[buffer]) * size > MOST_ENTRIES:
            others = graph.fix(buffer)
        else:
            choices = graph.labels[buffer]
            factors, others = graph.take(buffer)
            merged, chosen = _eliminated(buffer, choices, factors, others, graph.labels)
            best.append((buffer, others, chosen))
            graph.add(merged)
        for other in others:
            heappush(queue, entry(other))
    for buffer, others, chosen in reversed(best):
        found[buffer] = chosen[tuple(found[other] for other in others)]
    return found


def _eliminated(
    buffer: Buffer,
    choices: Sequence[Label],
    factors: Sequence[Factor],
    others: tuple[Buffer, ...],
    labels: Mapping[Buffer, Sequence[Label]],
) -> tuple[Factor, dict[tuple[Label, ...], Label]]:
    """The least sum of the factors of a tensor, and its label for that, by the labels of its neighbours."""
    costs: dict[tuple[Label, ...], float] = {}
    chosen: dict[tuple[Label, ...], Label] = {}
    for values in product(*(labels[other] for other in others)):
        here = dict(zip(others, values, strict=True))
        for label in choices:
            here[buffer] = label
            total = sum(factor.costs[tuple(here[t] for t in factor.tensors)] for factor in factors)
            if values not in costs or total < costs[values]:
                costs[values], chosen[values] = total, label
    return Factor(others, costs), chosen
