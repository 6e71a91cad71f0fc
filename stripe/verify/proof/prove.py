"""The proof that a rewrite keeps the meaning: for each element of each output, the contributing operand tuples are
the same.

Buffers of the entry and of `main` that both programs have are compared one after the other, in the order in which
they are written; those found equal count as known when later ones read them, so that a change of one kernel costs what
that kernel costs. What one statement of `main` (a fused block) writes does not count as known inside it, since it is
read there while it is being made. Where an output then still differs, all is compared once more with everything
inlined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from typing_extensions import override

from stripe.ir import Agg, Buffer, Path, Program, Refinement
from stripe.poly import PolyLimit, operation_limit
from stripe.verify.program import OPERATIONS, Finding, check_units
from stripe.verify.proof.computed import same_constant
from stripe.verify.proof.contributions import Part
from stripe.verify.proof.definitions import PLAIN, Definer, Rules, Unprovable
from stripe.verify.proof.nested import DEPTH, difference
from stripe.verify.proof.numbering import Canon
from stripe.verify.proof.reaching import Flow
from stripe.verify.proof.relations import Mismatch, Operand
from stripe.verify.proof.terms import IndexValue, Leaf, Term, leaves, show
from stripe.verify.proof.unchanged import Alike, same_meaning
from stripe.verify.proof.witness import Different, Equal, Place, Side, Unknown, Verdict, Witness

PADDING = "no padding with zeros meets an infinite value or NaN"
PATIENCE = 3
"""How many buffers may pass the limit before the outputs alone decide: what leads to them takes as long."""


@dataclass(frozen=True)
class _Sides:
    """Both programs with what is known about them."""

    definers: tuple[Definer, Definer]
    canon: Canon


@dataclass(frozen=True)
class _Pair:
    """A buffer that both programs have, and the name by which it is known once it is proved equal."""

    name: str
    buffers: tuple[Buffer, Buffer]

    @property
    def label(self) -> str:
        return f"buf:{self.name}"

    @property
    def is_same(self) -> bool:
        """Whether it is one and the same, not a buffer that may hold what another one holds."""
        return self.buffers[0].name == self.buffers[1].name


class _Without(Mapping[Buffer, str]):
    """The known buffers but for some, as they stand when asked."""

    def __init__(self, known: Mapping[Buffer, str], hidden: frozenset[str]) -> None:
        self._known = known
        self._hidden = hidden

    @override
    def __getitem__(self, buffer: Buffer) -> str:
        label = self._known[buffer]
        if label in self._hidden:
            raise KeyError(buffer)
        return label

    @override
    def __iter__(self) -> Iterator[Buffer]:
        return (buffer for buffer, label in self._known.items() if label not in self._hidden)

    @override
    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Known:
    """What is proved equal so far, and the definitions that take it as known."""

    def __init__(self, flows: tuple[Flow, Flow], pairs: Sequence[_Pair]) -> None:
        self._flows = flows
        self._pairs = pairs
        self.cuts: tuple[dict[Buffer, str], dict[Buffer, str]] = ({}, {})
        self._written = tuple(self._written_by_unit(side) for side in (0, 1))
        self._sides: dict[frozenset[str], _Sides] = {}

    def _written_by_unit(self, side: int) -> dict[Path, set[str]]:
        found: dict[Path, set[str]] = {}
        for pair in self._pairs:
            for writer in self._flows[side].writers.get(pair.buffers[side], ()):
                found.setdefault(writer.path[:3], set()).add(pair.label)
        return found

    def add(self, pair: _Pair) -> None:
        for cuts, buffer in zip(self.cuts, pair.buffers, strict=True):
            cuts[buffer] = pair.label

    def sides(self, pair: _Pair) -> _Sides:
        """The definitions for the comparison of one pair: what the statements that write it write is not known."""
        together = {pair.label}
        for flow, written, buffer in zip(self._flows, self._written, pair.buffers, strict=True):
            for writer in flow.writers.get(buffer, ()):
                together |= written[writer.path[:3]]
        known = pair.buffers[0] in self.cuts[0]  # through another pair: then it must not stand for itself
        hidden = frozenset(together) if known or len(together) > 1 else frozenset[str]()
        if hidden not in self._sides:
            first, second = (
                Definer(flow, _Without(cuts, hidden) if hidden else cuts)
                for flow, cuts in zip(self._flows, self.cuts, strict=True)
            )
            self._sides[hidden] = _Sides((first, second), Canon())
        return self._sides[hidden]


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
        findings = check_units(flows[1], alike.changed(), alike.exposed(), operations=operations)
    except PolyLimit as limit:
        return Unknown(f"checking the changed blocks: {limit}")
    if findings:
        return Different(_finding(findings[0]))
    return _compare(flows, alike, operations)


def _compare(flows: tuple[Flow, Flow], alike: Alike, operations: int) -> Verdict:
    pairs = _pairs(flows)
    known = _Known(flows, pairs)
    open_outputs: list[_Pair] = []
    outputs = {Buffer((0,), ref.name) for ref in flows[0].program.outputs}
    first: Different | Unknown | None = None
    for name, (buffer, _) in flows[0].tops.items():
        twin, _ = flows[1].tops.get(name, (None, None))
        if twin is None or flows[1].writers.get(twin):
            continue
        if same_constant(flows[0].program, flows[1].program, name):
            known.add(_Pair(name, (buffer, twin)))
    exhausted = 0
    for pair in pairs:
        same = alike.buffer(pair.buffers, known.cuts)
        if not same and exhausted == PATIENCE:
            found = PolyLimit("what leads to it takes too long")
        else:
            found = None if same else _quick_difference(known.sides(pair), pair, operations)
            exhausted += isinstance(found, PolyLimit)
        if found is None:
            known.add(pair)
        elif pair.is_same and pair.buffers[0] in outputs:
            open_outputs.append(pair)
        if isinstance(found, Mismatch) and pair.is_same and first is None:
            first = _verdict(pair.name, found)
    if not open_outputs:
        return Equal()
    verdict = _inlined(flows, open_outputs, operations)
    if isinstance(verdict, Unknown) and isinstance(first, Different):
        return Unknown(f"{verdict.reason}; first seen to differ was\n{first}")
    if (
        isinstance(verdict, Different)
        and isinstance(first, Different)
        and first.witness.buffer != verdict.witness.buffer
    ):
        return Different(replace(verdict.witness, cause=first.witness))
    return verdict


def _quick_difference(
    sides: _Sides, pair: _Pair, operations: int
) -> Mismatch | PolyLimit | Unprovable | None:
    """None when the buffer is proved equal; otherwise its readers look through it, and the outputs decide."""
    try:
        with operation_limit(operations):
            return _differ(sides, pair, depth=0)
    except (PolyLimit, Unprovable) as reason:
        return reason


def _inlined(flows: tuple[Flow, Flow], outputs: Sequence[_Pair], operations: int) -> Verdict:
    """The comparison of outputs through all that leads to them. A difference counts when it is there by all rules."""
    verdict = _by_rules(flows, outputs, operations, PLAIN)
    if not isinstance(verdict, Different):
        return verdict
    for rules in (Rules(finite=True), Rules(thorough=True), Rules(finite=True, thorough=True)):
        again = _by_rules(flows, outputs, operations, rules)
        if isinstance(again, Equal):
            return Equal((PADDING,) if rules.finite else ())
        if isinstance(again, Unknown):
            return Unknown(f"{again.reason}; without a closer look, this differs\n{verdict}")
    return verdict


def _by_rules(flows: tuple[Flow, Flow], outputs: Sequence[_Pair], operations: int, rules: Rules) -> Verdict:
    definers = (Definer(flows[0], {}, rules), Definer(flows[1], {}, rules))
    sides = _Sides(definers, Canon())
    for pair in outputs:
        try:
            with operation_limit(4 * operations):
                _define_in_order(definers)
                found = _looked_into(sides, pair)
                if found is not None:
                    return _verdict(pair.name, found)
        except PolyLimit as limit:
            return Unknown(f"comparing '{pair.name}': {limit}")
        except Unprovable as reason:
            return Unknown(f"comparing '{pair.name}': {reason}")
    return Equal()


def _looked_into(sides: _Sides, pair: _Pair) -> Mismatch | None:
    """The difference between the two definitions of an output, if possible where it comes from."""
    found = _differ(sides, pair, 0)
    if found is None:
        return None
    try:
        return _differ(sides, pair, DEPTH)
    except Unprovable:
        if sides.canon.incomplete:
            raise
        return found  # reductions of different names are different


def _define_in_order(definers: tuple[Definer, Definer]) -> None:
    """Defines the buffers from the first to the last, so that no definition needs a deep recursion."""
    for definer in definers:
        flow = definer.flow
        written = [(flow.writers.get(buffer, []), buffer) for buffer, _ in flow.tops.values()]
        for _, buffer in sorted(
            ((writers[-1].path, buffer) for writers, buffer in written if writers), key=lambda w: w[0]
        ):
            with suppress(Unprovable):  # it is raised again where the buffer matters
                definer.definition(flow.final(buffer))


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


def _pairs(flows: tuple[Flow, Flow]) -> list[_Pair]:
    """Buffers that both programs have and one of them writes, in the order of their last write in the first, then in
    the second.

    A buffer `T^0` (a schedule makes such, for one stay of `T` in a memory) may hold what `T` holds: what names suggest
    is worth a comparison, and nothing more follows from it.
    """
    twins: dict[str, list[tuple[Buffer, Refinement]]] = {}
    for name, twin in flows[1].tops.items():
        for base in dict.fromkeys((name, name.partition("^")[0])):
            twins.setdefault(base, []).append(twin)
    found: list[tuple[tuple[Path, Path], _Pair]] = []
    for name, (buffer, ref) in flows[0].tops.items():
        for twin, other in twins.get(name, ()):
            lasts = [flow.writers.get(each, []) for flow, each in zip(flows, (buffer, twin), strict=True)]
            pair = _Pair(name, (buffer, twin))
            if (lasts[0] or (lasts[1] and pair.is_same)) and _is_like(ref, other):
                first, second = (writers[-1].path if writers else () for writers in lasts)
                found.append(((first, second), pair))
    return [pair for _, pair in sorted(found, key=lambda item: item[0])]


def _is_like(first: Refinement, second: Refinement) -> bool:
    return (first.dtype, first.sizes) == (second.dtype, second.sizes)


def _differ(sides: _Sides, pair: _Pair, depth: int) -> Mismatch | None:
    """The first difference between the two definitions of a buffer."""
    first, second = (
        sides.canon.normal(definer, definer.flow.final(buffer))
        for definer, buffer in zip(sides.definers, pair.buffers, strict=True)
    )
    return difference(sides.canon, first, second, depth)


def _verdict(output: str, found: Mismatch) -> Different | Unknown:
    """What a difference between the definitions of an output's element means."""
    before, after = found.before, found.after
    fixed = [_fixed_leaves(operand) for operand in (before, after) if operand is not None]
    if fixed[0] != fixed[-1] or (len(fixed) == 1 and fixed[0]):
        return Unknown(
            f"'{output}' uses numbers that one program computes from indices and the other has at hand"
        )
    if found.how == "other operands" and before is not None and after is not None:
        mine, theirs = before.part, after.part
        same = (mine.term, before.coordinates) == (theirs.term, after.coordinates)
        calls = [{leaf for leaf in leaves(p.term) if _is_call(leaf)} for p in (mine, theirs)]
        if calls[0] != calls[1]:
            return Unknown(f"'{output}' uses specials of which it is not known whether they are equal")
        if same and _agg(mine) is _agg(theirs):
            return Unknown(f"an element of '{output}' is merged in one program and assigned in the other")
    message = "it is defined by other operands"
    if found.how != "other operands":
        message = f"an operand contributes {found.how}"
    element = tuple(found.key.values())
    return Different(Witness(message, output, element, _side(before), _side(after)))


def _fixed_leaves(operand: Operand) -> set[Term]:
    """The leaves whose value no input decides: values of indices and elements of constant buffers."""
    return {
        leaf
        for leaf in leaves(operand.part.term)
        if isinstance(leaf, IndexValue) or (isinstance(leaf, Leaf) and leaf.array.startswith("const:"))
    }


def _is_call(leaf: Term) -> bool:
    return isinstance(leaf, Leaf) and leaf.array.startswith("call")


def _side(operand: Operand | None) -> Side:
    """What a contribution shows of itself in a witness."""
    if operand is None:
        return Side("nothing")
    origin, text = operand.part.origin, show(operand.part.term, operand.coordinates)
    if origin is None:
        return Side(f"unchanged {text}")
    place = Place(origin.path, origin.nest.block.name, tuple(operand.point.items()))
    return Side(f"{origin.agg.value} {text}", place)


def _agg(part: Part) -> Agg:
    return Agg.ASSIGN if part.origin is None else part.origin.agg


def _finding(finding: Finding) -> Witness:
    return Witness(
        finding.message, finding.buffer, finding.element, Side("free of this"), Side("wrong", finding.place)
    )
