"""The rules by which definitions are made, and the error of a construct that has none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of definitions. `finite`: no value is infinite or NaN, so that a sum may go without a product with 0.

    `thorough`: costly normal forms that are rarely needed: merges of one contribution become the contribution,
    operands that commute are put in order by their elements.

    `chains`: an addition written as an operation is a sum by aggregation; minima, maxima, *and* and *or* likewise.
    """

    finite: bool = False
    thorough: bool = False
    chains: bool = False


PLAIN = Rules()


class Unprovable(Exception):
    """A construct without a rule in the proof, named by the text. The answer is *unknown*."""


def remembered(known: dict[K, V | Unprovable], key: K, make: Callable[[], V]) -> V:
    """The answer for `key`, which `make` gives once: readers far behind ask again, and without the answer, or the
    reason why there is none, each would look through all that lie between. Raises Unprovable, again for the same key.
    """
    if key not in known:
        try:
            known[key] = make()
        except Unprovable as reason:
            known[key] = Unprovable(*reason.args)
            raise
    found = known[key]
    if isinstance(found, Unprovable):
        raise Unprovable(*found.args)
    return found
