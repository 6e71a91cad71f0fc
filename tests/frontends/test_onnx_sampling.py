"""Operators that take elements at computed positions: `GridSample`, `RoiAlign`, `DeformConv`."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from stripe import onnx_backend as backend
from stripe.exec.arith import Array


def one_node(op: str, opset: int, inputs: dict[str, Array], **attributes: Any) -> onnx.ModelProto:
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(data.dtype), data.shape)
        for name, data in inputs.items()
    ]
    node = helper.make_node(op, list(inputs), ["y"], **attributes)
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return onnx.shape_inference.infer_shapes(model)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    "elements",
    [
        np.array([16777217, (1 << 31) - 1], np.int32),
        np.array([(1 << 53) + 1, -(1 << 63)], np.int64),
        np.array([(1 << 64) - 1, 1], np.uint64),
        np.array([True, True]),
        np.array([-128, 127], np.int8),
        np.array([0.1, np.inf], np.float64),
        np.array([np.inf, -0.0], np.float16),
    ],
    ids=lambda elements: elements.dtype.name,
)
def test_the_nearest_element_of_a_grid_is_taken_as_it_is(elements: Array, padding: str) -> None:
    grid = np.array([[[[-1, 0], [1, 0], [-3, 0]]]], np.float32)
    image = {"x": elements.reshape(1, 1, 1, 2), "g": grid}
    model = one_node("GridSample", 20, image, mode="nearest", padding_mode=padding, align_corners=1)
    (found,) = backend.run_model(model, list(image.values()), "CPU:1")
    left = {"zeros": elements.dtype.type(0), "border": elements[0], "reflection": elements[1]}[padding]
    assert found.ravel().tobytes() == np.append(elements, left).astype(elements.dtype).tobytes()


@pytest.mark.parametrize("size", [2, 4, 8])
def test_positions_of_nearest_elements_are_rounded_before_they_are_mirrored(size: int) -> None:
    places = np.arange(-3 * size, 4 * size, 0.5)
    scaled = (places * 2 + 1) / size - 1
    grid = np.stack([scaled, np.zeros_like(scaled)], axis=-1)
    inputs = {"x": np.arange(size, dtype=np.float32).reshape(1, 1, 1, size), "g": grid[None, None]}
    model = one_node("GridSample", 20, inputs, mode="nearest", padding_mode="reflection")
    (found,) = backend.run_model(model, list(inputs.values()), "CPU:1")
    (expected,) = ReferenceEvaluator(model).run(None, inputs)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("place", [-9, 1e30, -np.inf, np.inf, np.nan])
def test_a_grid_takes_zeros_outside_an_image_of_infinities(mode: str, place: float) -> None:
    image = {
        "x": np.full((1, 2, 2, 3), [np.inf, 1, -np.inf], np.float32),
        "g": np.array([[[[place, 0], [0, place]]]], np.float32),
    }
    model = one_node("GridSample", 20, image, mode=mode, padding_mode="zeros", align_corners=1)
    (found,) = backend.run_model(model, list(image.values()), "CPU:1")
    assert not found.any()


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_samples_of_regions_have_the_precision_of_the_image(mode: str) -> None:
    draw = np.random.default_rng(0)
    inputs = {
        "x": draw.standard_normal((1, 2, 6, 5)),
        "r": np.array([[0.3, 0.7, 4.1, 4.9], [-2.1, 1.2, 3.3, 9.4]]),
        "b": np.zeros(2, np.int64),
    }
    sizes = {"output_height": 3, "output_width": 2, "sampling_ratio": 3, "spatial_scale": 0.7}
    model = one_node("RoiAlign", 22, inputs, mode=mode, **sizes)
    (found,) = backend.run_model(model, list(inputs.values()), "CPU:1")
    (expected,) = ReferenceEvaluator(model).run(None, inputs)
    assert np.allclose(found, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_samples_of_a_region_outside_an_image_of_infinities_are_zeros(mode: str) -> None:
    inputs = {
        "x": np.full((1, 1, 2, 2), np.inf, np.float32),
        "r": np.array([[-9, -9, -5, -5], [0, 5, 1, 9], [4, 0, 8, 1]], np.float32),
        "b": np.zeros(3, np.int64),
    }
    sizes = {"output_height": 2, "output_width": 2, "sampling_ratio": 2}
    model = one_node("RoiAlign", 22, inputs, mode=mode, **sizes)
    (found,) = backend.run_model(model, list(inputs.values()), "CPU:1")
    assert not found.any()


def test_a_deformed_convolution_takes_zeros_outside_an_image_of_infinities() -> None:
    x = np.array([[[[np.inf, 1, 2], [3, 4, 5]]]], np.float32)
    offsets = np.zeros((1, 2, 2, 3), np.float32)
    offsets[0, 0, 0, 0], offsets[0, 0, 0, 1], offsets[0, 1, 1, 2] = -4, np.inf, np.nan
    inputs = {"x": x, "w": np.ones((1, 1, 1, 1), np.float32), "o": offsets}
    (found,) = backend.run_model(one_node("DeformConv", 19, inputs), list(inputs.values()), "CPU:1")
    assert found.tolist() == [[[[0, 0, 2], [3, 4, 0]]]]
