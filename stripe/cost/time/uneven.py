"""Tiles of unequal size: the points of a block in each tile, where constraints cut tiles at the edges."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from stripe.cost.counts.operations import point_operations
from stripe.cost.time.pieces import Compute, Loop, Move, Piece, pieces_below
from stripe.ir import Affine, Domain, Nest
from stripe.poly.connected import connected

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts: TypeAlias = NDArray[np.int64]

_MOST = 4_000_000
"""Entries of a table of one group of indices."""

_MOST_STAGES = 200_000
"""A loop with more stages than this, of tiles of unequal size, runs with the mean."""


def tile_cycles(loop: Loop, piece: Piece, cycles: float, latency: float) -> tuple[float, ...] | None:
    """The cycles of a piece in each tile of a loop, in proportion to its points there; empty where all tiles are
    alike, None where the points of each cannot be told. `cycles` are those of all tiles, `latency` is in each of them.
    """
    if loop.even:
        return ()
    if loop.runs != 1 or loop.trips * len(loop.pieces) > _MOST_STAGES:
        return None
    weights = _weights(loop, piece)
    if weights is None:
        return None
    total = sum(weights)
    if not total or min(weights) == max(weights):
        return ()
    work = max(0.0, cycles - latency * len(weights))
    return tuple(latency + work * weight / total for weight in weights)


def _weights(loop: Loop, piece: Piece) -> list[int] | None:
    """The work of a piece in each tile: points of a transfer, operations of computing."""
    outer = loop.nest.domain.names
    runs = tile_points(loop.nest, outer)
    if isinstance(piece, Move):
        parts = [(tile_points(piece.nest, outer), 1)]
    else:
        leaves = [
            leaf for inner in pieces_below(piece) if isinstance(inner, Compute) for leaf in inner.leaves
        ]
        parts = [(tile_points(leaf, outer), max(1, point_operations(leaf.block).total)) for leaf in leaves]
    if runs is None or not parts or any(points is None for points, _ in parts):
        return None
    columns = [[number * cost for number in points.tolist()] for points, cost in parts if points is not None]
    return [sum(row) for run, row in zip(runs.tolist(), zip(*columns, strict=True), strict=True) if run]


def tile_points(nest: Nest, outer: Sequence[str]) -> Counts | None:
    """The points of the innermost block of `nest` for each point of the indices `outer`, in their order, the last one
    running fastest; None where that takes too large a table.

    Indices that no constraint couples count apart and multiply, so the tables stay small.
    """
    return _domain_points(nest.domain, tuple(outer))


@lru_cache(maxsize=2048)
def _domain_points(domain: Domain, outer: tuple[str, ...]) -> Counts | None:
    """`tile_points` of a nest with this domain. Answers are kept: the pieces of a loop and equal layers share them."""
    import numpy as np

    sizes = [domain.ranges[name][1] + 1 for name in outer]
    if prod(sizes) > _MOST:
        return None
    inner = [name for name in domain.names if name not in set(outer)]
    total = np.ones(sizes, dtype=np.int64)
    links = [constraint.names().difference(outer) for constraint in domain.constraints]
    # the group without names has the constraints on `outer` alone
    for names in [*connected([*([name] for name in inner), *links]), list[str]()]:
        tied = [link & set(names) if link else not names for link in links]
        constraints = [c for c, is_tied in zip(domain.constraints, tied, strict=True) if is_tied]
        if not constraints:
            total *= domain.volume(names)
            continue
        table = _table(domain, outer, names, constraints)
        if table is None:
            return None
        total = total * table
    found = total.reshape(-1)
    found.flags.writeable = False
    return found


def _table(
    domain: Domain, outer: Sequence[str], names: list[str], constraints: list[Affine]
) -> Counts | None:
    """The points of a group for each point of `outer`, with size 1 along indices that do not matter."""
    import numpy as np

    ranges = domain.ranges
    used = {name for constraint in constraints for name in constraint.names()}
    axes = [*(name if name in used else None for name in outer), *names]
    shape = [ranges[name][1] + 1 if name else 1 for name in axes]
    if prod(shape) > _MOST:
        return None
    env: dict[str, Counts] = {}
    for axis, name in enumerate(axes):
        if name:
            place = [1] * len(axes)
            place[axis] = shape[axis]
            env[name] = np.arange(shape[axis], dtype=np.int64).reshape(place)
    inside = np.ones(shape, dtype=bool)
    for constraint in constraints:
        inside &= np.broadcast_to(np.asarray(constraint.evaluate(env)) >= 0, shape)
    return inside.sum(axis=tuple(range(len(outer), len(axes))), dtype=np.int64)
