"""Names in graphs: the values that a node needs, and names in messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto

SIZING = frozenset(("scales", "roi"))
"""Formal inputs of floats on which sizes depend."""


def printable_name(name: str) -> str:
    """A name as it can stand in a message."""
    return "".join(char if char.isprintable() else "?" for char in name)[:120]


def node_text(node: NodeProto, name: str) -> str:
    """A node in messages."""
    domain = "" if node.domain in ("", "ai.onnx") else f"{printable_name(node.domain)}::"
    return f"node '{printable_name(name)}' ({domain}{printable_name(node.op_type)})"


def inner_graphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs that a node holds, such as the branches of an If."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """The nodes, each before those of the graphs that it holds."""
    for node in nodes:
        yield node
        for inner in inner_graphs(node):
            yield from all_nodes(inner.node)


def tensors(graph: GraphProto) -> Iterator[TensorProto]:
    """The tensors that a graph, its nodes and their graphs hold."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from (item for item in (attribute.t, *attribute.tensors) if item.data_type)
        for inner in inner_graphs(node):
            yield from tensors(inner)


def location(tensor: TensorProto) -> str | None:
    """The name of the file that a tensor's contents lie in; None for contents in the model, and for no legal name."""
    if tensor.data_location != TensorProto.EXTERNAL:
        return None
    name = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    return None if not name or "\0" in name else name


def names_given(graph: GraphProto) -> set[str]:
    """The values that a graph has before its nodes run: its inputs and its constants."""
    constants = {tensor.name for tensor in graph.initializer}
    return constants.union(
        (info.name for info in graph.input), (tensor.values.name for tensor in graph.sparse_initializer)
    )


def names_used(node: NodeProto) -> set[str]:
    """The values around a node that it and the graphs inside it read."""
    used = set(node.input)
    for graph in inner_graphs(node):
        inner = {info.name for info in graph.output}.union(*map(names_used, graph.node))
        used |= inner.difference(names_given(graph), *(each.output for each in graph.node))
    return used


def sizing_inputs(node: NodeProto) -> set[str]:
    """The floats that a node reads its sizes from."""
    if not onnx.defs.has(node.op_type, node.domain):
        return set()
    formals = onnx.defs.get_schema(node.op_type, node.domain).inputs
    return {name for name, formal in zip(node.input, formals, strict=False) if name and formal.name in SIZING}


def shaping_constants(graph: GraphProto, outside: Iterable[str] = ()) -> set[str]:
    """The constants on which sizes and control flow may depend, among others: those that nodes read with constants
    alone, and scales. `outside` are the constants around the graph. Its nodes are in order.
    """
    known = {tensor.name for tensor in graph.initializer}.union(outside)
    found: set[str] = set()
    for node in graph.node:
        used = names_used(node) - {""}
        if used <= known or node.op_type in ("Shape", "Size"):
            found |= used
            known.update(node.output)
        found |= sizing_inputs(node)
        for inner in inner_graphs(node):
            found |= shaping_constants(inner, {*known, *(info.name for info in inner.input)})
    return found
