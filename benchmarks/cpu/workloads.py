"""The workloads: Tile text, graph for the peers, data. This needs numpy alone: the processes of the peers read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

Data = dict[str, np.ndarray]
"""Arrays by the names of tensors. Images are rows, columns, channels; filters rows, columns, channels in, then out."""


@dataclass(frozen=True)
class Node:
    """An operation of a graph: `conv`, `depthwise`, `matmul`, `transposed` (the second matrix), `i8`, `add`, `relu`,
    `maxpool`, `softmax`, `layernorm`, `scale`. `settings` are stride, pad, size or factor."""

    op: str
    out: str
    inputs: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Workload:
    """One row. `shapes` are the inputs, of which `weights` are constant; `dtype` is that of all of them."""

    key: str
    title: str
    tile: str
    shapes: Mapping[str, tuple[int, ...]]
    weights: tuple[str, ...]
    graph: tuple[Node, ...]
    flops: int = 0
    bytes: int = 0
    dtype: str = "float32"

    @property
    def unit(self) -> str:
        return "GFLOP/s" if self.flops else "GB/s"

    @property
    def work(self) -> float:
        """Operations, or bytes, in units of 10^9."""
        return (self.flops or self.bytes) / 1e9

    @property
    def output(self) -> str:
        return self.graph[-1].out

    def data(self) -> Data:
        """The same random inputs for everyone."""
        made = np.random.default_rng(0)
        if self.dtype == "int8":
            return {name: made.integers(-8, 8, shape, np.int8) for name, shape in self.shapes.items()}
        return {name: made.standard_normal(shape, np.float32) * 0.5 for name, shape in self.shapes.items()}


def _matmul(key: str, m: int, n: int, k: int) -> Workload:
    title = f"matmul {m}^3" if m == n == k else f"matmul {m}x{k}x{n}"
    tile = f"function (A[M={m}, K={k}], B[K, N={n}]) -> (O) {{ O[i, j : M, N] = +(A[i, k] * B[k, j]); }}"
    shapes = {"A": (m, k), "B": (k, n)}
    return Workload(key, title, tile, shapes, (), (Node("matmul", "O", ("A", "B")),), flops=2 * m * n * k)


def _conv(
    key: str,
    title: str,
    size: int,
    ci: int,
    co: int,
    k: int,
    stride: int = 1,
    pad: int = 0,
    *,
    bias: bool = False,
) -> Workload:
    out = (size + 2 * pad - k) // stride + 1
    at = f"I[{stride}*y + i - {pad}, {stride}*x + j - {pad}, c]"
    sizes = f"I[H={size}, W={size}, CI={ci}], K[R={k}, S={k}, CI, CO={co}]"
    body = f"[y, x, o : {out}, {out}, CO] = +({at} * K[i, j, c, o]);"
    shapes: dict[str, tuple[int, ...]] = {"I": (size, size, ci), "K": (k, k, ci, co)}
    node = Node("conv", "T" if bias else "O", ("I", "K"), {"stride": stride, "pad": pad})
    flops = 2 * out * out * co * ci * k * k
    if not bias:
        tile = f"function ({sizes}) -> (O) {{ O{body} }}"
        return Workload(key, title, tile, shapes, ("K",), (node,), flops=flops)
    tile = f"function ({sizes}, B[CO]) -> (O) {{ T{body} O = relu(T + B); }}"
    graph = (node, Node("add", "U", ("T", "B")), Node("relu", "O", ("U",)))
    return Workload(key, title, tile, shapes | {"B": (co,)}, ("K", "B"), graph, flops=flops)


def _chain(key: str, k: int) -> Workload:
    pad = k // 2
    at = f"y + i - {pad}, x + j - {pad}, c"
    tile = (
        f"function (I[H=64, W=64, C=128], K[R={k}, S={k}, C, C], L[R, S, C, C]) -> (O) {{ "
        f"T[y, x, o : H, W, C] = +(I[{at}] * K[i, j, c, o]); O[y, x, o : H, W, C] = +(T[{at}] * L[i, j, c, o]); }}"
    )
    filters = (k, k, 128, 128)
    graph = tuple(
        Node("conv", out, (source, name), {"stride": 1, "pad": pad})
        for out, source, name in (("T", "I", "K"), ("O", "T", "L"))
    )
    return Workload(
        key, f"two {k}x{k} convs 64x64x128", tile, {"I": (64, 64, 128), "K": filters, "L": filters}, ("K", "L"), graph,
        flops=2 * 2 * 64 * 64 * 128 * 128 * k * k,
    )  # fmt: skip


def _pool(key: str, k: int) -> Workload:
    out = (112 - k) // 2 + 1
    tile = (
        f"function (I[H=112, W=112, C=64]) -> (O) {{ O[y, x, c : {out}, {out}, C] = >(I[2*y + i, 2*x + j, c]), "
        f"i < {k}, j < {k}; }}"
    )
    node = Node("maxpool", "O", ("I",), {"size": k, "stride": 2})
    size = 4 * 64 * (112 * 112 + out * out)
    return Workload(
        key, f"max-pool {k}x{k} s2 112x112x64", tile, {"I": (112, 112, 64)}, (), (node,), bytes=size
    )


def _residual() -> Workload:
    tile = """function (X[H=56, W=56, C=256], K1[C, D=64], B1[D], K2[R=3, S=3, D, D], B2[D], K3[D, C], B3[C]) -> (O) {
  T1[y, x, o : H, W, D] = +(X[y, x, c] * K1[c, o]);
  R1 = relu(T1 + B1);
  T2[y, x, o : H, W, D] = +(R1[y + i - 1, x + j - 1, c] * K2[i, j, c, o]);
  R2 = relu(T2 + B2);
  T3[y, x, o : H, W, C] = +(R2[y, x, c] * K3[c, o]);
  O = relu(T3 + B3 + X);
}"""
    graph = (
        Node("conv", "T1", ("X", "K1"), {"stride": 1, "pad": 0}), Node("add", "U1", ("T1", "B1")),
        Node("relu", "R1", ("U1",)),
        Node("conv", "T2", ("R1", "K2"), {"stride": 1, "pad": 1}), Node("add", "U2", ("T2", "B2")),
        Node("relu", "R2", ("U2",)),
        Node("conv", "T3", ("R2", "K3"), {"stride": 1, "pad": 0}), Node("add", "U3", ("T3", "B3")),
        Node("add", "S", ("U3", "X")), Node("relu", "O", ("S",)),
    )  # fmt: skip
    shapes: dict[str, tuple[int, ...]] = {
        "X": (56, 56, 256), "K1": (256, 64), "B1": (64,), "K2": (3, 3, 64, 64), "B2": (64,), "K3": (64, 256),
        "B3": (256,),
    }  # fmt: skip
    flops = 2 * 56 * 56 * (256 * 64 * 2 + 9 * 64 * 64)
    return Workload("W17", "residual block of ResNet-50", tile, shapes, tuple(shapes)[1:], graph, flops=flops)


def _attention() -> Workload:
    tile = """function (Q[H=12, T=512, D=64], K[H, S=512, D], V[H, S, E=64]) -> (O) {
  QK[h, t, s : H, T, S] = +(Q[h, t, d] * K[h, s, d]);
  SCALED = QK * 0.125;
  M[h, t, 0 : H, T, 1] = >(SCALED[h, t, s]);
  P = exp(SCALED - M);
  SUM[h, t, 0 : H, T, 1] = +(P[h, t, s]);
  W = P / SUM;
  O[h, t, e : H, T, E] = +(W[h, t, s] * V[h, s, e]);
}"""
    graph = (
        Node("transposed", "QK", ("Q", "K")), Node("scale", "SC", ("QK",), {"factor": 0.125}),
        Node("softmax", "W", ("SC",)), Node("matmul", "O", ("W", "V")),
    )  # fmt: skip
    shape = (12, 512, 64)
    return Workload(
        "W16", "attention 12 heads, 512 tokens, 64 wide", tile, dict.fromkeys("QKV", shape), (), graph,
        flops=2 * 2 * 12 * 512 * 512 * 64,
    )  # fmt: skip


def _plain(
    key: str, title: str, tile: str, shapes: Mapping[str, tuple[int, ...]], node: Node, *, flops: int = 0,
    weights: tuple[str, ...] = (), dtype: str = "float32",
) -> Workload:  # fmt: skip
    moved = 0 if flops else 4 * 2 * prod(shapes["X"])
    return Workload(key, title, tile, shapes, weights, (node,), flops=flops, bytes=moved, dtype=dtype)


WORKLOADS: tuple[Workload, ...] = (
    _matmul("W1a", 512, 512, 512),
    _matmul("W1b", 1024, 1024, 1024),
    _matmul("W1c", 2048, 2048, 2048),
    _matmul("W2", 1000, 333, 777),
    _conv("W3", "conv 3x3 56x56 64 to 64", 56, 64, 64, 3, 1, 1),
    _conv("W4", "conv 1x1 56x56 256 to 64", 56, 256, 64, 1),
    _conv("W5", "conv 7x7 s2 224x224 3 to 64", 224, 3, 64, 7, 2, 3),
    _plain(
        "W6", "depthwise 3x3 112x112x32",
        "function (I[H=112, W=112, C=32], K[R=3, S=3, C]) -> (O) "
        "{ O[y, x, c : H, W, C] = +(I[y + i - 1, x + j - 1, c] * K[i, j, c]); }",
        {"I": (112, 112, 32), "K": (3, 3, 32)}, Node("depthwise", "O", ("I", "K"), {"stride": 1, "pad": 1}),
        flops=2 * 9 * 112 * 112 * 32, weights=("K",),
    ),
    _chain("W7a", 3),
    _chain("W7b", 1),
    _conv("W8a", "conv 3x3 s2 225x225 3 to 32", 225, 3, 32, 3, 2),
    _conv("W8b", "conv 3x3 258x258 16 to 256", 258, 16, 256, 3),
    _pool("W9a", 2),
    _pool("W9b", 3),
    _plain(
        "W10", "softmax 1024x1024", "function (X[M=1024, N=1024]) -> (O) { O = builtin_softmax(X, M, N); }",
        {"X": (1024, 1024)}, Node("softmax", "O", ("X",)),
    ),
    _conv("W11", "conv 3x3 + bias + ReLU", 56, 64, 64, 3, 1, 1, bias=True),
    _plain(
        "W12", "batched matmul 16x128x64x128",
        "function (A[B=16, M=128, K=64], C[B, K, N=128]) -> (O) { O[b, i, j : B, M, N] = +(A[b, i, k] * C[b, k, j]); }",
        {"A": (16, 128, 64), "C": (16, 64, 128)}, Node("matmul", "O", ("A", "C")), flops=2 * 16 * 128 * 64 * 128,
    ),
    _plain(
        "W13", "layer norm 512x768",
        """function (X[M=512, N=768], S[N], B[N]) -> (O) {
  SUM[i, 0 : M, 1] = +(X[i, j]);
  CENTRED = X - SUM / N;
  SQUARE = CENTRED * CENTRED;
  VARIANCE[i, 0 : M, 1] = +(SQUARE[i, j]);
  O = CENTRED / sqrt(VARIANCE / N + 0.00001) * S + B;
}""",
        {"X": (512, 768), "S": (768,), "B": (768,)}, Node("layernorm", "O", ("X", "S", "B")), weights=("S", "B"),
    ),
    _plain(
        "W14", "GEMV 4096", "function (A[M=4096, K=4096], B[K]) -> (O) { O[i : M] = +(A[i, k] * B[k]); }",
        {"A": (4096, 4096), "B": (4096,)}, Node("matmul", "O", ("A", "B")), flops=2 * 4096 * 4096,
    ),
    _plain(
        "W15", "i8 matmul 1024^3, i32 sums",
        "function (A[M=1024, K=1024]: i8, B[K, N=1024]: i8) -> (O) { O[i, j : M, N]: i32 = +(A[i, k] * B[k, j]); }",
        {"A": (1024, 1024), "B": (1024, 1024)}, Node("i8", "O", ("A", "B")), flops=2 * 1024**3, dtype="int8",
    ),
    _attention(),
    _residual(),
    _matmul("W18", 1000, 47, 200),
    _plain(
        "W19", "matmul 3x2048x512, second transposed",
        "function (A[M=3, K=2048], B[N=512, K]) -> (O) { O[i, j : M, N] = +(A[i, k] * B[j, k]); }",
        {"A": (3, 2048), "B": (512, 2048)}, Node("transposed", "O", ("A", "B")), flops=2 * 3 * 2048 * 512,
    ),
)  # fmt: skip


def expected(workload: Workload, data: Data) -> np.ndarray:
    """The result, by numpy in double precision."""
    values: Data = {name: array.astype(np.float64) for name, array in data.items()}
    for node in workload.graph:
        values[node.out] = _evaluate(node, [values[name] for name in node.inputs])
    return values[workload.output]


def _evaluate(node: Node, given: list[np.ndarray]) -> np.ndarray:
    first, *rest = given
    match node.op:
        case "matmul" | "i8":
            return first @ rest[0]
        case "transposed":
            return first @ rest[0].swapaxes(-1, -2)
        case "conv":
            filters = rest[0] if rest[0].ndim == 4 else rest[0][None, None]
            windows = _windows(first, filters.shape[0], node.settings)
            return np.tensordot(windows, filters, ((3, 4, 2), (0, 1, 2)))
        case "depthwise":
            return np.einsum("yxcij,ijc->yxc", _windows(first, rest[0].shape[0], node.settings), rest[0])
        case "maxpool":
            return _windows(first, node.settings["size"], {"pad": 0, **node.settings}).max((3, 4))
        case "add":
            return first + rest[0]
        case "relu":
            return np.maximum(first, 0)
        case "scale":
            return first * node.settings["factor"]
        case "softmax":
            raised = np.exp(first - first.max(-1, keepdims=True))
            return raised / raised.sum(-1, keepdims=True)
        case "layernorm":
            centred = first - first.mean(-1, keepdims=True)
            return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * rest[0] + rest[1]
        case _:
            raise ValueError(node.op)


def _windows(image: np.ndarray, size: int, settings: Mapping[str, Any]) -> np.ndarray:
    """The windows of an image as two more axes."""
    pad, stride = settings["pad"], settings["stride"]
    padded = np.pad(image, ((pad, pad), (pad, pad), (0, 0)))
    return np.lib.stride_tricks.sliding_window_view(padded, (size, size), (0, 1))[::stride, ::stride]
