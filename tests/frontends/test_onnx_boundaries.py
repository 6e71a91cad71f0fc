"""Nodes at the ends of their definitions: negative axes, positions that repeat, widths beyond the tensor, numbers that
are not finite, outputs that nothing reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from stripe.cli.start import opt
from stripe.frontends.frontend import ReadOptions
from stripe.frontends.onnx.model import parse_model
from stripe.frontends.onnx.reader import import_model, program
from stripe.ir import StripeError
from stripe.onnx_backend import compile_model

Array = npt.NDArray[Any]
Capture = pytest.CaptureFixture[str]


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def network(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Array],
    constants: Mapping[str, Array] | None = None,
    outputs: Sequence[str] = ("y",),
    opset: int = 21,
) -> ModelProto:
    """A model whose outputs have the types that ONNX infers."""
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(data.dtype), data.shape)
        for name, data in inputs.items()
    ]
    held = [numpy_helper.from_array(data, name) for name, data in (constants or {}).items()]
    results = [helper.make_value_info(name, onnx.TypeProto()) for name in outputs]
    graph = helper.make_graph(list(nodes), "g", infos, results, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def results(model: ModelProto, inputs: Mapping[str, Array]) -> list[Array]:
    found = compile_model(model, "interp").run(inputs)
    return [found[info.name] for info in model.graph.output]


def refusal(model: ModelProto) -> str:
    with pytest.raises(StripeError) as caught:
        program(import_model(model, "m.onnx", ReadOptions()), "m.onnx")
    return str(caught.value)


def test_unpooling_writes_a_position_once() -> None:
    """Windows of 3 by 3 overlap at steps of 2: one maximum has its position four times."""
    x = np.zeros((1, 1, 5, 5), np.float32)
    x[0, 0, 2, 2] = 5
    sizes: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2]}
    nodes = [
        helper.make_node("MaxPool", ["x"], ["v", "i"], **sizes),
        helper.make_node("MaxUnpool", ["v", "i"], ["y"], **sizes),
    ]
    (found,) = results(network(nodes, {"x": x}), {"x": x})
    assert np.array_equal(found, x)


def test_unpooling_keeps_the_last_of_a_position() -> None:
    x = np.arange(1, 14, dtype=np.float32).reshape(1, 1, 13)
    places = np.array([3, 0, 3, 7, 7, 3, 12, 0, 1, 7, 3, 12, 2]).reshape(1, 1, 13)
    node = helper.make_node("MaxUnpool", ["x", "i"], ["y"], kernel_shape=[2], strides=[1])
    (found,) = results(network([node], {"x": x, "i": places}), {"x": x, "i": places})
    expected = np.zeros(14, np.float32)
    expected[places.reshape(-1)] = x.reshape(-1)
    assert np.array_equal(found.reshape(-1), expected)


def test_means_are_taken_over_negative_axes() -> None:
    x = floats(2, 3, 2, 2)
    for axes in ([-2, -1], [0, -2, 3]):
        node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=axes)
        (found,) = results(network([node], {"x": x}), {"x": x})
        centred = x - x.mean(tuple(axes), keepdims=True)
        assert np.allclose(found, centred / x.std(tuple(axes), keepdims=True), atol=1e-5), axes


PADS = [((3,), (4, 5)), ((3,), (-1, 3)), ((3,), (3, -1)), ((4,), (-1, 7)), ((5,), (9, -3)), ((1, 3), (2, 2, 1, 0)),
        ((2, 3), (1, -1, -1, 4)), ((3, 2), (-2, 3, 2, 1)), ((3,), (-3, 2)), ((4,), (-1, -1))]  # fmt: skip


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize(("shape", "pads"), PADS, ids=str)
def test_padding_cuts_first_and_goes_on_beyond_the_tensor(
    mode: Any, shape: tuple[int, ...], pads: tuple[int, ...]
) -> None:
    """As numpy pads the elements that negative widths leave."""
    x, rank = floats(*shape), len(shape)
    node = helper.make_node("Pad", ["x", "p"], ["y"], mode=mode)
    model = network([node], {"x": x}, {"p": np.array(pads)})
    ends = list(zip(pads[:rank], pads[rank:], strict=True))
    left = x[
        tuple(
            slice(max(-low, 0), size - max(-high, 0)) for (low, high), size in zip(ends, shape, strict=True)
        )
    ]
    if left.size == 0 and mode != "constant":
        assert "(Pad): error: it takes all elements of a dimension away" in refusal(model)
        return
    wider = [(max(low, 0), max(high, 0)) for low, high in ends]
    assert np.array_equal(results(model, {"x": x})[0], np.pad(left, wider, mode=mode))


def test_zeros_are_quantized_with_a_scale_that_divides() -> None:
    x = np.zeros((2, 3), np.float32)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    model = network(nodes, {"x": x}, outputs=["q", "s", "z", "y"])
    q, scale, zero, y = results(model, {"x": x})
    assert not q.any() and not zero.any() and not y.any()
    assert scale == np.float32(1) / np.float32(255)


@pytest.mark.parametrize(
    ("op", "opset", "attributes", "expected"),
    [
        ("Pad", 2, {"pads": [1, 0], "value": -np.inf}, [-np.inf, -2, 3]),
        ("Pad", 1, {"paddings": [0, 1], "value": np.inf}, [-2, 3, np.inf]),
        ("Clip", 6, {"max": np.inf, "min": 0.0}, [0, 3]),
        ("Clip", 6, {"min": -np.inf, "max": 1.0}, [-2, 1]),
        ("LeakyRelu", 16, {"alpha": np.inf}, [-np.inf, 3]),
        ("ThresholdedRelu", 10, {"alpha": -np.inf}, [-2, 3]),
    ],
)
def test_attributes_are_numbers_that_are_not_finite(
    op: str, opset: int, attributes: dict[str, Any], expected: list[float]
) -> None:
    x = np.array([-2, 3], np.float32)
    model = network([helper.make_node(op, ["x"], ["y"], **attributes)], {"x": x}, opset=opset)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [len(expected)]))
    assert results(model, {"x": x})[0].tolist() == expected


def test_an_attribute_with_which_a_template_cannot_compute_is_refused(
    tmp_path: Path, capsys: Capture
) -> None:
    node = helper.make_node("Shrink", ["x"], ["y"], name="s", lambd=np.inf)
    onnx.save(network([node], {"x": floats(3)}), tmp_path / "m.onnx")
    assert opt([str(tmp_path / "m.onnx")]) == 1
    assert capsys.readouterr().err == (
        f"{tmp_path}/m.onnx: node 's' (Shrink): error: its attribute 'lambd' is not finite, and its template computes "
        "with it\n  hint: give the node a finite number\n"
    )


def test_a_fault_of_a_template_names_the_node_and_the_line(tmp_path: Path) -> None:
    text = "## operators: Relu\nfunction {{ name }}(X) -> (Y) {\n  Y = X * {{ 1 / 0 }};\n}\n"
    (tmp_path / "relu.tile.j2").write_text(text)
    model = network([helper.make_node("Relu", ["x"], ["y"], name="n")], {"x": floats(3)})
    with pytest.raises(StripeError) as caught:
        import_model(model, "m.onnx", ReadOptions(operators=(str(tmp_path),)))
    assert str(caught.value) == (
        f"m.onnx: node 'n' (Relu): error: its template fails: {tmp_path}/relu.tile.j2:3: division by zero\n"
        "  hint: test the divisor with {% if %} first"
    )


def test_outputs_that_nothing_reads_may_have_no_name() -> None:
    x = floats(6, 4)
    split = helper.make_node("Split", ["x", "s"], ["a", "", "b"], axis=0)
    model = network([split], {"x": x}, {"s": np.array([1, 2, 3])}, outputs=["a", "b"])
    first, last = results(model, {"x": x})
    assert np.array_equal(first, x[:1]) and np.array_equal(last, x[3:])
    top = helper.make_node("TopK", ["x", "k"], ["", "y"], axis=1)
    model = network([top], {"x": x}, {"k": np.array([2])})
    assert np.array_equal(results(model, {"x": x})[0], np.argsort(-x, axis=1)[:, :2])


def test_an_input_that_is_missing_is_refused() -> None:
    for inputs in (["x"], ["x", ""]):
        model = network([helper.make_node("Gemm", inputs, ["y"], name="n")], {"x": floats(2, 2)})
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2]))
        assert "node 'n' (Gemm): error:" in refusal(model)


def test_errors_inside_of_an_operator_name_its_node() -> None:
    """A window that lies in the padding altogether."""
    x, w = floats(1, 1, 1), floats(1, 1, 2, seed=1)
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="first"),
        helper.make_node("Conv", ["r", "w"], ["y"], name="second", pads=[1, 1], dilations=[2]),
    ]
    assert "node 'second' (Conv): error: no point satisfies" in refusal(network(nodes, {"x": x}, {"w": w}))


@pytest.mark.parametrize(
    ("op", "opset", "shapes", "attributes"),
    [
        ("GroupNormalization", 21, [(2, 4, 3), (4,), (4,)], {"num_groups": 2}),
        ("MeanVarianceNormalization", 13, [(2, 3, 2, 2)], {}),
        ("GreaterOrEqual", 12, [(2, 3), (3,)], {}),
        ("Sigmoid", 1, [(2, 3)], {}),
    ],
)
def test_types_are_known_where_onnx_infers_none(
    op: str, opset: int, shapes: list[tuple[int, ...]], attributes: dict[str, Any]
) -> None:
    inputs = {f"x{place}": floats(*shape, seed=place) for place, shape in enumerate(shapes)}
    model = network([helper.make_node(op, list(inputs), ["y"], **attributes)], inputs, opset=opset)
    assert results(model, inputs)[0].shape == shapes[0]


BEYOND = np.array([np.inf, -np.inf, 1e30, -1e30, 3e9, -3e9, 300.7, -1.5, 0.5], np.float32)
INTEGERS = [
    TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT32, TensorProto.INT32, TensorProto.INT64,
    TensorProto.UINT64,
]  # fmt: skip
CONSTANTS: list[tuple[str, int, list[Array], dict[str, Any]]] = [
    ("Softmax", 11, [floats(2, 3, 2)], {"axis": 1}),
    ("LogSoftmax", 11, [floats(2, 3, 2)], {"axis": 0}),
    ("Hardmax", 11, [floats(2, 3, 2)], {"axis": 1}),
    ("MaxPool", 12, [floats(1, 1, 6, 5)], {"kernel_shape": [2, 2], "dilations": [2, 1], "strides": [1, 2]}),
    ("ConvTranspose", 11, [floats(1, 1, 3, 3), floats(1, 1, 3, 3)], {"strides": [3, 2], "output_shape": [10, 8]}),
    ("LSTM", 14, [floats(3, 2, 2), floats(1, 8, 2, seed=1), floats(1, 8, 2, seed=2)],
     {"hidden_size": 2, "direction": "reverse"}),
    ("GRU", 14, [floats(3, 2, 2), floats(1, 6, 2, seed=1), floats(1, 6, 2, seed=2)],
     {"hidden_size": 2, "clip": 0.1}),
    ("Resize", 13, [floats(1, 1, 3), np.array([], np.float32), np.array([1, 1, 0.34], np.float32)],
     {"mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel"}),
    ("DequantizeLinear", 13, [np.array([[1, 2], [3, 4]], np.int8), np.array([0.5, 2], np.float32),
                              np.array([1, -1], np.int8)], {"axis": 0}),
    ("QuantizeLinear", 10, [floats(4) * 300, np.array(1.5, np.float32), np.array(3, np.uint8)], {}),
    ("GatherElements", 13, [floats(3, 3), np.array([[2, -1]])], {"axis": 0}),
    ("LpPool", 18, [floats(1, 2, 5)], {"kernel_shape": [2], "dilations": [2], "p": 3}),
    ("Add", 6, [floats(2, 3, 2), floats(3)], {"broadcast": 1, "axis": 1}),
    *(("Cast", 21, [BEYOND], {"to": to}) for to in INTEGERS),
    ("CastLike", 21, [BEYOND, np.zeros(1, np.uint8)], {}),
    ("Cast", 21, [np.array([1 + 2**-11 + 2**-40])], {"to": TensorProto.FLOAT16}),
    ("QuantizeLinear", 21, [BEYOND, np.array(0.5, np.float32), np.array(3, np.int8)], {}),
    ("QuantizeLinear", 21, [BEYOND, np.array(0.5, np.float32), np.array(3, np.uint16)], {}),
    ("Pow", 21, [np.array([3, 2, -2], np.int32), np.array([45, 70, 33], np.int32)], {}),
    ("Pow", 21, [np.array([3, 7]), np.array([39, 3])], {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "opset", "inputs", "attributes"), CONSTANTS, ids=lambda value: str(value)[:16]
)
def test_a_node_of_constants_computes_as_one_of_inputs(
    op: str, opset: int, inputs: list[Array], attributes: dict[str, Any]
) -> None:
    """The evaluator of onnx, which folds constants, leaves options of some operators out."""
    names = {f"x{place}": data for place, data in enumerate(inputs)}
    shown = next(iter(names))
    node = helper.make_node(op, list(names), ["y"], **attributes)
    late = {name: data for name, data in names.items() if name != shown}
    (given,) = results(network([node], {shown: names[shown]}, late, opset=opset), {shown: names[shown]})
    (folded,) = results(network([node], {}, names, opset=opset), {})
    assert np.array_equal(folded, given)


@pytest.mark.parametrize("equation", ["aA,bA,cA->abc", "aA,bB,cC->ABC", "aB", "Ab,bA", "bA,Ab->Ab"])
def test_letters_of_both_cases_are_told_apart(equation: str) -> None:
    count = equation.partition("->")[0].count(",") + 1
    inputs = {f"x{place}": floats(2, 2, seed=place) for place in range(count)}
    node = helper.make_node("Einsum", list(inputs), ["y"], equation=equation)
    (found,) = results(network([node], inputs), inputs)
    assert np.allclose(found, np.einsum(equation, *inputs.values()), atol=1e-5)


def maxima(x: Array, *windows: slice) -> list[float]:
    return [float(x[0, 0, window].max()) for window in windows]


@pytest.mark.parametrize("opset", [11, 22])
def test_windows_begin_in_the_image_or_before_it(opset: int) -> None:
    """With `ceil_mode`; onnx infers one more before opset 22."""
    x = floats(1, 1, 6)
    sizes = {"kernel_shape": [2], "strides": [3], "ceil_mode": 1}
    model = network(
        [helper.make_node("MaxPool", ["x"], ["y", "i"], **sizes)], {"x": x}, None, ["y", "i"], opset
    )
    y, places = results(model, {"x": x})
    assert y.reshape(-1).tolist() == maxima(x, slice(0, 2), slice(3, 5))
    assert x.reshape(-1)[places.reshape(-1)].tolist() == y.reshape(-1).tolist()
    for op in ("MaxPool", "AveragePool", "LpPool") if opset > 18 else ("MaxPool", "AveragePool"):
        for pads in ([0, 1], [1, 1]):
            node = helper.make_node(op, ["x"], ["y"], **sizes, pads=pads)
            assert results(network([node], {"x": x}, opset=opset), {"x": x})[0].shape == (
                1,
                1,
                3 if pads[0] else 2,
            )


@pytest.mark.parametrize("opset", [11, 22])
def test_a_window_over_all_of_the_image_and_more_is_one(opset: int) -> None:
    """With `ceil_mode`; the other dimension has its own windows, and none in the padding behind the image."""
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    sizes = {"kernel_shape": [3, 4], "strides": [3, 3], "pads": [0, 3, 0, 2], "ceil_mode": 1}
    node = helper.make_node("AveragePool", ["x"], ["y"], **sizes)
    (found,) = results(network([node], {"x": x}, opset=opset), {"x": x})
    assert found.tolist() == [[[[1.5, 2.5]]]]


@pytest.mark.parametrize("order", [0, 1])
def test_of_equal_maxima_the_first_of_the_window_is_told(order: int) -> None:
    """The first one by rows; its position counts by rows, or by columns."""
    x = np.ones((2, 1, 3, 4), np.float32)
    x[0, 0, 0, 0] = 0
    node = helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2], storage_order=order)
    _, places = results(network([node], {"x": x}, None, ["y", "i"]), {"x": x})
    rows, columns = np.indices((2, 3))
    columns[0, 0] = 1
    at = columns * 3 + rows if order else rows * 4 + columns
    whole = np.indices((2, 3))
    rest = 12 + (whole[1] * 3 + whole[0] if order else whole[0] * 4 + whole[1])
    assert places.tolist() == [[at.tolist()], [rest.tolist()]]


@pytest.mark.parametrize("opset", [12, 22])
def test_windows_of_the_same_size_count_steps(opset: int) -> None:
    """The size over the step, rounded up; onnx infers one more with `ceil_mode`."""
    x = floats(1, 1, 6)
    node = helper.make_node(
        "MaxPool", ["x"], ["y"], kernel_shape=[2], strides=[3], ceil_mode=1, auto_pad="SAME_UPPER"
    )
    (found,) = results(network([node], {"x": x}, opset=opset), {"x": x})
    assert found.reshape(-1).tolist() == maxima(x, slice(0, 2), slice(3, 5))


def test_transposed_windows_of_the_same_size_take_no_more_padding() -> None:
    """`output_padding` moves the window, and adds nothing to the size."""
    x, w = floats(1, 1, 4), floats(1, 1, 3, seed=1)
    options: dict[str, Any] = {"strides": [2], "output_padding": [1], "auto_pad": "SAME_UPPER"}
    (found,) = results(
        network([helper.make_node("ConvTranspose", ["x", "w"], ["y"], **options)], {"x": x}, {"w": w}),
        {"x": x},
    )
    whole = np.zeros(10, np.float32)
    for place in range(4):
        whole[2 * place : 2 * place + 3] += x[0, 0, place] * w[0, 0]
    assert np.allclose(found.reshape(-1), whole[1:9], atol=1e-6)


@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("size", "step"), [(1, 1), (2, 1), (3, 2), (9, 2)])
def test_transposed_windows_give_the_size_asked_for(size: int, step: int, auto_pad: str) -> None:
    """Also less than the image has, where onnx infers none; padding takes the rest, at one end one more."""
    x, w = floats(1, 1, 4), floats(1, 1, 3, seed=1)
    node = helper.make_node(
        "ConvTranspose", ["x", "w"], ["y"], strides=[step], output_shape=[size], auto_pad=auto_pad
    )
    (found,) = results(network([node], {"x": x}, {"w": w}), {"x": x})
    whole = np.zeros(3 * step + 3, np.float32)
    for place in range(4):
        whole[step * place : step * place + 3] += x[0, 0, place] * w[0, 0]
    total = len(whole) - size
    first = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
    assert np.allclose(found.reshape(-1), whole[first : first + size], atol=1e-6)


CUTS: list[tuple[dict[str, list[int]], Any]] = [
    ({"starts": [1], "ends": [-1], "axes": [-1]}, np.s_[:, 1:-1]),
    ({"starts": [-100], "ends": [-1], "axes": [0]}, np.s_[:-1]),
    ({"starts": [0, -3], "ends": [1 << 40, -1]}, np.s_[:, -3:-1]),
]


@pytest.mark.parametrize(("options", "part"), CUTS, ids=str)
def test_the_first_form_of_slices_takes_bounds_beyond_the_tensor(options: dict[str, Any], part: Any) -> None:
    x = floats(3, 4)
    (found,) = results(
        network([helper.make_node("Slice", ["x"], ["y"], **options)], {"x": x}, opset=9), {"x": x}
    )
    assert np.array_equal(found, x[part])


@pytest.mark.parametrize("opset", [7, 10, 11])
def test_axes_of_squeezes_count_from_the_end(opset: int) -> None:
    """ONNX Runtime takes such models of the first version too, for which onnx infers the sizes of the operand."""
    x, z = floats(3, 1, 4), floats(4, 4)
    nodes = [
        helper.make_node("Squeeze", ["x"], ["s"], axes=[-2]),
        helper.make_node("Unsqueeze", ["s"], ["u"], axes=[-1, 0]),
        helper.make_node("Mul", ["u", "z"], ["y"]),
    ]
    given = {"x": x, "z": z}
    (found,) = results(network(nodes, given, opset=opset), given)
    assert np.array_equal(found, x.reshape(1, 3, 4, 1) * z)


def test_sizes_without_a_name_are_not_one() -> None:
    """Exporters call each size that they do not know `?`."""
    model = network([helper.make_node("Relu", ["x"], ["y"])], {"x": floats(2, 3)})
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_param = "?"
    found = import_model(model, "m.onnx", ReadOptions(dims=(("x.0", 2), ("x.1", 3))))
    assert program(found, "m.onnx").inputs[0].sizes == (2, 3)


def test_attributes_of_a_node_of_constants_are_checked() -> None:
    """The evaluator of onnx takes any number but 1 for `keepdims=0`, ONNX Runtime any but 0 for 1."""
    mean = helper.make_node("ReduceMean", ["w"], ["m"], axes=[0], keepdims=2)
    nodes = [mean, helper.make_node("Add", ["x", "m"], ["y"])]
    assert "its attribute 'keepdims' is 2" in refusal(
        network(nodes, {"x": floats(1, 3)}, {"w": floats(2, 3)}, opset=13)
    )


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 1.0), (2.0, -1.5), (1.0, 0.25), (3.0, 2.0)])
def test_factors_of_integers_may_have_a_fraction(alpha: float, beta: float) -> None:
    a, b = np.arange(-6, 6, dtype=np.int32).reshape(3, 4), np.arange(8, dtype=np.int32).reshape(4, 2)
    c = np.array([[5, -7]], np.int32)
    node = helper.make_node("Gemm", ["a", "b", "c"], ["y"], alpha=alpha, beta=beta)
    (found,) = results(network([node], {"a": a, "b": b, "c": c}), {"a": a, "b": b, "c": c})
    assert found.tolist() == (alpha * (a @ b) + beta * c).astype(np.int32).tolist()


def test_gathered_elements_are_scalars() -> None:
    x = floats(2, 3)
    model = network([helper.make_node("GatherND", ["x", "i"], ["y"])], {"x": x}, {"i": np.array([1, -1])})
    assert results(model, {"x": x})[0] == x[1, 2]


@pytest.mark.parametrize("opset", [18, 20])
def test_groups_have_a_scale_each_before_opset_21(opset: int) -> None:
    x, scale, shift = floats(2, 4, 3), floats(2, seed=1), floats(2, seed=2)
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2, epsilon=0.0)
    (found,) = results(network([node], {"x": x}, {"s": scale, "b": shift}, opset=opset), {"x": x})
    groups = x.reshape(2, 2, 6)
    plain = (groups - groups.mean(2, keepdims=True)) / groups.std(2, keepdims=True)
    assert np.allclose(found.reshape(2, 2, 6), plain * scale[:, None] + shift[:, None], atol=1e-5)


SEQUENCE_INPUTS = (floats(3, 2, 2), floats(1, 8, 2, seed=1), floats(1, 8, 2, seed=2))
WITHOUT_MEANING: list[tuple[str, int, list[Array], dict[str, Any], str]] = [
    ("Pad", 19, [floats(2, 3), np.array([1, 0, 0, 1])], {"mode": "bicubic"}, "its attribute 'mode' is 'bicubic'"),
    ("Pad", 18, [floats(2, 3), np.array([1, 0, 0, 1])], {"mode": "wrap"}, "it may be constant, reflect, edge"),
    ("LpNormalization", 22, [floats(2, 3)], {"p": 3}, "its attribute 'p' is 3"),
    ("MaxPool", 12, [floats(1, 1, 4)], {"kernel_shape": [2], "ceil_mode": -1}, "its attribute 'ceil_mode' is -1"),
    ("MaxPool", 12, [floats(1, 1, 4)], {"kernel_shape": [2], "strides": [0]}, "its attribute 'strides' holds 0"),
    ("Softmax", 11, [floats(2, 3)], {"axis": 100}, "its axis 100 is none of a tensor of rank 2"),
    ("GatherElements", 13, [floats(2, 3), np.array([[0]])], {"axis": 1 << 31}, "its attribute 'axis' is no dimension"),
    ("GatherND", 12, [floats(2, 3), np.array([[[0]]])], {"batch_dims": -2}, "its attribute 'batch_dims' holds -2"),
    ("GatherND", 12, [floats(2, 3), np.array([[0]] * 3)], {"batch_dims": 1}, "its batches are (3,) and (2,)"),
    ("ScatterND", 16, [floats(3), np.array([[0]]), floats(1)], {"reduction": "FOO"}, "it may be none, add, mul"),
    ("Resize", 10, [floats(1, 1, 3), np.array([1, 1, 2], np.float32)], {"mode": "cubic"}, "it may be nearest, linear"),
    ("LSTM", 14, [*SEQUENCE_INPUTS], {"hidden_size": 2, "clip": -1.0}, "its clip is -1"),
    ("LSTM", 14, [*SEQUENCE_INPUTS], {"hidden_size": 2, "layout": 3}, "its attribute 'layout' is 3"),
    ("LSTM", 14, [*SEQUENCE_INPUTS], {"hidden_size": 2, "direction": "up"}, "it may be forward, reverse"),
    ("LSTM", 14, [*SEQUENCE_INPUTS], {"hidden_size": 2, "activations": ["Tanh", "Elu", "Tanh"]}, "activation 'Elu'"),
    ("LSTM", 14, [*SEQUENCE_INPUTS], {"hidden_size": 2, "activations": ["Tanh"]}, "1 activations, and needs 3"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "opset", "inputs", "attributes", "words"), WITHOUT_MEANING)
def test_attributes_without_a_meaning_are_refused(
    op: str, opset: int, inputs: list[Array], attributes: dict[str, Any], words: str
) -> None:
    names = {f"x{place}": data for place, data in enumerate(inputs)}
    late = {name: data for name, data in names.items() if data.dtype == np.int64 or op == "Resize"}
    late.pop("x0", None)
    shown = {name: data for name, data in names.items() if name not in late}
    text = refusal(
        network([helper.make_node(op, list(names), ["y"], **attributes)], shown, late, opset=opset)
    )
    assert f"node 'y' ({op}): error: " in text and words in text


def test_a_sequence_that_is_too_long_to_be_unrolled_names_the_node() -> None:
    inputs = {"x": floats(3000, 1, 1), "w": floats(1, 4, 1), "r": floats(1, 4, 1)}
    text = refusal(network([helper.make_node("LSTM", [*inputs], ["y"], hidden_size=1)], inputs, opset=14))
    assert "node 'y' (LSTM): error: its template fails" in text and "cut a long sequence" in text


def identity_loop(*nodes: NodeProto) -> NodeProto:
    """A loop that hands its condition and a value on."""
    flag = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    trip = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    value = helper.make_tensor_value_info("v", TensorProto.FLOAT, [2])
    made = helper.make_tensor_value_info("w", TensorProto.FLOAT, [2])
    body = helper.make_graph(
        [*nodes, helper.make_node("Identity", ["v"], ["w"])], "b", [trip, flag, value], [flag, made]
    )
    return helper.make_node("Loop", ["rounds", "", "x"], ["y"], body=body)


def test_loops_without_end_are_refused_at_once() -> None:
    x = {"x": floats(2)}
    assert "more than 10000 rounds" in refusal(
        network([identity_loop()], x, {"rounds": np.array(10**15)}, opset=17)
    )
    inner = identity_loop()
    inner.output[0] = "unread"
    text = refusal(network([identity_loop(inner)], x, {"rounds": np.array(5000)}, opset=17))
    assert "take more than 20000 rounds" in text


def test_a_loop_hands_in_a_value_for_which_its_body_has_a_default() -> None:
    loop = identity_loop()
    loop.attribute[0].g.initializer.append(numpy_helper.from_array(np.full(2, 100, np.float32), "v"))
    x = {"x": floats(2)}
    (found,) = results(network([loop], x, {"rounds": np.array(3)}, opset=17), x)
    assert np.array_equal(found, x["x"])


@pytest.mark.parametrize("overloaded", [False, True])
def test_functions_that_call_each_other_twice_are_counted_before_they_are_inlined(overloaded: bool) -> None:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]

    def names(level: int) -> dict[str, str]:
        if level < 0:
            return {"op_type": "Relu"}
        key = {"op_type": "F", "overload": f"v{level}"} if overloaded else {"op_type": f"F{level}"}
        return {**key, "domain": "own"}

    def function(level: int) -> onnx.FunctionProto:
        callee, own = names(level - 1), names(level)
        nodes = [helper.make_node(inputs=[a], outputs=[b], **callee) for a, b in ("ab", "bc")]
        return helper.make_function(
            "own", own["op_type"], ["a"], ["c"], nodes, opsets, overload=own.get("overload")
        )

    model = network([helper.make_node(inputs=["x"], outputs=["y"], **names(23))], {"x": floats(2)})
    model.opset_import.append(opsets[1])
    model.functions.extend(map(function, range(24)))
    with pytest.raises(StripeError, match="make up 16777216 nodes"):
        parse_model(model.SerializeToString(), "m.onnx")


def test_names_that_are_no_text_are_refused() -> None:
    data = network([helper.make_node("Softmax", ["x"], ["y"])], {"x": floats(2, 2)}).SerializeToString()
    with pytest.raises(StripeError, match=r"its op_type .* is no text"):
        parse_model(data.replace(b"Softmax", b"Softma\xf8"), "m.onnx")


def test_a_size_of_the_command_line_fits_into_64_bits() -> None:
    model = network([helper.make_node("Relu", ["x"], ["y"])], {"x": floats(2)})
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    for size in (1 << 63, -1):
        with pytest.raises(StripeError, match="is no size"):
            import_model(model, "m.onnx", ReadOptions(dims=(("N", size),)))


def test_contents_in_a_file_that_leads_to_itself_are_refused(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "m.onnx"
    model = network([helper.make_node("Add", ["x", "w"], ["y"])], {"x": floats(2)}, {"w": floats(2)})
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    (tmp_path / "w.bin").symlink_to("w.bin")
    assert opt([str(path)]) == 1
    assert "'w.bin' cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("op", "opset", "attributes", "words"),
    [
        ("Dropout", 6, {}, "its attribute 'is_test' is 0"),
        ("BatchNormalization", 6, {}, "its attribute 'is_test' is 0"),
        ("BatchNormalization", 7, {"spatial": 0}, "its attribute 'spatial' is 0"),
        ("LSTM", 14, {}, "its attribute 'hidden_size' is missing"),
    ],
)
def test_first_forms_that_train_are_refused(
    op: str, opset: int, attributes: dict[str, Any], words: str
) -> None:
    count = {"Dropout": 1, "BatchNormalization": 5, "LSTM": 3}[op]
    inputs = {f"x{place}": floats(2, 2, 2) if place == 0 else floats(2) for place in range(count)}
    text = refusal(network([helper.make_node(op, [*inputs], ["y"], **attributes)], inputs, opset=opset))
    assert words in text


def test_unpooling_into_given_sizes() -> None:
    """Positions count in the tensor that the windows imply, as in the suite of onnx."""
    x, places = floats(1, 1, 2, 2), np.array([[[[5, 7], [13, 15]]]])
    node = helper.make_node("MaxUnpool", ["x", "i", "s"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
    model = network([node], {"x": x}, {"i": places, "s": np.array([1, 1, 5, 5])})
    expected = np.zeros((5, 5), np.float32)
    expected[1:4:2, 1:4:2] = x[0, 0]
    assert np.array_equal(results(model, {"x": x})[0][0, 0], expected)


def test_nodes_with_tensors_without_elements() -> None:
    x, none = floats(3), np.zeros((0, 1), np.int64)
    scatter = helper.make_node("ScatterND", ["x", "i", "u"], ["y"])
    model = network([scatter], {"x": x}, {"i": none, "u": np.zeros(0, np.float32)})
    assert np.array_equal(results(model, {"x": x})[0], x)
    total = helper.make_node("ReduceLogSumExp", ["e"], ["t"], keepdims=0)
    model = network(
        [total, helper.make_node("Max", ["x", "t"], ["y"])], {"x": x}, {"e": np.zeros(0, np.float32)}
    )
    assert np.array_equal(results(model, {"x": x})[0], x)
    product = helper.make_node("MatMul", ["a", "b"], ["y"], name="n")
    model = network([product], {"a": np.zeros((2, 0), np.float32), "b": x[None][:0]})
    assert results(model, {})[0].tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize(
    ("scale", "expected"), [(0.6, [1, 3]), (0.5, [1, 3]), (2.0, [1, 1, 2, 2, 3, 3, 4, 4])]
)
def test_the_first_form_of_resizing_takes_the_element_behind_where_it_shrinks(
    scale: float, expected: list[int]
) -> None:
    """The first is the example of the specification."""
    x = np.array([[[[1, 2, 3, 4], [5, 6, 7, 8]]]], np.float32)
    scales = np.array([1, 1, min(scale, 1), scale], np.float32)
    node = helper.make_node("Resize", ["x", "s"], ["y"], mode="nearest")
    (found,) = results(network([node], {"x": x}, {"s": scales}, opset=10), {"x": x})
    assert found[0, 0, 0].tolist() == expected


@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_smoothed_images_of_integers_are_rounded(dtype: type[np.generic]) -> None:
    """As ONNX's evaluator does; without smoothing they are cut, as ONNX Runtime does."""
    image = np.array([0, 3, 9, 99], dtype).reshape(1, 1, 1, 4)
    scales = np.array([1, 1, 1, 0.75], np.float32)

    def resized(antialias: int) -> list[int]:
        node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear", antialias=antialias)
        (found,) = results(network([node], {"x": image}, {"s": scales}), {"x": image})
        return found.ravel().tolist()

    assert resized(1) == [1, 6, 74]
    assert resized(0) == [0, 6, 83]


@pytest.mark.parametrize("opset", [1, 10])
def test_depth_goes_by_columns_where_no_mode_is_known(opset: int) -> None:
    image = floats(1, 8, 2, 3)
    node = helper.make_node("DepthToSpace", ["x"], ["y"], blocksize=2)
    (found,) = results(network([node], {"x": image}, opset=opset), {"x": image})
    parts = image.reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2)
    np.testing.assert_array_equal(found, parts.reshape(1, 2, 4, 6))


def test_nan_has_a_place_in_each_order() -> None:
    """It is greater than all numbers for TopK, and the greatest and the least for ArgMax and ArgMin, as for numpy."""
    nan = np.nan
    x = np.array([[nan, nan, nan, nan], [1, nan, 3, nan], [2, 0, -1, 4]], np.float32)
    one = {"k": np.array([3])}
    for largest in (0, 1):
        node = helper.make_node("TopK", ["x", "k"], ["v", "i"], largest=largest)
        values, places = results(network([node], {"x": x}, one, ["v", "i"]), {"x": x})
        keys = np.where(np.isnan(x), -np.inf, -x) if largest else x
        expected = np.argsort(keys, axis=1, kind="stable")[:, :3]
        assert np.array_equal(places, expected)
        assert np.array_equal(values, np.take_along_axis(x, expected, 1), equal_nan=True)
    for op, function in (("ArgMax", np.argmax), ("ArgMin", np.argmin)):
        node = helper.make_node(op, ["x"], ["y"], axis=1, keepdims=0)
        assert np.array_equal(results(network([node], {"x": x}), {"x": x})[0], function(x, axis=1))
    node = helper.make_node("Hardmax", ["x"], ["y"])
    assert np.array_equal(results(network([node], {"x": x}), {"x": x})[0], np.eye(4)[np.argmax(x, axis=1)])
    node = helper.make_node("Sign", ["x"], ["y"])
    assert np.array_equal(results(network([node], {"x": x}), {"x": x})[0], np.sign(x), equal_nan=True)
    image = x.reshape(1, 3, 4)
    node = helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2], strides=[2])
    values, places = results(network([node], {"x": image}, None, ["y", "i"]), {"x": image})
    assert np.array_equal(image.reshape(-1)[places], values, equal_nan=True)


def test_a_word_for_the_padding_stands_alone() -> None:
    """Widths of 0 beside it mean nothing, and others contradict it."""
    x, w = floats(1, 1, 6), floats(1, 1, 3, seed=1)
    bare = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3], strides=[2], auto_pad="SAME_UPPER")
    beside = helper.make_node(
        "MaxPool", ["x"], ["y"], kernel_shape=[3], strides=[2], auto_pad="SAME_UPPER", pads=[0, 0]
    )
    found = [results(network([node], {"x": x}), {"x": x})[0] for node in (bare, beside)]
    assert found[0].shape == (1, 1, 3) and found[0].tolist() == found[1].tolist()
    for op, names in (("MaxPool", ["x"]), ("Conv", ["x", "w"])):
        node = helper.make_node(op, names, ["y"], kernel_shape=[3], auto_pad="VALID", pads=[1, 1])
        text = refusal(network([node], {"x": x}, {"w": w} if op == "Conv" else None))
        assert "it has both 'pads' and 'auto_pad'" in text


def test_negative_sizes_that_inputs_give_are_refused() -> None:
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"])
    assert "(TopK): error:" in refusal(network([node], {"x": floats(3)}, {"k": np.array([-2])}))


@pytest.mark.parametrize("opset", [10, 13])
def test_scales_are_no_doubles(opset: int) -> None:
    """As for ONNX Runtime: 3 / 0.6 is 5, and 30 times 0.7 is 21."""
    options: dict[str, Any] = {"mode": "nearest"}
    if opset > 10:
        options |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    x = np.arange(30, dtype=np.float32)[None, None]
    for scale, size in ((0.6, 18), (0.7, 21), (2.3, 69)):
        names = ["x", "s"] if opset == 10 else ["x", "", "s"]
        node = helper.make_node("Resize", names, ["y"], **options)
        held = {"s": np.array([1, 1, scale], np.float32)}
        (found,) = results(network([node], {"x": x}, held, opset=opset), {"x": x})
        assert found.shape == (1, 1, size)
        places = np.arange(size).astype(np.float32) / np.float32(scale)
        expected = np.ceil(places) if opset == 10 and scale < 1 else np.floor(places)
        assert found[0, 0].tolist() == np.minimum(expected, 29).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("sizes", [(1, 3, 4, 5), (2, 1, 1, 3), (1, 2, 2, 3, 4), (3, 1, 1, 1, 2)], ids=str)
def test_grids_of_any_batch_and_size(
    sizes: tuple[int, ...], align: int, dtype: type[np.floating[Any]]
) -> None:
    """An axis of one element is at -1 where the middles of the outermost elements are the ends, else at 0."""
    rank = len(sizes) - 2
    theta = floats(sizes[0], rank, rank + 1).astype(dtype)
    node = helper.make_node("AffineGrid", ["x", "s"], ["y"], align_corners=align)
    (found,) = results(network([node], {"x": theta}, {"s": np.array(sizes)}), {"x": theta})
    places = [
        np.linspace(-1, 1, size) if align else (2 * np.arange(size) + 1) / size - 1 for size in sizes[2:]
    ]
    grid = np.stack([*np.meshgrid(*places, indexing="ij")[::-1], np.ones(sizes[2:])], axis=-1)
    expected = np.einsum("nck,...k->n...c", theta.astype(np.float64), grid)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=4 * float(np.finfo(dtype).eps))


def test_sizes_that_onnx_infers_for_pools_are_no_contradiction() -> None:
    """Exporters write them into models; nodes behind the pool have them, too."""
    x = floats(1, 1, 6)
    pool = helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[2], strides=[3], ceil_mode=1)
    model = network([pool, helper.make_node("Relu", ["p"], ["y"])], {"x": x}, opset=13)
    model = onnx.shape_inference.infer_shapes(model)
    assert [dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim] == [1, 1, 3]
    assert results(model, {"x": x})[0].tolist() == [
        [[max(value, 0) for value in maxima(x, slice(0, 2), slice(3, 5))]]
    ]


CONTRADICTIONS: list[tuple[str, list[tuple[int, ...]], dict[str, Any], str]] = [
    ("Conv", [(1, 4, 4), (2, 1, 3)], {"group": 2}, "4 channels and filters of sizes [2, 1, 3] in 2 groups"),
    ("LSTM", [(3, 2, 4), (1, 8, 3), (1, 8, 2)], {"hidden_size": 2}, "W have the sizes [1, 8, 3], not [1, 8, 4]"),
    ("LSTM", [(3, 2, 3), (1, 8, 3), (1, 8, 2)], {"hidden_size": 3}, "not [1, 12, 3]"),
    ("GRU", [(3, 2, 3), (1, 6, 3), (1, 6, 2)], {"hidden_size": 2, "direction": "bidirectional"}, "not [2, 6, 3]"),
    ("Einsum", [(2, 3), (4, 2)], {"equation": "ij,jk->ik"}, "its letter 'j' has two sizes"),
    ("LayerNormalization", [(2, 3), (3,)], {"axis": (1 << 63) - 1}, "its attribute 'axis' is no dimension"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "shapes", "attributes", "words"), CONTRADICTIONS)
def test_sizes_that_contradict_each_other_are_refused(
    op: str, shapes: list[tuple[int, ...]], attributes: dict[str, Any], words: str
) -> None:
    """Sums over different ranges would end with the shorter one."""
    inputs = {f"x{place}": floats(*shape) for place, shape in enumerate(shapes)}
    assert words in refusal(network([helper.make_node(op, [*inputs], ["y"], **attributes)], inputs))
