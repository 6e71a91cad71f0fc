"""Names in models: those of graphs inside of nodes are their own, and those of values may look like dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, helper, numpy_helper

from stripe.frontends.onnx.model import parse_model
from stripe.onnx_backend import compile_model

X = np.array([-2, -1, 0, 3], np.float32)


def untyped(*names: str) -> list[onnx.ValueInfoProto]:
    return [helper.make_empty_tensor_value_info(name) for name in names]


def result(nodes: Sequence[NodeProto], output: str = "y", source: str = "x", **held: Any) -> list[float]:
    """The output of a network for X."""
    constants = [numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()]
    info = helper.make_tensor_value_info(source, TensorProto.FLOAT, X.shape)
    graph = helper.make_graph(list(nodes), "g", [info], untyped(output), constants)
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()
    return compile_model(parse_model(data, "m.onnx"), "interp").run({source: X})[output].tolist()


def branches(*then: NodeProto) -> dict[str, Any]:
    other = helper.make_graph([helper.make_node("Abs", ["x"], ["o"])], "else", [], untyped("o"))
    graph = helper.make_graph(list(then), "then", [], untyped(then[-1].output[0]))
    return {"then_branch": graph, "else_branch": other}


@pytest.mark.parametrize("inner", ["y", "later"])
def test_a_branch_has_names_of_its_own(inner: str) -> None:
    """They may be those of what its node makes, and of what is made later of it."""
    then = [helper.make_node("Neg", ["x"], [inner]), helper.make_node("Relu", [inner], ["e"])]
    choice = helper.make_node("If", ["c"], ["y"], **branches(*then))
    assert result([choice, helper.make_node("Neg", ["y"], ["later"])], "later", c=True) == [-2, -1, 0, 0]


def test_a_branch_in_a_branch_has_names_of_its_own() -> None:
    innermost = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Relu", ["y"], ["e"])]
    inner = helper.make_node("If", ["c"], ["i"], **branches(*innermost))
    assert result([helper.make_node("If", ["c"], ["y"], **branches(inner))], c=True) == [2, 1, 0, 0]


def test_inputs_and_constants_of_a_body_have_names_of_their_own() -> None:
    nodes = [helper.make_node("Add", ["y", "later"], ["s"]), helper.make_node("Identity", ["g"], ["go"])]
    trip, going = (
        helper.make_tensor_value_info(name, kind, [])
        for name, kind in (("t", TensorProto.INT64), ("g", TensorProto.BOOL))
    )
    held = [numpy_helper.from_array(np.array(3, np.float32), "later")]
    body = helper.make_graph(nodes, "body", [trip, going, *untyped("y")], untyped("go", "s"), held)
    loop = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)
    found = result([loop, helper.make_node("Neg", ["y"], ["later"])], "later", n=np.int64(2))
    assert found == [-4, -5, -6, -9]


@pytest.mark.parametrize("name", ["N4", "n4", "N4_2"])
def test_values_may_have_the_names_of_dimensions(name: str) -> None:
    made = helper.make_node("Neg", ["x"], [name])
    assert result([made, helper.make_node("Relu", [name], ["y"])]) == [2, 1, 0, 0]
    assert result([helper.make_node("Relu", [name], ["y"])], source=name) == [0, 0, 0, 3]
    assert result([helper.make_node("Add", ["x", "w"], [name])], name, w=np.ones(4, np.float32)) == [
        -1,
        0,
        1,
        4,
    ]


def test_values_may_have_the_names_of_a_dimension_and_of_the_next() -> None:
    nodes = [helper.make_node("Neg", ["N4"], ["N4_2"]), helper.make_node("Add", ["N4_2", "N4"], ["y"])]
    assert result(nodes, source="N4") == [0, 0, 0, 0]


def test_ai_onnx_is_the_standard_domain() -> None:
    three = numpy_helper.from_array(np.array(3, np.float32))
    nodes = [
        helper.make_node("Constant", [], ["c"], value=three, domain="ai.onnx"),
        helper.make_node("Neg", ["c"], ["n"], domain="ai.onnx"),
        helper.make_node("Add", ["x", "n"], ["y"]),
    ]
    assert result(nodes) == [-5, -4, -3, 0]
