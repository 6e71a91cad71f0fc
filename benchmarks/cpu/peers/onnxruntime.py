"""ONNX Runtime with its own layouts."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.cpu.peers import Prepared, graphs
from benchmarks.cpu.workloads import Data, Workload

runtime: Any = importlib.import_module("onnxruntime")


def version() -> str:
    return runtime.__version__


def prepare(workload: Workload, data: Data, threads: int) -> Prepared:
    model, given = graphs.model(workload, data)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    kept: list[Any] = [None]

    def run() -> None:
        kept[0] = session.run(None, given)

    return run, lambda: graphs.result(kept[0][0])
