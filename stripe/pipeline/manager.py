"""Runs a list of passes, watched by clients of `Instrument`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from stripe.ir import (
    ConfigError,
    Program,
    Stage,
    StripeError,
    closest,
    unmet_demands,
    walk,
)
from stripe.passes.base import DependsOn, Pass, PassContext, Remark, Selection, any_matching
from stripe.passes.registry import find_pass, pass_names
from stripe.pipeline.dependences import completed_dependences
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.fault import InternalFault
from stripe.pipeline.instrument import Instrument
from stripe.pipeline.pricing import PriceMemo, Pricing

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from stripe.cost.time.price import Price
    from stripe.hw.schema import HardwareModel


@dataclass(frozen=True, slots=True)
class PassManager:
    """Passes in order, the machine that they may ask about, and the instruments that watch them."""

    entries: tuple[PassEntry, ...]
    hardware: HardwareModel | None = None
    instruments: tuple[Instrument, ...] = ()
    pricing: Pricing = field(default_factory=PriceMemo, compare=False)
    """The source of prices for passes, also for passes that run inside a price."""
    runs_for_price: bool = False
    """Whether the run is one for a price."""

    def run(self, program: Program) -> Program:
        """The program after all passes; the same object when none changed it.

        Raises StripeError for errors of the user, InternalFault for our own."""
        for instrument in self.instruments:
            instrument.begin(program)
        for number in range(len(self.entries)):
            program = self.step(number, program)
        for instrument in self.instruments:
            instrument.end(program)
        return program

    def step(self, number: int, program: Program) -> Program:
        """The program after the pass with that number, from the one before it. Raises as `run`."""
        entry = self.entries[number]
        require_stage(program, entry, self.entries[:number])
        try:
            for instrument in reversed(self.instruments):
                instrument.before(entry, program)
            require_no_addresses(program, entry)
            result = self._apply(number, program)
            # raises InternalFault for a stage that a pass lowers, or raises further than it declares
            before = program.stage
            latest = max(before, entry.pass_.ensures or before)
            if not before <= result.stage <= latest:
                declared = f"it keeps '{before.word}'" if latest == before else f"it ensures '{latest.word}'"
                raise InternalFault(
                    f"pass {entry.label} gives a program of the stage '{result.stage.word}', though {declared}"
                )
            for instrument in self.instruments:
                instrument.after(entry, program, result)
        except (StripeError, InternalFault) as error:
            self._report(entry, program, error)
            raise
        except Exception as error:
            fault = InternalFault(f"pass {entry.label} crashed: {type(error).__name__}: {error}")
            fault.__cause__ = error  # the reproducer shows where in our code it was
            self._report(entry, program, fault)
            raise fault from error
        return result

    def _apply(self, number: int, program: Program) -> Program:
        """The result of one pass; errors about its options are located at its entry."""
        entry = self.entries[number]

        def listen(remark: Remark) -> None:
            for instrument in self.instruments:
                instrument.remark(entry, remark)

        listener = listen if self.instruments else None

        def words() -> frozenset[str]:
            self._asked(entry)
            return words_named(self.entries)

        def runs_for_price() -> bool:
            self._asked(entry)
            return self.runs_for_price

        price = self._pricing(number)
        context = PassContext(self.hardware, listener, _evaluate, price, words, runs_for_price)
        if self.instruments:
            say_unmatched(entry, program, context)
            say_without_effect(entry.pass_, context)
        try:
            return completed_dependences(program, entry.pass_.run(program, context))
        except StripeError as error:
            if not error.place:
                error.where = f"pass {entry.label}"
            raise

    def _pricing(self, number: int) -> Callable[[Program], Price] | None:
        """The simulated price of a program that goes through the entries behind this one. Passes in that run ask for
        prices too, as they do in the run of the whole list.
        """
        entry = self.entries[number]
        if self.hardware is None:
            return None
        rest = PassManager(
            self.entries[number + 1 :], self.hardware, pricing=self.pricing, runs_for_price=True
        )

        def price(program: Program) -> Price:
            self._asked(entry)
            return self.pricing.price(rest, program)

        return price

    def _asked(self, entry: PassEntry) -> None:
        for instrument in self.instruments:
            instrument.depends_on_list(entry)

    def _report(self, entry: PassEntry, program: Program, error: Exception) -> None:
        for instrument in self.instruments:
            instrument.failed(entry, program, error)


def words_named(entries: Sequence[PassEntry]) -> frozenset[str]:
    """All words in the options of passes, tags among them."""
    found: set[str] = set()
    waiting: list[object] = [entry.pass_.model_dump(mode="json") for entry in entries]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, dict):
            waiting += [*cast("dict[str, object]", value).keys(), *cast("dict[str, object]", value).values()]
        elif isinstance(value, (list, tuple)):
            waiting += cast("Sequence[object]", value)
    return frozenset(found)


def _evaluate(
    program: Program, inputs: Mapping[str, npt.NDArray[np.generic]]
) -> Mapping[str, npt.NDArray[np.generic]]:
    """The results of `program`, for passes that run parts of it at compile time."""
    from stripe.exec.interp import interpret

    return interpret(program, inputs)


def require_stage(program: Program, entry: PassEntry, ran: Sequence[PassEntry]) -> None:
    """ConfigError unless the program has reached the stage that `entry` requires, or meets all demands of it: it takes
    several passes to locate a program, of which none is the last."""
    wanted = entry.pass_.requires
    missing = [] if program.stage >= wanted else unmet_demands(program, wanted)
    if not missing:
        return
    first = missing[0]
    names = ", ".join(f"'{other.name}'" for other in ran)
    classes = {name: find_pass(name) for name in pass_names()}
    able = [name for name, c in classes.items() if c.requires < wanted <= (c.ensures or Stage.TILED)]
    quoted = " or ".join(f"'{name}'" for name in able)
    advice = f"put {quoted}" if able else first.hint or "put the passes that establish it"
    raise ConfigError(
        f"pass {entry.label} requires the stage '{wanted.word}', and the program is '{program.stage.word}' "
        + (f"after {names}" if names else "as given")
        + f": {first.message} ({first.name or 'the program'})",
        hint=f"{advice} before it",
    )


def say_unmatched(entry: PassEntry, program: Program, context: PassContext) -> None:
    """A warning for each option whose tags no block has, with the tag that may be meant; where the entry is optional a
    remark, which suspects no mistake."""
    fields = type(entry.pass_).model_fields
    selecting = (
        name for name, field in fields.items() if any(isinstance(each, Selection) for each in field.metadata)
    )
    for option in sorted(selecting):
        tags: tuple[str, ...] = getattr(entry.pass_, option)
        if any_matching(program, tags):
            continue
        message = f"{option}: no block has {' '.join(f'#{tag}' for tag in tags)}"
        if entry.optional:
            context.missed("", message)
            continue
        known = sorted({word for _, block in walk(program.entry) for word in block.words})
        strange = [tag for tag in tags if tag not in known]
        near = [f"did you mean '{word}'?" for tag in strange if (word := closest(tag, known))]
        hint = near[0] if near else f"blocks have {', '.join(known) or 'no tags'}"
        context.warned(f"{message}; {hint}")


def say_without_effect(pass_: Pass, context: PassContext) -> None:
    """A warning for each option that another one, or its absence, leaves without an effect."""
    fields = type(pass_).model_fields
    given = {name for name, field in fields.items() if getattr(pass_, name) != field.get_default()}
    for option in (name for name in fields if name in given):
        for needed in (each for each in fields[option].metadata if isinstance(each, DependsOn)):
            if (needed.option in given) == needed.absent:
                context.warned(
                    f"{option} has no effect {'with' if needed.absent else 'without'} {needed.option}"
                )


def require_no_addresses(program: Program, entry: PassEntry) -> None:
    """ConfigError when buffers have addresses and the pass may change live ranges."""
    refs = (ref for _, block in walk(program.entry) for ref in block.refinements)
    placed = (ref.name for ref in refs if ref.offset is not None)
    if not entry.pass_.keeps_addresses and (name := next(placed, None)) is not None:
        reason = f"pass {entry.label} may change sizes and lifetimes, and '{name}' already has its address"
        raise ConfigError(reason, hint="put it before the passes that give addresses")
