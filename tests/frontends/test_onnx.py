"""ONNX networks: programs, names, weights, operators of users, and models that are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from stripe.cli.start import opt, run
from stripe.frontends.frontend import ReadOptions, Source
from stripe.frontends.onnx import reader
from stripe.frontends.onnx.model import parse_model
from stripe.frontends.onnx.reader import import_model, program
from stripe.frontends.onnx.values import Array
from stripe.ir import StripeError
from stripe.onnx_backend import compile_model

Capture = pytest.CaptureFixture[str]

X = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
WEIGHTS = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)


def model(*nodes: onnx.NodeProto, opset: int = 17, **constants: np.ndarray) -> ModelProto:
    outputs = [helper.make_value_info(nodes[-1].output[0], onnx.TypeProto())]
    outputs[0].type.tensor_type.elem_type = TensorProto.FLOAT
    held = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(list(nodes), "g", [X], outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def conv_net(**given: np.ndarray) -> ModelProto:
    return model(
        helper.make_node("Conv", ["x", "w"], ["c"], name="conv/1", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"], name="act"),
        helper.make_node("GlobalAveragePool", ["r"], ["y"], name="pool"),
        **{"w": WEIGHTS, **given},
    )  # fmt: skip


def fails(found: ModelProto | bytes) -> str:
    data = found if isinstance(found, bytes) else found.SerializeToString()
    with pytest.raises(StripeError) as caught:
        program(import_model(parse_model(data, "m.onnx"), "m.onnx", ReadOptions()), "m.onnx")
    return str(caught.value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    onnx.save(conv_net(), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def test_the_reference_agrees(path: Path, capsys: Capture) -> None:
    assert run([str(path), "--random", "0", "--compare", "onnx"]) == 0
    assert run([str(path), "--engine", "c", "--compare", "onnx"]) == 0
    assert "agrees with onnx" in capsys.readouterr().out


@pytest.mark.parametrize("opset", [7, 9, 13, 14, 17])
def test_normalisations_are_those_of_inference(opset: int, tmp_path: Path, capsys: Capture) -> None:
    """The evaluator of onnx would take those before opset 14 for training."""
    rng = np.random.default_rng(5)
    held = {name: rng.uniform(0.5, 2, 3).astype(np.float32) for name in ("s", "b", "m", "v")}
    net = model(helper.make_node("BatchNormalization", ["x", *held], ["y"], name="n"), opset=opset, **held)
    onnx.save(net, tmp_path / "net.onnx")
    assert run([str(tmp_path / "net.onnx"), "--compare", "onnx"]) == 0
    assert "agrees with onnx" in capsys.readouterr().out


def test_the_first_layer_that_differs_comes_first(
    path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run([str(path), "--compare", "onnx", "--compare-layers"]) == 0
    assert "r: fp32(1, 4, 4, 4)" in capsys.readouterr().out
    evaluate = reader.run_model

    def wrong(found: ModelProto, given: Mapping[str, Array], outputs: list[str]) -> dict[str, Array]:
        results = evaluate(found, given, outputs)
        return {name: array if name == "c" else np.negative(array) for name, array in results.items()}

    monkeypatch.setattr(reader, "run_model", wrong)
    assert run([str(path), "--compare", "onnx", "--compare-layers"]) == 3
    text = capsys.readouterr().out
    assert "'c'" not in text and text.index("'r'") < text.index("'y'")
    assert run([str(path), "--compare-layers"]) == 2


def test_nodes_name_kernels_and_tags(path: Path, capsys: Capture) -> None:
    assert opt([str(path)]) == 0
    text = capsys.readouterr().out
    assert "#node_conv_1 #op_Conv" in text
    assert "// conv_1" in text
    assert "#const" in text


def test_the_network_as_tile_compiles(path: Path, tmp_path: Path, capsys: Capture) -> None:
    assert opt([str(path), "--emit", "tile"]) == 0
    tile = tmp_path / "net.tile"
    tile.write_text(capsys.readouterr().out)
    assert opt([str(tile)]) == 0


def test_random_weights_need_no_file(path: Path, capsys: Capture) -> None:
    assert opt([str(path), "--random-weights"]) == 0
    first = capsys.readouterr().out
    assert opt([str(path), "--random-weights"]) == 0
    assert capsys.readouterr().out == first
    assert run([str(path), "--random-weights", "--compare", "onnx"]) == 0


def test_symbolic_sizes_are_bound(tmp_path: Path, capsys: Capture) -> None:
    net = conv_net()
    net.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    onnx.save(net, tmp_path / "net.onnx")
    assert opt([str(tmp_path / "net.onnx")]) == 1
    assert "sizes are unknown: 'N' (dimension 0 of 'x')" in capsys.readouterr().err
    assert opt([str(tmp_path / "net.onnx"), "--dim", "N=2"]) == 0
    assert opt([str(tmp_path / "net.onnx"), "--dim", "N=2", "--dim", "M=2"]) == 2
    assert "--dim names 'M', which no input has" in capsys.readouterr().err


def test_operators_of_users_come_first(path: Path, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "relu.tile.j2").write_text(
        "## operators: Relu\nfunction {{ name }}(X) -> (Y) {\n  Y = X < 0 ? 0.125 * X : X;\n}\n"
    )
    assert opt([str(path), "--operators", str(folder), "--emit", "tile"]) == 0
    assert "0.125" in capsys.readouterr().out


def test_all_unsupported_nodes_are_reported(capsys: Capture) -> None:
    net = model(
        helper.make_node("Relu", ["x"], ["a"], name="fine"),
        helper.make_node("NoSuchThing", ["a"], ["b"], name="first"),
        helper.make_node("Gather", ["x", "x"], ["c"], name="second"),
        helper.make_node("Rellu", ["x"], ["y"], name="third"),
    )  # fmt: skip
    text = fails(net)
    assert "node 'first' (NoSuchThing): error: the operator is unknown" in text
    assert "node 'third' (Rellu)" in text and "did you mean 'Relu'?" in text
    assert "fine" not in text


def test_constants_fold_and_control_flow_unrolls() -> None:
    branch = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["t"])], "then", [], [helper.make_value_info("t", onnx.TypeProto())]
    )
    other = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["e"])], "else", [], [helper.make_value_info("e", onnx.TypeProto())]
    )
    net = model(
        helper.make_node("Not", ["no"], ["yes"]),
        helper.make_node("If", ["yes"], ["y"], then_branch=branch, else_branch=other),
        no=np.asarray(False),
    )
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
    assert np.array_equal(compile_model(net, "interp").run({"x": x})["y"], np.maximum(x, 0))


def test_constants_of_narrow_types_are_told_apart() -> None:
    """Each turn of a loop has a constant of its own, which is gone after the turn; a later one took its name."""
    body = helper.make_graph(
        [
            helper.make_node("Cast", ["turn"], ["c"], to=TensorProto.INT4),
            helper.make_node("DequantizeLinear", ["c", "scale"], ["d"]),
            helper.make_node("Add", ["sum", "d"], ["next"]),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info(name, type, [])
            for name, type in (
                ("turn", TensorProto.INT64),
                ("go", TensorProto.BOOL),
                ("sum", TensorProto.FLOAT),
            )
        ],
        [
            helper.make_tensor_value_info(name, type, [])
            for name, type in (("on", TensorProto.BOOL), ("next", TensorProto.FLOAT))
        ],
    )
    net = model(
        helper.make_node("ReduceMax", ["x"], ["scale"], keepdims=0),
        helper.make_node("Loop", ["turns", "yes", "scale"], ["y"], body=body),
        opset=21,
        turns=np.asarray(100), yes=np.asarray(True),
    )  # fmt: skip
    x = np.ones((1, 3, 8, 8), np.float32)
    expected = 1 + sum((turn + 8) % 16 - 8 for turn in range(100))
    assert compile_model(net, "interp").run({"x": x})["y"] == expected


def test_external_data(path: Path, capsys: Capture) -> None:
    """The program holds the bytes of the other file, and so does the model that the reference evaluates."""
    onnx.save(conv_net(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    found = reader.load(Source(path.read_bytes(), str(path), "onnx"), ReadOptions()).program
    assert np.array_equal(np.frombuffer(found.constants[0].data, np.float32), WEIGHTS.reshape(-1))
    assert run([str(path), "--compare", "onnx"]) == 0
    assert "agrees with onnx" in capsys.readouterr().out


def test_hostile_names(tmp_path: Path) -> None:
    hostile = 'a"];}\n// \x1b[2J' + "../" * 9
    net = model(
        helper.make_node("Relu", ["x"], [hostile], name=hostile), helper.make_node("Neg", [hostile], ["y"])
    )
    found = program(import_model(parse_model(net.SerializeToString(), "m"), "m", ReadOptions()), "m")
    assert "\x1b" not in str(found)
    assert "\x1b" not in fails(model(helper.make_node("Nothing", ["x"], ["y"], name=hostile)))


def test_random_weights_leave_the_constants_alone_on_which_sizes_depend() -> None:
    """Scales of a Resize, as they are and as the product of constants; its own weights are drawn."""
    weights = np.random.default_rng(2).standard_normal((2, 3, 1, 1)).astype(np.float32)
    net = model(
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Mul", ["half", "four"], ["scales"]),
        helper.make_node("Resize", ["c", "", "scales"], ["r"]),
        helper.make_node("Resize", ["r", "", "plain"], ["y"]),
        w=weights,
        half=np.array([0.5, 0.5, 0.5, 0.5], np.float32), four=np.array([2, 2, 4, 4], np.float32),
        plain=np.array([1, 1, 0.5, 1], np.float32),
    )  # fmt: skip
    found = program(import_model(net, "m.onnx", ReadOptions(random_weights=True)), "m.onnx")
    assert found.outputs[0].sizes == (1, 2, 8, 16)
    (drawn,) = (item for item in found.constants if item.name == "w")
    assert drawn.data != weights.tobytes() and len(drawn.data) == weights.nbytes
