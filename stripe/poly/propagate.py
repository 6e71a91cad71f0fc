"""Intervals of indices under linear constraints, without isl: exact where no two of the constraints still matter to
one index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stripe.ir import Affine, Interval

_ROUNDS = 8
"""Rounds over all constraints; tiled windows settle in two."""


@dataclass(frozen=True, slots=True)
class BoundedBox:
    """Points in `ranges` that satisfy `left`; other constraints hold at every point of `ranges`.

    `is_exact`: each end of each range is taken by a point. Then there is a point, too.
    """

    ranges: Mapping[str, Interval]
    left: tuple[Affine, ...]
    is_exact: bool

    def attains(self, affine: Affine) -> bool:
        """Whether a linear `affine` is known to take its least value over `ranges` at a point."""
        if not self.is_exact or not affine.is_linear:
            return False
        lowest = {name: low if affine.coeff(name) >= 0 else high for name, (low, high) in self.ranges.items()}
        for constraint in self.left:
            free = {name: self.ranges[name] for name in constraint.names() - affine.names()}
            fixed = {name: (lowest[name], lowest[name]) for name in constraint.names() & affine.names()}
            if constraint.bounds({**free, **fixed})[1] < 0:
                return False
        return True


def propagated(ranges: Mapping[str, Interval], constraints: Iterable[Affine]) -> BoundedBox | None:
    """The box of the points in `ranges` that satisfy all constraints >= 0; None when there are none for sure.

    A linear constraint cuts each of its indices to where it can hold, the others being in their ranges; that again and
    again until nothing changes. The result is a box and the constraints that some point of it violates. A range is
    then the hull of its values under a lone constraint: at its ends, with the other indices of that constraint where
    it is largest, the constraint holds. So the box is exact when constraints that remain share no index.
    """
    box = dict(ranges)
    if any(low > high for low, high in box.values()):
        return None
    left = tuple(constraints)
    for _ in range(_ROUNDS):
        before = dict(box)
        for affine in left:
            if affine.is_linear and not _cut(affine, box):
                return None
        left = tuple(affine for affine in left if affine.bounds(box)[0] < 0)
        if any(affine.bounds(box)[1] < 0 for affine in left):
            return None
        if box == before:
            names = [name for affine in left for name in affine.names()]
            no_shared = len(names) == len(set(names))
            return BoundedBox(box, left, no_shared and all(affine.is_linear for affine in left))
    return BoundedBox(box, left, is_exact=not left)


def _cut(affine: Affine, box: dict[str, Interval]) -> bool:
    """Cuts the intervals of the indices in a linear constraint; False when nothing is left of one."""
    most = affine.bounds(box)[1]
    for atom, coefficient in affine.terms:
        assert isinstance(atom, str)
        low, high = box[atom]
        slack = most - coefficient * (high if coefficient > 0 else low)  # the most that the others come to
        if coefficient > 0:  # coefficient * value + slack >= 0
            low = max(low, -(slack // coefficient))
        else:
            high = min(high, slack // -coefficient)
        if low > high:
            return False
        box[atom] = (low, high)
    return True
