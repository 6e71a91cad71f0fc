"""Statements of a block inserted, replaced, dropped or moved, with their dependences kept right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stripe.ir.block import Block, Statement
from stripe.ir.frozen import frozen, replace
from stripe.ir.walk import with_statements


class Edit:
    """A new list of the statements of a block, written from front to back.

    Dependences follow the statements that they name: a new statement `replaces` old ones, and dependences on these
    become dependences on it. A dependence on a dropped statement passes on to the dependences of that statement.
    """

    def __init__(self, block: Block) -> None:
        self._block = block
        self._statements: list[Statement] = []
        self._waits: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        self._places: dict[int, list[int]] = {}

    def put(
        self,
        statement: Statement,
        *,
        replaces: Iterable[int] = (),
        like: Iterable[int] | None = None,
        after: Iterable[int] = (),
    ) -> int:
        """Appends a statement and gives its number in the new list. It has the dependences of the old statements
        `like` (by default of the ones that it `replaces`), and depends on the new statements `after`.
        """
        place = len(self._statements)
        replaced = tuple(replaces)
        self._statements.append(statement)
        self._waits.append((replaced if like is None else tuple(like), tuple(after)))
        for number in replaced:
            self._places.setdefault(number, []).append(place)
        return place

    def keep(self, number: int) -> int:
        """Appends old statement `number`."""
        return self.put(self._block.statements[number], replaces=(number,))

    def result(self) -> Block:
        """The block with the new list; the same object when that is the old one."""
        old = self._block.statements
        now: list[set[int]] = []  # the new statements in the place of each old one
        for number, statement in enumerate(old):
            places = self._places.get(number)
            now.append(set(places) if places else {place for dep in statement.deps for place in now[dep]})
        new: list[Statement] = []
        for place, statement in enumerate(self._statements):
            like, after = self._waits[place]
            found = {there for number in like for dep in old[number].deps for there in now[dep]}
            deps = tuple(sorted(found.union(after) - {place}))
            new.append(statement if statement.deps == deps else replace(statement, deps=deps))
        return with_statements(self._block, new)


def keep_statements(block: Block, numbers: Iterable[int]) -> Block:
    """`block` with only the statements of these numbers, in the order given."""
    edit = Edit(block)
    for number in numbers:
        edit.keep(number)
    return edit.result()


def splice(block: Block, parts: Mapping[int, Sequence[Statement]]) -> Block:
    """`block` with statement n replaced by the statements `parts[n]`, which do not depend on each other: all get the
    dependences of statement n, and a dependence on it becomes one on each of them.
    """
    edit = Edit(block)
    for number, statement in enumerate(block.statements):
        for part in parts.get(number, (statement,)):
            edit.put(part, replaces=(number,))
    return edit.result()


@frozen
class Around:
    """Statements to put directly before and after a statement."""

    before: tuple[Statement, ...] = ()
    after: tuple[Statement, ...] = ()


def surround(block: Block, around: Mapping[int, Around]) -> Block:
    """`block` with further statements directly before and after some of its statements.

    Where statements have dependences, the ones before take over those of their statement, which waits for them; the
    ones after wait for their statement, and whatever waited for it waits for them, too.
    """
    ordered = any(statement.deps for statement in block.statements)
    edit = Edit(block)
    for number, statement in enumerate(block.statements):
        new = around.get(number, Around())
        first = [edit.put(part, like=(number,)) for part in new.before]
        place = edit.put(statement, replaces=(number,), after=first if ordered else ())
        for part in new.after:
            edit.put(part, replaces=(number,), like=(), after=(place,) if ordered else ())
    return edit.result()


def moved_down(statement: Statement, by: int, first: int = 0) -> Statement:
    """A statement for a list in which those from number `first` on have moved `by` places down."""
    deps = tuple(dep + by if dep >= first else dep for dep in statement.deps)
    return statement if deps == statement.deps else replace(statement, deps=deps)


def transitive_reduction(deps: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    """The dependences of each statement of a list, rising, without the ones that follow from others."""
    reach: list[int] = []  # bit n: statement n; sets would take memory with the square of a long program
    result: list[tuple[int, ...]] = []
    for wanted in deps:
        direct: list[int] = []
        seen = 0
        for dep in sorted(wanted, reverse=True):
            if not seen >> dep & 1:
                direct.append(dep)
                seen |= 1 << dep | reach[dep]
        reach.append(seen)
        result.append(tuple(reversed(direct)))
    return tuple(result)
