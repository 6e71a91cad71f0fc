"""Nodes that compute nothing themselves: control flow with known conditions and counts, sequences and optionals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import onnx
from onnx import GraphProto, NodeProto

from stripe.frontends.onnx.values import AbsentValue, SequenceValue, TensorType, TensorValue, Value, constant

MAX_TRIPS = 10_000
"""Rounds of a loop that is unrolled."""


class Unsupported(Exception):
    """A node that has no counterpart: the reason, and a hint."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


class Surroundings(Protocol):
    """The graph around a node."""

    @property
    def opsets(self) -> Mapping[str, int]:
        """The version of each domain."""
        ...

    def subgraph(self, graph: GraphProto, inputs: Sequence[Value]) -> list[Value]:
        """The outputs of a graph that a node holds, which sees the values around it."""
        ...

    def emit(self, op: str, inputs: Sequence[Value], **attributes: int) -> Value:
        """The output of a node that is not in the model."""
        ...


Handler: TypeAlias = Callable[[Surroundings, NodeProto, Sequence[Value]], Sequence[Value]]


def attribute(node: NodeProto, name: str) -> onnx.AttributeProto | None:
    return next((item for item in node.attribute if item.name == name), None)


def integer(node: NodeProto, name: str, default: int) -> int:
    """The integer attribute `name` of a node."""
    found = attribute(node, name)
    return default if found is None else found.i


def _graph(node: NodeProto, name: str) -> GraphProto:
    found = attribute(node, name)
    if found is None or not found.HasField("g"):
        raise Unsupported(f"the attribute '{name}' is missing")
    return found.g


def known(value: Value, name: str) -> int:
    """The integer that a constant of one element holds."""
    if isinstance(value, TensorValue) and value.data is not None and value.data.size == 1:
        return int(np.asarray(value.data).reshape(-1)[0])
    raise Unsupported(f"its {name} is computed while the model runs", "give it a constant")


def branch(scope: Surroundings, node: NodeProto, inputs: Sequence[Value]) -> Sequence[Value]:
    """`If`: the branch that a constant condition chooses. Raises Unsupported for a computed one."""
    branch = "then_branch" if known(inputs[0], "condition") else "else_branch"
    return scope.subgraph(_graph(node, branch), ())


def loop(scope: Surroundings, node: NodeProto, inputs: Sequence[Value]) -> Sequence[Value]:
    """`Loop`: its rounds one after the other, then the stacked outputs of all rounds. Raises Unsupported where the
    number of rounds is computed, or above MAX_TRIPS."""
    if len(inputs) < 2:
        raise Unsupported("it takes a trip count and a condition, which may be empty")
    limit, condition, *carried = inputs
    body = _graph(node, "body")
    _check_outputs(body, 1 + len(carried))
    trips = MAX_TRIPS + 1 if isinstance(limit, AbsentValue) else known(limit, "trip count")
    going = isinstance(condition, AbsentValue) or bool(known(condition, "condition"))
    if going and trips > MAX_TRIPS and _goes_on(body):
        raise Unsupported(f"its loop has more than {MAX_TRIPS} rounds")
    scanned: list[list[Value]] = [[] for _ in range(len(body.output) - 1 - len(carried))]
    trip = 0
    while going and trip < trips:
        if trip == MAX_TRIPS:
            raise Unsupported(f"its loop has more than {MAX_TRIPS} rounds")
        state = constant(np.asarray(True))
        results = scope.subgraph(body, (constant(np.asarray(trip, np.int64)), state, *carried))
        carried = list(results[1 : 1 + len(carried)])
        for items, item in zip(scanned, results[1 + len(carried) :], strict=True):
            items.append(item)
        trip += 1
        if trip < trips or isinstance(limit, AbsentValue):
            going = bool(known(results[0], "condition"))
    return [*carried, *(_stacked(scope, items, 0) for items in scanned)]


def _goes_on(body: GraphProto) -> bool:
    """Whether the condition that the body of a loop gives is the one that it takes."""
    copies = {node.output[0]: node.input[0] for node in body.node if node.op_type == "Identity"}
    name = body.output[0].name
    while name in copies:
        name = copies.pop(name)
    return len(body.input) > 1 and name == body.input[1].name


def _check_outputs(body: GraphProto, least: int) -> None:
    if len(body.output) < least:
        raise Unsupported(f"its graph '{body.name}' gives {len(body.output)} values, not {least} or more")


def _stacked(scope: Surroundings, items: Sequence[Value], axis: int) -> Value:
    if not items:
        raise Unsupported("it collects values in a loop without rounds")
    return scope.emit("ConcatFromSequence", items, axis=axis, new_axis=1)


def scan(scope: Surroundings, node: NodeProto, inputs: Sequence[Value]) -> Sequence[Value]:
    """The first form of Scan has a batch; one of a single element is the later form."""
    body, count = _graph(node, "body"), integer(node, "num_scan_inputs", 1)
    if not 0 < count <= len(inputs):
        raise Unsupported(f"it has {len(inputs)} inputs, and scans {count}")
    _check_outputs(body, len(inputs) - count - (scope.opsets[""] < 9))
    if scope.opsets[""] >= 9:
        outputs = len(body.output) - (len(inputs) - count)
        taken = (_ints(node, f"scan_input_{word}", count) for word in ("directions", "axes"))
        given = (_ints(node, f"scan_output_{word}", outputs) for word in ("directions", "axes"))
        return _scanned(scope, inputs, body, *taken, *given)
    if inputs and not isinstance(inputs[0], AbsentValue):
        raise Unsupported("Scan of opset 8 with lengths of its sequences", "convert the model to opset 9")
    values = inputs[1:]
    if any(not isinstance(value, TensorValue) or value.type.sizes[0] != 1 for value in values):
        raise Unsupported("Scan of opset 8 over a batch of several", "convert the model to opset 9")
    plain = [scope.emit("Squeeze", [value, constant(np.asarray([0]))]) for value in values]
    results = _scanned(scope, plain, body, _ints(node, "directions", count))
    return [scope.emit("Unsqueeze", [value, constant(np.asarray([0]))]) for value in results]


def _scanned(
    scope: Surroundings,
    inputs: Sequence[Value],
    body: GraphProto,
    directions: Sequence[int],
    axes: Sequence[int] = (),
    out_directions: Sequence[int] = (),
    out_axes: Sequence[int] = (),
) -> Sequence[Value]:
    """The rounds of a Scan, one for each element of its last inputs, which have a direction each."""
    count = len(directions)
    state = list(inputs[: len(inputs) - count])
    sources = inputs[len(inputs) - count :]
    outputs = len(body.output) - len(state)
    axes = axes or [0] * count
    for source, axis in zip(sources, axes, strict=True):
        _check_axis(source, axis)
    lengths = {source.type.sizes[axis] for source, axis in zip(sources, axes, strict=True)
               if isinstance(source, TensorValue)}  # fmt: skip
    if len(lengths) != 1:
        raise Unsupported("the lengths of its scanned inputs are unknown or differ")
    (length,) = lengths
    collected: list[list[Value]] = [[] for _ in range(outputs)]
    for trip in range(length):
        places = [length - 1 - trip if back else trip for back in directions]
        slices = [
            scope.emit("Gather", [source, constant(np.asarray(place))], axis=axis)
            for source, place, axis in zip(sources, places, axes, strict=True)
        ]
        results = scope.subgraph(body, (*state, *slices))
        state = list(results[: len(state)])
        for items, item in zip(collected, results[len(state) :], strict=True):
            items.append(item)
    backwards = out_directions or [0] * outputs
    ordered = [items[::-1] if back else items for items, back in zip(collected, backwards, strict=True)]
    joined = zip(ordered, out_axes or [0] * outputs, strict=True)
    return [*state, *(_stacked(scope, items, axis) for items, axis in joined)]


def _ints(node: NodeProto, name: str, count: int) -> list[int]:
    found = attribute(node, name)
    values = list(found.ints) if found is not None and found.ints else [0] * count
    if len(values) != count:
        raise Unsupported(f"'{name}' has {len(values)} values for {count} tensors")
    return values


def _check_axis(value: Value, axis: int) -> None:
    rank = len(_type(value).sizes)
    if not -rank <= axis < rank:
        raise Unsupported(f"its axis {axis} is none of a tensor of rank {rank}")


def _position(value: Value, count: int) -> int:
    """A place in a sequence with so many places, from its end where negative."""
    place = known(value, "position")
    if not -count <= place < count:
        raise Unsupported(f"its position {place} lies outside of a sequence with {count} places")
    return place


def _sequence(value: Value) -> SequenceValue:
    if not isinstance(value, SequenceValue):
        raise Unsupported("the length of its sequence is unknown")
    return value


def sequence_at(_: Surroundings, __: NodeProto, inputs: Sequence[Value]) -> Sequence[Value]:
    """`SequenceAt`: the item at a position, from the end where it is negative."""
    items = _sequence(inputs[0]).items
    return [items[_position(inputs[1], len(items))]]


def sequence_insert(_: Surroundings, __: NodeProto, inputs: Sequence[Value]) -> Sequence[Value]:
    """`SequenceInsert`: at a position, from the end where it is negative; at the end without one."""
    items = list(_sequence(inputs[0]).items)
    place = known(inputs[2], "position") if len(inputs) > 2 else len(items)
    if abs(place) > len(items):
        raise Unsupported(f"its position {place} lies outside of a sequence with {len(items)} items")
    items.insert(place, inputs[1])
    return [SequenceValue(tuple(items))]


def sequence_erase(_: Surroundings, __: NodeProto, inputs: Sequence[Value]) -> Sequence[Value]:
    """`SequenceErase`: the item at a position goes, the last without one. Raises Unsupported for an empty sequence."""
    items = list(_sequence(inputs[0]).items)
    if not items:
        raise Unsupported("its sequence is empty")
    del items[_position(inputs[1], len(items)) if len(inputs) > 1 else -1]
    return [SequenceValue(tuple(items))]


def sequence_map(scope: Surroundings, node: NodeProto, inputs: Sequence[Value]) -> Sequence[Value]:
    """`SequenceMap`: the body for each item. Raises Unsupported for sequences of several lengths."""
    body = _graph(node, "body")
    first = _sequence(inputs[0])
    if len({len(value.items) for value in inputs if isinstance(value, SequenceValue)}) > 1:
        raise Unsupported("its sequences have several lengths")
    collected: list[list[Value]] = [[] for _ in body.output]
    for place in range(len(first.items)):
        given = [value.items[place] if isinstance(value, SequenceValue) else value for value in inputs]
        for items, item in zip(collected, scope.subgraph(body, given), strict=True):
            items.append(item)
    return [SequenceValue(tuple(items)) for items in collected]


def concat_sequence(scope: Surroundings, node: NodeProto, inputs: Sequence[Value]) -> Sequence[Value]:
    """`ConcatFromSequence`, along an axis or a new one."""
    items, axis = _sequence(inputs[0]).items, integer(node, "axis", 0)
    new = integer(node, "new_axis", 0)
    return [scope.emit("ConcatFromSequence", items, axis=axis, new_axis=new)]


def stack(scope: Surroundings, items: Sequence[Value], axis: int, new_axis: int) -> Value:
    """The concatenation of tensors, along a new axis where `new_axis` is 1."""
    if new_axis:
        items = [scope.emit("Unsqueeze", [item, constant(np.asarray([axis]))]) for item in items]
    return scope.emit("Concat", items, axis=axis)


def split_sequence(scope: Surroundings, node: NodeProto, inputs: Sequence[Value]) -> Sequence[Value]:
    """`SplitToSequence`: parts of given sizes, of one size with a smaller last part, or of single elements. Raises
    Unsupported for sizes that are computed or do not add up."""
    source, axis = inputs[0], integer(node, "axis", 0)
    _check_axis(source, axis)
    size = _type(source).sizes[axis]
    sizes, keeps = [1] * size, integer(node, "keepdims", 1)
    if len(inputs) > 1 and isinstance(inputs[1], TensorValue):
        given, keeps = inputs[1].data, 1
        if given is None:
            raise Unsupported("the sizes of its parts are computed while the model runs")
        sizes = list(map(int, np.asarray(given).reshape(-1)))
        if given.ndim == 0:
            (step,) = sizes
            sizes = [min(step, size - start) for start in range(0, size, step)] if step > 0 else []
        if sum(sizes) != size or min(sizes, default=0) < 0:
            raise Unsupported(f"its parts of {np.asarray(given).tolist()} do not make up {size} elements")
    parts: list[Value] = []
    start = 0
    for length in sizes:
        ends = [constant(np.asarray([number])) for number in (start, start + length, axis)]
        part = scope.emit("Slice", [source, *ends])
        parts.append(part if keeps else scope.emit("Squeeze", [part, constant(np.asarray([axis]))]))
        start += length
    return [SequenceValue(tuple(parts))]


def _same(_: Surroundings, __: NodeProto, inputs: Sequence[Value]) -> Sequence[Value]:
    return [inputs[0]]


def shape(_: Surroundings, node: NodeProto, inputs: Sequence[Value]) -> Sequence[Value]:
    """`Shape`: the static sizes from `start` to `end`."""
    sizes = _type(inputs[0]).sizes
    end = attribute(node, "end")
    return [constant(np.asarray(sizes[integer(node, "start", 0) : None if end is None else end.i], np.int64))]


def _type(value: Value) -> TensorType:
    if not isinstance(value, TensorValue):
        raise Unsupported("the type of its input is unknown")
    return value.type


HANDLERS: Mapping[str, Handler] = {
    "Identity": _same, "If": branch, "Loop": loop, "Scan": scan, "Shape": shape,
    "Size": lambda _, __, inputs: [constant(np.asarray(_type(inputs[0]).count, np.int64))],
    "SequenceConstruct": lambda _, __, inputs: [SequenceValue(tuple(inputs))],
    "SequenceEmpty": lambda _, __, ___: [SequenceValue(())],
    "SequenceAt": sequence_at, "SequenceInsert": sequence_insert, "SequenceErase": sequence_erase,
    "SequenceMap": sequence_map,
    "SequenceLength": lambda _, __, inputs: [constant(np.asarray(len(_sequence(inputs[0]).items), np.int64))],
    "ConcatFromSequence": concat_sequence, "SplitToSequence": split_sequence,
    "Optional": lambda _, __, inputs: [inputs[0] if inputs else AbsentValue()],
    "OptionalHasElement": lambda _, __, inputs: [
        constant(np.asarray(bool(inputs) and not isinstance(inputs[0], AbsentValue)))
    ],
    "OptionalGetElement": _same,
}  # fmt: skip
"""The functions that make the outputs of nodes, by operator."""
