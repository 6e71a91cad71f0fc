"""TVM without tuning: its default pipeline for this processor."""

from __future__ import annotations

import importlib
import os
from typing import Any

from benchmarks.cpu.peers import Prepared, graphs
from benchmarks.cpu.workloads import Data, Workload

tvm: Any = importlib.import_module("tvm")


def version() -> str:
    return f"{tvm.__version__}, untuned"


def prepare(workload: Workload, data: Data, threads: int) -> Prepared:
    os.environ["TVM_NUM_THREADS"] = str(threads)
    relax = importlib.import_module("tvm.relax")
    frontend = importlib.import_module("tvm.relax.frontend.onnx")
    model, given = graphs.model(workload, data)
    module = frontend.from_onnx(model, keep_params_in_input=False)
    target = tvm.target.Target.from_device("cpu")
    with target:
        built = tvm.compile(module, target)
    machine = relax.VirtualMachine(built, tvm.cpu())
    arrays = [tvm.runtime.tensor(array) for array in given.values()]
    kept: list[Any] = [None]

    def run() -> None:
        kept[0] = machine["main"](*arrays)

    def result() -> Any:
        found = kept[0] if hasattr(kept[0], "numpy") else kept[0][0]
        return graphs.result(found.numpy())

    return run, result
