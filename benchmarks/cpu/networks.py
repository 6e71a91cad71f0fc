"""Whole networks as workloads: files that `prepare` writes once, with inputs, and the outputs of ONNX Runtime."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from benchmarks.cpu.workloads import Data

FOLDER = Path(__file__).resolve().parents[2] / "out" / "bench" / "networks"


@dataclass(frozen=True)
class Network:
    """A row: a network of `tools.networks` at batch 1."""

    key: str
    title: str
    name: str
    flops: int
    dtype: str = "float32"
    graph: tuple[object, ...] = ()
    unit: str = "GFLOP/s"

    @property
    def work(self) -> float:
        """Operations in units of 10^9."""
        return self.flops / 1e9

    @property
    def path(self) -> Path:
        return FOLDER / self.name / "net.onnx"

    def data(self) -> Data:
        return dict(np.load(self.path.with_name("inputs.npz")))

    def expected(self) -> np.ndarray:
        """The first output."""
        return next(iter(dict(np.load(self.path.with_name("outputs.npz"))).values()))


NETWORKS = (
    Network("N1", "ResNet-50", "resnet50", 2 * 4_089_184_256),
    Network("N2", "MobileNetV2", "mobilenet_v2", 2 * 300_774_272),
    Network("N3", "BERT-base, 128 tokens", "bert_base", 2 * 11_176_083_456),
)


def prepare(network: Network, python: Path) -> None:
    """Writes the files of a network that are missing; `python` has ONNX Runtime."""
    from tools.network_page import PEER, drawn_inputs
    from tools.networks import NETWORKS as BUILDERS

    folder = network.path.parent
    if (folder / "outputs.npz").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    model = BUILDERS[network.name]()
    network.path.write_bytes(model.SerializeToString())
    np.savez(folder / "inputs.npz", **drawn_inputs(model))  # pyright: ignore[reportArgumentType]
    files = [str(folder / name) for name in ("net.onnx", "inputs.npz", "outputs.npz")]
    subprocess.run([str(python), "-c", PEER, *files], check=True)
