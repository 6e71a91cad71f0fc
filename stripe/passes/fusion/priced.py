"""Prices of a fused block and of its parts: both as the rest of the pass list makes them, simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, TypeAlias

from stripe.cost.objective import UNITS, ObjectiveOption, objective_value
from stripe.hw.trace import unit_graph
from stripe.ir import (
    Block,
    Intrinsic,
    Location,
    Path,
    Program,
    Special,
    Store,
    StripeError,
    Tags,
    block_at,
    replace_at,
    with_entry,
)
from stripe.ir.frozen import replace
from stripe.passes.base import PassContext, Refusal
from stripe.passes.fusion.candidates import Line
from stripe.rewrite.excerpt import MAIN, Companies, Content, content_of_program, excerpt, names_statement

if TYPE_CHECKING:
    from stripe.cost.time.price import Price
    from stripe.hw.schema import HardwareModel

CLOSE = 0.01
"""Part of a price by which a fused block may be dearer: later entries may fuse more with it, and buffers between its
parts cost the rest of the program memory and traffic, which a price of the pair alone does not see."""

Prices: TypeAlias = "tuple[Price | None, Price | None]"
"""The prices of a fused block and of its parts; None where the rest of the list refuses them."""


class FusionPrices:
    """Prices of fused blocks and of their parts.

    Pairs that differ in names alone are priced once. Of pairs with the same operations and tags the pair that shares
    most bytes is priced first; where it is cheaper fused the others follow, since savings and costs of fusion both grow
    with the elements that a pair shares. Inside a price, for each tile that is tried, pairs of main are priced where an
    estimate says that the fused block may be dearer; with the tile that is taken they are priced anyway.
    """

    def __init__(self, objective: ObjectiveOption, context: PassContext) -> None:
        self._objective: ObjectiveOption = objective
        self._context = context
        self._ask: Callable[[Program], Price] | None = context.price if objective != "none" else None
        self._known: dict[Content, Prices] = {}
        self._cheaper: set[object] = set()

    def compared(
        self, program: Program, path: Path, line: Line, slots: Sequence[int], fused: Block
    ) -> str | Refusal:
        """The prices of `fused` and of the statements at `slots` of the `line`, which the block at `path` has, in
        words; empty where there are none. A refusal where the fused block is dearer."""
        if self._ask is None or len(path) == 1:
            return ""
        if self._context.runs_for_price():
            first, second = (line.block_at(slot) for slot in slots[-2:])
            assert first is not None and second is not None and self._context.hardware is not None
            if len(path) > MAIN or not _seems_dear(self._context.hardware, first, second):
                return ""
        parts = (line.block_at(slot) for slot in slots)
        kind = (len(path), *(_operations(part) for part in parts if part is not None))
        if kind in self._cheaper:
            return ""
        found = self._verdict(*self._prices(program, path, line, slots, fused))
        if not isinstance(found, Refusal):
            self._cheaper.add(kind)
        return found

    def _verdict(self, fused: Price | None, parts: Price | None) -> str | Refusal:
        if parts is None:
            return ""
        if fused is None:
            return Refusal("the rest of the list refuses the fused block")
        full, parts_full = (max(price.fullness.values(), default=0.0) for price in (fused, parts))
        if max(1.0, full) != max(1.0, parts_full):
            return "" if full < parts_full else Refusal(f"it takes {full:.3g} times a memory")
        one, other = (
            objective_value(each.cycles, each.energy_pJ, self._objective) for each in (fused, parts)
        )
        unit = UNITS[self._objective]
        if one > other * (1 + CLOSE):
            return Refusal(f"it would take {one:,.0f} {unit}, its parts {other:,.0f}")
        return f"{one:,.0f} {unit}, {other:,.0f} as parts"

    def _prices(self, program: Program, path: Path, line: Line, slots: Sequence[int], fused: Block) -> Prices:
        """The prices of the two programs, in main with all statements that may come to run with the pair."""
        whole = with_entry(program, replace_at(program.entry, path, lambda _: line.finish()[0]))
        numbers = line.positions(slots)
        if len(path) == MAIN:
            group = sorted({*numbers, *Companies(whole.main.statements).of(numbers[-2])})
            parts = excerpt(whole, group)
            path, numbers = (0, 0), tuple(map(group.index, numbers))
        else:
            parts = excerpt(whole, [path[MAIN]])
            path = (0, 0, 0, *path[MAIN + 1 :])

        def line_of(block: Block) -> Line:
            return Line(block, {ref.name: ref.source or ref.name for ref in block.refinements})

        def joined(block: Block) -> Block:
            small = line_of(block)
            small.join(numbers, fused)
            return small.finish()[0]

        # The excerpt names buffers anew, and may see a conflict where the line sees none: such a pair has no price.
        if isinstance(line_of(block_at(parts.entry, path)).between(numbers), int):
            return None, None
        content = (path, numbers, *content_of_program(parts, self._context.words_named()))
        if content not in self._known:
            together = replace(parts, entry=replace_at(parts.entry, path, joined))
            self._known[content] = self._price(together), self._price(parts)
        return self._known[content]

    def _price(self, program: Program) -> Price | None:
        assert self._ask is not None
        try:
            return self._ask(program)
        except StripeError:
            return None


def _seems_dear(hardware: HardwareModel, a: Block, b: Block) -> bool:
    """Whether the operations of `b` take longer on the units of `a` than on the quickest units, together with its
    operands from the main memory and its results to there."""
    from stripe.cost.time.tile_unit import find_unit, nest_operations, unit_cycles

    operations = nest_operations(b).times(b.points)

    def cycles(name: str) -> float:
        unit = hardware.exec_unit(name)
        found, missing = unit_cycles(unit, operations)
        return inf if missing else found / unit.count

    moved = sum(ref.elements * ref.dtype.bytes for ref in b.refinements) * b.points
    there = cycles(find_unit(hardware, a).name)
    widest = unit_graph(hardware).widest_bus(hardware.main_memory) if hardware.main_memory else inf
    alone = min(map(cycles, hardware.exec_units)) + moved / widest
    return there > alone


def _operations(block: Block) -> tuple[Tags, Location, frozenset[object]]:
    """The tags and location of a block, and the operations of all blocks in it."""
    named = (tag for tag in block.tags if names_statement(tag))
    return block.tags.remove(*named), block.location, frozenset(_done(block))


def _done(block: Block) -> Iterator[object]:
    for statement in block.statements:
        match statement:
            case Block():
                yield from _done(statement)
            case Store(name):
                ref = block.ref(name)
                yield ref.agg, ref.dtype
            case Intrinsic(_, op, _, dtype):
                yield op, dtype
            case Special(op):
                yield op
            case _:
                pass
