"""Systolic and row-stationary arrays: cycles of a matrix product or convolution, and the operands that it takes in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Literal, NamedTuple

from stripe.cost.time.pieces import Compute, Stream
from stripe.hw.engines import SystolicArray
from stripe.ir import Agg, Block, Load, Nest, Store, indices_of
from stripe.ir.frozen import replace

Role = Literal["reduction", "pixels", "filters", "batches"]


class ProductShape(NamedTuple):
    """A matrix product: reduction length, output pixels, filters and batches."""

    reduction: int
    pixels: int
    filters: int
    batches: int = 1


@dataclass(frozen=True)
class ArrayUse:
    """The cycles of computing on an array, and the streams in and out in all its folds."""

    cycles: float
    streams: tuple[Stream, ...]
    rule: str


def array_use(compute: Compute, array: SystolicArray) -> ArrayUse | None:
    """The quicker of the two orders of the factors, either of which may stay in the array; None for anything but a
    multiply-accumulate of two operands, and for a dataflow without a rule."""
    product = _product(compute)
    if product is None or array.dataflow == "input_stationary":
        return None
    if array.dataflow == "row_stationary":
        if not product.windows:
            return None  # without a window any position takes any point
        return ArrayUse(
            compute.runs * _row_stationary(array, product), compute.streams, "row-stationary array"
        )
    swapped = product.shape._replace(pixels=product.shape.filters, filters=product.shape.pixels)
    cycles, order, shape = min(
        (systolic_cycles(array, *shape), order, shape) for order, shape in enumerate((product.shape, swapped))
    )
    streams = tuple(_streams(compute, array, product, order, shape))
    return ArrayUse(compute.runs * cycles, streams, "systolic array")


def systolic_cycles(array: SystolicArray, reduction: int, pixels: int, filters: int, batches: int = 1) -> int:
    """Cycles of a matrix product on a systolic array (the closed forms of SCALE-Sim 3.0.0). An array that loads ahead
    shifts the next weights in while it computes, so that it fills and drains once."""
    rows, columns = array.rows, array.columns
    if array.dataflow == "weight_stationary":
        folds = ceil(reduction / rows) * ceil(filters / columns)
        if array.loads_ahead:
            return batches * folds * max(pixels, rows) + 2 * rows + columns - 3
        return batches * (folds * (pixels + 2 * rows + columns - 2) - 1)
    folds = ceil(pixels / rows) * ceil(filters / columns)
    return batches * (folds * (reduction + rows + columns - 2) - 1)


def _streams(
    compute: Compute, array: SystolicArray, product: _Product, order: int, shape: ProductShape
) -> Iterator[Stream]:
    """The traffic of the folds: an operand that moves streams in for each fold along the columns; partial
    sums leave for each fold of the reduction, and come back for all but the first."""
    length, pixels, filters, batches = shape
    by_rows, by_columns = ceil(length / array.rows), ceil(filters / array.columns)
    if array.dataflow == "weight_stationary":
        moving, held, sums = length * pixels * by_columns, length * filters, by_rows
    else:
        moving, held, sums = length * pixels * by_columns, length * filters * ceil(pixels / array.rows), 1
    elements = {product.inputs[order]: moving, product.inputs[1 - order]: held}
    for stream in compute.streams:
        size = product.sizes.get(stream.buffer)
        if size is None or (stream.writes and stream.buffer != product.output):
            yield stream
        elif not stream.writes and stream.buffer in elements:
            yield replace(stream, bytes=compute.runs * batches * elements[stream.buffer] * size)
        elif stream.writes:
            results = compute.runs * batches * pixels * filters * size
            yield replace(stream, bytes=sums * results)
            if sums > 1:
                yield replace(stream, writes=False, bytes=(sums - 1) * results)
        else:
            yield stream


def _row_stationary(array: SystolicArray, product: _Product) -> int:
    """Rows of the filter lie along the rows of the array and rows of the output along its columns, so that sums run up
    a column and rows of the input along a diagonal; the rest of the array takes further channels and filters (Chen
    et al., Eyeriss, ISCA 2016). Of several windows the better one."""
    points = prod(product.shape)
    return min(
        ceil(points / (window * outputs) * strips / (stacked * beside)) * ceil(window / array.rows)
        for window, outputs in product.windows
        for strips in [ceil(outputs / array.columns)]
        for stacked in [max(1, array.rows // window)]
        for beside in [max(1, array.columns // outputs)]
    )


@dataclass(frozen=True)
class _Product:
    """A multiply-accumulate: its shape, buffers, sizes of their elements, and of each window of an input the rows of
    the filter and of the output."""

    shape: ProductShape
    inputs: tuple[str, str]
    output: str
    sizes: dict[str, int]
    windows: tuple[tuple[int, int], ...]


def _product(compute: Compute) -> _Product | None:
    if len(compute.leaves) != 1:
        return None
    (leaf,) = compute.leaves
    outside = set(compute.nest.prefix(compute.nest.depth - 1))
    names = [name for name in leaf.domain.names if name not in outside]
    roles = matmul_roles(leaf.block, names, lambda ref: indices_of(leaf.views[ref].origin))
    if roles is None:
        return None
    extents = {name: leaf.domain.volume([name]) for name in names}
    shape = ProductShape(*(prod(extents[name] for name in names if roles[name] == role) for role in ROLES))
    first, second = (s.ref for s in leaf.block.statements if isinstance(s, Load))
    (output,) = (s.ref for s in leaf.block.statements if isinstance(s, Store))
    buffers = {ref: leaf.views[ref].buffer.name for ref in (first, second, output)}
    sizes = {buffers[ref]: leaf.block.ref(ref).dtype.bytes for ref in buffers}
    windows = tuple(_windows(leaf, (first, second), roles, extents))
    return _Product(shape, (buffers[first], buffers[second]), buffers[output], sizes, windows)


def _windows(
    leaf: Nest, refs: Sequence[str], roles: dict[str, Role], extents: dict[str, int]
) -> Iterator[tuple[int, int]]:
    for ref in refs:
        for affine in leaf.views[ref].origin:
            known = affine.names() & roles.keys()
            summed = [extents[name] for name in known if roles[name] == "reduction"]
            kept = [extents[name] for name in known if roles[name] != "reduction"]
            if summed and kept:
                yield prod(summed), prod(kept)


ROLES: tuple[Role, ...] = ("reduction", "pixels", "filters", "batches")


def matmul_roles(
    block: Block, names: Sequence[str], moving: Callable[[str], frozenset[str]]
) -> dict[str, Role] | None:
    """The roles of indices in a multiply-accumulate of two operands, `moving` being the indices that move a view;
    None for any other block. Filters are the outputs' indices that only the second operand has."""
    loads = [s for s in block.statements if isinstance(s, Load)]
    stores = [s for s in block.statements if isinstance(s, Store)]
    if len(loads) != 2 or len(stores) != 1 or block.ref(stores[0].ref).agg is not Agg.ADD:
        return None
    first, second, out = (moving(each.ref) for each in (*loads, stores[0]))
    found: dict[str, Role] = {}
    for name in names:
        if name not in out:
            found[name] = "reduction"
        elif name in first and name in second:
            found[name] = "batches"
        else:
            found[name] = "filters" if name in second else "pixels"
    return found
