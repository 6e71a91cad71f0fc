"""Networks in ONNX as functions of tensors of PyTorch: the operators of the networks that are measured."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from benchmarks.cpu.networks import Network

torch: Any = importlib.import_module("torch")
onnx: Any = importlib.import_module("onnx")
functional: Any = torch.nn.functional


def build(network: Network) -> Callable[..., Any]:
    """The network as a function of its inputs, in their order. Raises KeyError for another operator."""
    graph = onnx.load(network.path).graph
    constants = {tensor.name: _constant(onnx.numpy_helper.to_array(tensor)) for tensor in graph.initializer}
    nodes = [(_OPS[node.op_type], list(node.input), node.output[0], _settings(node)) for node in graph.node]
    names = [info.name for info in graph.input]

    def function(*given: Any) -> Any:
        found = {**constants, **dict(zip(names, given, strict=True))}
        for apply, inputs, output, settings in nodes:
            found[output] = apply([found[name] for name in inputs if name], settings)
        return found[graph.output[0].name]

    return function


def _constant(array: Any) -> Any:
    """Scalars and sizes as numbers, which do not break the graph."""
    return array.tolist() if array.ndim == 0 or array.dtype.kind == "i" else torch.from_numpy(array.copy())


def _settings(node: Any) -> dict[str, Any]:
    return {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}


def _conv(given: list[Any], settings: dict[str, Any]) -> Any:
    groups, pad = settings.get("group", 1), settings["pads"][:2]
    return functional.conv2d(*given, stride=settings["strides"], padding=pad, groups=groups)


def _norm(given: list[Any], _: dict[str, Any]) -> Any:
    values, scale, bias, mean, variance = given
    return functional.batch_norm(values, mean, variance, scale, bias)


def _pool(given: list[Any], settings: dict[str, Any]) -> Any:
    return functional.max_pool2d(
        given[0], settings["kernel_shape"], settings["strides"], settings["pads"][:2]
    )


def _gemm(given: list[Any], _: dict[str, Any]) -> Any:
    first, second, bias = given
    return first @ second + bias


def _layer_norm(given: list[Any], settings: dict[str, Any]) -> Any:
    values, scale, bias = given
    return functional.layer_norm(values, scale.shape, scale, bias, settings["epsilon"])


_OPS: dict[str, Callable[[list[Any], dict[str, Any]], Any]] = {
    "Conv": _conv, "BatchNormalization": _norm, "MaxPool": _pool, "Gemm": _gemm, "LayerNormalization": _layer_norm,
    "Relu": lambda given, _: torch.relu(given[0]),
    "Clip": lambda given, _: torch.clamp(given[0], given[1], given[2]),
    "Add": lambda given, _: given[0] + given[1],
    "Mul": lambda given, _: given[0] * given[1],
    "MatMul": lambda given, _: given[0] @ given[1],
    "Gelu": lambda given, _: functional.gelu(given[0]),
    "Softmax": lambda given, settings: torch.softmax(given[0], settings["axis"]),
    "Flatten": lambda given, _: torch.flatten(given[0], 1),
    "GlobalAveragePool": lambda given, _: given[0].mean((2, 3), keepdim=True),
    "Reshape": lambda given, _: given[0].reshape(given[1]),
    "Transpose": lambda given, settings: given[0].permute(settings["perm"]),
    "Gather": lambda given, _: given[0][given[1]],
}  # fmt: skip
