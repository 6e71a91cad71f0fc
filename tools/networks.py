"""Networks with the shapes of published ones and drawn weights: `python -m tools.networks NAME [-o FILE]`.

`--folded` takes normalisations of convolutions into their weights, as networks are deployed. `--without-weights` leaves
the numbers out: a small file, which `--random-weights` reads and sweeps do.

Sources of the shapes: MobileNetV2 (Sandler et al. 2018, table 2), EfficientNet-lite0 (tensorflow/tpu, without squeeze
and excitation), ResNet-18 and ResNet-50 (He et al. 2015, table 1), BERT-base (Devlin et al. 2018), GPT-2 small (Radford
et al. 2019), ViT-S/16 (Touvron et al. 2020), U-Net (Ronneberger et al. 2015, half the channels), a tagger of two
directions (Huang et al. 2015).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

OPSET = 20
Rows = Sequence[tuple[int, int, int, int, int]]
"""Expansion, channels, repeats, stride and kernel of inverted bottlenecks."""


@dataclass(slots=True)
class Builder:
    """A graph under construction. Each method gives the name of a value."""

    seed: int = 0
    folded: bool = False
    """Whether convolutions have a bias instead of a normalisation behind them."""
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    constants: list[TensorProto] = field(default_factory=list[TensorProto])
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list[onnx.ValueInfoProto])

    def input(self, name: str, sizes: Sequence[int], element: int = TensorProto.FLOAT) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, element, list(sizes)))
        return name

    def constant(self, array: np.ndarray) -> str:
        name = f"w{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *sizes: int, fan: int | None = None) -> str:
        generator = np.random.default_rng(self.seed + len(self.constants))
        scale = np.sqrt(2.0 / (fan or int(np.prod(sizes[1:])) or 1))
        return self.constant((generator.standard_normal(sizes) * scale).astype(np.float32))

    def ints(self, *values: int) -> str:
        return self.constant(np.asarray(values, np.int64))

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: object) -> str:
        names = [f"{kind.lower()}{len(self.nodes)}" + (f"_{k}" if k else "") for k in range(outputs)]
        self.nodes.append(
            helper.make_node(kind, inputs, names, name=f"{kind}_{len(self.nodes)}", **attributes)
        )
        return names[0]

    def conv(
        self, x: str, cin: int, cout: int, k: int, stride: int = 1, group: int = 1, act: str = ""
    ) -> str:
        """Convolution, batch normalisation, activation."""
        fan = cin // group * k * k
        bias = [self.weight(cout)] if self.folded else []
        y = self.op(
            "Conv", x, self.weight(cout, cin // group, k, k, fan=fan), *bias, kernel_shape=[k, k],
            pads=[k // 2] * 4, strides=[stride, stride], group=group,
        )  # fmt: skip
        if not self.folded:
            ones, zeros = np.ones(cout, np.float32), np.zeros(cout, np.float32)
            y = self.op("BatchNormalization", y, *map(self.constant, (ones, zeros, zeros, ones)))
        if act == "relu6":
            return self.op("Clip", y, self.constant(np.float32(0)), self.constant(np.float32(6)))
        return self.op("Relu", y) if act else y

    def dense(self, x: str, cin: int, cout: int) -> str:
        y = self.op("MatMul", x, self.weight(cin, cout, fan=cin))
        return self.op("Add", y, self.weight(cout))

    def norm(self, x: str, size: int) -> str:
        scale, bias = np.ones(size, np.float32), np.zeros(size, np.float32)
        return self.op("LayerNormalization", x, self.constant(scale), self.constant(bias), epsilon=1e-5)

    def model(self, *outputs: str) -> ModelProto:
        values = [helper.make_value_info(name, onnx.TypeProto()) for name in outputs]
        graph = helper.make_graph(self.nodes, "network", self.inputs, values, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def _classifier(b: Builder, x: str, channels: int, classes: int = 1000) -> ModelProto:
    y = b.op("Flatten", b.op("GlobalAveragePool", x))
    return b.model(b.op("Gemm", y, b.weight(channels, classes, fan=channels), b.weight(classes)))


def digits() -> ModelProto:
    """The small network of examples/digits.onnx."""
    b = Builder(folded=True)
    x = b.conv(b.input("image", (1, 1, 28, 28)), 1, 8, 3, 2, act="relu")
    return _classifier(b, b.conv(x, 8, 16, 3, 2, act="relu"), 16, 10)


def resnet50(
    size: int = 224, *, folded: bool = False, widths: Sequence[int] = (64, 128, 256, 512)
) -> ModelProto:
    b = Builder(folded=folded)
    cin = widths[0]
    x = b.conv(b.input("image", (1, 3, size, size)), 3, cin, 7, 2, act="relu")
    x = b.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, (width, repeats) in enumerate(zip(widths, (3, 4, 6, 3), strict=True)):
        for number in range(repeats):
            step = 2 if stage and not number else 1
            y = b.conv(b.conv(x, cin, width, 1, act="relu"), width, width, 3, step, act="relu")
            y = b.conv(y, width, 4 * width, 1)
            x = b.op("Relu", b.op("Add", y, x if number else b.conv(x, cin, 4 * width, 1, step)))
            cin = 4 * width
    return _classifier(b, x, cin)


def _inverted(b: Builder, size: int, stem: int, rows: Rows, last: int) -> ModelProto:
    x, cin = b.conv(b.input("image", (1, 3, size, size)), 3, stem, 3, 2, act="relu6"), stem
    for expand, cout, repeats, stride, k in rows:
        for number in range(repeats):
            step = stride if number == 0 else 1
            y = b.conv(x, cin, cin * expand, 1, act="relu6") if expand > 1 else x
            y = b.conv(y, cin * expand, cin * expand, k, step, cin * expand, "relu6")
            y = b.conv(y, cin * expand, cout, 1)
            x, cin = b.op("Add", x, y) if step == 1 and cin == cout else y, cout
    return _classifier(b, b.conv(x, cin, last, 1, act="relu6"), last)


def mobilenet_v2(size: int = 224, *, folded: bool = False) -> ModelProto:
    rows = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3), (6, 96, 3, 1, 3), (6, 160, 3, 2, 3),
            (6, 320, 1, 1, 3)]  # fmt: skip
    return _inverted(Builder(folded=folded), size, 32, rows, 1280)


def efficientnet_lite0(size: int = 224, *, folded: bool = False) -> ModelProto:
    rows = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
            (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)]  # fmt: skip
    return _inverted(Builder(folded=folded), size, 32, rows, 1280)


def _attention(
    b: Builder, q: str, k: str, v: str, tokens: int, keys: int, width: int, heads: int, mask: str = ""
) -> str:
    depth = width // heads
    split = [b.op("Reshape", x, b.ints(1, n, heads, depth)) for x, n in ((q, tokens), (k, keys), (v, keys))]
    q, k, v = (
        b.op("Transpose", x, perm=p)
        for x, p in zip(split, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
    )
    scores = b.op("Mul", b.op("MatMul", q, k), b.constant(np.float32(depth**-0.5)))
    scores = b.op("Add", scores, mask) if mask else scores
    y = b.op("Transpose", b.op("MatMul", b.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return b.dense(b.op("Reshape", y, b.ints(1, tokens, width)), width, width)


def _block(b: Builder, x: str, tokens: int, width: int, heads: int, *, first: bool, mask: str = "") -> str:
    """A layer of a transformer, normalised first or last."""
    y = b.norm(x, width) if first else x
    y = _attention(b, *(b.dense(y, width, width) for _ in range(3)), tokens, tokens, width, heads, mask)
    x = b.op("Add", x, y)
    x = x if first else b.norm(x, width)
    y = b.norm(x, width) if first else x
    y = b.dense(b.op("Gelu", b.dense(y, width, 4 * width)), 4 * width, width)
    x = b.op("Add", x, y)
    return x if first else b.norm(x, width)


def bert_base(layers: int = 12, tokens: int = 128, width: int = 768, words: int = 30522) -> ModelProto:
    b = Builder()
    ids, mask = b.input("ids", (1, tokens), TensorProto.INT64), b.input("mask", (1, 1, 1, tokens))
    x = b.op("Add", b.op("Gather", b.weight(words, width, fan=1), ids), b.weight(tokens, width, fan=1))
    x = b.norm(x, width)
    for _ in range(layers):
        x = _block(b, x, tokens, width, width // 64, first=False, mask=mask)
    return b.model(x)


def gpt2_step(layers: int = 12, past: int = 128, width: int = 768, words: int = 50257) -> ModelProto:
    """One token; the keys and values of those before come as inputs and go, with its own, as outputs."""
    b = Builder()
    x = b.op("Gather", b.weight(words, width, fan=1), b.input("id", (1, 1), TensorProto.INT64))
    caches: list[str] = []
    for layer in range(layers):
        y = b.norm(x, width)
        q, k, v = (b.dense(y, width, width) for _ in range(3))
        k, v = (
            b.op("Concat", b.input(f"past_{name}{layer}", (1, past, width)), value, axis=1)
            for name, value in (("key", k), ("value", v))
        )
        caches += [k, v]
        x = b.op("Add", x, _attention(b, q, k, v, 1, past + 1, width, width // 64))
        y = b.op("Gelu", b.dense(b.norm(x, width), width, 4 * width), approximate="tanh")
        x = b.op("Add", x, b.dense(y, 4 * width, width))
    return b.model(b.op("MatMul", b.norm(x, width), b.weight(width, words, fan=width)), *caches)


def vit_small(layers: int = 12, size: int = 224, width: int = 384) -> ModelProto:
    b = Builder()
    side = size // 16
    x = b.op("Conv", b.input("image", (1, 3, size, size)), b.weight(width, 3, 16, 16), strides=[16, 16])
    x = b.op("Transpose", b.op("Reshape", x, b.ints(1, width, side * side)), perm=[0, 2, 1])
    x = b.op("Concat", b.weight(1, 1, width), x, axis=1)
    x = b.op("Add", x, b.weight(side * side + 1, width))
    for _ in range(layers):
        x = _block(b, x, side * side + 1, width, width // 64, first=True)
    x = b.op("Gather", b.norm(x, width), b.constant(np.asarray(0)), axis=1)
    return b.model(b.dense(x, width, 1000))


def unet(size: int = 256, channels: int = 32, depth: int = 4) -> ModelProto:
    b = Builder()
    x, cin, skips = b.input("image", (1, 3, size, size)), 3, list[str]()
    for level in range(depth):
        cout = channels << level
        x, cin = b.conv(b.conv(x, cin, cout, 3, act="relu"), cout, cout, 3, act="relu"), cout
        skips.append(x)
        x = b.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = b.conv(x, cin, 2 * cin, 3, act="relu")
    for level in reversed(range(depth)):
        cout = channels << level
        scales = b.constant(np.asarray([1, 1, 2, 2], np.float32))
        x = b.op(
            "Resize",
            x,
            "",
            scales,
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
        x = b.op("Concat", b.conv(x, 2 * cout, cout, 1, act="relu"), skips[level], axis=1)
        x = b.conv(x, 2 * cout, cout, 3, act="relu")
    return b.model(b.op("Conv", x, b.weight(2, channels, 1, 1)))


def lstm_tagger(
    tokens: int = 32, width: int = 128, hidden: int = 128, words: int = 10000, tags: int = 48
) -> ModelProto:
    b = Builder()
    x = b.op("Gather", b.weight(words, width, fan=1), b.input("ids", (tokens, 1), TensorProto.INT64))
    for cin in (width, 2 * hidden):
        weights = (b.weight(2, 4 * hidden, cin, fan=cin), b.weight(2, 4 * hidden, hidden, fan=hidden))
        y = b.op("LSTM", x, *weights, b.weight(2, 8 * hidden), hidden_size=hidden, direction="bidirectional")
        x = b.op("Reshape", b.op("Transpose", y, perm=[0, 2, 1, 3]), b.ints(tokens, 1, 2 * hidden))
    return b.model(b.op("Softmax", b.dense(x, 2 * hidden, tags), axis=-1))


def resnet18_int8(size: int = 224) -> ModelProto:
    b = Builder()
    generator = np.random.default_rng(0)
    scale, zero = b.constant(np.float32(0.05)), b.constant(np.uint8(128))
    narrow, none = b.constant(np.float32(0.01)), b.constant(np.int8(0))

    def conv(x: str, cin: int, cout: int, k: int, stride: int = 1) -> str:
        w = b.constant(generator.integers(-20, 21, (cout, cin, k, k)).astype(np.int8))
        bias = b.constant(generator.integers(-500, 501, cout).astype(np.int32))
        return b.op(
            "QLinearConv", x, scale, zero, w, narrow, none, scale, zero, bias, kernel_shape=[k, k], pads=[k // 2] * 4,
            strides=[stride, stride],
        )  # fmt: skip

    def relu(x: str) -> str:
        return b.op("Max", x, zero)

    def add(x: str, y: str) -> str:
        wide = [b.op("DequantizeLinear", value, scale, zero) for value in (x, y)]
        return b.op("QuantizeLinear", b.op("Add", *wide), scale, zero)

    x = b.op("QuantizeLinear", b.input("image", (1, 3, size, size)), scale, zero)
    x, cin = (
        b.op("MaxPool", relu(conv(x, 3, 64, 7, 2)), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
        64,
    )
    for cout in (64, 128, 256, 512):
        for number in range(2):
            step = 2 if number == 0 and cout > 64 else 1
            y = conv(relu(conv(x, cin, cout, 3, step)), cout, cout, 3)
            x, cin = relu(add(conv(x, cin, cout, 1, step) if step == 2 else x, y)), cout
    return _classifier(b, b.op("DequantizeLinear", x, scale, zero), 512)


def without_weights(model: ModelProto) -> ModelProto:
    """The model with floats by their names and sizes alone: their numbers are said to lie in a file left out."""
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and tensor.dims:
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="left-out")
    return model


NETWORKS: dict[str, Callable[[], ModelProto]] = {
    "mobilenet_v2": mobilenet_v2, "efficientnet_lite0": efficientnet_lite0, "bert_base": bert_base,
    "gpt2_step": gpt2_step, "vit_small": vit_small, "unet": unet, "lstm_tagger": lstm_tagger,
    "resnet18_int8": resnet18_int8, "resnet50": resnet50,
}  # fmt: skip
EXAMPLES: dict[str, Callable[[], ModelProto]] = {"digits": digits}
FOLDED: dict[str, Callable[[], ModelProto]] = {
    "mobilenet_v2": partial(mobilenet_v2, folded=True), "resnet50": partial(resnet50, folded=True),
    "efficientnet_lite0": partial(efficientnet_lite0, folded=True),
}  # fmt: skip


def main() -> None:
    """Writes networks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="+", choices={**NETWORKS, **EXAMPLES}, metavar="NAME")
    parser.add_argument("-o", dest="path", type=Path, help="file, or for several networks their folder")
    parser.add_argument(
        "--folded", action="store_true", help="normalisations of convolutions in their weights"
    )
    parser.add_argument("--without-weights", action="store_true", help="leave the numbers out")
    options = parser.parse_args()
    for name in options.names:
        build = {**NETWORKS, **EXAMPLES}[name]
        if options.folded:
            build = FOLDED.get(name, build)
        model = without_weights(build()) if options.without_weights else build()
        path = options.path or Path("out")
        if path.suffix != ".onnx":
            path = path / f"{name}.onnx"
        elif options.names[1:]:
            parser.error("several networks need a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(model.SerializeToString())


if __name__ == "__main__":
    main()
