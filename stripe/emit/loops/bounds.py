"""The loops of one block: their bounds after the constraints, and the tests that no bound can express."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from stripe.ir import Affine, FloorDiv, Interval, Mod


@dataclass(frozen=True, slots=True)
class ForLoop:
    """`for var in [max(lower), min(upper))`, then `if` all of `guards` are >= 0. Bounds use variables outside only."""

    var: str
    range: int
    lower: tuple[Affine, ...]
    upper: tuple[Affine, ...]
    guards: tuple[Affine, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether bounds are constant and nothing is tested inside, so that the loop runs at least once."""
        return not self.guards and all(bound.is_constant for bound in (*self.lower, *self.upper))

    def depends_on(self, variables: Collection[str]) -> bool:
        """Whether a bound uses one of `variables`."""
        return any(bound.names().intersection(variables) for bound in (*self.lower, *self.upper))


@dataclass(frozen=True, slots=True)
class Loops:
    """The loops of a block from the outermost in; `guards` are tested before the first. `empty`: there is no point."""

    guards: tuple[Affine, ...]
    loops: tuple[ForLoop, ...]
    intervals: Mapping[str, Interval]
    empty: bool = False

    def still_from(self, affine: Affine, last: int | None = None) -> int:
        """The number of the outermost loop from which on, up to `last`, none moves an affine."""
        names = affine.names()
        return max((n for n, loop in enumerate(self.loops[:last]) if loop.var in names), default=-1) + 1


def bounded(
    ranges: Sequence[tuple[str, int]], constraints: Iterable[Affine], outer: Mapping[str, Interval]
) -> Loops:
    """Loops over `ranges` (variable, range) in this order, under `constraints` (>= 0, over variables).

    A constraint goes to the innermost loop whose variable it uses: into its bounds when the variable occurs there
    linearly, else into a test inside it. Loops outside of that keep to the interval in which the constraint can hold.
    `outer` gives the intervals of the variables outside.
    """
    level = {var: number for number, (var, _) in enumerate(ranges)}
    intervals = {**outer, **{var: (0, size - 1) for var, size in ranges}}
    bounds: list[tuple[list[Affine], list[Affine], list[Affine]]] = [
        ([Affine(0)], [Affine(size)], []) for _, size in ranges
    ]
    outside: list[Affine] = []

    def depth(affine: Affine) -> int:
        return max((level[name] for name in affine.names() if name in level), default=-1)

    for constraint in sorted(constraints, key=depth):
        affine = constraint.simplified(intervals)
        low, high = affine.bounds(intervals)
        if low >= 0:
            continue
        if high < 0:
            return Loops((), (), intervals, empty=True)
        place = depth(affine)
        if place < 0:
            outside.append(affine)
            continue
        var = ranges[place][0]
        lower, upper, guards = bounds[place]
        inside = [atom.arg for atom, _ in affine.terms if isinstance(atom, FloorDiv | Mod)]
        if affine.coeff(var) == 0 or any(var in arg.names() for arg in inside):
            guards.append(affine)
        elif not _tighten(affine, var, lower, upper, intervals):
            return Loops((), (), intervals, empty=True)
        for name in affine.names() - {var}:
            if name in level and affine.coeff(name) and not any(name in arg.names() for arg in inside):
                # what is left of the constraint for an outer variable: the others at their best
                own = Affine.var(name) * affine.coeff(name)
                _, most = (affine - own).bounds(intervals)
                lower, upper, _ = bounds[level[name]]
                if not _tighten(own + most, name, lower, upper, intervals):
                    return Loops((), (), intervals, empty=True)
    loops = [
        ForLoop(var, size, _strongest(lower, intervals, 1), _strongest(upper, intervals, -1), tuple(guards))
        for (var, size), (lower, upper, guards) in zip(ranges, bounds, strict=True)
    ]
    return Loops(tuple(outside), tuple(loops), intervals)


def _tighten(
    affine: Affine, var: str, lower: list[Affine], upper: list[Affine], intervals: dict[str, Interval]
) -> bool:
    """Turns `affine >= 0` into a bound of `var` and narrows its interval; False when nothing is left of it."""
    coefficient = affine.coeff(var)
    rest = affine - Affine.var(var) * coefficient
    first, last = intervals[var]
    if coefficient > 0:  # var >= ceil(-rest / coefficient)
        bound = (-(rest.floordiv(coefficient))).simplified(intervals)
        lower.append(bound)
        first = max(first, bound.bounds(intervals)[0])
    else:  # var <= floor(rest / -coefficient)
        bound = rest.floordiv(-coefficient).simplified(intervals)
        upper.append(bound + 1)
        last = min(last, bound.bounds(intervals)[1])
    if first > last:
        return False
    intervals[var] = (first, last)
    return True


def _strongest(bounds: Sequence[Affine], intervals: Mapping[str, Interval], sign: int) -> tuple[Affine, ...]:
    """`bounds` without those that another one implies; sign 1 for lower bounds, -1 for upper ones."""

    def implies(strong: Affine, weak: Affine) -> bool:
        return ((strong - weak) * sign).bounds(intervals)[0] >= 0

    kept: list[Affine] = []
    for bound in dict.fromkeys(bounds):
        if not any(implies(other, bound) for other in kept):
            kept = [*(other for other in kept if not implies(bound, other)), bound]
    return tuple(kept)
