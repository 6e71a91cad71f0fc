"""Dominance between choices: rows of factors that no other row undercuts."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stripe.cost.mapping.problem import Floats, Integers

BLOCK = 256
"""Rows that are compared with as many others at once: their table of pairs stays in the cache."""


def undominated(rows: Floats) -> Integers:
    """The numbers of the rows that no other row undercuts or equals in every column; of equal rows one."""
    varied = rows[:, np.any(rows != rows[0], axis=0)]
    order = np.argsort(varied.sum(axis=1), kind="stable")  # a dominating row comes before
    columns = np.ascontiguousarray(varied[order].T)
    kept = columns[:, :0]
    numbers: list[Integers] = []
    for start in range(0, len(order), BLOCK):
        block, places = columns[:, start : start + BLOCK], order[start : start + BLOCK]
        for known in (kept[:, n : n + BLOCK] for n in range(0, kept.shape[1], BLOCK)):
            alive = ~np.any(_undercut(block, known), axis=1)
            block, places = block[:, alive], places[alive]
        undercut = _undercut(block, block)
        earlier = np.tri(len(places), k=-1, dtype=np.bool_)
        alive = ~np.any(undercut & (~undercut.T | earlier), axis=1)
        kept = np.concatenate([kept, block[:, alive]], axis=1)
        numbers.append(places[alive])
    return np.sort(np.concatenate(numbers))


def _undercut(rows: Floats, others: Floats) -> npt.NDArray[np.bool_]:
    """For each of the `rows` and each of the `others`, both given by columns, whether the latter is nowhere larger.

    Column by column: tables of three dimensions take several times as long.
    """
    found = np.ones((rows.shape[1], others.shape[1]), np.bool_)
    for own, other in zip(rows, others, strict=True):
        found &= other <= own[:, None]
    return found
