"""Reads a model and checks it before anything is imported: its bytes, its graph, its constants and its inputs."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from errno import ENOENT
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import cast

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto

from stripe.frontends.onnx.functions import inlined
from stripe.frontends.onnx.graphs import (
    inner_graphs,
    location,
    names_given,
    names_used,
    node_text,
    printable_name,
    shaping_constants,
)
from stripe.frontends.onnx.values import Array, TensorType, TensorValue, constant, element_name
from stripe.ir.errors import ConfigError, StripeError, did_you_mean


def parse_model(data: bytes, path: str) -> ModelProto:
    """The model in the bytes of a file, its own functions inlined. Raises StripeError for anything else."""
    try:
        model = ModelProto.FromString(data)
    except DecodeError:
        raise _broken("this is no ONNX model, or a part of it is missing", path) from None
    if not model.HasField("graph") or not model.graph.output:
        raise _broken("the model has no graph with outputs", path)
    check_names(model, path)
    if not model.opset_import:
        raise _broken("the model imports no opset", path)
    newest = onnx.defs.onnx_opset_version()
    for item in model.opset_import:
        if item.domain in ("", "ai.onnx") and not 0 < item.version <= newest:
            reason = f"opset {item.version} is unknown: the onnx package knows 1 to {newest}"
            raise StripeError(reason, path=path, hint="export the network with another opset, or update onnx")
    if model.functions:
        model = inlined(model, path)
    check_graph(model.graph, path)
    return model


def _broken(reason: str, path: str, where: str | None = None) -> StripeError:
    return StripeError(reason, path=path, where=where, hint="export the network again")


def check_names(message: Message, path: str) -> None:
    """Raises StripeError for a name that is no text: protobuf gives its bytes."""
    for field, value in cast("list[tuple[FieldDescriptor, object]]", message.ListFields()):
        if field.type not in (field.TYPE_MESSAGE, field.TYPE_STRING):
            continue
        single = isinstance(value, (str, bytes, Message))
        for item in (value,) if single else cast("Iterable[object]", value):
            if isinstance(item, Message):
                check_names(item, path)
            elif not isinstance(item, str):
                raise _broken(f"its {field.name} {str(item)[:80]} is no text", path)


def check_graph(
    graph: GraphProto, path: str, outside: frozenset[str] = frozenset(), where: str | None = None
) -> None:
    """Raises StripeError for values that two nodes make or none, and for cycles, in graphs that nodes hold too. Nodes
    are put in order. `outside` are the values that a graph of the node `where` sees around it.
    """
    makers: dict[str, int] = {}
    own = names_given(graph)
    for kind, infos in (("input", graph.input), ("output", graph.output)):
        name, count = next(iter(Counter(info.name for info in infos).most_common(1)), ("", 0))
        if count > 1 and where is None:
            raise _broken(f"the {kind} '{printable_name(name)}' appears {count} times", path)
    for place, node in enumerate(graph.node):
        for name in node.output:
            if name and (name in makers or name in own):
                raise _broken(f"'{printable_name(name)}' is made twice", path, _where(graph, place))
            makers[name] = place
    known = outside | own
    order = TopologicalSorter[int]()
    for place, node in enumerate(graph.node):
        for inner in inner_graphs(node):
            check_graph(inner, path, known.union(makers), _where(graph, place))
        used = names_used(node)
        missing = [name for name in node.input if name and name not in makers and name not in known]
        if missing:
            reason = f"nothing makes its input '{printable_name(missing[0])}'"
            raise _broken(reason, path, _where(graph, place))
        order.add(place, *(makers[name] for name in used if name in makers and name))
    for info in graph.output:
        if info.name not in makers and info.name not in known:
            raise _broken(f"nothing makes the output '{printable_name(info.name)}'", path, where)
    try:
        places = list(order.static_order())
    except CycleError as error:
        cycle: list[int] = error.args[1]
        nodes = (graph.node[place] for place in cycle)
        reason = f"the graph has a cycle: {' -> '.join(printable_name(n.name or n.op_type) for n in nodes)}"
        raise StripeError(reason, path=path, where=_where(graph, cycle[0])) from None
    if any(graph.node[place].output and place != at for at, place in enumerate(places)):
        nodes = [graph.node[place] for place in places]
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)


def _where(graph: GraphProto, place: int) -> str:
    node = graph.node[place]
    return node_text(node, node.name or next(iter(node.output), ""))


def with_layers(model: ModelProto) -> ModelProto:
    """The model with the value of each node as an output, in the order of the nodes."""
    found = ModelProto()
    found.CopyFrom(model)
    graph = found.graph
    used = {info.name for info in graph.output}.union(*map(names_used, graph.node))
    given = {info.name: info for info in model.graph.output}
    del graph.output[:]
    for name in (name for node in graph.node for name in node.output if name in used):
        graph.output.append(given.pop(name, None) or onnx.helper.make_value_info(name, onnx.TypeProto()))
    graph.output.extend(given.values())
    return found


def read_constants(
    graph: GraphProto, path: str, folder: Path | None, *, random: bool
) -> dict[str, TensorValue]:
    """The initializers of a graph; with `random`, floats are drawn instead of read, but for those on which sizes may
    depend. The graph has the contents of other files and the drawn ones afterwards. Raises StripeError.
    """
    found: dict[str, TensorValue] = {}
    read = shaping_constants(graph) if random else set[str]()
    for tensor in graph.initializer:
        where = f"initializer '{printable_name(tensor.name)}'"
        type = TensorType(tuple(tensor.dims), tensor.data_type)
        floats = type.dtype is not None and type.dtype.is_float and len(type.sizes) > 0
        place = location(tensor)
        at_hand = place is None or (folder is not None and (folder / place).exists())
        if random and floats and not (tensor.name in read and at_hand):
            drawn = _drawn(tensor.name, type)
            tensor.CopyFrom(onnx.numpy_helper.from_array(drawn, tensor.name))
            found[tensor.name] = constant(drawn, type.element)
            continue
        if any(size < 0 for size in tensor.dims):
            raise _broken("it has a negative size", path, where)
        found[tensor.name] = constant(_read_tensor(tensor, path, where, folder), tensor.data_type)
    for sparse in graph.sparse_initializer:
        reason = "sparse constants are not supported"
        raise StripeError(reason, path=path, where=f"initializer '{printable_name(sparse.values.name)}'")
    return found


def _drawn(name: str, type: TensorType) -> Array:
    """Normal numbers that keep the magnitude of activations; scales of normalisations lie around 1."""
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    assert type.dtype is not None
    fan = max(1, type.count // type.sizes[0]) if len(type.sizes) > 1 else 1
    values = generator.standard_normal(type.sizes) * np.sqrt(2.0 / fan)
    if len(type.sizes) == 1:
        values = 1.0 + 0.1 * np.abs(generator.standard_normal(type.sizes))
    return np.asarray(values, type.dtype.numpy())


def read_inner_tensors(graph: GraphProto, path: str, folder: Path | None) -> None:
    """Puts the contents of other files into the tensors that nodes and their graphs hold. Raises StripeError."""
    for place, node in enumerate(graph.node):
        held = [tensor for item in node.attribute for tensor in (item.t, *item.tensors) if tensor.data_type]
        for tensor in (*held, *(tensor for inner in inner_graphs(node) for tensor in inner.initializer)):
            _read_tensor(tensor, path, _where(graph, place), folder)
        for inner in inner_graphs(node):
            read_inner_tensors(inner, path, folder)


def _read_tensor(tensor: TensorProto, path: str, where: str, folder: Path | None) -> Array:
    if tensor.data_location == TensorProto.EXTERNAL:
        _load_external(tensor, path, where, folder)
    try:
        return onnx.numpy_helper.to_array(tensor)
    except Exception:  # noqa: BLE001 - numpy raises anything for bytes that do not fit
        type = TensorType(tuple(tensor.dims), tensor.data_type)
        raise _broken(f"its bytes are no tensor of the type {type}", path, where) from None


def _load_external(tensor: TensorProto, path: str, where: str, folder: Path | None) -> None:
    """Puts the bytes of another file into the tensor; the file must lie in the model's folder."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    shown = printable_name(location)
    if folder is None:
        raise StripeError(
            "its data lie in another file", path=path, where=where, hint="name the model by its path"
        )
    root = folder.resolve()
    try:
        file = root if "\0" in location else (root / location).resolve()
    except RuntimeError:
        reason = f"its data '{shown}' cannot be read: a symbolic link leads to itself"
        raise StripeError(reason, path=path, where=where, hint="put the file beside the model") from None
    if not location or Path(location).is_absolute() or root not in file.parents:
        reason = f"its data '{shown}' lie outside of the model's folder"
        raise StripeError(reason, path=path, where=where, hint="put the file beside the model")
    try:
        if not file.is_file():  # another kind, such as a pipe, may never end
            raise FileNotFoundError(ENOENT, "no such file")
        size = file.stat().st_size
        offset, length = int(entries.get("offset", "0")), int(entries.get("length", "-1"))
        if not 0 <= offset <= size:
            raise ValueError(f"it has no byte {offset}")
        with file.open("rb") as stream:
            stream.seek(offset)
            data = stream.read(min(length, size) if length >= 0 else size - offset)
    except (OSError, ValueError) as error:
        reason = f"its data '{shown}' cannot be read: {getattr(error, 'strerror', None) or error}"
        raise StripeError(reason, path=path, where=where, hint="put the file beside the model") from None
    if length >= 0 and len(data) != length:
        raise _broken(f"its data '{shown}' end after {len(data)} of {length} bytes", path, where)
    tensor.raw_data = data
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def open_sizes(info: ValueInfoProto) -> list[str | None]:
    """The symbol of each size of an input that the model leaves open, None for sizes that it gives. `?`, as exporters
    call all sizes that they do not know, is no symbol."""
    symbols: list[str | None] = []
    for place, dim in enumerate(info.type.tensor_type.shape.dim):
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            symbols.append(None)
        else:
            symbols.append(dim.dim_param if dim.dim_param.strip("?") else f"{info.name}.{place}")
    return symbols


def input_types(graph: GraphProto, path: str, dims: Mapping[str, int]) -> dict[str, TensorType]:
    """The types of the inputs that are no constants, with symbolic sizes from `dims`.

    Raises StripeError for sizes that are not bound, ConfigError for names in `dims` that no input has.
    """
    constants = {tensor.name for tensor in graph.initializer}
    found: dict[str, TensorType] = {}
    unbound: dict[str, str] = {}
    symbols: set[str] = set()
    for info in graph.input:
        if info.name in constants:
            continue
        where = f"input '{printable_name(info.name)}'"
        if not info.type.HasField("tensor_type"):
            raise StripeError("it is no tensor", path=path, where=where, hint="give its elements one by one")
        if not info.type.tensor_type.HasField("shape"):
            hint = "export the network with static shapes"
            raise StripeError("its rank is unknown", path=path, where=where, hint=hint)
        sizes: list[int] = []
        for place, (dim, symbol) in enumerate(
            zip(info.type.tensor_type.shape.dim, open_sizes(info), strict=True)
        ):
            if symbol is None:
                sizes.append(dim.dim_value)
                continue
            symbols.add(symbol)
            if symbol in dims:
                if not 0 <= dims[symbol] < 1 << 63:
                    reason = f"--dim {printable_name(symbol)}={dims[symbol]} is no size"
                    raise ConfigError(reason, hint="give a number from 0 to 2^63 - 1")
                sizes.append(dims[symbol])
            else:
                unbound.setdefault(symbol, f"dimension {place} of '{printable_name(info.name)}'")
        found[info.name] = type = TensorType(tuple(sizes), info.type.tensor_type.elem_type)
        if type.dtype is None:
            element = element_name(type.element)
            reason = f"elements of type {element} have no counterpart"
            raise StripeError(reason, path=path, where=where, hint="convert the network to another type")
    if unbound:
        names = ", ".join(f"'{printable_name(name)}' ({place})" for name, place in unbound.items())
        hint = "bind each, as in " + " ".join(f"--dim {printable_name(name)}=1" for name in unbound)
        raise StripeError(f"sizes are unknown: {names}", path=path, hint=hint)
    for name in dims:
        if name not in symbols:
            hint = did_you_mean(name, symbols, f"the symbols are {', '.join(sorted(symbols)) or 'none'}")
            raise ConfigError(f"--dim names '{name}', which no input has", hint=hint)
    return found
