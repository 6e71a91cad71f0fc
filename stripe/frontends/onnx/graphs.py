"""Names in graphs: the values that a node needs, and names in messages."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import AttributeProto, GraphProto, NodeProto


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


def names_used(node: NodeProto) -> set[str]:
    """The values that a node and the graphs inside it read."""
    used = set(node.input)
    for graph in inner_graphs(node):
        for inner in graph.node:
            used |= names_used(inner)
        used |= {info.name for info in graph.output}
    return used
