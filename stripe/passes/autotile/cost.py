"""What a tile costs: the formula of PlaidML, or time on a machine; and the limits that tiles keep.

Both costs come with lower bounds over boxes of sizes for the search. Each is made of parts that are monotonic
in every size, and each part is taken at the corner of the box where it is least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import TYPE_CHECKING

from stripe.ir import Agg, Block, Direction
from stripe.passes.autotile.footprint import Footprint

if TYPE_CHECKING:
    from stripe.passes.autotile.footprint import Ints
    from stripe.passes.autotile.search import Bools, Floats


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a tile may take; 0 means no limit. Bytes and numbers of elements as the options of
    `autotile` say.
    """

    max_input_size: int = 0
    max_per_input_size: int = 0
    max_output_size: int = 0
    max_per_output_size: int = 0
    max_total_size: int = 0
    max_sizes_product: int = 0
    max_po2_product: int = 0
    max_count: int = 0
    odd_size: bool = False
    use_box: bool = False
    memory: int | None = None
    """Bytes of the memory that a tile has for itself."""
    alignment: int = 1


class TileShape:
    """The block in numbers: its indices, and the views that count."""

    def __init__(self, block: Block, footprints: Sequence[Footprint], limits: Limits) -> None:
        self.names = [index.name for index in block.iterated]
        self.ranges = [index.range for index in block.iterated]
        self.footprints = list(footprints)
        self.inputs = [f for f in footprints if f.ref.dir.reads]
        self.outputs = [f for f in footprints if f.ref.dir.writes]
        self.limits = limits
        used = sorted({column for f in self.outputs for column in f.columns})
        self.out_columns = used

    def bytes_of(self, footprint: Footprint, sizes: Ints) -> Ints:
        """Bytes that one tile holds of a view, as the limits count them."""
        limits = self.limits
        if limits.odd_size or limits.use_box:
            elements = footprint.box(sizes, odd=limits.odd_size)
        else:
            elements = footprint.elements(sizes)
        raw = elements * footprint.ref.dtype.bytes
        return -(-raw // limits.alignment) * limits.alignment

    def held(self, sizes: Ints) -> Ints:
        """Bytes that one tile holds of all views."""
        import numpy as np

        total = np.zeros(len(sizes), dtype=np.int64)
        for footprint in self.footprints:
            total = total + self.bytes_of(footprint, sizes)
        return total

    def too_big(self, sizes: Ints) -> Bools:
        """Whether a tile breaks a limit that larger ones break too: all these quantities grow with each size."""
        import numpy as np

        limits, broken = self.limits, np.zeros(len(sizes), dtype=np.bool_)
        for side, most, most_each in (
            (self.inputs, limits.max_input_size, limits.max_per_input_size),
            (self.outputs, limits.max_output_size, limits.max_per_output_size),
        ):
            if not most and not most_each:
                continue
            total = np.zeros(len(sizes), dtype=np.int64)
            for footprint in side:
                size = self.bytes_of(footprint, sizes)
                total = total + size
                if most_each:
                    broken |= size > most_each
            if most:
                broken |= total > most
        if limits.max_total_size or limits.memory is not None:
            held = self.held(sizes)
            if limits.max_total_size:
                broken |= held > limits.max_total_size
            if limits.memory is not None:
                broken |= held > limits.memory
        if limits.max_sizes_product:
            broken |= product(sizes) > limits.max_sizes_product
        if limits.max_po2_product:
            rounded = np.exp2(np.ceil(np.log2(sizes.astype(np.float64))))
            broken |= np.prod(rounded, axis=1) > limits.max_po2_product
        return broken

    def too_many(self, sizes: Ints) -> Bools:
        """Whether there are more tiles than allowed, which smaller sizes do not cure."""
        import numpy as np

        if not self.limits.max_count:
            return np.zeros(len(sizes), dtype=np.bool_)
        return product(self.counts(sizes)) > self.limits.max_count

    def counts(self, sizes: Ints) -> Ints:
        """Tiles along each index."""
        import numpy as np

        return -(-np.asarray(self.ranges, dtype=np.int64) // sizes)


def product(values: Ints, columns: Sequence[int] | None = None) -> Floats:
    """The product of each row, or of some columns of it."""
    import numpy as np

    chosen = values if columns is None else values[:, list(columns)]
    return np.prod(chosen.astype(np.float64), axis=1)


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of PlaidML's formula, as the options of `autotile` describe them."""

    input_cost: float = 1.0
    output_cost: float = 1.0
    split_factor: float = 0.001
    cache_width: int = 0
    min_size: int = 1
    min_out_size: int = 1
    min_count: int = 1
    min_out_count: int = 1
    small_factor_upbound: int = 0


class FormulaModel:
    """The cost that PlaidML 0.7 gave a tile (tile/codegen/autotile.cc):

        (waste * (1 + input_cost*in_lines + output_cost*out_lines) / S + split_factor*log2(C)) / (1 + small
        factors)

    with S the product of the sizes, C of the counts, and waste that of four shortfalls (minimum / what there
    is, where that is less) and of size*count/range over the indices. Views that are read and written count on
    both sides.
    """

    def __init__(self, shape: TileShape, weights: Weights) -> None:
        self.shape = shape
        self.weights = weights
        self.points = prod(float(size) for size in shape.ranges)

    def cost(self, sizes: Ints) -> Floats:
        """The cost of each candidate; infinite where it breaks a limit."""
        import numpy as np

        shape = self.shape
        counts = shape.counts(sizes)
        padded = product(counts) / self.points  # size*count/range over all indices, divided by S
        io = np.ones(len(sizes), dtype=np.float64)
        for footprint, weight in self._weighed():
            io = io + weight * self._lines(footprint, sizes, sizes)
        work = self._shortfall(sizes, sizes) * padded * io
        total = work + self.weights.split_factor * np.log2(product(counts))
        divisor = 1 + self._small_factors(sizes)
        return np.where(shape.too_big(sizes) | shape.too_many(sizes), inf, total / divisor)

    def bound(self, low: Ints, high: Ints) -> Floats:
        """A lower bound over a box. Lines of all tiles together are at least the clipped elements divided by a
        line's elements, and at least the lines of the smallest tile times the fewest tiles.
        """
        import numpy as np

        shape, split = self.shape, self.weights.split_factor
        fewest = product(shape.counts(high)) / self.points
        work = fewest.copy()
        for footprint, weight in self._weighed():
            line = self._line_elements(footprint)
            others = [c for c in range(len(shape.ranges)) if c not in footprint.columns]
            touched = footprint.least_total(low, high) * product(shape.counts(high), others)
            least = np.maximum(self._lines(footprint, low, high) * fewest, touched / line / self.points)
            work = work + weight * least
        corner = high if split >= 0 else low
        total = self._shortfall(low, high) * work + split * np.log2(product(shape.counts(corner)))
        most = np.ones(len(low), dtype=np.float64)
        if self.weights.small_factor_upbound > 1:
            for column in shape.out_columns:
                most = most + np.floor(np.log2(high[:, column].astype(np.float64)))
        total = np.where(total >= 0, total / most, total)
        return np.where(shape.too_big(low) | shape.too_many(high), inf, total)

    def _weighed(self) -> list[tuple[Footprint, float]]:
        weights = self.weights
        return [(f, weights.input_cost) for f in self.shape.inputs if weights.input_cost] + [
            (f, weights.output_cost) for f in self.shape.outputs if weights.output_cost
        ]

    def _line_elements(self, footprint: Footprint) -> float:
        return max(1.0, self.weights.cache_width / footprint.ref.dtype.bytes)

    def _lines(self, footprint: Footprint, sizes: Ints, reached: Ints) -> Floats:
        """Cache lines of one tile: dimensions by rising stride, of which neighbours share a line where the gap
        is less than one. The sharing is that of tiles `reached`, which are not smaller: more sharing, so a
        lower bound.
        """
        import numpy as np

        line = self._line_elements(footprint)
        extents, far = footprint.extents(sizes), footprint.extents(reached)
        lines = np.ones(len(sizes), dtype=np.float64)
        reach = np.zeros(len(sizes), dtype=np.float64)
        strides = [abs(stride) for stride in footprint.ref.strides]
        for dim in sorted(range(len(strides)), key=lambda d: strides[d]):
            gap = strides[dim] - reach
            shared = np.where(gap < line, np.clip(1 - gap / line, 0.0, 1.0), 0.0)
            lines = lines * extents[dim] - shared * (extents[dim] - 1)
            reach = reach + strides[dim] * (far[dim] - 1)
        return lines

    def _shortfall(self, low: Ints, high: Ints) -> Floats:
        """How far tiles are smaller or fewer than wished; sizes are best at `high`, counts at `low`."""
        import numpy as np

        weights, counts, outs = self.weights, self.shape.counts(low), self.shape.out_columns
        waste = np.ones(len(low), dtype=np.float64)
        for least, value in (
            (weights.min_size, product(high)),
            (weights.min_out_size, product(high, outs)),
            (weights.min_count, product(counts)),
            (weights.min_out_count, product(counts, outs)),
        ):
            waste = waste * least / np.minimum(value, least)
        return waste

    def _small_factors(self, sizes: Ints) -> Ints:
        """Prime factors up to the bound, of the sizes of indices that outputs use, counted as often as they
        occur.
        """
        import numpy as np

        found = np.zeros(len(sizes), dtype=np.int64)
        for column in self.shape.out_columns:
            rest = sizes[:, column].copy()
            for factor in range(2, self.weights.small_factor_upbound + 1):
                divides = rest % factor == 0
                while divides.any():
                    found = found + divides
                    rest = np.where(divides, rest // factor, rest)
                    divides = rest % factor == 0
        return found


@dataclass(frozen=True, slots=True)
class Transfer:
    """One view on its way into a memory or back: its bytes per cycle and the cycles before the first byte."""

    footprint: Footprint
    reads: bool
    bytes_per_cycle: float
    latency_cycles: float


class MachineModel:
    """Cycles that all tiles take on a machine.

    A tile's views are moved over the bus routes into the memory and back, each tile its own, and then computed
    on. With one buffer that adds up; with more, tile k computes while tile k+1 is moved, so that n tiles alike
    take max(n*compute + move, n*move + compute) with the move and compute of one tile. An aggregated result
    whose reduction is split is read back for all tiles but the first.
    """

    def __init__(
        self,
        shape: TileShape,
        transfers: Sequence[Transfer],
        cycles_per_point: float,
        latency_per_tile: float,
        pipeline_depth: int,
        move_weight: float,
    ) -> None:
        self.shape = shape
        self.transfers = list(transfers)
        self.cycles_per_point = cycles_per_point
        self.latency_per_tile = latency_per_tile
        self.pipelined = pipeline_depth > 1
        self.move_weight = move_weight
        self.points = prod(float(size) for size in shape.ranges)

    def cost(self, sizes: Ints) -> Floats:
        """Cycles for each candidate; infinite where it breaks a limit."""
        import numpy as np

        broken = self.shape.too_big(sizes) | self.shape.too_many(sizes)
        return np.where(broken, inf, self._weighed(sizes, sizes))

    def bound(self, low: Ints, high: Ints) -> Floats:
        """A lower bound over a box: what all tiles take falls with each size, what one tile takes grows."""
        import numpy as np

        impossible = self.shape.too_big(low) | self.shape.too_many(high)
        return np.where(impossible, inf, self._weighed(low, high))

    def _weighed(self, low: Ints, high: Ints) -> Floats:
        move = self.move_cycles(low, high)
        return self._time(low, high, move) + self.move_weight * move

    def time(self, low: Ints, high: Ints) -> Floats:
        """Cycles from the first transfer to the last, of sizes (given twice); at least, for a box."""
        return self._time(low, high, self.move_cycles(low, high))

    def _time(self, low: Ints, high: Ints, move: Floats) -> Floats:
        import numpy as np

        compute = self.compute_cycles(high)
        if not self.pipelined:
            return compute + move
        one_compute = product(low) * self.cycles_per_point + self.latency_per_tile
        one_move = np.zeros(len(low), dtype=np.float64)
        for transfer in self.transfers:
            size = transfer.footprint.elements(low) * transfer.footprint.ref.dtype.bytes
            one_move = one_move + size / transfer.bytes_per_cycle + transfer.latency_cycles
        return np.maximum(compute + np.minimum(one_move, move), move + np.minimum(one_compute, compute))

    def compute_cycles(self, sizes: Ints) -> Floats:
        """Cycles that the execution unit works for all tiles."""
        return self.points * self.cycles_per_point + product(self.shape.counts(sizes)) * self.latency_per_tile

    def move_cycles(self, low: Ints, high: Ints) -> Floats:
        """Cycles that transfers take for all tiles; at least, for sizes between `low` and `high`."""
        import numpy as np

        counts = self.shape.counts(high)
        tiles = product(counts)
        total = np.zeros(len(low), dtype=np.float64)
        for transfer in self.transfers:
            footprint = transfer.footprint
            others = [c for c in range(counts.shape[1]) if c not in footprint.columns]
            visits = product(counts, others)
            once = footprint.least_total(low, high) * footprint.ref.dtype.bytes
            if not transfer.reads or footprint.ref.dir.reads:
                total = total + once * visits / transfer.bytes_per_cycle + tiles * transfer.latency_cycles
            else:  # a partial result comes back
                latency = transfer.latency_cycles * tiles * (1 - 1 / visits)
                total = total + once * (visits - 1) / transfer.bytes_per_cycle + latency
        return total


def is_read_back(footprint: Footprint) -> bool:
    """Whether partial results of a view come back when the reduction is split."""
    return footprint.ref.dir is Direction.OUT and footprint.ref.agg is not Agg.ASSIGN
