"""A model's own functions: their overloads, the defaults of their attributes, and their nodes in the place of calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from onnx import FunctionProto, ModelProto, NodeProto
from onnx.inliner import inline_selected_functions

from stripe.frontends.onnx.graphs import all_nodes, inner_graphs
from stripe.ir.errors import StripeError

MAX_NODES = 1_000_000
"""Nodes that the functions of a model may be inlined into."""

Key: TypeAlias = tuple[str, str]
"""Domain and name of a function whose overloads have names of their own."""


def inlined(model: ModelProto, path: str) -> ModelProto:
    """The model with the nodes of its functions in the place of their calls. onnx drops an attribute that a call does
    not give, where its function may have a default: calls get these first, and functions go from the outermost in, for
    what one hands on may not be given either. Raises StripeError.
    """
    _rename_overloads(model)
    known = {each.domain for each in model.opset_import}
    for function in model.functions:  # a function may name domains that the model does not
        added = [each for each in function.opset_import if each.domain not in known]
        known.update(each.domain for each in added)
        model.opset_import.extend(added)
    if (count := _count(model)) > MAX_NODES:
        reason = f"its functions make up {count} nodes, and {MAX_NODES} are the most"
        raise StripeError(reason, path=path, hint="let functions call each other less often")
    while model.functions:
        defaults = {(each.domain, each.name): each.attribute_proto for each in model.functions}
        for node in _nodes(model):
            given = {attribute.name for attribute in node.attribute}
            known = defaults.get((node.domain, node.op_type), ())
            node.attribute.extend(each for each in known if each.name not in given)
        inside = {(node.domain, node.op_type) for each in model.functions for node in all_nodes(each.node)}
        chosen = set(defaults) - inside or set(defaults)  # all of a circle, which onnx refuses
        try:
            model = inline_selected_functions(model, sorted(chosen))
        except Exception as error:  # noqa: BLE001 - of the C++ core
            reason = f"its functions cannot be inlined: {' '.join(str(error).split())}"
            raise StripeError(reason, path=path, hint="export the network again") from None
        kept = [each for each in model.functions if (each.domain, each.name) not in chosen]
        del model.functions[:]
        model.functions.extend(kept)
    return model


def _nodes(model: ModelProto) -> Iterator[NodeProto]:
    """The nodes of the graph and of the functions of a model."""
    for body in (model.graph, *model.functions):
        yield from all_nodes(body.node)


def _rename_overloads(model: ModelProto) -> None:
    """Gives each overload of a function a name of its own, in its calls too: onnx inlines all functions of a name at
    once, also where one calls another.
    """
    taken = {each.name for each in model.functions}.union(node.op_type for node in _nodes(model))
    names: dict[tuple[str, str, str], str] = {}
    for each in model.functions:
        key = (each.domain, each.name, each.overload)
        if each.overload and key not in names:
            names[key] = f"{each.name}_{each.overload}"
            while names[key] in taken:
                names[key] += "_"
            taken.add(names[key])
    for node in _nodes(model):
        if (key := (node.domain, node.op_type, node.overload)) in names:
            node.op_type, node.overload = names[key], ""
    for each in model.functions:
        if (key := (each.domain, each.name, each.overload)) in names:
            each.name, each.overload = names[key], ""


def _count(model: ModelProto) -> int:
    """The nodes of a model whose functions stand in the place of their calls; a function that calls itself counts as
    one.
    """
    functions: dict[Key, FunctionProto] = {(each.domain, each.name): each for each in model.functions}
    counts: dict[Key, int] = {}

    def counted(nodes: Iterable[NodeProto]) -> int:
        total = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            if key in functions and key not in counts:
                counts[key] = 1  # while it is counted
                counts[key] = counted(functions[key].node)
            total += counts.get(key, 1) + sum(counted(inner.node) for inner in inner_graphs(node))
        return total

    return counted(model.graph.node)
