"""Terms that a sum may go without where all inputs are finite: products with 0 of what is a number for some input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import isfinite, nan

import numpy as np

from stripe.exec.nonfinite import NAN, NONE, NonFinite, nonfinite_after, nonfinite_in, nonfinite_merged
from stripe.ir import INTRINSICS, Agg, DType, Path
from stripe.verify.proof.terms import (
    Atom,
    Called,
    Leaf,
    Made,
    Number,
    Operation,
    Read,
    Reduced,
    Term,
    computed,
    fold,
    leaves,
    number,
    number_value,
    operation,
)


class NonFiniteTerms:
    """The infinities and NaN of reductions and of outputs of specials. `merged` gives the terms of which one is made,
    by how they come together."""

    def __init__(self, merged: Callable[[Made], Iterator[tuple[Agg, Sequence[Term]]]]) -> None:
        self._merged = merged
        self._known: dict[Read | Path, NonFinite] = {}

    def of(self, leaf: Made) -> NonFinite:
        """Infinities and NaN that some element is for all finite inputs. The leaves behind it come first: hundreds of
        layers need no deep stack."""
        waiting, entered = [leaf], set[Read | Path]()
        while waiting:
            key = waiting[-1].key
            behind = [] if key in entered else list(self._behind(waiting[-1]))
            entered.add(key)
            if behind:
                waiting += behind
            elif key in self._known:
                waiting.pop()
            else:
                self._known[key] = self._made(waiting.pop())
        return self._known[leaf.key]

    def _behind(self, leaf: Made) -> Iterator[Made]:
        for _, terms in self._merged(leaf):
            for atom in (atom for term in terms for atom in leaves(term)):
                if isinstance(atom, Reduced | Called) and atom.key not in self._known:
                    yield atom

    def _made(self, leaf: Made) -> NonFinite:
        found = (
            nonfinite_merged(agg, [nonfinite_of(term, self.of) for term in terms], leaf.dtype)
            for agg, terms in self._merged(leaf)
        )
        return NONE.union(*found)


def vanishes(term: Term, made: Callable[[Made], NonFinite]) -> bool:
    """Whether the term is a zero of some sign, when no operand is infinite or NaN: a sum may go without it. `made`:
    the infinities and NaN that a reduction or the output of a special has for all finite inputs."""
    return _is_zero(_at_zero(term, made))


def nonfinite_of(term: Term, made: Callable[[Made], NonFinite]) -> NonFinite:
    """The infinities and NaN that some element of the term is for all finite inputs."""
    return _nonfinite(_at_zero(term, made), made)


def _at_zero(term: Term, made: Callable[[Made], NonFinite]) -> Term:
    """The term where what vanishes is 0, with numbers for operations that are infinite or NaN."""

    def step(outer: Operation, args: list[Term]) -> Term:
        found = Operation(outer.op, outer.dtype, tuple(args))
        if INTRINSICS[outer.op].keeps_zero:
            result = operation(outer.op, args, outer.dtype, finite=True)
            # What statements before have made is looked at where a number would hide it.
            if not isinstance(result, Number) or not _nonfinite(found, made):
                return result
        numbers = [arg for arg in args if isinstance(arg, Number)]
        if len(numbers) == len(args) and outer.dtype.is_float:
            value = computed(outer.op, numbers, outer.dtype)
            if not isfinite(number_value(value)):
                return number(nan, outer.dtype)  # the sign of an infinity is that of a zero, which is open
            if number_value(value):
                return value  # but for its last bits, which decide nothing here
        return found

    return fold(term, lambda leaf: leaf, step)


def _is_zero(term: Term) -> bool:
    return isinstance(term, Number) and term.text.lstrip("-") == number(0, term.dtype).text


def _nonfinite(term: Term, made: Callable[[Made], NonFinite]) -> NonFinite:
    """The infinities and NaN of a term where what vanishes is 0: those of numbers, constants, reductions and outputs of
    specials in it, and quotients by 0."""

    def step(outer: Operation, given: list[NonFinite]) -> NonFinite:
        if outer.op in ("div", "mod") and outer.dtype.is_float and _is_zero(outer.args[1]):
            return NAN
        return nonfinite_after(outer.op, given, [arg.dtype for arg in outer.args], outer.dtype)

    return fold(term, lambda atom: _nonfinite_of_atom(atom, made), step)


def _nonfinite_of_atom(atom: Atom, made: Callable[[Made], NonFinite]) -> NonFinite:
    if not atom.dtype.is_float:
        return NONE
    match atom:
        case Number():
            value = number_value(atom)
            return NONE if isfinite(value) else frozenset({str(value)})
        case Leaf(_, _, dtype, (_, content)):
            return nonfinite_of_constant(content, dtype)
        case Reduced() | Called():
            return made(atom)
        case _:
            return NONE


@lru_cache(maxsize=16)
def nonfinite_of_constant(content: bytes, dtype: DType) -> NonFinite:
    """The infinities and NaN among the elements of a constant."""
    return nonfinite_in(np.frombuffer(content, dtype.numpy()), dtype)
