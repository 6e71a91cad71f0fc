"""Terms of the enumeration: values of elements, as numbers in a table that two programs share.

Two terms are one where the meaning of Stripe has them so: contributions to an element by an aggregation form a multiset
(a set where once is as good as twice), partial merges are part of the merge that they go into, operands commute where
the bits stay the same, and operations on numbers are computed. Nothing here comes from the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any, TypeAlias

import numpy as np

from stripe.exec import arith
from stripe.exec.nonfinite import NAN, NONE, NonFinite, nonfinite_after, nonfinite_in, nonfinite_merged
from stripe.ir import DTYPES, INTRINSICS, Agg, DType, result_dtype
from stripe.poly import check_time
from stripe.verify.assumptions import Assumption

Key: TypeAlias = tuple[Any, ...]
"""A kind of term, and the fields that distinguish terms of the kind."""


class TooManySteps(Exception):
    """The terms of two programs take more steps than allowed."""


_STEPS_OF_A_TERM = 10
_STEPS_BETWEEN_CHECKS = 10_000


class TermTable:
    """Terms by number, made in `most_steps` steps. `chains` takes an addition written as an operation for a sum by
    aggregation (minima, maxima, *and* and *or* likewise), and `finite` leaves products with 0 out of sums of floats.
    `relied` are the assumptions of all merges."""

    def __init__(self, most_steps: int, *, chains: bool = False, finite: bool = False) -> None:
        self.relied: set[Assumption] = set()
        self._most_steps = most_steps
        self._steps = 0
        self._checked = 0
        self._chains = chains
        self._numbers: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._dtypes: list[DType] = []
        self._nonfinite: list[NonFinite] = []
        self._vanishes: list[bool] = []
        self._at_zero: list[arith.Array | None] = []
        """The values of terms where what vanishes is 0, as far as they follow."""
        self._finite = finite
        self._operations: dict[tuple[str, tuple[int, ...], DType | None], int] = {}
        self.beginnings: set[int] = set()
        """The terms of identities that accumulators begin with."""

    def spend(self, steps: int) -> None:
        """Counts steps. Raises TooManySteps past the limit, PolyLimit past the time of the proof."""
        self._steps += steps
        if self._steps > self._most_steps:
            raise TooManySteps(f"enumeration takes more than {self._most_steps} steps")
        if self._steps >= self._checked:
            self._checked = self._steps + _STEPS_BETWEEN_CHECKS
            check_time()

    def _of(self, key: Key, dtype: DType) -> int:
        """The number of a term, of which the key has the dtype."""
        number = self._numbers.setdefault(key, len(self._keys))
        if number == len(self._keys):
            self.spend(_STEPS_OF_A_TERM)
            self._keys.append(key)
            self._dtypes.append(dtype)
            if self._finite:
                value = self._value_at_zero(key, dtype)
                self._nonfinite.append(self._nonfinite_of(key, dtype, value))
                self._vanishes.append(self._is_vanishing(key, value))
                self._at_zero.append(arith.constant(0, dtype) if self._vanishes[-1] else value)
        return number

    def element(self, name: str, dtype: DType, flat: int) -> int:
        """An element of an input, by its place in row-major order."""
        return self._of(("input", name, flat, dtype.name), dtype)

    def number(self, value: arith.Array, dtype: DType) -> int:
        """A constant, by its bytes."""
        return self._of(("number", dtype.name, value.tobytes()), dtype)

    def beginning(self, agg: Agg, dtype: DType) -> int:
        """The identity that an accumulator begins with: of use to merges by the same aggregation alone."""
        number = self._of(("beginning", agg, dtype.name), dtype)
        self.beginnings.add(number)
        return number

    def is_beginning(self, term: int) -> bool:
        return term in self.beginnings

    def call(self, op: str, boxes: Key) -> int:
        """A special on all elements of its inputs, which its outputs are functions of."""
        return self._of(("call", op, *boxes), DTYPES["bool"])

    def called(self, call: int, output: int, place: int, dtype: DType) -> int:
        """An element of an output of a special."""
        return self._of(("called", self._keys[call][1], call, output, place, dtype.name), dtype)

    def operation(self, op: str, args: tuple[int, ...], target: DType | None) -> int:
        """An intrinsic on terms, computed where it can be."""
        key = (op, args, target)
        number = self._operations.get(key)
        if number is None:
            number = self._operations[key] = self._operation(op, args, target)
        return number

    def _operation(self, op: str, args: tuple[int, ...], target: DType | None) -> int:
        dtypes = [self._dtypes[arg] for arg in args]
        result = result_dtype(op, dtypes, target)
        if op == "ident" or (op == "cast" and dtypes[0] == result):
            return args[0]
        if op == "cond":
            if args[1] == args[2]:
                return args[1]
            if (chosen := self._value(args[0])) is not None:
                return args[1] if chosen.item() else args[2]
        if op == "mul" and not result.is_float:
            for arg in args:
                if (value := self._value(arg)) is not None and not value.item():
                    return self.number(arith.constant(0, result), result)
        if INTRINSICS[op].exact and all(self._keys[arg][0] == "number" for arg in args):
            return self._computed(op, args, dtypes, result)
        if (
            self._chains
            and (agg := _chain(op, result)) is not None
            and all(each == result for each in dtypes)
        ):
            return self.merge(agg, result, args)
        # minima and maxima of floats distinguish 0 from -0 by the order
        if op in _COMMUTES or (op in ("min", "max") and not dtypes[0].is_float):
            args = tuple(sorted(args))
        return self._of(("operation", op, result.name, *args), result)

    def _computed(self, op: str, args: tuple[int, ...], dtypes: Sequence[DType], result: DType) -> int:
        values = [value for arg in args if (value := self._value(arg)) is not None]
        return self.number(_applied(op, values, dtypes, result), result)

    def _value(self, term: int) -> arith.Array | None:
        kind, *rest = self._keys[term]
        if kind != "number":
            return None
        return np.frombuffer(rest[1], self._dtypes[term].numpy())[0]

    def merge(self, agg: Agg, dtype: DType, contributions: Sequence[int]) -> int:
        """The value of an element after contributions by one aggregation."""
        once = agg in (Agg.MIN, Agg.MAX) or dtype.kind == "bool"
        if dtype.is_float:
            self.relied.add(Assumption.ZERO_SIGN if once else Assumption.FLOAT_ORDER)
        identity = self.number(arith.constant(agg.identity(dtype), dtype), dtype)
        if agg is Agg.ADD and dtype.is_float and not any(map(self.is_beginning, contributions)):
            self.relied.add(Assumption.ZERO_SIGN)  # a sum of -0 alone is -0, unless it begins at 0
        flat: list[int] = []
        numbers: list[arith.Array] = []
        for term in contributions:
            key = self._keys[term]
            if key[:3] == ("merge", agg, dtype.name):
                self.spend(len(key))
                flat += key[3:]
            elif key != ("beginning", agg, dtype.name):
                flat.append(term)
        if not dtype.is_float or once:
            # Sums and products of integers are computed; of floats only the identity is left out, as computing rounds.
            numbers = [value for term in flat if (value := self._value(term)) is not None]
            flat = [term for term in flat if self._keys[term][0] != "number"]
        if numbers:
            with np.errstate(all="ignore"):
                merged = arith.aggregation(agg, dtype).reduce(np.stack(numbers), dtype=numbers[0].dtype)
            flat.append(self.number(np.asarray(merged), dtype))
        # A zero of either sign leaves a sum as it is, but for the sign of another zero.
        kept = [term for term in flat if term != identity and not (agg is Agg.ADD and self._is_zero(term))]
        if agg is Agg.ADD and dtype.is_float:
            if self._finite and any(self._vanishes[term] for term in kept):
                self.relied.add(Assumption.FINITE)
                kept = [term for term in kept if not self._vanishes[term]]
            self.relied |= {Assumption.ZERO_SIGN} if len(kept) < max(2, len(flat)) else set()
        terms = sorted(set(kept)) if once else sorted(kept)
        if not terms:
            return identity
        return terms[0] if len(terms) == 1 else self._of(("merge", agg, dtype.name, *terms), dtype)

    def _is_zero(self, term: int) -> bool:
        value = self._value(term)
        return value is not None and value.item() == 0

    def _value_at_zero(self, key: Key, dtype: DType) -> arith.Array | None:
        """The value of a new term where what vanishes is 0; None where inputs decide."""
        if key[0] == "number":
            return self._value(len(self._keys) - 1)
        if key[0] != "operation":
            return None
        args = [int(arg) for arg in key[3:]]
        values = [value for arg in args if (value := self._at_zero[arg]) is not None]
        if len(values) < len(args):
            return None
        value = _applied(key[1], values, [self._dtypes[arg] for arg in args], dtype)
        # The sign of an infinity is that of a zero, which is open.
        return value if not nonfinite_in(value, dtype) else arith.constant(nan, dtype)

    def _nonfinite_of(self, key: Key, dtype: DType, value: arith.Array | None) -> NonFinite:
        """The infinities and NaN that a new term of that value, or of none, is for all finite inputs."""
        if value is not None:
            return nonfinite_in(value, dtype)
        match key[0]:
            case "call":
                return NONE.union(*(self._nonfinite[arg] for arg in key[2:] if isinstance(arg, int)))
            case "called" if dtype.is_float:
                return self._nonfinite[int(key[2])]
            case "merge":
                return nonfinite_merged(key[1], (self._nonfinite[int(arg)] for arg in key[3:]), dtype)
            case "operation":
                args = [int(arg) for arg in key[3:]]
                divisor = self._at_zero[args[-1]] if key[1] in ("div", "mod") and dtype.is_float else None
                if divisor is not None and not divisor.item():
                    return NAN
                dtypes = [self._dtypes[arg] for arg in args]
                return nonfinite_after(key[1], [self._nonfinite[arg] for arg in args], dtypes, dtype)
            case _:
                return NONE

    def _is_vanishing(self, key: Key, value: arith.Array | None) -> bool:
        """Whether a new term, of that value where what vanishes is 0, is a zero of some sign when no operand is
        infinite or NaN. Which operations keep zeros is computed: the proof reads it from the rows of intrinsics, and a
        wrong row shall show."""
        if key[0] != "operation":
            return key[0] == "number" and self._is_zero(len(self._keys) - 1)
        args = [int(arg) for arg in key[3:]]
        parts = [self._vanishes[arg] for arg in args]
        match key[1]:
            case "mul":
                return any(parts) and not any(self._nonfinite[arg] for arg in args)
            case "cond":
                return parts[1] and parts[2]
            case _:
                return all(parts) and value is not None and value.item() == 0

    def show(self, term: int, depth: int = 4) -> str:
        """The text of a term, cut off below `depth`."""
        kind, *rest = self._keys[term]
        if kind == "input":
            return f"{rest[0]}[{rest[1]}]"
        if kind == "number":
            return str(np.frombuffer(rest[1], self._dtypes[term].numpy())[0])
        if kind == "beginning":
            return f"the identity of {rest[0].value}"
        if depth == 0:
            return "…"
        if kind == "called":
            return f"{rest[0]}(…)[{rest[3]}]"
        name = rest[0].value if kind == "merge" else rest[0]
        shown = [self.show(arg, depth - 1) for arg in rest[2:8]]
        return f"{name}({', '.join(shown)}{', …' if len(rest) > 8 else ''})"


_COMMUTES = frozenset({"add", "mul", "cmp_eq", "cmp_ne", "bit_and", "bit_or", "bit_xor"})
"""Not taken from the rows of intrinsics, from which the proof takes it."""


def _applied(op: str, values: Sequence[arith.Array], dtypes: Sequence[DType], result: DType) -> arith.Array:
    """The result of an intrinsic on values of the given types."""
    with np.errstate(all="ignore"):
        if op == "cast":
            return np.asarray(arith.cast(values[0], dtypes[0], result))
        return np.asarray(arith.apply(op, values, dtypes[-1]))


def _chain(op: str, dtype: DType) -> Agg | None:
    """The aggregation that a chain of the operation is; None when it is none. (Not taken from the proof.)"""
    if dtype.kind == "bool":
        return {"bit_or": Agg.ADD, "bit_and": Agg.MUL}.get(op)
    return {"add": Agg.ADD, "min": Agg.MIN, "max": Agg.MAX}.get(op)
