"""numpy with its BLAS: matrix products alone."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.cpu.peers import Prepared
from benchmarks.cpu.workloads import Data, Workload

np = importlib.import_module("numpy")


def version() -> str:
    config: Any = np.show_config(mode="dicts")
    blas = config["Build Dependencies"]["blas"]
    return f"{np.__version__}, {blas['name']} {blas['version']}"


def prepare(workload: Workload, data: Data, threads: int) -> Prepared:
    del threads  # by OPENBLAS_NUM_THREADS
    ops = {node.op for node in workload.graph}
    first, second = (list(data.values()) * 2)[:2]
    if ops == {"conv"} and len(workload.graph) == 1 and second.shape[:2] == (1, 1):
        first, second = first.reshape(-1, first.shape[-1]), second[0, 0]
    elif ops == {"transposed"}:
        second = second.swapaxes(-1, -2)
    elif ops != {"matmul"}:
        raise NotImplementedError("no single call of numpy")
    out = np.matmul(first, second)
    return lambda: np.matmul(first, second, out=out), lambda: out
