"""The numbers of a machine that a computation reads: models that record which of their fields were asked for.

A result that a computation drew from a machine holds for every other machine that agrees with it in all fields that
were read, so it may be used there again. The record is complete because fields are the only access to a model:
each field is recorded when it is read, and comparing, hashing, copying or writing a model records all of it.
Of a question about routes (`unit_graph`) the answer is recorded instead of all fields that lead to it: machines of
different numbers of memories have the same route from the first of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Literal, TypeVar, cast

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


def traced(model: HardwareModel, reads: Reads, graph: UnitGraph | None = None) -> HardwareModel:
    """A model with the fields of `model`, which records in `reads` what is read of it. `graph` is that of `model`."""
    made = _traced_part(model, reads, "")
    vars(made)[_GRAPH] = graph
    return made


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """The values of a model at places of `Reads`."""

    model: HardwareModel
    _found: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    _graphs: list[UnitGraph] = field(default_factory=list[UnitGraph])

    def at(self, place: str) -> str | None:
        """The value as canonical JSON; None where the model has no such place."""
        if place not in self._found:
            self._found[place] = (
                _spelled(_answer(self._graph(), place))
                if place.startswith(_ROUTES)
                else _look_up(self.model, place)
            )
        return self._found[place]

    def traced(self, reads: Reads) -> HardwareModel:
        """The model as one that records in `reads` what is read of it."""
        return traced(self.model, reads, self._graph())

    def _graph(self) -> UnitGraph:
        if not self._graphs:
            self._graphs.append(UnitGraph(self.model))
        return self._graphs[0]

    def agree(self, reads: Reads) -> bool:
        """Whether the model has the same values at all places that were read."""
        return all(self.at(place) == value for place, value in reads.items())


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
    return json.dumps(to_jsonable_python(value), sort_keys=True)


def _traced_part(part: _Model, reads: Reads, place: str) -> _Model:
    values: dict[str, object] = {}
    for name in type(part).model_fields:
        value: object = part.__dict__[name]
        inside = f"{place}.{name}" if place else name
        if isinstance(value, dict):
            named = cast("dict[str, object]", value)
            value = {key: _traced_value(item, reads, f"{inside}.{key}") for key, item in named.items()}
        elif isinstance(value, tuple):
            parts = cast("tuple[object, ...]", value)
            value = tuple(_traced_value(item, reads, f"{inside}.{n}") for n, item in enumerate(parts))
        values[name] = value
    made = _recording_class(type(part)).model_construct(None, **values)
    vars(made)[_RECORD] = (reads, place, part)
    return cast("_Model", made)


def _traced_value(value: object, reads: Reads, place: str) -> object:
    return _traced_part(value, reads, place) if isinstance(value, _PARTS) else value


_RECORD = "_record"
_GRAPH = "_graph"


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
        reads, place, _ = values[_RECORD]
        inside = f"{place}.{self.name}" if place else self.name
        if inside not in reads:
            reads[inside] = _canonical(value)
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


_Answer = Route | ConfigError | str | tuple[str, ...] | None


def unit_graph(model: HardwareModel) -> UnitGraph:
    """The graph of a model; that of a recording one records questions with their answers."""
    return _RecordingGraph(model) if _RECORD in model.__dict__ else UnitGraph(model)


def _answer(graph: UnitGraph, place: str) -> _Answer:
    """The answer to a question; an error that it raises is one."""
    method, *words = json.loads(place.removeprefix(_ROUTES))
    asked: dict[str, Callable[..., _Answer]] = {
        "find_route": graph.find_route,
        "connection": graph.connection,
        "memories_of": graph.memories_of,
        "reads": partial(graph.nearest, writes=False),
        "writes": partial(graph.nearest, writes=True),
    }
    try:
        return asked[method](*words)
    except ConfigError as error:
        return error


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
        self._reads: Reads = model.__dict__[_RECORD][0]
        known: UnitGraph | None = model.__dict__.get(_GRAPH)
        self._original = known or UnitGraph(cast("HardwareModel", _plain(model)))
        self._answers: dict[str, _Answer] = {}

    def _asked(self, *question: str) -> Any:
        place = _ROUTES + json.dumps(question)
        if place not in self._answers:
            answer = _answer(self._original, place)
            self._reads[place] = _spelled(answer)
            if isinstance(answer, Route):
                hops = (Hop(h.source, h.sink, h.index, self.model.buses[h.index]) for h in answer.hops)
                answer = replace(answer, hops=tuple(hops)) if answer.hops else answer
            self._answers[place] = answer
        answer = self._answers[place]
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
