"""Quasi-affine expressions as C: simplified with what is known about the ranges, then printed."""

from __future__ import annotations

from collections.abc import Mapping

from stripe.emit.c.helpers import Helpers
from stripe.ir import Affine, Atom, FloorDiv, Interval

Intervals = Mapping[str, Interval]
"""For each C variable, an inclusive interval of its values."""


def simplify(affine: Affine, intervals: Intervals) -> Affine:
    """An equal expression without the floors and mods that the intervals decide."""
    return affine.simplified(intervals)


def c_affine(affine: Affine, intervals: Intervals, helpers: Helpers) -> str:
    """The C expression over int64_t variables, its largest strides first. A sum: put it in parentheses as a factor."""
    terms = sorted(affine.terms, key=lambda term: -abs(term[1]))
    parts = [(c < 0, _product(atom, abs(c), intervals, helpers)) for atom, c in terms]
    if affine.offset or not parts:
        number = (affine.offset < 0, str(abs(affine.offset)))
        parts.append(number)
    first = next((place for place, part in enumerate(parts) if not part[0]), 0)
    parts.insert(0, parts.pop(first))
    text = f"-{parts[0][1]}" if parts[0][0] else parts[0][1]
    return text + "".join(f" {'-' if negative else '+'} {part}" for negative, part in parts[1:])


def _product(atom: Atom, coefficient: int, intervals: Intervals, helpers: Helpers) -> str:
    if isinstance(atom, str):
        return atom if coefficient == 1 else f"{coefficient}*{atom}"
    low, _ = atom.arg.bounds(intervals)
    arg = c_affine(atom.arg, intervals, helpers)
    name, sign, divisor = (
        ("floordiv", "/", atom.divisor) if isinstance(atom, FloorDiv) else ("mod", "%", atom.modulus)
    )
    if low < 0:
        text = f"{helpers.need(name)}({arg}, {divisor})"
        return text if coefficient == 1 else f"{coefficient}*{text}"
    text = f"{arg if atom.arg.single_name is not None else f'({arg})'}{sign}{divisor}"
    return text if coefficient == 1 else f"{coefficient}*({text})"
