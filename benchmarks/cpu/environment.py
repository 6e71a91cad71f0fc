"""The environment of the peers, and their processes."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import venv
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.measure import FOLDER

OWN = ("ours_gcc", "ours_clang")
"""Emitted C by two compilers; these run in the environment of the project."""

PEERS: dict[str, tuple[str, ...]] = {
    "ours_gcc": (),
    "ours_clang": (),
    "numpy": ("numpy",),
    "onnxruntime": ("onnx", "onnxruntime"),
    "torch_eager": ("torch",),
    "torch_compile": ("torch",),
    "tvm": ("onnx", "apache-tvm"),
    "iree": ("onnx", "iree-base-compiler", "iree-base-runtime"),
    "emx": ("onnx", "emx-onnx-cgen"),
}
"""The packages that each peer needs."""

_MODULES = {
    "onnxruntime": "onnxruntime", "torch_eager": "torch", "torch_compile": "torch", "tvm": "tvm",
    "iree": "iree.compiler", "emx": "emx_onnx_cgen", "numpy": "numpy",
}  # fmt: skip


def environment(folder: Path) -> Path:
    """The Python of the peers' environment, made with all packages that the index has where it is missing."""
    python = folder / "bin" / "python"
    if python.is_file():
        return python
    venv.create(folder, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    torch = ["--extra-index-url", "https://download.pytorch.org/whl/cpu"]
    for package in dict.fromkeys(name for names in PEERS.values() for name in names):
        done = subprocess.run([*pip, *(torch if package == "torch" else ()), package], check=False)
        print(f"{package}: {'installed' if done.returncode == 0 else 'MISSING'}", file=sys.stderr)
    return python


def installed(python: Path, peer: str) -> str:
    """Why a peer cannot run; empty where it can."""
    if peer in OWN:
        found = subprocess.run(["which", peer.removeprefix("ours_")], capture_output=True, check=False)
        return "" if found.returncode == 0 else "no such compiler here"
    done = subprocess.run(
        [str(python), "-c", f"import {_MODULES[peer]}"], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["not installed"])[-1]


TOO_SLOW = "no result in {:.0f} seconds"
"""Reason why a peer has no figure."""


class Worker:
    """The process of a peer, for a number of threads."""

    def __init__(self, peer: str, python: Path, threads: int) -> None:
        count = str(threads)
        settings = {
            "OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count, "MKL_NUM_THREADS": count,
            "TVM_NUM_THREADS": count,
        }  # fmt: skip
        if threads > 1:  # beside other work, threads may else be woken on the core of the first
            settings |= {"OMP_PROC_BIND": "true", "OMP_PLACES": "cores"}
        else:
            settings |= {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"}
        own = peer in OWN
        compiler = {"STRIPE_BENCH_CC": peer.removeprefix("ours_")} if own else {}
        script = str(Path(__file__).with_name("worker.py"))
        log = FOLDER / "out" / "bench" / f"{peer}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        self._command = [sys.executable if own else str(python), script, "ours" if own else peer]
        self._settings = {**os.environ, **settings, **compiler}
        self._log = log
        self._process = self._started()
        self.version = str(self.ask(do="begin").get("version", "unknown"))

    def _started(self) -> subprocess.Popen[str]:
        with self._log.open("w", encoding="utf-8") as errors:
            return subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                env=self._settings, start_new_session=True,
            )  # fmt: skip

    def renew(self) -> None:
        """Starts another process where a workload ended the last one."""
        if self._process.poll() is not None:
            self._process = self._started()
            self.ask(do="begin")

    def ask(self, *, within: float = 600, **request: object) -> dict[str, Any]:
        """The answer of the process; an `error` when it has ended, or has no answer `within` so many seconds."""
        process = self._process
        if process.stdin is None or process.stdout is None:
            return {"error": "no process"}
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            if not select.select((process.stdout,), (), (), within)[0]:
                os.killpg(process.pid, signal.SIGKILL)  # with the compilers that it may have started
                process.wait()
                return {"error": TOO_SLOW.format(within)}
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"error": f"its process ended, status {process.poll()}"}

    def end(self) -> None:
        """Ends the process."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):  # it has ended by itself
                self._process.stdin.close()
        self._process.wait()
