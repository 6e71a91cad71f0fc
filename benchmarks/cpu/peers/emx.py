"""emx-onnx-cgen: C from ONNX, compiled with -O3 for this processor."""

from __future__ import annotations

import ctypes
import importlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cpu.peers import Prepared, graphs
from benchmarks.cpu.workloads import Data, Workload


def version() -> str:
    return importlib.import_module("importlib.metadata").version("emx-onnx-cgen")


def prepare(workload: Workload, data: Data, threads: int) -> Prepared:
    if threads > 1:
        raise NotImplementedError("one thread alone")
    model, given = graphs.model(workload, data)
    dims = [d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim]
    out = np.zeros(dims, np.int32 if workload.dtype == "int8" else np.float32)
    with tempfile.TemporaryDirectory(prefix="emx-") as name:
        folder = Path(name)
        source, code, library = folder / "model.onnx", folder / "model.c", folder / "model.so"
        source.write_bytes(model.SerializeToString())
        generator = str(Path(sys.executable).parent / "emx-onnx-cgen")
        _call(generator, "compile", "--model-name", "model", "--restrict-arrays", str(source), str(code))
        _call(
            "cc",
            "-O3",
            "-march=native",
            "-ffast-math",
            "-shared",
            "-fPIC",
            str(code),
            "-o",
            str(library),
            "-lm",
        )
        loaded = ctypes.CDLL(str(library))
        if (weights := folder / "model.bin").exists():  # large ones lie beside the code
            loaded["model_load"](str(weights).encode())
    function: Any = loaded["model"]
    arrays = [np.ascontiguousarray(array) for array in given.values()]
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*arrays, out)]
    return lambda: (function(*pointers), arrays), lambda: graphs.result(out)


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1])
