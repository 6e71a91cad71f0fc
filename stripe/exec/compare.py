"""Comparing the results of two engines, or of a program before and after a rewrite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from stripe.exec.arith import Array
from stripe.exec.exactness import best_magnitude, order_free, uses_transcendentals
from stripe.ir import DTYPES, Program

Bools: TypeAlias = npt.NDArray[np.bool_]


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


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of one output: `reason` when shape or dtype differ, else the first element, both values, the
    number of elements, and the largest absolute error (infinite when one of two is NaN or infinite).
    """

    name: str
    reason: str = ""
    first: tuple[int, ...] = ()
    expected: str = ""
    actual: str = ""
    count: int = 0
    total: int = 0
    max_error: float = 0.0

    def __str__(self) -> str:
        if self.reason:
            return f"'{self.name}' {self.reason}"
        return (
            f"'{self.name}'{list(self.first)} is {self.actual}, expected {self.expected};"
            f" {self.count} of {self.total} elements differ, by {self.max_error:g} at most"
        )


def worst_ratio(
    expected: Mapping[str, Array], actual: Mapping[str, Array], bounds: Mapping[str, Array]
) -> float:
    """The largest error of an element in units of its bound; infinite where one of two is NaN or infinite."""
    worst = 0.0
    for name, bound in bounds.items():
        e, a = expected[name].astype(np.float64), actual[name].astype(np.float64)
        differs = (e != a) & ~(np.isnan(e) & np.isnan(a))
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = np.abs(a[differs] - e[differs]) / bound[differs]
        worst = max(worst, float(np.nan_to_num(ratios, nan=np.inf).max(initial=0.0)))
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
                Difference(name, f"is missing in what was {'computed' if name in expected else 'expected'}")
            )
            continue
        bound = bounds.get(name) if bounds else None
        difference = _compare_one(
            name, np.asarray(expected[name]), np.asarray(actual[name]), tolerance, bound
        )
        if difference is not None:
            found.append(difference)
    return found


def _compare_one(
    name: str, expected: Array, actual: Array, tolerance: Tolerance, bound: Array | None
) -> Difference | None:
    if expected.dtype != actual.dtype:
        return Difference(name, f"has dtype {actual.dtype}, expected {expected.dtype}")
    if expected.shape != actual.shape:
        return Difference(name, f"has the shape {actual.shape}, expected {expected.shape}")
    differs = _differs(expected, actual, tolerance, bound)
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
    return Difference(name, "", first, *shown, count=count, total=expected.size, max_error=largest)


def _differs(expected: Array, actual: Array, tolerance: Tolerance, bound: Array | None) -> Bools:
    if _mantissa_bits(expected) is None:
        return np.asarray(expected != actual)
    e, a = expected.astype(np.float64), actual.astype(np.float64)
    same = (e == a) | (np.isnan(e) & np.isnan(a))
    finite = np.isfinite(e) & np.isfinite(a)
    if bound is not None:
        with np.errstate(invalid="ignore"):
            return np.asarray(~(same | (finite & (np.abs(a - e) <= bound))))
    if tolerance.exact:
        return np.asarray(~same)
    unit = 2.0 ** -(_mantissa_bits(expected) or 0)
    relative, absolute = min(_MOST, unit * tolerance.relative), min(_MOST, unit * tolerance.absolute)
    scale = float(np.abs(e[finite]).max(initial=0.0))
    with np.errstate(invalid="ignore"):
        near = np.abs(a - e) <= relative * np.abs(e) + absolute * scale
    return np.asarray(~(same | (finite & near)))


def _mantissa_bits(array: Array) -> int | None:
    """Bits of the mantissa of a float dtype; None for other dtypes."""
    dtype = next((dtype for dtype in DTYPES.values() if dtype.numpy() == array.dtype), None)
    return dtype.mantissa if dtype is not None and dtype.is_float else None
