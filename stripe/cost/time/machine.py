"""A machine as the cost models see it: the units that a location names, and the routes between them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from stripe.hw.graph import Route, parse_unit
from stripe.hw.schema import HardwareModel, MemUnit
from stripe.hw.trace import unit_graph
from stripe.ir import Block, ConfigError, Interval, Location, walk

if TYPE_CHECKING:
    from stripe.cost.time.pieces import StatementContent
    from stripe.cost.time.statement import StatementCost


_Answer = TypeVar("_Answer")

MOST_ANSWERS = 2000
"""Answers of searches that a machine keeps."""


def check_locations(entry: Block, model: HardwareModel) -> None:
    """Raises ConfigError for the first location of a block or buffer that the machine lacks, with its place."""
    for _, block in walk(entry):
        named = [(f"block {block.name}", block.location)]
        named += [(f"'{ref.name}' in block {block.name}", ref.location) for ref in block.refinements]
        for place, location in named:
            try:
                model.require_location(location)
            except ConfigError as error:
                raise ConfigError(error.reason, where=place, hint=error.hint) from None
        for ref in block.refinements:
            if ref.location and ref.location.name not in model.mem_units:
                reason = f"'{ref.location}' is no memory"
                hint = f"memories are {', '.join(model.mem_units)}"
                raise ConfigError(reason, where=f"'{ref.name}' in block {block.name}", hint=hint)


class Machine:
    """A hardware model with its graph, and the names of units in it."""

    _latest: ClassVar[Machine | None] = None

    @staticmethod
    def of(model: HardwareModel) -> Machine:
        """The machine of a model; the same one, with the routes found so far, until another model is asked for.

        A model that records its reads (`stripe.hw.trace`) has a machine of its own: no other makes the same record.
        """
        latest = Machine._latest
        if latest is not None and model is not latest.model and model is not latest._equal:
            if type(model) is type(latest.model) is HardwareModel and model == latest.model:
                latest._equal = model
            else:
                latest = None
        if latest is None:
            latest = Machine._latest = Machine(model)
        return latest

    def __init__(self, model: HardwareModel) -> None:
        self.model = self._equal = model  # the latest of the models that are equal to it
        self.graph = unit_graph(model)
        self.costs: dict[StatementContent, StatementCost] = {}
        """Costs of statements found so far."""
        self._answers: dict[Hashable, object] = {}
        self._through: dict[tuple[str, str, str], Route] = {}
        self._near: dict[tuple[str, str, bool], str] = {}

    def once(self, question: Hashable, answer: Callable[[], _Answer]) -> _Answer:
        """The answer to a question about this machine, kept for the next time: searches ask the same for equal layers,
        and for candidates that are chosen. `question` holds all that the answer depends on beside the machine.
        """
        if question not in self._answers:
            if len(self._answers) == MOST_ANSWERS:
                self._answers.clear()
            self._answers[question] = answer()
        return cast("_Answer", self._answers[question])

    @cached_property
    def main_memory(self) -> str:
        """The memory of buffers without a location. Raises ConfigError when the machine has none."""
        name = self.model.main_memory
        if name is None:
            raise ConfigError("the machine has no memory for inputs and outputs", hint="mark one 'is_host'")
        return f"{name}[0]"

    def memory_of(self, unit: str) -> MemUnit:
        """The memory that `NAME[number]` is one of. Raises ConfigError."""
        return self.model.memory(parse_unit(unit)[0])

    def memory(self, location: Location) -> str:
        """The memory of a buffer; where its block's indices choose one of several, the first stands for all."""
        if not location:
            return self.main_memory
        self.model.memory(location.name)
        return self.unit(location)

    def memory_near(self, location: Location, unit: str, *, writes: bool) -> str:
        """The memory of a buffer as `unit` sees it: the nearest of its name, for a location without a number."""
        if not location or location.devices[-1].units:
            return self.memory(location)
        key = (location.name, unit, writes)
        if key not in self._near:
            self.model.memory(location.name)
            self._near[key] = self.graph.nearest(location.name, unit, writes=writes)
        return self._near[key]

    def unit(self, location: Location) -> str:
        """The unit that a location means; the first where it may mean several."""
        numbers = location.devices[-1].units
        constant = numbers[0].offset if numbers and numbers[0].is_constant else 0
        return f"{location.name}[{constant}]"

    def numbers(self, location: Location, ranges: Mapping[str, Interval]) -> tuple[int, ...] | None:
        """The numbers of the units that a location means over all points; None when any unit will do."""
        units = location.devices[-1].units
        if not units:
            return None
        low, high = units[0].bounds(ranges)
        count = self.model.unit(location.name).count
        if low < 0 or high >= count:
            raise ConfigError(f"'{location}' runs from {low} to {high}, and {location.name} has {count}")
        step = abs(units[0].terms[0][1]) if len(units[0].terms) == 1 else 1
        return tuple(range(low, high + 1, step))

    def route_through(self, source: str, unit: str, sink: str) -> Route:
        """The route from one memory to another through a given transfer unit."""
        key = (source, unit, sink)
        if key not in self._through:
            setup = self.model.tx_unit(parse_unit(unit)[0]).latency_cycles
            self._through[key] = self.graph.route(source, unit).then(self.graph.route(unit, sink), setup)
        return self._through[key]
