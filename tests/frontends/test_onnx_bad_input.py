"""Models that are wrong, through the command: one clear error that names the node, and nothing written."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from stripe.cli.start import opt
from tests.frontends.test_onnx import conv_net, model

Capture = pytest.CaptureFixture[str]
Write = Callable[[Path], object]


def node(kind: str, *inputs: str, to: str = "y", **attributes: Any) -> NodeProto:
    return helper.make_node(kind, inputs, [to], name=f"the_{kind}_{to}", **attributes)


def saved(found: ModelProto) -> Write:
    return lambda path: path.write_bytes(found.SerializeToString())


def declared() -> ModelProto:
    net = conv_net()
    net.graph.value_info.append(helper.make_tensor_value_info("r", TensorProto.FLOAT, [1, 4, 9, 9]))
    return net


def short_bytes() -> ModelProto:
    net = conv_net()
    net.graph.initializer[0].raw_data = b"abc"
    return net


def opset(version: int, domain: str = "") -> ModelProto:
    net = model(node("Relu", "x"))
    net.opset_import[0].version, net.opset_import[0].domain = version, domain
    return net


def symbolic() -> ModelProto:
    net = conv_net()
    net.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    return net


def external(path: Path, location: str = "w.bin", data: bytes | None = None) -> None:
    """A model with its weights beside it, which then lie elsewhere or have other bytes."""
    onnx.save(conv_net(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    found = onnx.load(path, load_external_data=False)
    for entry in found.graph.initializer[0].external_data:
        entry.value = location if entry.key == "location" else entry.value
    path.write_bytes(found.SerializeToString())
    if data is None:
        path.with_name("w.bin").unlink()
    else:
        path.with_name("w.bin").write_bytes(data)


def branch(*nodes: NodeProto, constant: TensorProto | None = None, inputs: Sequence[str] = ()) -> ModelProto:
    """A model whose branch has these nodes, and the output `o`."""
    out = helper.make_tensor_value_info("o", TensorProto.FLOAT, None)
    taken = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in inputs]
    graph = helper.make_graph(nodes, "then", taken, [out], [constant] if constant is not None else [])
    true = helper.make_node("Constant", [], ["c"], value=onnx.numpy_helper.from_array(np.array(True)))
    return model(true, node("If", "c", then_branch=graph, else_branch=graph))


def outside() -> TensorProto:
    """A tensor whose data lie in another folder."""
    found = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3])
    found.data_location = TensorProto.EXTERNAL
    found.external_data.add(key="location", value="../w.bin")
    return found


def twice(kind: str) -> ModelProto:
    net = conv_net()
    infos = getattr(net.graph, kind)
    infos.append(infos[0])
    return net


def pipe(path: Path) -> None:
    external(path)
    os.mkfifo(path.with_name("w.bin"))


def huge(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(1 << 31)


def sequence(kind: str, *places: int, **attributes: Any) -> ModelProto:
    """A node that takes places or sizes of a sequence of two tensors, or of the tensor itself."""
    taken = {"SplitToSequence": ["x"], "SequenceInsert": ["s", "x"]}.get(kind, ["s"])
    made = node(kind, *taken, "at", to="t", **attributes)
    last = node("SequenceAt", "t", "first") if kind != "SequenceAt" else node("Identity", "t")
    at = np.array(places if len(places) > 1 else sum(places), np.int64)
    return model(node("SequenceConstruct", "x", "x", to="s"), made, last, at=at, first=np.array(0, np.int64))


WHOLE = conv_net().SerializeToString()
CASES: dict[str, tuple[Write, tuple[str, ...]]] = {
    "truncated": (lambda path: path.write_bytes(WHOLE[: len(WHOLE) // 2]), ("no ONNX model, or a part of it",)),
    "corrupt": (lambda path: path.write_bytes(b"\xff" * 9 + WHOLE[9:]), ("no ONNX model, or a part of it",)),
    "no protobuf": (lambda path: path.write_bytes(b"a text"), ("no ONNX model",)),
    "empty": (lambda path: path.write_bytes(b""), ("no graph with outputs",)),
    "missing data": (external, ("initializer 'w'", "'w.bin' cannot be read")),
    "short data": (lambda path: external(path, data=b"short"), ("end after 5 of 432 bytes",)),
    "data outside": (
        lambda path: external(path, "../w.bin", b""), ("'../w.bin' lie outside of the model's folder",)
    ),
    "data by an absolute path": (
        lambda path: external(path, "/etc/passwd"), ("'/etc/passwd' lie outside of the model's folder",)
    ),
    "data by a name with a zero byte": (
        lambda path: external(path, "a\0b"), ("'a?b' lie outside of the model's folder",)
    ),
    "data in a pipe": (pipe, ("initializer 'w'", "'w.bin' cannot be read: no such file")),
    "data of a constant outside": (
        saved(model(helper.make_node("Constant", [], ["y"], name="the_constant", value=outside()))),
        ("node 'the_constant' (Constant)", "'../w.bin' lie outside of the model's folder"),
    ),
    "data of a branch outside": (
        saved(branch(node("Add", "x", "w", to="o"), constant=outside())),
        ("node 'the_If_y' (If)", "'../w.bin' lie outside of the model's folder"),
    ),
    "no maker in a branch": (
        saved(branch(node("Relu", "z", to="o"))), ("node 'the_Relu_o' (Relu)", "nothing makes its input 'z'")
    ),
    "no output of a branch": (
        saved(branch(node("Relu", "x", to="p"))), ("node 'the_If_y' (If)", "nothing makes the output 'o'")
    ),
    "cycle in a branch": (
        saved(branch(node("Add", "x", "o", to="a"), node("Relu", "a", to="o"))),
        ("node 'the_Add_a' (Add)", "the graph has a cycle"),
    ),
    "two inputs of a name": (saved(twice("input")), ("the input 'x' appears 2 times",)),
    "two outputs of a name": (saved(twice("output")), ("the output 'y' appears 2 times",)),
    "cycle": (
        saved(model(node("Add", "x", "b", to="a"), node("Relu", "a", to="b"))),
        ("node 'the_Add_a' (Add)", "the graph has a cycle"),
    ),
    "too few inputs": (saved(model(node("Add", "x"))), ("(Add)", "it has 1 inputs, and takes 2")),
    "too many inputs": (saved(model(node("Relu", "x", "x"))), ("(Relu)", "it has 2 inputs, and takes 1")),
    "a needed input": (saved(model(node("Clip", "", "x"))), ("(Clip)", "its input 'input' is left out")),
    "no type": (saved(model(node("EyeLike", "x", dtype=0))), ("'dtype' is 0, which is no type of elements",)),
    "two values of a name": (
        saved(branch(node("Relu", "x", to="o"), constant=onnx.numpy_helper.from_array(np.ones(1, np.float32), "x"))),
        ("its graph 'then' has an initializer 'x', and so is called a value around it", "rename one of them"),
    ),
    "place of a sequence": (
        saved(sequence("SequenceAt", 5)), ("(SequenceAt)", "position 5 lies outside of a sequence with 2 places")
    ),
    "place to erase": (saved(sequence("SequenceErase", -3)), ("(SequenceErase)", "position -3 lies outside")),
    "place to insert": (saved(sequence("SequenceInsert", -3)), ("(SequenceInsert)", "position -3 lies outside")),
    "parts of nothing": (saved(sequence("SplitToSequence", 0)), ("its parts of 0 do not make up",)),
    "parts of too much": (saved(sequence("SplitToSequence", 1, 700)), ("its parts of [1, 700] do not make up",)),
    "values of a branch": (
        saved(branch(node("Relu", "x", to="o"), inputs=["z"])), ("its graph 'then' takes 1 values, and gets 0",)
    ),
    "axis of parts": (
        saved(sequence("SplitToSequence", 1, axis=9)), ("its axis 9 is none of a tensor of rank 4",)
    ),
    "operator": (
        saved(model(node("Rellu", "x"))), ("node 'the_Rellu_y' (Rellu)", "unknown", "did you mean 'Relu'?")
    ),
    "domain": (
        saved(model(node("Relu", "x", domain="com.acme"))),
        ("node 'the_Relu_y' (com.acme::Relu)", "does not import its domain 'com.acme'"),
    ),
    "unknown domain": (
        saved(opset(1, "com.acme")), ("node 'the_Relu_y' (Relu)", "does not import its domain ''")
    ),
    "opset": (saved(opset(999)), ("opset 999 is unknown",)),
    "dimension": (saved(symbolic()), ("'batch' (dimension 0 of 'x')", "--dim batch=1")),
    "sizes asked for": (
        saved(model(node("ConvTranspose", "x", "w", output_shape=[-1, 4]), w=np.zeros((3, 4, 3, 3), np.float32))),
        ("node 'the_ConvTranspose_y' (ConvTranspose)", "its output_shape is [-1, 4]"),
    ),
    "contradicting shapes": (saved(conv_net(w=np.zeros((4, 5, 3, 3), np.float32))), ("node 'conv/1' (Conv)",)),
    "shape that the model says": (
        saved(declared()), ("node 'act' (Relu): error: its output 'r' is 1x4x4x4:fp32, and the model says",)
    ),
    "over 2 GiB": (huge, ("longer than 2147483647 bytes", "external data")),
    "bytes of a tensor": (saved(short_bytes()), ("initializer 'w': error: its bytes are no tensor",)),
    "no maker": (saved(model(node("Relu", "z"))), ("node 'the_Relu_y' (Relu)", "nothing makes its input 'z'")),
    "two makers": (
        saved(model(node("Relu", "x"), node("Neg", "x"))),
        ("node 'the_Neg_y' (Neg): error: 'y' is made twice",),
    ),
    "hostile names": (
        saved(model(helper.make_node("No\x1b[2J\nSuch", ["x"], ["y"], name="../\r\n\x00a"))),
        ("node '../???a' (No?[2J?Such)",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_clear_error_and_nothing_written(name: str, tmp_path: Path, capsys: Capture) -> None:
    write, words = CASES[name]
    path, out = tmp_path / "net.onnx", tmp_path / "out"
    write(path)
    assert opt([str(path), "--emit", "library", "-o", str(out)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"{path}: ") and error.count("error:") == 1 and "Traceback" not in error
    assert all(word in error for word in words), error
    assert "\x1b" not in error
    assert not out.exists()
