"""The rules by which definitions are made, and the error of a construct that has none."""

from __future__ import annotations

from dataclasses import dataclass


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
