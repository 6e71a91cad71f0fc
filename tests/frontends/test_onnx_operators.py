"""Operators of networks on cases of onnx's own suite; `make onnx-conformance` runs all of them in C."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from stripe import onnx_backend as backend
from stripe.exec.arith import Array
from stripe.exec.interp import interpret
from stripe.frontends.frontend import ReadOptions
from stripe.frontends.onnx.reader import import_model, program
from tests.support.onnx_cases import cases
from tools.onnx_conformance import is_static, run_case

EXPECTED = {"passed", "bound"}
FAMILIES = (
    "abs", "add_bcast", "argmax_keepdims_example$", "averagepool_2d_ceil$", "batchnorm_example$",
    "celu_bfloat16$", "cast_FLOAT_to_FLOAT8E4M3FN$",
    "clip_default_min$", "concat_2d_axis_0$", "conv_with_strides_padding$",
    "convtranspose_group_2$", "cumsum_2d_axis_0$",
    "depthtospace_example$", "dequantizelinear_int4$", "det_nd$", "dft$", "dynamicquantizelinear$",
    "einsum_batch_matmul$",
    "gather_0$", "gather_elements_0$", "gathernd_example_int32$", "gemm_all_attributes$", "gridsample_bilinear$",
    "gru_with_initial_bias$", "hardmax_example$", "instancenorm_example$", "layer_normalization_2d_axis0$", "lrn$",
    "lstm_with_peepholes$", "matmul_4d$", "maxpool_with_argmax_2d_precomputed_pads$", "mod_mixed_sign_int8$",
    "nonmaxsuppression_two_classes$", "onehot_with_axis$", "pow_types_float32_int64$", "qlinearconv$",
    "range_float_type",
    "reduce_log_sum_exp_keepdims_example$", "reflect_pad$", "resize_upsample_sizes_cubic$", "roialign_mode_max$",
    "scatter_elements_with_axis$", "scatternd_max$", "slice_negative_axes$", "softmax_axis_1$", "split_equal_parts_2d$",
    "stft$",
    "tile$", "top_k$", "transpose_default$", "tril_pos$", "unsqueeze_two_axes$", "where_example$",
)  # fmt: skip


@pytest.mark.long
def test_each_family_of_operators() -> None:
    wanted = re.compile("^test_(" + "|".join(FAMILIES) + ")")
    found = {name: run_case(case, "interp") for name, case in cases().items() if wanted.match(name)}
    assert len(found) >= len(FAMILIES) - 5
    assert {name: result for name, result in found.items() if result[0] not in EXPECTED} == {}


def test_integers_without_zero_points_are_contracted_as_they_are() -> None:
    """`MatMulInteger` and `ConvInteger` are contractions of 8 bits into 32, and with a zero point agree with onnx."""
    for name, shapes in (("MatMulInteger", [(4, 6), (6, 3)]), ("ConvInteger", [(1, 2, 5, 5), (3, 2, 3, 3)])):
        inputs = [
            helper.make_tensor_value_info(letter, kind, shape)
            for letter, kind, shape in zip("AB", (TensorProto.UINT8, TensorProto.INT8), shapes, strict=True)
        ]
        output = helper.make_tensor_value_info("Y", TensorProto.INT32, None)
        node = helper.make_node(name, ["A", "B"], ["Y"])
        graph = helper.make_graph([node], "network", inputs, [output])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
        (kernel,) = program(import_model(model, "m.onnx", ReadOptions()), "m.onnx").main.blocks
        assert [ref.dtype.name for ref in kernel.refinements] == ["u8", "i8", "i32"], name
    wanted = [
        name for name in cases() if re.match("test_(convinteger|matmulinteger|basic_convinteger)", name)
    ]
    assert len(wanted) >= 3
    assert {name for name in wanted if run_case(cases()[name], "interp")[0] not in EXPECTED} == set()


ZERO_POINTS = [
    ("MatMulInteger", [(4, 6), (6, 3)], {}, True),
    ("MatMulInteger", [(2, 4, 6), (1, 6, 3)], {}, True),
    ("MatMulInteger", [(6,), (2, 6, 3)], {}, True),
    ("MatMulInteger", [(4, 6), (6,)], {}, True),
    ("ConvInteger", [(2, 2, 5, 6), (3, 2, 3, 3)], {}, True),
    ("ConvInteger", [(2, 2, 5, 6), (3, 2, 3, 3)], {"pads": [1, 2, 1, 0], "strides": [2, 1]}, True),
    ("ConvInteger", [(1, 2, 7), (4, 2, 2)], {"auto_pad": "SAME_UPPER", "dilations": [2]}, True),
    ("ConvInteger", [(1, 4, 5, 5), (6, 2, 3, 3)], {"group": 2, "pads": [1, 1, 1, 1]}, False),
]


@pytest.mark.xdist_group("onnx")
@pytest.mark.parametrize("held", [True, False], ids=["constants", "inputs"])
@pytest.mark.parametrize(("name", "shapes", "attributes", "stays"), ZERO_POINTS)
@pytest.mark.parametrize("points", [(3, -5), (7, 0), (0, 4)], ids=str)
def test_zero_points_leave_the_product_of_bytes_as_it_is(
    name: str,
    shapes: list[tuple[int, ...]],
    attributes: dict[str, Any],
    stays: bool,
    points: tuple[int, int],
    held: bool,
) -> None:
    """Sums of rows, columns and windows correct it; beyond an edge an image is its zero point."""
    draw = np.random.default_rng(0)
    data = {
        "A": draw.integers(0, 256, shapes[0]).astype(np.uint8),
        "B": draw.integers(-128, 128, shapes[1]).astype(np.int8),
        "AZ": np.array(points[0], np.uint8),
        "BZ": np.array(points[1], np.int8),
    }
    fixed = ("AZ", "BZ") if held else ()
    inputs = [
        helper.make_tensor_value_info(key, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for key, value in data.items()
        if key not in fixed
    ]
    node = helper.make_node(name, list(data), ["Y"], **attributes)
    constants = [onnx.numpy_helper.from_array(data[key], key) for key in fixed]
    output = helper.make_tensor_value_info("Y", TensorProto.INT32, None)
    graph = helper.make_graph([node], "network", inputs, [output], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    made = program(import_model(model, "m.onnx", ReadOptions()), "m.onnx")
    (product,) = (block for block in made.main.blocks if "comb_op_mul" in block.tags)
    wide = not stays and (points[1] or not held)
    factors = [ref.dtype.name for ref in product.refinements if ref.dir.reads and not ref.dir.writes]
    assert factors == (
        ["i32", "i32"] if wide and (points[0] or not held) else ["u8", "i32"] if wide else ["u8", "i8"]
    )
    (expected,) = ReferenceEvaluator(model).run(None, {key: data[key] for key in data if key not in fixed})
    found = interpret(made, {key: data[key] for key in data if key not in fixed})["Y"]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_the_suite_in_c() -> None:
    """At least 97 % of the cases whose inputs and outputs are tensors of numbers or bools."""
    static = {name: case for name, case in cases(large=True).items() if is_static(case)}
    failed = [name for name, case in static.items() if run_case(case, "c{cflags=-O0}")[0] not in EXPECTED]
    assert len(failed) <= 0.03 * len(static), failed


def test_the_backend_interface() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 2])
    shape = helper.make_tensor_value_info("s", TensorProto.INT64, [2])
    graph = helper.make_graph([helper.make_node("Reshape", ["x", "s"], ["y"])], "g", [x, shape], [y])
    model = helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA")
    for device in ("CPU", "CPU:1"):
        (found,) = backend.run_model(model, [data, np.array([3, 2])], device)
        assert found.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_the_backend_binds_open_sizes() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", None])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    rep = backend.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), "CPU:1")
    for shape in ((2, 3), (4, 1)):
        (found,) = rep.run([np.full(shape, -1.0, np.float32)])
        assert found.shape == shape and not found.any()


@pytest.mark.parametrize("length", [2, 3, 4, 5, 7, 8, 9, 12])
def test_the_inverse_of_half_a_spectrum_has_any_length(length: int) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 5, 2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node("DFT", ["x", "n", "axis"], ["y"], inverse=1, onesided=1)
    known = [numpy_helper.from_array(np.array(v, np.int64), k) for k, v in {"n": length, "axis": 1}.items()]
    graph = helper.make_graph([node], "g", [x], [y], known)
    data = np.random.default_rng(0).standard_normal((1, 5, 2)).astype(np.float32)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    (found,) = backend.run_model(model, [data], "CPU:1")
    expected = np.fft.irfft(data[..., 0] + 1j * data[..., 1], length)
    assert np.allclose(found[..., 0], expected, rtol=1e-5, atol=1e-6)


SELU = 1.0507009873554805 * 1.6732632423543772


def _softplus(x: Array) -> Array:
    return np.logaddexp(0, x)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("Elu", np.expm1),
        ("Celu", np.expm1),
        ("Selu", lambda x: SELU * np.expm1(x)),
        ("Softplus", _softplus),
        ("Mish", lambda x: x * np.tanh(_softplus(x))),
    ],
)
def test_small_negative_numbers_keep_their_digits(op: str, expected: Callable[[Array], Array]) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    data = np.array([-1e-8, -1e-3, -0.5, -30.0], np.float32)
    (found,) = backend.run_model(model, [data], "CPU:1")
    assert np.allclose(found, expected(data.astype(np.float64)), rtol=1e-6, atol=0)


@pytest.mark.parametrize("op", ["Add", "Div", "Pow"])
def test_the_first_form_of_arithmetic_aligns_its_operand_at_an_axis(op: str) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4])
    w = helper.make_tensor_value_info("w", TensorProto.FLOAT, [3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3, 4])
    node = helper.make_node(op, ["x", "w"], ["y"], broadcast=1, axis=1)
    model = helper.make_model(
        helper.make_graph([node], "g", [x, w], [y]), opset_imports=[helper.make_opsetid("", 6)]
    )
    data, other = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4), np.array([1, 2, 0.5], np.float32)
    (found,) = backend.run_model(model, [data, other], "CPU:1")
    function = {"Add": np.add, "Div": np.divide, "Pow": np.power}[op]
    assert np.allclose(found, function(data, other[:, None]))


@pytest.mark.parametrize("direction", [0, 1])
def test_a_scan_of_opset_8_has_directions(direction: int) -> None:
    """`directions` is the later `scan_input_directions`."""
    infos = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("s", "v", "t", "o")
    }
    nodes = [helper.make_node("Add", ["s", "v"], ["t"]), helper.make_node("Identity", ["t"], ["o"])]
    body = helper.make_graph(nodes, "body", [infos["s"], infos["v"]], [infos["t"], infos["o"]])
    scan = helper.make_node(
        "Scan", ["", "S", "X"], ["F", "Y"], body=body, num_scan_inputs=1, directions=[direction]
    )
    sizes = {"S": [1, 2], "X": [1, 4, 2], "F": [1, 2], "Y": [1, 4, 2]}
    outside = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in sizes.items()
    }
    graph = helper.make_graph([scan], "g", [outside["S"], outside["X"]], [outside["F"], outside["Y"]])
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)])
    net = program(import_model(found, "m.onnx", ReadOptions()), "m.onnx")
    x = np.arange(8, dtype=np.float32).reshape(1, 4, 2)
    result = interpret(net, {"S": np.ones((1, 2), np.float32), "X": x})
    taken = x[0, ::-1] if direction else x[0]
    assert np.array_equal(result["Y"][0], 1 + np.cumsum(taken, axis=0))


@pytest.mark.parametrize(
    ("outer", "given", "slope"),
    [
        ({}, {}, 0.5),
        ({}, {"beta": 0.25}, 0.25),
        ({"attribute_protos": [helper.make_attribute("beta", 0.75)]}, {}, 0.75),
        ({"attribute_protos": [helper.make_attribute("beta", 0.75)]}, {"beta": 0.125}, 0.125),
    ],
)
def test_attributes_of_functions_have_their_defaults(
    outer: dict[str, Any], given: dict[str, Any], slope: float
) -> None:
    """`Outer` hands its attribute `beta` on to `Leaky` as `alpha`, whose default is 0.5, in a branch of an If."""
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]

    def handed_on(node: onnx.NodeProto, name: str, attribute: str) -> onnx.NodeProto:
        handed = node.attribute.add()
        handed.name, handed.ref_attr_name, handed.type = name, attribute, onnx.AttributeProto.FLOAT
        return node

    leaky = handed_on(helper.make_node("LeakyRelu", ["a"], ["b"]), "alpha", "alpha")
    call = handed_on(helper.make_node("Leaky", ["p"], ["t"], domain="own"), "alpha", "beta")
    branch = helper.make_graph([call], "then", [], [helper.make_empty_tensor_value_info("t")])
    other = helper.make_graph(
        [helper.make_node("Neg", ["p"], ["n"])], "else", [], [helper.make_empty_tensor_value_info("n")]
    )
    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(True)))
    functions = [
        helper.make_function(
            "own", "Leaky", ["a"], ["b"], [leaky], opsets[:1],
            attribute_protos=[helper.make_attribute("alpha", 0.5)],
        ),
        helper.make_function(
            "own", "Outer", ["p"], ["q"],
            [constant, helper.make_node("If", ["c"], ["q"], then_branch=branch, else_branch=other)], opsets,
            attributes=[] if outer else ["beta"], **outer,
        ),
    ]  # fmt: skip
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Outer", ["x"], ["y"], domain="own", **given)], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=9)
    (found,) = backend.run_model(model, [np.array([-8, 8], np.float32)], "CPU:1")
    assert found.tolist() == [-8 * slope, 8]


def test_a_function_may_import_a_domain_that_its_model_does_not() -> None:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    node = helper.make_node("Binarizer", ["a"], ["b"], domain="ai.onnx.ml", threshold=0.5)
    imports = [opsets[0], helper.make_opsetid("ai.onnx.ml", 1)]
    function = helper.make_function("own", "Over", ["a"], ["b"], [node], imports)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Over", ["x"], ["y"], domain="own")], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=10)
    (found,) = backend.run_model(model, [np.array([0.25, 8], np.float32)], "CPU:1")
    assert found.tolist() == [0, 1]


def test_overloads_of_a_function_have_defaults_of_their_own() -> None:
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    slopes = {"one": 0.5, "two": 0.25}

    def leaky(overload: str) -> onnx.FunctionProto:
        node = helper.make_node("LeakyRelu", ["a"], ["b"])
        handed = node.attribute.add()
        handed.name = handed.ref_attr_name = "alpha"
        handed.type = onnx.AttributeProto.FLOAT
        default = [helper.make_attribute("alpha", slopes[overload])]
        return helper.make_function(
            "own", "Leaky", ["a"], ["b"], [node], opsets[:1], attribute_protos=default, overload=overload
        )

    calls = [helper.make_node("Leaky", ["x"], [name], domain="own", overload=name) for name in slopes]
    x, *results = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", *slopes))
    graph = helper.make_graph(calls, "g", [x], results)
    model = helper.make_model(
        graph, opset_imports=opsets, functions=[leaky(name) for name in slopes], ir_version=10
    )
    found = backend.run_model(model, [np.array([-8, 8], np.float32)], "CPU:1")
    assert [result.tolist() for result in found] == [[-8 * slope, 8] for slope in slopes.values()]


@pytest.mark.parametrize("taken", [False, True])
def test_an_overload_that_calls_another_is_no_circle(taken: bool) -> None:
    """`F:v` hands its attribute `beta`, which is not given, on to `F` as `alpha`, whose default is 0.5; a function
    called `F_v` is another.
    """
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]

    def handed_on(op: str, domain: str, attribute: str) -> onnx.NodeProto:
        node = helper.make_node(op, ["a"], ["b"], domain=domain)
        handed = node.attribute.add()
        handed.name, handed.ref_attr_name, handed.type = "alpha", attribute, onnx.AttributeProto.FLOAT
        return node

    def function(name: str, node: onnx.NodeProto, **rest: Any) -> onnx.FunctionProto:
        return helper.make_function("own", name, ["a"], ["b"], [node], opsets, **rest)

    default = [helper.make_attribute("alpha", 0.5)]
    functions = [
        function("F", handed_on("LeakyRelu", "", "alpha"), attribute_protos=default),
        function("F", handed_on("F", "own", "beta"), attributes=["beta"], overload="v"),
    ]
    if taken:
        functions.append(function("F_v", helper.make_node("Neg", ["a"], ["b"])))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    call = helper.make_node("F", ["x"], ["y"], domain="own", overload="v")
    model = helper.make_model(
        helper.make_graph([call], "g", [x], [y]), opset_imports=opsets, functions=functions, ir_version=10
    )
    (found,) = backend.run_model(model, [np.array([-8, 8], np.float32)], "CPU:1")
    assert found.tolist() == [-4, 8]


def test_results_of_16_bits_are_rounded_once() -> None:
    """The sum of a softmax, and a convolution before its bias, are no numbers of fp16."""

    def run(op: str, **inputs: Array) -> Array:
        infos = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT16, data.shape)
            for name, data in inputs.items()
        ]
        shape = next(iter(inputs.values())).shape
        result = helper.make_tensor_value_info("y", TensorProto.FLOAT16, shape)
        graph = helper.make_graph([helper.make_node(op, list(inputs), ["y"])], "g", infos, [result])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
        (found,) = backend.run_model(model, list(inputs.values()), "CPU:1")
        return found

    flat = np.zeros((1, 70000), np.float16)
    assert np.all(run("Softmax", x=flat) == np.float16(1 / 70000))
    assert np.all(run("LogSoftmax", x=flat) == np.float16(-np.log(70000)))
    point = np.full((1, 1, 1, 1), 300, np.float16)
    for op in ("Conv", "ConvTranspose"):
        assert run(op, x=point, w=point, b=np.array([-60000], np.float16)).item() == 30000
