"""Differences that may be none: numbers that one program computes from indices and the other has at hand, and specials
of which it is not known whether they are equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stripe.ir import Agg
from stripe.ir.frozen import replace
from stripe.poly import Points
from stripe.verify.proof.contributions import Contribution, Definition
from stripe.verify.proof.numbering import Numbering
from stripe.verify.proof.relations import Mismatch, OperandTuple
from stripe.verify.proof.terms import IndexValue, Leaf, Term, leaves, show
from stripe.verify.proof.witness import Different, Instance, Side, Unknown, Witness


def _is_array(leaf: Term, kind: str) -> bool:
    return isinstance(leaf, Leaf) and leaf.array.startswith(kind)


def _is_fixed(leaf: Term) -> bool:
    """Whether no input decides the leaf: values of indices and elements of constant buffers."""
    return isinstance(leaf, IndexValue) or _is_array(leaf, "const:")


def decided(numbering: Numbering, first: Definition, second: Definition) -> tuple[Definition, Definition]:
    """Two definitions without the keys at which one of them uses such a number, or a special, that the other does not
    use there."""
    uses = [_uses(numbering, definition) for definition in (first, second)]
    none = Points.empty(first.keys)
    undecided = none
    for leaf in dict.fromkeys([*uses[0], *uses[1]]):
        here, there = (side.get(leaf, none) for side in uses)
        undecided = undecided | (here - there) | (there - here)
    return _outside(first, undecided), _outside(second, undecided)


def _uses(numbering: Numbering, definition: Definition) -> dict[Term, Points]:
    """The keys at which each number without an input, or special, is used."""
    found: dict[Term, Points] = {}
    for contribution in (
        *definition.values,
        *(c for merge in definition.merges for c in merge.contributions),
    ):
        domain = contribution.points.domain
        for leaf in _open_leaves(numbering, contribution.term, set()):
            found[leaf] = found[leaf] | domain if leaf in found else domain
    return found


def _open_leaves(numbering: Numbering, term: Term, seen: set[str]) -> Iterator[Term]:
    """The numbers without an input and the specials of a term, also in its reductions but those `seen`."""
    for leaf in leaves(term):
        if _is_fixed(leaf) or _is_array(leaf, "call"):
            yield leaf
        elif isinstance(leaf, Leaf) and leaf.array in numbering.reductions and leaf.array not in seen:
            seen.add(leaf.array)
            for contribution in numbering.reductions[leaf.array].contributions:
                yield from _open_leaves(numbering, contribution.term, seen)


def _outside(definition: Definition, keys: Points) -> Definition:
    merges = (
        replace(merge, contributions=_without(merge.contributions, keys), keys=merge.keys - keys)
        for merge in definition.merges
    )
    return replace(
        definition,
        values=_without(definition.values, keys),
        merges=tuple(merge for merge in merges if merge.contributions),
        covered=definition.covered - keys,
    )


def _without(contributions: Iterable[Contribution], keys: Points) -> tuple[Contribution, ...]:
    left = (replace(c, points=c.points.outside(keys)) for c in contributions)
    return tuple(c for c in left if not c.points.is_empty)


def verdict_on(output: str, found: Mismatch) -> Different | Unknown:
    """The verdict on a difference between the definitions of an output's element."""
    before, after = found.before, found.after
    fixed = [set(filter(_is_fixed, leaves(p.contribution.term))) for p in (before, after) if p is not None]
    if fixed[0] != fixed[-1] or (len(fixed) == 1 and fixed[0]):
        return Unknown(
            f"'{output}' uses numbers that one program computes from indices and the other has at hand"
        )
    if found.how == "other operands" and before is not None and after is not None:
        mine, theirs = before.contribution, after.contribution
        same = (mine.term, before.coordinates) == (theirs.term, after.coordinates)
        calls = [{leaf for leaf in leaves(p.term) if _is_array(leaf, "call")} for p in (mine, theirs)]
        if calls[0] != calls[1]:
            return Unknown(f"'{output}' uses specials of which it is not known whether they are equal")
        if same and _agg(mine) is _agg(theirs):
            return Unknown(f"an element of '{output}' is merged in one program and assigned in the other")
    message = "it is defined by other operands"
    if found.how != "other operands":
        message = f"an operand contributes {found.how}"
    element = tuple(found.key.values())
    return Different(Witness(message, output, element, _side(before), _side(after)))


def _side(operand: OperandTuple | None) -> Side:
    """A contribution as a witness shows it."""
    if operand is None:
        return Side("nothing")
    origin, text = operand.contribution.origin, show(operand.contribution.term, operand.coordinates)
    if origin is None:
        return Side(f"unchanged {text}")
    place = Instance(origin.path, origin.nest.block.name, tuple(operand.point.items()))
    return Side(f"{origin.agg.value} {text}", place)


def _agg(contribution: Contribution) -> Agg:
    return Agg.ASSIGN if contribution.origin is None else contribution.origin.agg
