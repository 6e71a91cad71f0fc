"""Operands that commute and come from the same array: their elements in a fixed order.

`operand_order` sorts operands by what they are. `A[i] * A[j]` and `A[j] * A[i]` are told apart by the elements alone:
here the lexicographically smaller coordinates go first.
"""

from __future__ import annotations

from collections.abc import Iterator

from stripe.ir import Affine
from stripe.poly import Points, Relation
from stripe.verify.proof.terms import Operation, Term, commutes


def ties(term: Term, offset: int = 0) -> Iterator[tuple[int, int]]:
    """The pairs of operands that only their coordinates tell apart, inner ones first: where the coordinates of the
    first one begin, and how many either has.
    """
    if not isinstance(term, Operation):
        return
    inside = offset
    for arg in term.args:
        yield from ties(arg, inside)
        inside += arg.width
    if commutes(term.op, term.args) and term.args[0] == term.args[1] and term.args[0].width:
        yield offset, term.args[0].width


def ordered(term: Term, at: Relation) -> Relation:
    """The coordinates of the term's leaves with those of each tie in order."""
    names = tuple(f"{number}" for number in range(len(at.outs)))
    for offset, width in ties(term):
        first, second = names[offset : offset + width], names[offset + width : offset + 2 * width]
        wrong = at.named(at.ins, names).into(Points.descending(names, first, second))
        if wrong.is_empty:
            continue
        other = dict(zip((*first, *second), (*second, *first), strict=True))
        swap = Relation.function(
            Points.universe(names), {f"{name}'": Affine.var(other.get(name, name)) for name in names}
        )
        at = (at - wrong) | wrong.then(swap)
    return at
