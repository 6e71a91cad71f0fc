"""The numbers of a machine that a computation reads: models that record which of their fields were asked for.

A result that a computation drew from a machine holds for every other machine that agrees with it in all fields that
were read, so it may be used there again. The record is complete because fields are the only access to a model:
each field is recorded when it is read, and comparing, hashing, copying or writing a model records all of it.
Of a question about routes (`unit_graph`) the answer is recorded instead of all fields that lead to it: machines of
different numbers of memories have the same route from the first of them.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast

from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from typing_extensions import override

from stripe.hw.graph import Hop, Route, UnitGraph
from stripe.hw.schema import Bus, ExecUnit, HardwareModel, MemUnit, TxUnit
from stripe.ir.errors import ConfigError

_Model = TypeVar("_Model", bound=BaseModel)
_PARTS = (HardwareModel, MemUnit, ExecUnit, TxUnit, Bus)
"""The classes whose fields are recorded one by one; other values are recorded whole."""

_ROUTES = "routes "
"""The beginning of the place of a question about routes: the method of `UnitGraph` and its arguments as JSON."""

Reads = dict[str, str]
"""The fields read: their places, such as `exec_units.CONV.count`, with the values as canonical JSON; and questions
about routes with their answers."""


def traced(model: HardwareModel, reads: Reads) -> HardwareModel:
    """A model with the fields of `model`, which records in `reads` the fields that are read of it."""
    return MachineFacts(model).traced(reads)


@dataclass(frozen=True)
class MachineFacts:
    """The values of a model at places of `Reads`."""

    model: HardwareModel
    _found: dict[str, str | None] = field(default_factory=dict[str, "str | None"], init=False)

    def at(self, place: str) -> str | None:
        """The value as canonical JSON; None where the model has no such place."""
        if place not in self._found:
            self._found[place] = (
                self.answers.spelled(place) if place.startswith(_ROUTES) else _look_up(self.model, place)
            )
        return self._found[place]

    def traced(self, reads: Reads) -> HardwareModel:
        """The model, which records in `reads` the fields that are read of it."""
        return self._shape.made(_Record(reads, self))

    @cached_property
    def answers(self) -> RouteAnswers:
        """The answers to questions about routes, which machines with equal buses share."""
        return _answers_of(self.model)

    @cached_property
    def _shape(self) -> _Shape[HardwareModel]:
        return _shape_of(self.model, "")

    def agree(self, reads: Reads) -> bool:
        """Whether the model has the same values at all places that were read."""
        found = self._found
        return all(
            (found[place] if place in found else self.at(place)) == value for place, value in reads.items()
        )


def _look_up(model: HardwareModel, place: str) -> str | None:
    value: object = model
    for step in place.split("."):
        if isinstance(value, dict):
            named = cast("dict[str, object]", value)
            if step not in named:
                return None
            value = named[step]
        elif isinstance(value, tuple):
            parts = cast("tuple[object, ...]", value)
            if int(step) >= len(parts):
                return None
            value = parts[int(step)]
        else:
            value = getattr(value, step)
    return _canonical(value)


def _canonical(value: object) -> str:
    """The value as JSON; of units and buses, their names and number: their fields are places of their own."""
    if isinstance(value, Mapping):
        named = cast("Mapping[str, object]", value)
        if any(isinstance(part, _PARTS) for part in named.values()):
            return json.dumps(list(named))
    if isinstance(value, tuple):
        parts = cast("tuple[object, ...]", value)
        if any(isinstance(part, _PARTS) for part in parts):
            return json.dumps(len(parts))
    if value is None or isinstance(value, (str, int, float)):
        return json.dumps(value)
    return json.dumps(to_jsonable_python(value), sort_keys=True)


class _Record(NamedTuple):
    """The record of a computation, and the machine that it reads."""

    reads: Reads
    facts: MachineFacts


@dataclass(frozen=True, slots=True)
class _Shape(Generic[_Model]):
    """A part of a model, its place and the parts in it: all that recording copies of it have in common."""

    part: _Model
    place: str
    named: tuple[tuple[str, dict[str, _Shape[Any]]], ...]
    """Fields that hold parts by name."""
    listed: tuple[tuple[str, tuple[_Shape[Any], ...]], ...]
    """Fields that hold lists of parts."""

    def made(self, record: _Record) -> _Model:
        """A copy that records. (Its class checks nothing that the part does not hold already.)"""
        recording = _recording_class(type(self.part))
        made = recording.__new__(recording)
        values = dict(self.part.__dict__)
        for name, shapes in self.named:
            values[name] = {key: shape.made(record) for key, shape in shapes.items()}
        for name, shapes in self.listed:
            values[name] = tuple(shape.made(record) for shape in shapes)
        values[_RECORD] = (record, self.place, self.part)
        object.__setattr__(made, "__dict__", values)
        for slot in ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
            object.__setattr__(made, slot, getattr(self.part, slot))
        return cast("_Model", made)


def _shape_of(part: _Model, place: str) -> _Shape[_Model]:
    named: list[tuple[str, dict[str, _Shape[Any]]]] = []
    listed: list[tuple[str, tuple[_Shape[Any], ...]]] = []
    for name in type(part).model_fields:
        value: object = part.__dict__[name]
        inside = f"{place}.{name}" if place else name
        if isinstance(value, dict):
            entries = cast("dict[str, object]", value)
            shapes = {k: _shape_of(v, f"{inside}.{k}") for k, v in entries.items() if isinstance(v, _PARTS)}
            named += [(name, shapes)] if shapes else []
        elif isinstance(value, tuple):
            parts = cast("tuple[object, ...]", value)
            several = [_shape_of(v, f"{inside}.{n}") for n, v in enumerate(parts) if isinstance(v, _PARTS)]
            listed += [(name, tuple(several))] if several else []
    return _Shape(part, place, tuple(named), tuple(listed))


_RECORD = "_record"


class _RecordedField:
    """A field whose reads are recorded. As a data descriptor it goes before the instance's own value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: BaseModel | None, _owner: type) -> object:
        if instance is None:
            raise AttributeError(self.name)
        values = instance.__dict__
        value = values[self.name]
        record, place, _ = values[_RECORD]
        inside = f"{place}.{self.name}" if place else self.name
        if inside not in record.reads:
            record.reads[inside] = record.facts.at(inside)
        return value

    def __set__(self, instance: BaseModel, _value: object) -> None:
        raise AttributeError(f"{type(instance).__name__} is frozen")


@cache
def _recording_class(part_class: type[BaseModel]) -> type[BaseModel]:
    """The subclass of `part_class` whose instances record."""

    class Recording(part_class):
        @override
        def __eq__(self, other: object) -> bool:
            _record_all(self)
            return isinstance(other, BaseModel) and _plain(self) == _plain(other)

        @override
        def __hash__(self) -> int:
            _record_all(self)
            return hash(_plain(self))

        @override
        def __iter__(self) -> Generator[tuple[str, Any]]:
            _record_all(self)
            yield from _plain(self)

        @override
        def __reduce__(self) -> Any:
            _record_all(self)
            return _plain(self).__reduce_ex__(4)

        @override
        def __copy__(self) -> Any:
            return self  # it is frozen

        @override
        def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Any:
            return self

        @override
        def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Any:
            _record_all(self)
            return _plain(self).model_copy(update=update, deep=deep)

        @override
        def model_dump(self, **options: Any) -> dict[str, Any]:
            _record_all(self)
            return _plain(self).model_dump(**options)

        @override
        def model_dump_json(self, **options: Any) -> str:
            _record_all(self)
            return _plain(self).model_dump_json(**options)

    Recording.__name__ = part_class.__name__
    for name in part_class.model_fields:
        setattr(Recording, name, _RecordedField(name))
    return Recording


def _record_all(part: BaseModel) -> None:
    for name in type(part).model_fields:
        value: object = getattr(part, name)
        if isinstance(value, dict):
            value = tuple(cast("dict[str, object]", value).values())
        if isinstance(value, tuple):
            for item in cast("tuple[object, ...]", value):
                if isinstance(item, _PARTS):
                    _record_all(item)


def _plain(part: BaseModel) -> BaseModel:
    """The model that a recording one was made from; another model itself."""
    return part.__dict__[_RECORD][2] if _RECORD in part.__dict__ else part


_Answer = Route | ConfigError | str | float | tuple[str, ...] | None


def unit_graph(model: HardwareModel) -> UnitGraph:
    """The graph of a model, which finds a route once for all machines that have the same units and buses; that of a
    recording model records questions with their answers."""
    return _RecordingGraph(model) if _RECORD in model.__dict__ else UnitGraph(model, _answers_of(model).graph)


class RouteAnswers:
    """The answers to questions about the routes of a machine; an error that a question raises is one."""

    def __init__(self, graph: UnitGraph) -> None:
        self.graph = graph
        self._found: dict[str, tuple[_Answer, str]] = {}

    def at(self, place: str) -> _Answer:
        """The answer to the question at a place of `Reads`."""
        return self._entry(place)[0]

    def spelled(self, place: str) -> str:
        """The answer as canonical JSON."""
        return self._entry(place)[1]

    def _entry(self, place: str) -> tuple[_Answer, str]:
        if place not in self._found:
            answer = self._asked(place)
            self._found[place] = answer, _spelled(answer)
        return self._found[place]

    def _asked(self, place: str) -> _Answer:
        method, *words = json.loads(place.removeprefix(_ROUTES))
        graph = self.graph
        asked: dict[str, Callable[..., _Answer]] = {
            "find_route": graph.find_route,
            "connection": graph.connection,
            "memories_of": graph.memories_of,
            "widest_bus": graph.widest_bus,
            "reads": partial(graph.nearest, writes=False),
            "writes": partial(graph.nearest, writes=True),
        }
        try:
            return asked[method](*words)
        except ConfigError as error:
            return error


MAX_GRAPHS = 256
"""Graphs whose routes are kept."""

_graphs: OrderedDict[tuple[object, ...], RouteAnswers] = OrderedDict()


def _answers_of(model: HardwareModel) -> RouteAnswers:
    """The answers for a machine: those of any machine that has the same units and buses as far as routes go by them."""
    memories = tuple((name, memory.count, memory.kind) for name, memory in model.mem_units.items())
    computing = tuple((name, unit.count) for name, unit in model.exec_units.items())
    moving = tuple((name, unit.count, unit.latency_cycles) for name, unit in model.tx_units.items())
    key = (memories, computing, moving, model.buses)
    if key not in _graphs:
        # Routes are found in a model that has nothing else: they cannot depend on more than the key.
        bare = HardwareModel.model_construct(
            clock_mhz=1.0,
            mem_units={n: MemUnit.model_construct(count=count, kind=kind) for n, count, kind in memories},
            exec_units={n: ExecUnit.model_construct(count=count) for n, count in computing},
            tx_units={n: TxUnit.model_construct(count=c, latency_cycles=each) for n, c, each in moving},
            buses=model.buses,
        )
        _graphs[key] = RouteAnswers(UnitGraph(bare))
    _graphs.move_to_end(key)
    if len(_graphs) > MAX_GRAPHS:
        _graphs.popitem(last=False)
    return _graphs[key]


def _spelled(answer: _Answer) -> str:
    if isinstance(answer, ConfigError):
        return json.dumps({"error": [answer.reason, answer.hint]})
    if isinstance(answer, Route):
        hops = [(hop.source, hop.sink, hop.index) for hop in answer.hops]
        return json.dumps([hops, answer.bytes_per_cycle, answer.latency_cycles, answer.stages])
    return json.dumps(answer)


class _RecordingGraph(UnitGraph):
    """The graph of a recording model. Routes are found in the graph of its original; their buses are those of the
    recording model, so that what is read of them is recorded. Whatever else is asked reads the fields."""

    def __init__(self, model: HardwareModel) -> None:
        super().__init__(model)
        record: _Record = model.__dict__[_RECORD][0]
        self._reads = record.reads
        self._original = record.facts.answers
        self._answers: dict[tuple[str, ...], _Answer] = {}

    def _asked(self, *question: str) -> Any:
        if question not in self._answers:
            place = _ROUTES + json.dumps(question)
            answer = self._original.at(place)
            self._reads[place] = self._original.spelled(place)
            if isinstance(answer, Route):
                hops = (Hop(h.source, h.sink, h.index, self.model.buses[h.index]) for h in answer.hops)
                answer = replace(answer, hops=tuple(hops)) if answer.hops else answer
            self._answers[question] = answer
        answer = self._answers[question]
        if isinstance(answer, ConfigError):
            raise ConfigError(answer.reason, hint=answer.hint)
        return answer

    @override
    def find_route(self, source: str, sink: str) -> Route | None:
        return self._asked("find_route", source, sink)

    @override
    def connection(self, source: str, sink: str) -> Route:
        return self._asked("connection", source, sink)

    @override
    def nearest(self, name: str, unit: str, *, writes: bool) -> str:
        return self._asked("writes" if writes else "reads", name, unit)

    @override
    def memories_of(self, unit: str, access: Literal["read", "write", "both"] = "both") -> tuple[str, ...]:
        return self._asked("memories_of", unit, access)

    @override
    def widest_bus(self, name: str) -> float:
        return self._asked("widest_bus", name)
