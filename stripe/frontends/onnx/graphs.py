"""Names in graphs: the values that a node needs, and names in messages."""

from __future__ import annotations

from onnx import NodeProto


def printable_name(name: str) -> str:
    """A name as it can stand in a message."""
    return "".join(char if char.isprintable() else "?" for char in name)[:120]


def node_text(node: NodeProto, name: str) -> str:
    """A node in messages."""
    domain = "" if node.domain in ("", "ai.onnx") else f"{printable_name(node.domain)}::"
    return f"node '{printable_name(name)}' ({domain}{printable_name(node.op_type)})"


def names_used(node: NodeProto) -> set[str]:
    """The values that a node reads, those of graphs inside it included."""
    used = set(node.input)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                used |= names_used(inner)
            used |= {info.name for info in graph.output}
    return used
