"""The proof that a rewrite keeps the meaning: for each element of each output, the contributing operand tuples are
the same.

Buffers of the entry and of `main` that both programs have are compared one after the other, in the order in which
they are written; those found equal count as known when later ones read them, so that a change of one kernel costs what
that kernel costs. What one statement of `main` (a fused block) writes does not count as known inside it, since it is
read there while it is being made. Where an output then still differs, all is compared once more with everything
inlined.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache

from stripe.ir import Block, Buffer, Intrinsic, Program
from stripe.ir.frozen import replace
from stripe.poly import PolyLimit, isl_failures, operation_limit, time_limit
from stripe.verify.assumptions import Assumption, in_order
from stripe.verify.constants import with_constants_of
from stripe.verify.interface import LogicalForm, interface_change, owed_pads
from stripe.verify.proof.answers import Answer, Answers, ElementChoice, differ, whole
from stripe.verify.proof.computed import computed_in_floats
from stripe.verify.proof.definitions import Definitions
from stripe.verify.proof.nested import DEPTH
from stripe.verify.proof.numbering import Numbering
from stripe.verify.proof.pairs import BufferPair, KnownBuffers, Sides, folded_pairs, pairs_of
from stripe.verify.proof.reaching import Reaching
from stripe.verify.proof.relations import Mismatch
from stripe.verify.proof.rules import PLAIN, Rules, Unprovable
from stripe.verify.proof.unchanged import Unchanged, same_meaning
from stripe.verify.proof.undecided import decided, verdict_on
from stripe.verify.proof.witness import Different, Equal, Side, Unknown, Verdict, Witness
from stripe.verify.soundness import OPERATIONS, WHOLE_PROGRAM_FACTOR, check_statements

PATIENCE = 3
"""The number of buffers past the limit after which the outputs alone decide: the buffers behind take as long."""

_CLOSER = (
    Rules(finite=True),
    Rules(thorough=True),
    Rules(finite=True, thorough=True),
    Rules(thorough=True, chains=True),
    Rules(finite=True, thorough=True, chains=True),
)
"""The rules by which an output is compared that differs by the plain ones. Without an answer by the first three none is
given; chains may only add a proof."""

SECONDS = 300.0
"""Processor time of one proof. It is read between questions, each of which has its limit of steps: where a proof takes
nowhere near so long its answer is the same on every machine, and where it does the answer can only become *unknown*."""


def prove_equal(
    before: Program, after: Program, *, operations: int = OPERATIONS, seconds: float = SECONDS
) -> Verdict:
    """Whether `after` computes what `before` computes: *equal* is proved, *different* has a witness, *unknown* a
    reason.

    `after` is also checked, where it differs from `before`, for errors of a single program: accesses out of bounds,
    elements assigned twice, races, reads of unwritten elements. `before` is taken to be free of these.

    `operations` bounds the isl steps of one question, `seconds` the processor time between the first and the last: past
    either the answer is *unknown*.

    Programs with physical layouts are compared by their logical elements, and constants by those of `before`; holes
    that `after` owes a value hold it.
    """
    owed = owed_pads(after, before)
    with time_limit(seconds):
        first = LogicalForm.of(before, owed)
        changed = interface_change(first.program, LogicalForm.of(after, owed).program)
        if changed is not None:
            return Different(Witness.of_interface(changed), certain=True)
        try:
            constants = with_constants_of(before, after)
        except PolyLimit as limit:
            return Unknown(f"looking for the layouts of constants: {limit}")
        second = LogicalForm.of(constants.program, owed)
        second = replace(second, added=second.added + constants.added)
        verdict = _prove_equal(first.program, second.program, operations)
    if isinstance(verdict, Different):
        return replace(verdict, witness=verdict.witness.of_forms(first, second))
    return verdict


def prove_pads(program: Program) -> Verdict:
    """Whether the holes of the outputs hold the pads of their layouts. A difference is an error of the program."""
    owed = owed_pads(program)
    if not owed:
        return Equal()
    with time_limit(SECONDS):
        promised = LogicalForm.of(program, owed, promised=True)
        kept = LogicalForm.of(program, owed)
        verdict = _prove_equal(promised.program, kept.program, OPERATIONS)
    if isinstance(verdict, Different):
        return Different(verdict.witness.of_forms(promised, kept), certain=True)
    return verdict


def _prove_equal(before: Program, after: Program, operations: int) -> Verdict:
    if before is after or same_meaning(before, after):
        return Equal()
    try:
        with isl_failures():
            reachings = (Reaching(before), Reaching(after))
            unchanged = Unchanged(*reachings)
            changed, exposed = unchanged.changed(), unchanged.exposed()
            findings = check_statements(reachings[1], changed, exposed, operations=operations)
    except PolyLimit as limit:
        return Unknown(f"checking the changed blocks: {limit}")
    for wrong in findings:
        if not wrong.unknown:
            sides = Side("free of this"), Side("wrong", wrong.place)
            return Different(Witness(wrong.message, wrong.buffer, wrong.element, *sides), certain=True)
    verdicts: list[Verdict] = [
        Unknown(f"checking the changed blocks: {unknown.message}") for unknown in findings
    ]
    try:
        with isl_failures():
            found = _compare(reachings, unchanged, operations)
            verdicts += found
            if any(isinstance(verdict, Unknown) for verdict in found):
                # A pad with zeros may be too much for one question, and is seen to change nothing layer by layer.
                again = _compare(reachings, unchanged, operations, (PLAIN, Rules(finite=True)))
                if all(isinstance(verdict, Equal) for verdict in again):
                    verdicts[len(verdicts) - len(found) :] = again
    except PolyLimit as limit:
        verdicts.append(Unknown(f"comparing: {limit}"))
    return _of_all(verdicts)


def _of_all(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict on programs by those on their parts: the first difference, also behind parts without an answer."""
    for kind in (Different, Unknown):
        for verdict in verdicts:
            if isinstance(verdict, kind):
                return verdict
    return Equal(
        in_order({flag for equal in verdicts if isinstance(equal, Equal) for flag in equal.assumptions})
    )


def _compare(
    reachings: tuple[Reaching, Reaching],
    unchanged: Unchanged,
    operations: int,
    rules: tuple[Rules, ...] = (PLAIN,),
) -> list[Verdict]:
    """The comparison of all pairs of buffers, each by the first of `rules` that shows no difference: a verdict on those
    found equal, and on each output besides, up to one that differs."""
    pairs = pairs_of(reachings)
    known = KnownBuffers(reachings, pairs)
    open_outputs: list[BufferPair] = []
    outputs = {Buffer((0,), ref.name) for ref in reachings[0].program.outputs}
    first: Different | None = None
    relied: set[Assumption] = set()
    for pair in folded_pairs(reachings):
        known.add(pair)
        in_floats = computed_in_floats(reachings[0].program, pair.buffers[0].name)
        relied |= {Assumption.FOLDED} if in_floats else set()
    exhausted: set[Answer] = set()
    answers = Answers(unchanged, known, pairs, operations, rules)
    for pair in pairs:
        if unchanged.buffer(pair.buffers, known.labels):
            known.add(pair)
            continue
        # without a proof readers look through the buffer, and the outputs decide
        found: Mismatch | PolyLimit | Unprovable | None = PolyLimit("the buffers before it take too long")
        if len(exhausted) < PATIENCE and unchanged.begin_alike(pair.buffers):
            answer = answers.answer(pair)
            found = answer.found
            if isinstance(found, PolyLimit):
                exhausted.add(answer)
            if found is None:
                relied |= answer.relied
                known.add(pair)
                continue
        if pair.is_same and pair.buffers[0] in outputs:
            open_outputs.append(pair)
        if isinstance(found, Mismatch) and pair.is_same and first is None:
            with suppress(PolyLimit, Unprovable), isl_failures(), operation_limit(operations):
                seen = differ(known.sides(pair), pair.buffers, depth=0)  # with its place in the programs
                cause = None if seen is None else verdict_on(pair.name, seen)
                first = cause if isinstance(cause, Different) else None
    equal = Equal(in_order(relied))
    if not open_outputs:
        return [equal]
    if rules != (PLAIN,):
        return [equal, Unknown("outputs differ by each of the rules")]
    verdicts = _inlined(reachings, open_outputs, operations)
    return [equal, *verdicts] if first is None else [equal, *(_with_cause(v, first) for v in verdicts)]


def _with_cause(verdict: Verdict, first: Different) -> Verdict:
    """The verdict on an output with the first buffer that was seen to differ."""
    if isinstance(verdict, Equal):
        return verdict
    if isinstance(verdict, Unknown):
        return Unknown(f"{verdict.reason}; first seen to differ was\n{first}")
    if first.witness.buffer == verdict.witness.buffer:
        return verdict
    return Different(replace(verdict.witness, cause=first.witness))


def _inlined(
    reachings: tuple[Reaching, Reaching], outputs: Sequence[BufferPair], operations: int
) -> list[Verdict]:
    """The verdicts on outputs through all that leads to them, up to one that differs by all rules."""

    @cache
    def sides(rules: Rules) -> Sides:
        return Sides(
            (Definitions(reachings[0], {}, rules), Definitions(reachings[1], {}, rules)), Numbering()
        )

    has_chains = any(_has_chains(reaching.program.main) for reaching in reachings)
    closer = tuple(rules for rules in _CLOSER if has_chains or not rules.chains)
    helpful: dict[Rules, None] = {}  # to other outputs, and so perhaps to one without an answer
    verdicts: list[Verdict] = []
    for pair in outputs:
        verdict = _by_rules(sides(PLAIN), pair, operations)
        others = () if isinstance(verdict, Equal) else closer if isinstance(verdict, Different) else helpful
        for rules in tuple(others):
            again = _by_rules(sides(rules), pair, operations)
            if isinstance(again, Equal):
                helpful[rules] = None
                verdict = again
                break
            if isinstance(again, Unknown) and isinstance(verdict, Different) and not rules.chains:
                verdict = Unknown(f"{again.reason}; without a closer look, this differs\n{verdict}")
                break
        verdicts.append(verdict)
        if isinstance(verdict, Different):
            break
    return verdicts


def _has_chains(block: Block) -> bool:
    """Whether an operation of the block merges as an aggregation does."""
    ops = {statement.op for statement in block.statements if isinstance(statement, Intrinsic)}
    return not ops.isdisjoint({"add", "min", "max", "bit_or", "bit_and"}) or any(
        map(_has_chains, block.blocks)
    )


def _by_rules(sides: Sides, pair: BufferPair, operations: int) -> Verdict:
    """The verdict on an output by the rules of its definitions. A difference that may be none hides no other."""
    try:
        with isl_failures(), operation_limit(WHOLE_PROGRAM_FACTOR * operations):
            found = _looked_into(sides, pair)
    except (PolyLimit, Unprovable) as reason:
        return Unknown(f"comparing '{pair.name}': {reason}")
    if found is None:
        return Equal(in_order(sides.relied))
    verdict = verdict_on(pair.name, found)
    if isinstance(verdict, Unknown):
        with (
            suppress(PolyLimit, Unprovable),
            isl_failures(),
            operation_limit(WHOLE_PROGRAM_FACTOR * operations),
        ):
            found = _looked_into(sides, pair, of=decided)
            elsewhere = None if found is None else verdict_on(pair.name, found)
            return elsewhere if isinstance(elsewhere, Different) else verdict
    return verdict


def _looked_into(sides: Sides, pair: BufferPair, of: ElementChoice = whole) -> Mismatch | None:
    """The difference between the two definitions of an output, if possible where it comes from."""
    found = differ(sides, pair.buffers, 0, of)
    if found is None:
        return None
    try:
        return differ(sides, pair.buffers, DEPTH, of)
    except Unprovable:
        if sides.numbering.incomplete:
            raise
        return found  # reductions of different names are different
