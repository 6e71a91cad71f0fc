"""IREE for this processor, with data tiling and at its highest level."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.cpu.peers import Prepared, graphs
from benchmarks.cpu.workloads import Data, Workload

runtime: Any = importlib.import_module("iree.runtime")


def version() -> str:
    return importlib.import_module("importlib.metadata").version("iree-base-compiler")


def prepare(workload: Workload, data: Data, threads: int) -> Prepared:
    model, given = graphs.model(workload, data)
    binaries = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as folder:
        source, imported, code = (Path(folder) / name for name in ("m.onnx", "m.mlir", "m.vmfb"))
        source.write_bytes(model.SerializeToString())
        _call(str(binaries / "iree-import-onnx"), str(source), "-o", str(imported))
        _call(
            str(binaries / "iree-compile"), str(imported), "--iree-hal-target-device=local",
            "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host",
            "--iree-opt-level=O3", "--iree-llvmcpu-stack-allocation-limit=131072", "-o", str(code),
        )  # fmt: skip
        driver = "local-sync" if threads == 1 else "local-task"
        config = runtime.Config(driver)
        module = runtime.load_vm_module(
            runtime.VmModule.copy_buffer(config.vm_instance, code.read_bytes()), config
        )
    names = module.vm_module.function_names
    function = module[next(name for name in names if not name.startswith("__") and "$" not in name)]
    arrays = [runtime.asdevicearray(config.device, array) for array in given.values()]
    kept: list[Any] = [None]

    def run() -> None:
        kept[0] = function(*arrays)

    return run, lambda: graphs.result(kept[0].to_host())


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[0] if done.stderr.strip() else command[0])
