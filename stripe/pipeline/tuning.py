"""Tuning by measurement: settings of passes that the cost model ranks best are compiled and timed on this machine.

The entries of a list are tuned one after the other, each choice with all others as they are by then. A choice is among
the settings that a pass proposes (`Pass.settings`: the best tiles of a block, say), or among the values that the key
`tune` of an entry lists for an option. The programs of a choice run in turn, several rounds, each in the order of a
shuffle; the least processor time counts. The result is kept by program, list, model, compiler and processor.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from stripe.exec.cache import user_cache
from stripe.exec.compile import CompileOptions, compile_program
from stripe.exec.data import random_inputs
from stripe.exec.isolation import EngineCrash, isolated
from stripe.exec.native.processor import this_processor
from stripe.exec.toolchain import find_compiler, identity
from stripe.hw.schema import HardwareModel
from stripe.ir import Program, StripeError, print_program
from stripe.passes.base import Pass, PassContext
from stripe.pipeline.checks.bounds import require_memory_safe
from stripe.pipeline.checks.proof import quiet
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import with_option

_ROUNDS = 5
_SECONDS = 0.02
"""Length of a round of one program, at least one run."""

Measure = Callable[[Sequence[Program]], Sequence[float]]
"""The seconds that each program takes; infinity for a program that cannot be compiled."""


@dataclass(frozen=True, slots=True)
class Tuner:
    """A list of passes for a machine, of which each choice may try `count` settings; `say` gets a line for each."""

    entries: tuple[PassEntry, ...]
    hardware: HardwareModel | None
    count: int
    say: Callable[[str], object]
    measure: Measure

    def run(self, program: Program) -> tuple[PassEntry, ...]:
        """The entries with the settings that were fastest."""
        entries = list(self.entries)
        for number in range(len(entries)):
            before = PassManager(tuple(entries[:number]), self.hardware).run(program)
            position = 0
            while settings := self._settings(entries[number], before, position):
                self._choose(entries, number, settings, program)
                position += 1
        return tuple(entries)

    def _settings(self, entry: PassEntry, program: Program, position: int) -> list[Pass]:
        """The settings of the choice of this number that an entry has; none when it has no more."""
        if position < len(entry.tune):
            option, values = entry.tune[position]
            others = (with_option(entry.pass_, option, value) for value in values[: self.count])
            return [entry.pass_, *(other for other in others if other != entry.pass_)]
        choices = entry.pass_.settings(program, PassContext(self.hardware), self.count)
        position -= len(entry.tune)
        return list(choices[position]) if position < len(choices) else []

    def _choose(self, entries: list[PassEntry], number: int, settings: list[Pass], program: Program) -> None:
        tried: list[tuple[Pass, Program]] = []
        for setting in settings:
            changed = [*entries[:number], replace(entries[number], pass_=setting), *entries[number + 1 :]]
            try:
                tried.append((setting, PassManager(tuple(changed), self.hardware).run(program)))
            except StripeError as error:
                self.say(f"tune: {entries[number].label}: {_shown(setting, settings[0])}: {error.reason}")
        seconds = self.measure([made for _, made in tried])
        best = min(range(len(tried)), key=lambda at: (seconds[at], at), default=None)
        for at, (setting, _) in enumerate(tried):
            mark = " <-" if at == best else ""
            text = f"{seconds[at] * 1e6:.1f} µs: {_shown(setting, settings[0])}{mark}"
            self.say(f"tune: {entries[number].label}: {text}")
        if best is not None:
            entries[number] = replace(entries[number], pass_=tried[best][0])


def tuned(
    entries: tuple[PassEntry, ...],
    hardware: HardwareModel | None,
    program: Program,
    count: int,
    say: Callable[[str], object] | None = None,
) -> tuple[PassEntry, ...]:
    """The entries with the settings that are fastest on this machine; from the cache where they are known, and then
    `say` gets the lines of the run that measured them."""
    compiler = find_compiler()
    spelled = [[e.name, e.pass_.pass_name, e.pass_.model_dump(mode="json"), e.tune] for e in entries]
    machine = hardware.model_dump_json() if hardware else ""
    parts = [print_program(program), json.dumps(spelled), machine, str(count), identity(compiler, True)]
    key = "\0".join(["tuning", "with lines", *parts, this_processor().identity])
    lines: list[str] = []

    def told(line: str) -> None:
        lines.append(line)
        if say is not None:
            say(line)

    def search() -> str:
        found = Tuner(entries, hardware, count, told, measured_seconds).run(program)
        return json.dumps({"options": [e.pass_.model_dump(mode="json") for e in found], "lines": lines})

    kept = json.loads(user_cache().text(key, search))
    if not lines and say is not None:
        for line in kept["lines"]:
            say(line)
    return tuple(
        replace(entry, pass_=type(entry.pass_).model_validate(options))
        for entry, options in zip(entries, kept["options"], strict=True)
    )


def measured_seconds(programs: Sequence[Program]) -> list[float]:
    """Processor seconds of one run of each program, by the engine c on one thread."""
    return isolated(lambda: list(_measured(programs))) if programs else []


def _measured(programs: Sequence[Program]) -> Iterator[float]:
    calls: dict[int, Callable[[int], float]] = {}
    counts: dict[int, int] = {}
    inputs = random_inputs(programs[0])
    for number, program in enumerate(programs):
        try:
            require_memory_safe(program, quiet)
            built = compile_program(program, CompileOptions())
            once = isolated(lambda built=built: min(built.bench(inputs, 1).processor))
        except (StripeError, EngineCrash):
            continue
        calls[number] = lambda count, built=built: min(built.bench(inputs, count).processor)
        counts[number] = max(1, round(_SECONDS / max(once, 1e-6)))
    best = dict.fromkeys(calls, float("inf"))
    order = list(calls)
    for round_ in range(_ROUNDS):
        random.Random(round_).shuffle(order)
        for number in order:
            best[number] = min(best[number], calls[number](min(counts[number], 1000)))
    yield from (best.get(number, float("inf")) for number in range(len(programs)))


def _shown(setting: Pass, first: Pass) -> str:
    """The options in which a setting differs from the first one."""
    options = setting.model_dump(mode="json")
    other = first.model_dump(mode="json")
    changed = {name: value for name, value in options.items() if value != other[name]}
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in changed.items()) or "as it is"
