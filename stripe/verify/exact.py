"""The proof that a rewrite keeps the meaning: for each element of each output, the contributing operand tuples are
the same.

Buffers of the entry that both programs have are compared one after the other, in the order in which they are
written; those
found equal count as known when later ones read them, so that a change of one kernel costs what that kernel costs.
Where
an output then still differs, all is compared once more with everything inlined.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from stripe.ir import Program, Refinement
from stripe.poly import Buffer, PolyLimit, operation_limit
from stripe.verify.canon import Canon
from stripe.verify.checks import Finding, check_units
from stripe.verify.compare import Mismatch, Operand
from stripe.verify.definition import Definer, Unprovable
from stripe.verify.flow import Flow
from stripe.verify.nested import DEPTH, difference
from stripe.verify.same import Alike, same_meaning
from stripe.verify.terms import Leaf, Term, leaves, show
from stripe.verify.witness import Different, Equal, Place, Side, Unknown, Verdict, Witness

OPERATIONS = 4_000_000
"""isl's steps for one buffer: about a second."""


@dataclass(frozen=True)
class _Sides:
    """Both programs with what is known about them."""

    definers: tuple[Definer, Definer]
    canon: Canon


def prove_equal(before: Program, after: Program, *, operations: int = OPERATIONS) -> Verdict:
    """Whether `after` computes what `before` computes: *equal* is proved, *different* has a witness, *unknown* a
    reason.

    `after` is also checked, where it differs from `before`, for what makes a program wrong in itself: accesses out of
    bounds, elements assigned twice, races, reads of what nobody wrote. `before` is taken to be free of these.
    """
    if before is after or same_meaning(before, after):
        return Equal()
    changed = _interface(before, after)
    if changed is not None:
        return Different(changed)
    flows = (Flow(before), Flow(after))
    alike = Alike(*flows)
    try:
        findings = check_units(flows[1], alike.changed(), operations=operations)
    except PolyLimit as limit:
        return Unknown(f"checking the changed blocks: {limit}")
    if findings:
        return Different(_finding(findings[0]))
    return _compare(flows, alike, operations)


def _compare(flows: tuple[Flow, Flow], alike: Alike, operations: int) -> Verdict:
    cuts: dict[Buffer, str] = {}
    sides = _Sides((Definer(flows[0], cuts), Definer(flows[1], cuts)), Canon())
    open_outputs: list[Refinement] = []
    outputs = {Buffer((0,), ref.name) for ref in flows[0].program.outputs}
    first: Different | Unknown | None = None
    for ref in _candidates(flows):
        buffer = Buffer((0,), ref.name)
        found = None if alike.buffer(buffer, cuts) else _quick_difference(sides, ref, operations)
        if found is None:
            cuts[buffer] = f"buf:{ref.name}"
        elif buffer in outputs:
            open_outputs.append(ref)
        if isinstance(found, Mismatch) and first is None:
            first = _verdict(ref.name, found)
    if not open_outputs:
        return Equal()
    verdict = _inlined(flows, open_outputs, operations, finite=False)
    if isinstance(verdict, Unknown) and isinstance(first, Different):
        return Unknown(f"{verdict.reason}; first seen to differ was\n{first}")
    if isinstance(verdict, Different) and _inlined(flows, open_outputs, operations, finite=True) == Equal():
        return Equal(("no padding with zeros meets an infinite value or NaN",))
    if (
        isinstance(verdict, Different)
        and isinstance(first, Different)
        and first.witness.buffer != verdict.witness.buffer
    ):
        return Different(replace(verdict.witness, cause=first.witness))
    return verdict


def _quick_difference(sides: _Sides, ref: Refinement, operations: int) -> Mismatch | str | None:
    """None when the buffer is proved equal; otherwise its readers look through it, and the outputs decide."""
    try:
        with operation_limit(operations):
            return _differ(sides, ref, depth=0)
    except (PolyLimit, Unprovable) as reason:
        return str(reason)


def _inlined(
    flows: tuple[Flow, Flow],
    outputs: Sequence[Refinement],
    operations: int,
    *,
    finite: bool,
) -> Verdict:
    """The comparison of outputs through all that leads to them."""
    definers = (Definer(flows[0], {}, finite=finite), Definer(flows[1], {}, finite=finite))
    sides = _Sides(definers, Canon())
    for ref in outputs:
        try:
            with operation_limit(4 * operations):
                _define_in_order(definers)
                found = _looked_into(sides, ref)
                if found is not None:
                    return _verdict(ref.name, found)
        except PolyLimit as limit:
            return Unknown(f"comparing '{ref.name}': {limit}")
        except Unprovable as reason:
            return Unknown(f"comparing '{ref.name}': {reason}")
    return Equal()


def _looked_into(sides: _Sides, ref: Refinement) -> Mismatch | None:
    """The difference between the two definitions of an output, if possible where it comes from."""
    found = _differ(sides, ref, 0)
    if found is None:
        return None
    try:
        return _differ(sides, ref, DEPTH)
    except Unprovable:
        if sides.canon.incomplete:
            raise
        return found  # reductions of different names are different


def _define_in_order(definers: tuple[Definer, Definer]) -> None:
    """Defines the buffers of the entry from the first to the last, so that no definition needs a deep recursion."""
    for definer in definers:
        flow = definer.flow
        written = [
            (flow.writers.get(Buffer((0,), ref.name), []), ref) for ref in flow.program.entry.refinements
        ]
        for _, ref in sorted(
            ((writers[-1].path, ref) for writers, ref in written if writers), key=lambda w: w[0]
        ):
            if Buffer((0,), ref.name) not in definer.cuts:
                with suppress(Unprovable):  # it is raised again where the buffer matters
                    definer.definition(flow.final(ref))


def _interface(before: Program, after: Program) -> Witness | None:
    """The first difference between the tensors that the programs take and give."""
    for what, first, second in (
        ("input", before.inputs, after.inputs),
        ("output", before.outputs, after.outputs),
    ):
        old = {ref.name: (ref.dtype.name, ref.sizes) for ref in first}
        new = {ref.name: (ref.dtype.name, ref.sizes) for ref in second}
        for name in [*old, *(name for name in new if name not in old)]:
            if what == "input" and name not in new:
                continue  # an input that is no longer needed
            if old.get(name) != new.get(name):
                return Witness(f"the {what} changed", name, None, _shape(old, name), _shape(new, name))
    return None


def _shape(tensors: dict[str, tuple[str, tuple[int, ...]]], name: str) -> Side:
    if name not in tensors:
        return Side("it does not exist")
    dtype, sizes = tensors[name]
    return Side(f"{dtype}({', '.join(map(str, sizes))})")


def _candidates(flows: tuple[Flow, Flow]) -> list[Refinement]:
    """Buffers of the entry that both programs have and write, in the order of their last write in the first."""
    other = {ref.name: ref for ref in flows[1].program.entry.refinements}
    found: list[tuple[tuple[int, ...], Refinement]] = []
    for ref in flows[0].program.entry.refinements:
        writers = flows[0].writers.get(Buffer((0,), ref.name), [])
        twin = other.get(ref.name)
        if writers and twin is not None and (twin.dtype, twin.sizes) == (ref.dtype, ref.sizes):
            found.append((writers[-1].path, ref))
    return [ref for _, ref in sorted(found, key=lambda item: item[0])]


def _differ(sides: _Sides, ref: Refinement, depth: int) -> Mismatch | None:
    """The first difference between the two definitions of a buffer of the entry."""
    first, second = (sides.canon.normal(d, d.flow.final(ref)) for d in sides.definers)
    return difference(sides.canon, first, second, depth)


def _verdict(output: str, found: Mismatch) -> Different | Unknown:
    """What a difference between the definitions of an output's element means."""
    before, after = found.before, found.after
    if found.how == "other operands" and before is not None and after is not None:
        mine, theirs = before.part, after.part
        same = (mine.term, before.coordinates) == (theirs.term, after.coordinates)
        calls = [{leaf for leaf in leaves(p.term) if _is_call(leaf)} for p in (mine, theirs)]
        if calls[0] != calls[1]:
            return Unknown(f"'{output}' uses specials of which it is not known whether they are equal")
        if same and mine.origin.agg is theirs.origin.agg:
            return Unknown(f"an element of '{output}' is merged in one program and assigned in the other")
    message = "it is defined by other operands"
    if found.how != "other operands":
        message = f"an operand contributes {found.how}"
    element = tuple(found.key.values())
    return Different(Witness(message, output, element, _side(before), _side(after)))


def _is_call(leaf: Term) -> bool:
    return isinstance(leaf, Leaf) and leaf.array.startswith("call")


def _side(operand: Operand | None) -> Side:
    """What a contribution shows of itself in a witness."""
    if operand is None:
        return Side("nothing")
    origin = operand.part.origin
    place = Place(origin.path, origin.nest.block.name, tuple(operand.point.items()))
    return Side(f"{origin.agg.value} {show(operand.part.term, operand.coordinates)}", place)


def _finding(finding: Finding) -> Witness:
    return Witness(
        finding.message, finding.buffer, finding.element, Side("free of this"), Side("wrong", finding.place)
    )
