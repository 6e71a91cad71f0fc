"""The workloads as ONNX models: images and filters as four axes, weights as constants."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from benchmarks.cpu.networks import Network
from benchmarks.cpu.workloads import Data, Node, Workload

_OPS = {
    "matmul": "MatMul", "i8": "MatMulInteger", "add": "Add", "relu": "Relu", "softmax": "Softmax", "conv": "Conv",
    "depthwise": "Conv", "maxpool": "MaxPool", "layernorm": "LayerNormalization", "scale": "Mul",
    "transposed": "MatMul",
}  # fmt: skip


def model(workload: Workload | Network, data: Data) -> tuple[Any, Data]:
    """The model, and the data of its inputs."""
    onnx: Any = importlib.import_module("onnx")
    if isinstance(workload, Network):
        return onnx.shape_inference.infer_shapes(onnx.load(workload.path)), data
    helper, from_array = onnx.helper, onnx.numpy_helper.from_array
    images = any(node.op in ("conv", "depthwise", "maxpool") for node in workload.graph)
    arrays = {name: _as_onnx(name, array, images=images) for name, array in data.items()}
    constants = [from_array(arrays[name], name) for name in workload.weights]
    nodes: list[Any] = []
    for node in workload.graph:
        names = list(node.inputs)
        if node.op == "scale":
            constants.append(from_array(np.array(node.settings["factor"], np.float32), "factor"))
            names.append("factor")
        if node.op == "transposed":
            *outer, rows, columns = range(arrays[names[1]].ndim)
            nodes.append(helper.make_node("Transpose", [names[1]], ["turned"], perm=[*outer, columns, rows]))
            names[1] = "turned"
        nodes.append(helper.make_node(_OPS[node.op], names, [node.out], **_settings(node, arrays)))
    given = {name: array for name, array in arrays.items() if name not in workload.weights}
    kind = onnx.TensorProto.INT8 if workload.dtype == "int8" else onnx.TensorProto.FLOAT
    out_kind = onnx.TensorProto.INT32 if workload.dtype == "int8" else onnx.TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info(name, kind, array.shape) for name, array in given.items()]
    output = helper.make_tensor_value_info(workload.output, out_kind, None)
    graph = helper.make_graph(nodes, workload.key, inputs, [output], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(made), given


def result(array: Any) -> np.ndarray:
    """An output with its channels last."""
    found = np.asarray(array)
    return found[0].transpose(1, 2, 0) if found.ndim == 4 else found


def _settings(node: Node, arrays: Data) -> dict[str, Any]:
    settings = node.settings
    if node.op in ("conv", "depthwise"):
        groups = {"group": arrays[node.inputs[0]].shape[1]} if node.op == "depthwise" else {}
        return {"strides": [settings["stride"]] * 2, "pads": [settings["pad"]] * 4, **groups}
    if node.op == "maxpool":
        return {"kernel_shape": [settings["size"]] * 2, "strides": [settings["stride"]] * 2}
    return {"softmax": {"axis": -1}, "layernorm": {"axis": -1, "epsilon": 1e-5}}.get(node.op, {})


def _as_onnx(name: str, array: np.ndarray, *, images: bool) -> np.ndarray:
    if not images:
        return array
    if name[0] in "KL":
        array = array[None, None] if array.ndim == 2 else array[:, :, None] if array.ndim == 3 else array
        return np.ascontiguousarray(array.transpose(3, 2, 0, 1))
    return (
        array.reshape(1, -1, 1, 1)
        if array.ndim == 1
        else np.ascontiguousarray(array.transpose(2, 0, 1)[None])
    )
