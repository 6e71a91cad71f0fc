"""Quasi-affine expressions: integer combinations of indices, of floor(affine / n) and of affine mod n."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import gcd
from typing import Any, TypeAlias

from stripe.ir.frozen import frozen

Interval: TypeAlias = tuple[int, int]
"""Inclusive lower and upper bound."""


_NO_NAMES = frozenset[str]()


@frozen
class FloorDiv:
    """floor(arg / divisor), divisor >= 2."""

    arg: Affine
    divisor: int

    def __str__(self) -> str:
        return f"floor({_grouped(self.arg)}/{self.divisor})"


@frozen
class Mod:
    """The remainder of arg by modulus >= 2, always in [0, modulus)."""

    arg: Affine
    modulus: int

    def __str__(self) -> str:
        return f"{_grouped(self.arg)} mod {self.modulus}"


Atom: TypeAlias = str | FloorDiv | Mod


@frozen
class Affine:
    """`offset` plus the sum of coefficient times atom over `terms`.

    Terms are sorted and have no zero coefficient, so that equal expressions of plain indices are equal objects.
    Build with `constant`, `var`, `linear`, the operators, `floordiv` and `mod`; these simplify.
    """

    offset: int = 0
    terms: tuple[tuple[Atom, int], ...] = ()

    @staticmethod
    def constant(value: int) -> Affine:
        return Affine(value)

    @staticmethod
    @lru_cache(maxsize=4096)
    def var(name: str) -> Affine:
        return Affine(0, ((name, 1),))

    @staticmethod
    def linear(coefficients: Mapping[str, int], offset: int = 0) -> Affine:
        """offset + sum of coefficient * index."""
        return _build(offset, coefficients.items())

    @staticmethod
    def sum(parts: Sequence[Affine]) -> Affine:
        """The sum of `parts`, in one step however many there are."""
        if len(parts) == 1:
            return parts[0]
        return _build(sum([part.offset for part in parts]), [term for part in parts for term in part.terms])

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def is_linear(self) -> bool:
        """Whether no floor and no mod occurs."""
        for atom, _ in self.terms:  # noqa: SIM110 (asked most often of all)
            if not isinstance(atom, str):
                return False
        return True

    @property
    def single_name(self) -> str | None:
        """The index when the expression is exactly that one index, else None."""
        if self.offset == 0 and len(self.terms) == 1 and self.terms[0][1] == 1:
            atom = self.terms[0][0]
            return atom if isinstance(atom, str) else None
        return None

    def coeff(self, name: str) -> int:
        """The coefficient of an index outside any floor and mod; 0 when it does not occur there."""
        for atom, coefficient in self.terms:
            if atom == name:
                return coefficient
        return 0

    def names(self) -> frozenset[str]:
        """All indices that occur, also those inside floor and mod."""
        if not self.terms:
            return _NO_NAMES
        if self.is_linear:
            return frozenset([atom for atom, _ in self.terms if isinstance(atom, str)])
        parts = [{atom} if isinstance(atom, str) else atom.arg.names() for atom, _ in self.terms]
        return frozenset[str]().union(*parts)

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.offset + other, self.terms) if other else self
        if not other.terms:
            return Affine(self.offset + other.offset, self.terms) if other.offset else self
        if not self.terms:
            return Affine(self.offset + other.offset, other.terms) if self.offset else other
        return _build(self.offset + other.offset, self.terms + other.terms)

    __radd__ = __add__

    def __neg__(self) -> Affine:
        return Affine(-self.offset, tuple((atom, -coefficient) for atom, coefficient in self.terms))

    def __sub__(self, other: Affine | int) -> Affine:
        if not isinstance(other, int) and self.terms == other.terms:  # the distance of two views, mostly
            return Affine(self.offset - other.offset)
        return self + (-other)

    def __rsub__(self, other: int) -> Affine:
        return -self + other

    def __mul__(self, factor: int) -> Affine:
        if factor == 1:
            return self
        if factor == 0:
            return Affine()
        return Affine(self.offset * factor, tuple([(atom, c * factor) for atom, c in self.terms]))

    __rmul__ = __mul__

    def floordiv(self, divisor: int) -> Affine:
        """floor(self / divisor) for divisor >= 1, simplified."""
        _check_positive(divisor)
        if divisor == 1:
            return self
        whole, rest = self._split(divisor)
        if rest.is_constant:
            return whole
        common = gcd(divisor, *(c for _, c in rest.terms))
        if common > 1:  # floor((g*a + c)/(g*n)) = floor((a + floor(c/g))/n)
            terms = tuple((atom, c // common) for atom, c in rest.terms)
            return whole + Affine(rest.offset // common, terms).floordiv(divisor // common)
        atom, coefficient = rest.terms[0]
        if len(rest.terms) == 1 and coefficient == 1 and isinstance(atom, FloorDiv):
            return whole + (atom.arg + atom.divisor * rest.offset).floordiv(atom.divisor * divisor)
        return whole + Affine(0, ((FloorDiv(rest, divisor), 1),))

    def mod(self, modulus: int) -> Affine:
        """self mod modulus in [0, modulus) for modulus >= 1, simplified."""
        _check_positive(modulus)
        if modulus == 1:
            return Affine()
        _, rest = self._unwrap_mods(modulus)._split(modulus)
        if rest.is_constant:
            return rest
        common = gcd(modulus, *(c for _, c in rest.terms))
        if common > 1:  # (g*a + c) mod (g*n) = g*((a + floor(c/g)) mod n) + c mod g
            terms = tuple((atom, c // common) for atom, c in rest.terms)
            inner = Affine(rest.offset // common, terms).mod(modulus // common)
            return inner * common + rest.offset % common
        return Affine(0, ((Mod(rest, modulus), 1),))

    def _split(self, divisor: int) -> tuple[Affine, Affine]:
        """(q, r) with self = divisor*q + r, coefficients of r in (-divisor, divisor), its offset in [0, divisor)."""
        quotient: list[tuple[Atom, int]] = []
        rest: list[tuple[Atom, int]] = []
        for atom, coefficient in self.terms:
            whole = abs(coefficient) // divisor * (1 if coefficient > 0 else -1)
            if whole:
                quotient.append((atom, whole))
            if coefficient - whole * divisor:
                rest.append((atom, coefficient - whole * divisor))
        return Affine(self.offset // divisor, tuple(quotient)), Affine(self.offset % divisor, tuple(rest))

    def _unwrap_mods(self, modulus: int) -> Affine:
        """(a mod m) may be written a under `mod modulus` when modulus divides m."""
        total = Affine(self.offset)
        for atom, coefficient in self.terms:
            if isinstance(atom, Mod) and atom.modulus % modulus == 0:
                total = total + atom.arg._unwrap_mods(modulus) * coefficient
            else:
                total = total + Affine(0, ((atom, coefficient),))
        return total

    def subs(self, mapping: Mapping[str, Affine]) -> Affine:
        """Replaces indices by expressions; names that are not in `mapping` stay."""
        if not self.terms:
            return self
        if len(self.terms) == 1 and isinstance(
            self.terms[0][0], str
        ):  # most accesses: the result is in order
            replaced = mapping.get(self.terms[0][0])
            return self if replaced is None else replaced * self.terms[0][1] + self.offset
        offset = self.offset
        terms: list[tuple[Atom, int]] = []
        changed = False
        for atom, coefficient in self.terms:
            if isinstance(atom, str):
                replaced = mapping.get(atom)
            else:
                arg = atom.arg.subs(mapping)
                replaced = arg.floordiv(atom.divisor) if isinstance(atom, FloorDiv) else arg.mod(atom.modulus)
            if replaced is None:
                terms.append((atom, coefficient))
                continue
            changed = True
            offset += replaced.offset * coefficient
            if coefficient == 1:
                terms += replaced.terms
            else:
                terms += [(inner, c * coefficient) for inner, c in replaced.terms]
        return _build(offset, terms) if changed else self

    def evaluate(self, env: Mapping[str, Any]) -> Any:
        """The value under `env`, whose values are ints or integer arrays (then numpy broadcasting applies)."""
        total: Any = self.offset
        for atom, coefficient in self.terms:
            if isinstance(atom, str):
                value = env[atom]
            elif isinstance(atom, FloorDiv):
                value = atom.arg.evaluate(env) // atom.divisor
            else:
                value = atom.arg.evaluate(env) % atom.modulus
            total = total + value * coefficient
        return total

    def bounds(self, ranges: Mapping[str, Interval]) -> Interval:
        """An interval that contains the value when each index lies in its inclusive interval.

        Exact when every index occurs once and no mod wraps; never too small.
        """
        low = high = self.offset
        for atom, coefficient in self.terms:
            first, last = ranges[atom] if isinstance(atom, str) else _atom_bounds(atom, ranges)
            low += coefficient * (first if coefficient > 0 else last)
            high += coefficient * (last if coefficient > 0 else first)
        return low, high

    def simplified(self, ranges: Mapping[str, Interval]) -> Affine:
        """An equal expression when each index lies in its inclusive interval: floors and mods that the intervals
        decide disappear, and the two parts of a packed index join.
        """
        if self.is_linear:
            return self
        total = Affine(self.offset)
        for atom, coefficient in self.terms:
            simpler = Affine.var(atom) if isinstance(atom, str) else _simplified_atom(atom, ranges)
            total = total + simpler * coefficient
        return total.joined()

    def joined(self) -> Affine:
        """n*c*floor(a/n) + c*(a mod n) written c*a: the address that a packed layout leaves of a contiguous access."""
        for atom, coefficient in self.terms:
            if isinstance(atom, Mod):
                whole = atom.arg.floordiv(atom.modulus) * (coefficient * atom.modulus)
                if whole.offset == 0 and set(whole.terms) <= set(self.terms):
                    rest = tuple(term for term in self.terms if term[0] != atom and term not in whole.terms)
                    return (Affine(self.offset, rest) + atom.arg * coefficient).joined()
        return self

    def __str__(self) -> str:
        if not self.terms:
            return str(self.offset)
        lone = self.offset == 0 and len(self.terms) == 1
        parts: list[str] = [str(self.offset)] if self.offset else []
        for atom, coefficient in self.terms:
            text = str(atom)
            if isinstance(atom, Mod) and not (lone and abs(coefficient) == 1):
                text = f"({text})"
            text = text if abs(coefficient) == 1 else f"{abs(coefficient)}*{text}"
            if not parts:
                parts.append(f"-{text}" if coefficient < 0 else text)
            else:
                parts.append(f"{'-' if coefficient < 0 else '+'} {text}")
        return " ".join(parts)


def _check_positive(number: int) -> None:
    if number < 1:
        raise ValueError(f"a divisor or modulus must be positive, not {number}")


def _sort_key(item: tuple[Atom, int]) -> tuple[int, str]:
    atom = item[0]
    return (0, atom) if isinstance(atom, str) else (1, str(atom))


def _build(offset: int, terms: Iterable[tuple[Atom, int]]) -> Affine:
    totals: dict[Atom, int] = {}
    plain = True
    for atom, coefficient in terms:
        if atom in totals:
            totals[atom] += coefficient
        else:
            totals[atom] = coefficient
            plain = plain and isinstance(atom, str)
    kept = [term for term in totals.items() if term[1]]
    if len(kept) > 1:
        # Names sort by themselves.
        kept.sort(key=None if plain else _sort_key)
    return Affine(offset, tuple(kept))


def _simplified_atom(atom: FloorDiv | Mod, ranges: Mapping[str, Interval]) -> Affine:
    arg = atom.arg.simplified(ranges)
    divisor = atom.divisor if isinstance(atom, FloorDiv) else atom.modulus
    # arg = divisor * quotient + rest, where the quotient is known or made of the terms that the divisor divides
    whole = Affine(0, tuple((inner, c // divisor) for inner, c in arg.terms if c % divisor == 0))
    for quotient in (Affine(), whole):
        rest = arg - quotient * divisor
        low, high = rest.bounds(ranges)
        if low // divisor == high // divisor:
            known = low // divisor
            return quotient + known if isinstance(atom, FloorDiv) else rest - known * divisor
    return arg.floordiv(divisor) if isinstance(atom, FloorDiv) else arg.mod(divisor)


def _atom_bounds(atom: FloorDiv | Mod, ranges: Mapping[str, Interval]) -> Interval:
    low, high = atom.arg.bounds(ranges)
    if isinstance(atom, FloorDiv):
        return low // atom.divisor, high // atom.divisor
    if low // atom.modulus == high // atom.modulus:
        return low % atom.modulus, high % atom.modulus
    return 0, atom.modulus - 1


def _grouped(arg: Affine) -> str:
    """The text of `arg`, in parentheses unless it is one plain index or a constant."""
    return str(arg) if arg.single_name is not None else f"({arg})"


def indices_of(affines: Iterable[Affine]) -> frozenset[str]:
    """The indices that occur in any of the affines: of an access, those that move it."""
    return frozenset(name for affine in affines for name in affine.names())
