"""The comparison of two buffers, and the answers to problems, each found once.

Buffers that one statement of either program writes are answered together: a fused statement reads some of them while it
makes others, so that all of them follow from the same statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from stripe.ir import Block, Buffer, Statement
from stripe.poly import PolyLimit, isl_failures, operation_limit
from stripe.verify.assumptions import Assumption
from stripe.verify.proof.contributions import Definition
from stripe.verify.proof.definitions import Definitions
from stripe.verify.proof.excerpt import Excerpts, Problem
from stripe.verify.proof.nested import difference
from stripe.verify.proof.numbering import Numbering
from stripe.verify.proof.order import reads_in_order
from stripe.verify.proof.pairs import BufferPair, KnownBuffers, Sides
from stripe.verify.proof.reaching import Reaching
from stripe.verify.proof.relations import Mismatch
from stripe.verify.proof.rules import PLAIN, Rules, Unprovable
from stripe.verify.proof.unchanged import Unchanged

Group: TypeAlias = tuple[BufferPair, ...]
ElementChoice: TypeAlias = Callable[[Numbering, Definition, Definition], tuple[Definition, Definition]]
"""A choice of the elements of two definitions that are compared."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The first difference between two definitions, or the reason why it was not decided; None where they are equal,
    with the assumptions behind that.
    """

    found: Mismatch | PolyLimit | Unprovable | None
    relied: frozenset[Assumption] = frozenset()


class Answers:
    """The answers for pairs of buffers, each by the first of `rules` that shows no difference."""

    def __init__(
        self,
        unchanged: Unchanged,
        known: KnownBuffers,
        pairs: Sequence[BufferPair],
        operations: int,
        rules: tuple[Rules, ...],
    ) -> None:
        self._unchanged, self._known = unchanged, known
        self._operations, self._rules = operations, rules
        self._excerpts = Excerpts(unchanged)
        groups = _written_together(unchanged, pairs)
        self._groups = {pair: group for group in groups for pair in group}
        outlines = {group: _outline(unchanged, group) for group in groups}
        alike = Counter(outlines.values())
        self._repeats = {group: alike[outline] > 1 for group, outline in outlines.items()}
        self._solutions: dict[Problem, _ExcerptComparison] = {}
        self._solved_by: dict[BufferPair, tuple[_ExcerptComparison, int] | None] = {}
        """The solution of each pair, and the number of its answer there; None for one compared in its place."""

    def answer(self, pair: BufferPair) -> Answer:
        """The answer for a pair whose buffers begin alike. Buffers are taken as known that are known now, or that were
        when the first pair of its group was asked for.
        """
        if pair not in self._solved_by:
            group = self._groups[pair]
            self._solve(group, group[group.index(pair) :])
        solved_by = self._solved_by[pair]
        if solved_by is None:
            return _answer(self._known.sides(pair), pair.buffers, self._operations)
        solution, number = solved_by
        return solution.answer(number)

    def _solve(self, group: Group, pairs: Sequence[BufferPair]) -> None:
        """Finds the solution that answers some pairs of a group."""
        pairs = [pair for pair in pairs if self._unchanged.begin_alike(pair.buffers)]
        problem = None
        if self._repeats[group] or self._rules != (PLAIN,):
            problem = self._excerpts.problem([pair.buffers for pair in pairs], self._known.labels)
        if problem is None:
            self._solved_by |= dict.fromkeys(pairs)
            return
        if problem not in self._solutions:
            self._solutions[problem] = _ExcerptComparison(problem, self._operations, self._rules)
        solution = self._solutions[problem]
        self._solved_by |= {pair: (solution, number) for number, pair in enumerate(pairs)}


class _ExcerptComparison:
    """The answers to a problem, which depend on the two excerpts alone."""

    def __init__(self, problem: Problem, operations: int, rules: tuple[Rules, ...]) -> None:
        self._problem, self._operations, self._rules = problem, operations, rules
        self._sides: dict[Rules, Sides] = {}
        self._answers: dict[int, Answer] = {}

    def answer(self, number: int) -> Answer:
        """The answer for the results of this number."""
        if number not in self._answers:
            self._answers[number] = self._found(number)
        return self._answers[number]

    def _found(self, number: int) -> Answer:
        first, second = self._problem
        answer = Answer(None)
        if first == second:
            return answer
        for rules in self._rules:
            if rules not in self._sides:
                definitions = (Definitions(Reaching(each.program), {}, rules) for each in self._problem)
                self._sides[rules] = Sides((next(definitions), next(definitions)), Numbering())
            results = first.results[number], second.results[number]
            answer = _answer(self._sides[rules], results, self._operations)
            if not isinstance(answer.found, Mismatch):
                break
        return answer


def _answer(sides: Sides, buffers: tuple[Buffer, Buffer], operations: int) -> Answer:
    try:
        with isl_failures(), operation_limit(operations):
            found = differ(sides, buffers, depth=0)
    except (PolyLimit, Unprovable) as reason:
        return Answer(reason.with_traceback(None))
    return Answer(found, sides.relied)


def whole(_: Numbering, first: Definition, second: Definition) -> tuple[Definition, Definition]:
    """All elements."""
    return first, second


def differ(
    sides: Sides, buffers: tuple[Buffer, Buffer], depth: int, of: ElementChoice = whole
) -> Mismatch | None:
    """The first difference between the two definitions of a buffer, or `of` some of its elements."""
    for definitions, buffer in zip(sides.both, buffers, strict=True):
        for read in reads_in_order(definitions, definitions.reaching.final(buffer)):
            with suppress(Unprovable):  # it is raised again where the read matters
                sides.numbering.prepare(definitions, read)
    first, second = (
        sides.numbering.normal(definitions, definitions.reaching.final(buffer))
        for definitions, buffer in zip(sides.both, buffers, strict=True)
    )
    return difference(sides.numbering, *of(sides.numbering, first, second), depth)


def _written_together(unchanged: Unchanged, pairs: Sequence[BufferPair]) -> list[Group]:
    """The pairs in groups: of those whose first buffers the same statements write, or whose second ones."""
    writers = {
        pair: [(side, *unchanged.writers(side, buffer)) for side, buffer in enumerate(pair.buffers)]
        for pair in pairs
    }
    written = Counter(side for sides in writers.values() for side in sides)
    groups: dict[object, list[BufferPair]] = {}
    for pair, sides in writers.items():
        groups.setdefault(max(sides, key=written.__getitem__), []).append(pair)
    return [tuple(group) for group in groups.values()]


def _outline(unchanged: Unchanged, group: Group) -> object:
    """Hash key of a group, equal for equal problems: the forms of the statements that write its buffers."""
    return tuple(
        tuple(
            _form(unchanged.statement(side, path))
            for path in dict.fromkeys(
                path for pair in group for path in unchanged.writers(side, pair.buffers[side])
            )
        )
        for side in (0, 1)
    )


def _form(statement: Statement) -> object:
    if not isinstance(statement, Block):
        return type(statement)
    ranges = tuple(index.range for index in statement.indices)
    views = tuple((ref.dir, ref.agg, ref.sizes) for ref in statement.refinements)
    return ranges, len(statement.constraints), views, tuple(map(_form, statement.statements))
