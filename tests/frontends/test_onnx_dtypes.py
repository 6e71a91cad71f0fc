"""Dtypes of operators in networks: those that ONNX infers, whatever a template computes in between."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.defs import OpSchema

from stripe import onnx_backend as backend
from stripe.frontends.frontend import ReadOptions
from stripe.frontends.onnx.operators import qualified, templates
from stripe.frontends.onnx.reader import import_model, program
from stripe.frontends.onnx.values import TensorType
from stripe.ir import StripeError
from stripe.tile import bind, parse_tile
from tests.support.onnx_cases import cases
from tools.onnx_conformance import array, inputs_of, is_static

Array = npt.NDArray[Any]

ELEMENTS = {
    "tensor(bool)": TensorProto.BOOL, "tensor(int8)": TensorProto.INT8, "tensor(uint8)": TensorProto.UINT8,
    "tensor(int16)": TensorProto.INT16, "tensor(uint32)": TensorProto.UINT32, "tensor(int64)": TensorProto.INT64,
    "tensor(uint64)": TensorProto.UINT64, "tensor(float16)": TensorProto.FLOAT16,
    "tensor(bfloat16)": TensorProto.BFLOAT16, "tensor(double)": TensorProto.DOUBLE,
}  # fmt: skip


def single_nodes() -> Iterator[tuple[TestCase, OpSchema]]:
    """The first case of each operator that has a template."""
    seen: set[str] = set()
    for case in cases().values():
        assert case.model is not None
        nodes = case.model.graph.node
        if len(nodes) == 1 and is_static(case) and qualified(nodes[0]) in templates().keys() - seen:
            seen.add(qualified(nodes[0]))
            (node,) = nodes
            versions = {item.domain: item.version for item in case.model.opset_import}
            yield case, onnx.defs.get_schema(node.op_type, versions[node.domain], node.domain)


def retyped(
    case: TestCase, schema: OpSchema, variable: str, element: int
) -> tuple[ModelProto, dict[str, Array]]:
    """The model and the data of a case with the inputs of a type variable of `element`."""
    assert case.model is not None and case.data_sets is not None
    model = ModelProto()
    model.CopyFrom(case.model)
    (node,) = model.graph.node
    last = len(schema.inputs) - 1
    changed = {
        name for place, name in enumerate(node.input) if schema.inputs[min(place, last)].type_str == variable
    }
    for info in model.graph.input:
        if info.name in changed:
            info.type.tensor_type.elem_type = element
    for info in model.graph.output:
        info.ClearField("type")
    dtype = helper.tensor_dtype_to_np_dtype(element)
    data = dict(zip(inputs_of(model), map(array, case.data_sets[0][0]), strict=False))
    with np.errstate(all="ignore"):
        return model, {name: each.astype(dtype) if name in changed else each for name, each in data.items()}


@pytest.mark.long
def test_results_have_the_dtypes_that_onnx_infers() -> None:
    """Each operator with a template, in each of the dtypes that its schema allows to its inputs."""
    checked, wrong = 0, set[str]()
    for case, schema in single_nodes():
        allowed = {item.type_param_str: item.allowed_type_strs for item in schema.type_constraints}
        for variable in dict.fromkeys(item.type_str for item in schema.inputs if item.type_str in allowed):
            for element in (ELEMENTS[name] for name in allowed[variable] if name in ELEMENTS):
                model, data = retyped(case, schema, variable, element)
                try:
                    try:
                        network = import_model(model, "m.onnx", ReadOptions())
                    except StripeError:  # shapes depend on the values of inputs
                        network = import_model(model, "m.onnx", ReadOptions(), data)
                    made = {tensor.name: tensor.dtype for tensor in bind(parse_tile(network.text)).outputs}
                except StripeError:
                    continue
                for name, tile in network.outputs.items():
                    checked += 1
                    if made[tile] != (expected := TensorType((), network.elements[name]).dtype):
                        wrong.add(
                            f"{case.name} {variable}={element}: '{name}' is {made[tile]}, not {expected}"
                        )
    assert checked > 900
    assert wrong == set()


def network(
    nodes: Sequence[onnx.NodeProto], inputs: dict[str, Array], output: onnx.ValueInfoProto, **constants: Array
) -> ModelProto:
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(data.dtype), data.shape)
        for name, data in inputs.items()
    ]
    held = [numpy_helper.from_array(data, name) for name, data in constants.items()]
    graph = helper.make_graph(list(nodes), "g", infos, [output], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def result(element: int, shape: Sequence[int] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info("y", element, shape)


def computed(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, Array],
    element: int,
    shape: Sequence[int] | None = None,
    **constants: Array,
) -> Any:
    model = network(nodes, inputs, result(element, shape), **constants)
    (found,) = backend.run_model(model, list(inputs.values()), "CPU:1")
    assert found.dtype == helper.tensor_dtype_to_np_dtype(element)
    return found.tolist()


def test_narrow_integers_wrap_behind_operators_that_choose_elements() -> None:
    k, small = np.array([3], np.int64), np.array([100, 90, 80, 1], np.int8)
    top = helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=0)
    twice = helper.make_node("Add", ["v", "v"], ["y"])
    assert computed([top, twice], {"x": small}, TensorProto.INT8, k=k) == [-56, -76, -96]
    large = np.array([1, 1 << 31, (1 << 32) - 1, 2], np.uint32)
    float_of = helper.make_node("Cast", ["v"], ["y"], to=TensorProto.FLOAT)
    assert computed([top, float_of], {"x": large}, TensorProto.FLOAT, k=k) == [2.0**32, 2.0**31, 2.0]
    places, data = np.array([[1], [2]], np.int64), np.array([1, 2, 3, 4], np.uint8)
    updates = np.array([70, 255], np.uint8)
    scatter = helper.make_node("ScatterND", ["x", "i", "u"], ["v"])
    square = helper.make_node("Mul", ["v", "v"], ["y"])
    inputs = {"x": data, "u": updates}
    assert computed([scatter, square], inputs, TensorProto.UINT8, i=places) == [1, 36, 1, 16]
    flip = helper.make_node("BitwiseNot", ["v"], ["y"])
    elements = helper.make_node("ScatterElements", ["x", "i", "u"], ["v"], axis=0)
    assert computed([elements, flip], inputs, TensorProto.UINT8, i=places[:, 0]) == [254, 185, 0, 251]


def test_results_of_another_precision_are_rounded() -> None:
    """The mean of a normalisation of doubles is a float."""
    node = helper.make_node("LayerNormalization", ["x", "s"], ["n", "y"], axis=0)
    third = computed([node], {"x": np.array([1.0, 0.0, 0.0])}, TensorProto.FLOAT, s=np.ones(3))
    assert third == [float(np.float32(1 / 3))]


def test_functions_of_large_integers_keep_their_digits() -> None:
    data = np.array([(1 << 40) + 1, -3, 3], np.int64)
    shrink = helper.make_node("Shrink", ["x"], ["y"], lambd=1.0, bias=1.0)
    assert computed([shrink], {"x": data}, TensorProto.INT64) == [1 << 40, -2, 2]
    norm = helper.make_node("ReduceL2", ["x"], ["y"], keepdims=0)
    below = np.array([5202, 102], np.int64)  # their squares make that of 5203 less 1
    assert computed([norm], {"x": below}, TensorProto.INT64) == 5202


def test_indices_that_are_floats_are_cut_off() -> None:
    node = helper.make_node("OneHot", ["x", "d", "v"], ["y"], axis=-1)
    data = np.array([0.5, 1.0, -1.5, 2.9, 3.0], np.float32)
    found = computed([node], {"x": data}, TensorProto.FLOAT, d=np.array([3]), v=np.array([0, 1], np.float32))
    assert [row.index(1.0) if 1.0 in row else None for row in found] == [0, 1, 2, 2, None]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (np.array([np.inf, 1.0], np.float32), np.inf),
        (np.array([-np.inf, -np.inf], np.float32), -np.inf),
        (np.array([-(1 << 31), 5], np.int32), 5),
    ],
)
def test_logarithms_of_sums_at_the_ends(data: Array, expected: float) -> None:
    node = helper.make_node("ReduceLogSumExp", ["x"], ["y"], keepdims=0)
    assert computed([node], {"x": data}, helper.np_dtype_to_tensor_dtype(data.dtype)) == expected


def test_sums_before_a_single_element_are_zero() -> None:
    node = helper.make_node("CumSum", ["x", "a"], ["y"], exclusive=1)
    found = computed([node], {"x": np.ones((2, 1), np.float32)}, TensorProto.FLOAT, a=np.array(1, np.int64))
    assert found == [[0.0], [0.0]]


def test_a_model_without_elements_is_refused_with_its_reason() -> None:
    model = network(
        [helper.make_node("Relu", ["x"], ["y"])],
        {"x": np.ones((0, 3), np.float32)},
        result(TensorProto.FLOAT),
    )
    with pytest.raises(StripeError, match="no output of the model has elements"):
        program(import_model(model, "m.onnx", ReadOptions()), "m.onnx")


@pytest.mark.parametrize(
    ("expression", "reason"), [("X[0, 0]", "gives 'Y' the sizes"), ("X > 0 ? 2.5 : X", "")]
)
def test_operators_of_users_get_the_type_that_onnx_infers(
    expression: str, reason: str, tmp_path: Path
) -> None:
    body = f"Y[] = =({expression})" if "[" in expression else f"Y = {expression}"
    text = f"## operators: Relu\nfunction {{{{ name }}}}(X) -> (Y) {{\n  {body};\n}}\n"
    (tmp_path / "relu.tile.j2").write_text(text)
    data = np.array([[7, -7]], np.int8)
    model = network([helper.make_node("Relu", ["x"], ["y"])], {"x": data}, result(TensorProto.INT8))
    options = ReadOptions(operators=(str(tmp_path),))
    if reason:
        with pytest.raises(StripeError, match=re.escape(reason)):
            import_model(model, "m.onnx", options)
    else:
        (output,) = program(import_model(model, "m.onnx", options), "m.onnx").outputs
        assert output.dtype.name == "i8"


def test_elements_that_are_chosen_keep_their_bits() -> None:
    """A negative zero stays one: `TopK`, `ScatterElements` and `Compress` compute nothing with the elements."""
    zeros, floats = np.array([[-0.0, -1.0], [-2.0, -0.0]], np.float32), TensorProto.FLOAT
    top = helper.make_node("TopK", ["x", "k"], ["y", "i"], axis=0)
    assert np.signbit(computed([top], {"x": zeros}, floats, k=np.array([1]))).all()
    places, inputs = np.array([[1, 0]]), {"x": zeros, "u": np.array([[-0.0, -0.0]], np.float32)}
    scatter = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=1)
    assert np.signbit(computed([scatter], inputs, floats, i=places)).all()
    for axis in (0, 1):
        compress = helper.make_node("Compress", ["x", "c"], ["y"], axis=axis)
        sizes = [1 if d == axis else 2 for d in range(2)]
        found = computed([compress], {"x": zeros}, floats, sizes, c=np.array([False, True]))
        assert np.signbit(found).all() and np.array_equal(found, zeros.take([1], axis))


def half(*numbers: float) -> Array:
    return np.array(numbers, np.float16)


@pytest.mark.parametrize(
    ("op", "data", "attributes", "expected"),
    [
        ("ReduceMean", half(60000, 60000, 30000), {"keepdims": 0}, 50000),
        ("ReduceL2", half(300, 400), {"keepdims": 0}, 500),
        ("ReduceLogSumExp", half(*[0] * 4096), {"keepdims": 0}, np.log(4096)),
        ("LpNormalization", half(300, 400), {"axis": 0}, [0.6, 0.8]),
        ("LpPool", half(300, 400).reshape(1, 1, 2), {"kernel_shape": [2], "p": 2}, [[[500]]]),
        ("AveragePool", np.full((1, 1, 4), 60000, np.float16), {"kernel_shape": [4]}, [[[60000]]]),
        ("GlobalAveragePool", np.full((1, 1, 4), 60000, np.float16), {}, [[[60000]]]),
        ("Mean", half(60000), {}, [60000]),
        ("CumSum", half(2048, 1, 1, 2), {}, [2048, 2049, 2050, 2052]),
        ("Einsum", half(35, 35, -35), {"equation": "i,i,i->"}, 42875),
    ],
)
def test_sums_of_narrow_floats_are_rounded_once(
    op: str, data: Array, attributes: dict[str, Any], expected: Any
) -> None:
    """Squares and sums above 65504 on the way to a result that is none are no infinity."""
    names = {"Mean": "xxx", "Einsum": "xxx", "CumSum": "xa"}.get(op, "x")
    node = helper.make_node(op, list(names), ["y"], **attributes)
    constants = {"a": np.array(0, np.int64)} if "a" in names else {}
    found = computed([node], {"x": data}, TensorProto.FLOAT16, None, **constants)
    with np.errstate(over="ignore"):
        assert np.allclose(found, np.asarray(expected, np.float16), rtol=1e-3)


@pytest.mark.parametrize("precision", [0, TensorProto.FLOAT])
@pytest.mark.parametrize("element", [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT])
def test_quotients_have_the_type_of_the_scale_or_the_precision_asked_for(
    element: int, precision: int
) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(element)
    data = {
        "x": (np.random.default_rng(1).standard_normal(500) * 10).astype(dtype),
        "s": np.array(0.1, dtype),
        "z": np.array(128, np.uint8),
    }
    node = helper.make_node("QuantizeLinear", list(data), ["y"], precision=precision)
    model = network([node], data, result(TensorProto.UINT8))
    model.opset_import[0].version = 25
    (found,) = backend.run_model(model, list(data.values()), "CPU:1")
    division = np.float32 if precision else dtype
    quotients = (data["x"].astype(division) / data["s"].astype(division)).astype(np.float32)
    assert np.array_equal(found, np.clip(np.rint(quotients) + 128, 0, 255))


@pytest.mark.parametrize("op", ["ScatterElements", "ScatterND"])
@pytest.mark.parametrize(
    ("reduction", "data", "updates", "expected"),
    [("add", -60000, (40000, 40000), 20000), ("mul", 0.5, (300, 400), 60000)],
)
def test_merged_updates_of_narrow_floats_are_rounded_once(
    op: str, reduction: str, data: float, updates: tuple[float, ...], expected: float
) -> None:
    places = np.zeros((2,) if op == "ScatterElements" else (2, 1), np.int64)
    node = helper.make_node(op, ["x", "i", "u"], ["y"], reduction=reduction)
    inputs = {"x": half(data), "u": half(*updates)}
    assert computed([node], inputs, TensorProto.FLOAT16, i=places) == [expected]


@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_sums_of_recurrent_operators_are_made_in_fp32(op: str, gates: int) -> None:
    """The products alone overflow fp16; their sum, and that of its two parts, does not."""
    x = half(300, 300, 300, 300).reshape(1, 1, 4)
    weights = np.tile(half(300, 300, -300, -300), (1, gates, 1)).reshape(1, gates, 4)
    weights[:, :, 0] += np.float16(0.25)
    node = helper.make_node(op, ["x", "w", "r"], ["y"], hidden_size=1)
    zeros = np.zeros((1, gates, 1), np.float16)
    found = computed([node], {"x": x}, TensorProto.FLOAT16, w=weights, r=zeros)
    wide = computed(
        [node],
        {"x": x.astype(np.float32)},
        TensorProto.FLOAT,
        w=weights.astype(np.float32),
        r=zeros.astype(np.float32),
    )
    assert np.allclose(found, wide, rtol=1e-3)
