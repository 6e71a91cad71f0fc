"""Comparing the results of two engines, or of a program before and after a rewrite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from stripe.exec.arith import Array
from stripe.exec.exactness import best_magnitude, order_free, uses_transcendentals
from stripe.ir import DTYPES, Agg, Block, DType, Program, reads_of, walk, writes_of

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The allowed error of floats: |a - e| <= relative * |e| + absolute * (largest finite |e| of the tensor), by dtype
    in units of its rounding step. Zero for both demands the same bits, but that 0 equals -0 and all NaN are one.
    """

    relative: float = 0.0
    absolute: float = 0.0

    @property
    def exact(self) -> bool:
        return self.relative == 0.0 and self.absolute == 0.0

    def allowed(self, expected: Array, dtype: DType) -> tuple[Floats, float]:
        """The allowed error of each element by its own size, and of all by the largest element."""
        relative, absolute = (
            min(_MOST, share * 2.0**-dtype.mantissa) for share in (self.relative, self.absolute)
        )
        sizes = np.abs(expected.astype(np.float64))
        return relative * sizes, absolute * float(sizes[np.isfinite(sizes)].max(initial=0.0))


EXACT = Tolerance()
LOOSE = Tolerance(relative=1024.0, absolute=16.0)
"""1024 units in the last place, and 16 of those of the largest element where terms cancel: 6e-5 and 1e-6 in fp32."""
_MOST = 1 / 32  # no tolerance is wider than that, however few bits a dtype has


def tolerance_for(program: Program, *, small_integers: bool = True) -> Tolerance:
    """The allowed difference of results of two engines: none, unless the program uses transcendental intrinsics or
    sums floats that are not exact, on inputs of `stripe.exec.data.random_inputs` (`small_integers`) or on any.
    """
    if uses_transcendentals(program):
        return LOOSE
    return EXACT if order_free(program, best_magnitude(program) if small_integers else None) else LOOSE


def layered(tolerance: Tolerance, program: Program) -> Tolerance:
    """The tolerance for results of other implementations of a network: rounding errors of its layers add up, so the
    share of the largest element is allowed once for each sum of floats on the longest chain of sums.
    """
    sums: dict[str, int] = {}
    for statement in program.main.statements:
        own = isinstance(statement, Block) and any(
            ref.agg is Agg.ADD and ref.dtype.is_float
            for _, block in walk(statement)
            for ref in block.refinements
        )
        before = max((sums.get(name, 0) for name in reads_of(statement)), default=0)
        for name in writes_of(statement):
            sums[name] = max(sums.get(name, 0), before + own)
    return replace(tolerance, absolute=tolerance.absolute * max([1, *sums.values()]))


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of one output: `reason` when shape or dtype differ, else the first element, both values, the
    number of elements, the largest absolute error (infinite when one of two is NaN or infinite), and the element whose
    error is the largest multiple of the allowed one, with this multiple (infinite where bits must be equal).
    """

    name: str
    reason: str = ""
    first: tuple[int, ...] = ()
    expected: str = ""
    actual: str = ""
    count: int = 0
    total: int = 0
    max_error: float = 0.0
    worst: tuple[int, ...] = ()
    ratio: float = float("inf")

    def __str__(self) -> str:
        if self.reason:
            return f"'{self.name}' {self.reason}"
        worst = f"; the worst is {list(self.worst)}, {self.ratio:.3g} times the bound"
        return (
            f"'{self.name}'{list(self.first)} is {self.actual}, expected {self.expected};"
            f" {self.count} of {self.total} elements differ, by {self.max_error:g} at most"
            + (worst if np.isfinite(self.ratio) else "")
        )


@dataclass(frozen=True, slots=True)
class WorstElement:
    """The element of all outputs whose error is the largest share of the allowed one."""

    name: str
    index: tuple[int, ...]
    ratio: float

    def __str__(self) -> str:
        return f"'{self.name}'{list(self.index)}"


def worst_element(
    expected: Mapping[str, Array],
    actual: Mapping[str, Array],
    tolerance: Tolerance = EXACT,
    bounds: Mapping[str, Array] | None = None,
) -> WorstElement | None:
    """The worst element of outputs of the same names and shapes; None where all are equal bit for bit. The ratio is
    infinite where bits must be equal, and where one of two is NaN or infinite."""
    worst: WorstElement | None = None
    for name, array in expected.items():
        ratios = _ratios(np.asarray(array), np.asarray(actual[name]), tolerance, (bounds or {}).get(name))
        ratio = float(ratios.max(initial=0.0))
        if ratio > (worst.ratio if worst else 0.0):
            worst = WorstElement(name, _place(ratios), ratio)
    return worst


def compare(
    expected: Mapping[str, Array],
    actual: Mapping[str, Array],
    tolerance: Tolerance = EXACT,
    bounds: Mapping[str, Array] | None = None,
) -> list[Difference]:
    """The outputs that differ, in the order of `expected`; empty when all agree. Integers and bools must be equal.
    `bounds` has the largest error of each element (`stripe.exec.rounding`), and is used instead of the tolerance.
    """
    found: list[Difference] = []
    for name in [*expected, *(name for name in actual if name not in expected)]:
        if name not in actual or name not in expected:
            found.append(
                Difference(
                    name, f"is missing among the {'computed' if name in expected else 'expected'} tensors"
                )
            )
            continue
        bound = bounds.get(name) if bounds else None
        difference = _compare_one(
            name, np.asarray(expected[name]), np.asarray(actual[name]), tolerance, bound
        )
        if difference is not None:
            found.append(difference)
    return found


def agreement(expected: Array, actual: Array, tolerance: Tolerance, bound: Array | None = None) -> Array:
    """The mask of the elements that agree, of two arrays of one shape; by the `bound` of each where there is one."""
    return np.asarray(_ratios(expected, actual, tolerance, bound) <= 1.0)


def _compare_one(
    name: str, expected: Array, actual: Array, tolerance: Tolerance, bound: Array | None
) -> Difference | None:
    if expected.dtype != actual.dtype:
        return Difference(name, f"has dtype {actual.dtype}, expected {expected.dtype}")
    if expected.shape != actual.shape:
        return Difference(name, f"has the shape {actual.shape}, expected {expected.shape}")
    ratios = _ratios(expected, actual, tolerance, bound)
    differs = np.asarray(ratios > 1.0)
    count = int(differs.sum())
    if not count:
        return None
    first = tuple(int(p) for p in np.argwhere(differs)[0])
    e, a = expected[differs], actual[differs]
    if e.dtype.kind in "iub":
        largest = float(max(abs(int(x) - int(y)) for x, y in zip(a.tolist(), e.tolist(), strict=True)))
    else:
        with np.errstate(invalid="ignore"):
            error = np.abs(a.astype(np.float64) - e.astype(np.float64))
        largest = float("inf") if np.isnan(error).any() else float(error.max())
    shown = str(expected[first]), str(actual[first])
    return Difference(
        name, "", first, *shown, count=count, total=expected.size, max_error=largest, worst=_place(ratios),
        ratio=float(ratios.max()),
    )  # fmt: skip


def _place(ratios: Floats) -> tuple[int, ...]:
    """The index of the largest ratio."""
    return tuple(int(place) for place in np.unravel_index(int(ratios.argmax()), ratios.shape))


def _ratios(expected: Array, actual: Array, tolerance: Tolerance, bound: Array | None) -> Floats:
    """The error of each element in units of the allowed one; infinite where none is allowed."""
    dtype = next((dtype for dtype in DTYPES.values() if dtype.numpy() == expected.dtype), None)
    if dtype is None or not dtype.is_float:
        return np.where(expected != actual, np.inf, 0.0)
    e, a = expected.astype(np.float64), actual.astype(np.float64)
    same = (e == a) | (np.isnan(e) & np.isnan(a))
    with np.errstate(invalid="ignore", divide="ignore"):
        allowed = sum(tolerance.allowed(expected, dtype)) if bound is None else bound
        ratios = np.where(np.isfinite(e) & np.isfinite(a), np.abs(a - e) / allowed, np.inf)
    return np.where(same, 0.0, ratios)
