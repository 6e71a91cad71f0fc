"""The page docs/networks.md: `python -m tools.network_page [NAME …] [--peers PYTHON] [--page]`.

Each stage of each network runs in a process of its own (`tools.network_stages`), and its facts are a line of
out/networks/facts.jsonl, so that a run that was stopped goes on where it was; `--fresh` measures the networks that are
named again. `--peers` is a Python with ONNX Runtime, which then gives the outputs to compare with in place of the
reference evaluator of onnx. `--page` writes the page from the facts that are there.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

from benchmarks.measure import machine
from tools.networks import NETWORKS

Facts = dict[str, Any]
ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "out" / "networks"
PAGE = ROOT / "docs" / "networks.md"
STORED = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
LIMITS = {"machine": 3600, "c": 1800}
"""Seconds on the clock that a stage may take."""

PEER = """
import sys, numpy as np, onnxruntime
model, inputs, outputs = sys.argv[1:]
session = onnxruntime.InferenceSession(model)
given = dict(np.load(inputs))
names = [value.name for value in session.get_outputs()]
np.savez(outputs, **dict(zip(names, session.run(names, given), strict=True)))
"""


def stored() -> dict[str, Path]:
    """The networks that come with the onnx package."""
    return {path.stem.removeprefix("light_"): path for path in sorted(STORED.glob("light_*.onnx"))}


def model_of(name: str) -> Path:
    """The file of a network, which is made when it is one of `tools.networks`."""
    if name in stored():
        return stored()[name]
    path = FOLDER / name / "net.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(NETWORKS[name]().SerializeToString())
    return path


def inputs_of(model: ModelProto, name: str) -> dict[str, np.ndarray]:
    """Inputs of a network: those of the suite of onnx for its own, drawn ones for others."""
    if name not in stored():
        return drawn_inputs(model)
    constants = {tensor.name for tensor in model.graph.initializer}
    found: dict[str, np.ndarray] = {}
    for info in model.graph.input:
        if info.name not in constants:
            sizes = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
            count = int(np.prod(sizes))
            found[info.name] = (np.arange(count).reshape(sizes) / count).astype(np.float32)
    return found


def drawn_inputs(model: ModelProto) -> dict[str, np.ndarray]:
    """Normal numbers, and small indices, for a model without constants among its inputs."""
    generator = np.random.default_rng(3)
    found: dict[str, np.ndarray] = {}
    for info in model.graph.input:
        sizes = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        if info.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            found[info.name] = generator.standard_normal(sizes).astype(np.float32)
        else:
            found[info.name] = generator.integers(0, 9, sizes).astype(np.int64)
    return found


def prepare(name: str, peers: str | None) -> None:
    """Writes inputs and expected outputs of a network."""
    folder, path = FOLDER / name, model_of(name)
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "outputs.npz").exists():
        return
    model = onnx.load(path)
    inputs = inputs_of(model, name)
    np.savez(folder / "inputs.npz", **inputs)  # pyright: ignore[reportArgumentType]
    if name in stored():
        tensor = onnx.load_tensor(path.with_name(f"{path.stem}_output_0.pb"))
        expected = {model.graph.output[0].name: onnx.numpy_helper.to_array(tensor)}
        np.savez(folder / "outputs.npz", **expected)  # pyright: ignore[reportArgumentType]
    elif peers is not None:
        command = [peers, "-c", PEER, str(path), str(folder / "inputs.npz"), str(folder / "outputs.npz")]
        subprocess.run(command, check=True)
    else:
        from onnx.reference import ReferenceEvaluator

        values = ReferenceEvaluator(model).run(None, inputs)
        names = [info.name for info in model.graph.output]
        np.savez(folder / "outputs.npz", **dict(zip(names, values, strict=True)))  # pyright: ignore[reportArgumentType]


def measure(name: str, stage: str, peers: str | None) -> Facts:
    """The facts of a stage; `error` says why some are missing."""
    if stage == "c":
        prepare(name, peers)
    command = [sys.executable, "-m", "tools.network_stages", stage, str(model_of(name)), str(FOLDER / name)]
    facts: Facts = {"network": name, "stage": stage}
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=LIMITS[stage], cwd=ROOT
        )
        text = done.stdout
        if done.returncode:
            facts["error"] = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
    except subprocess.TimeoutExpired as stopped:
        text = stopped.stdout.decode() if stopped.stdout else ""
        facts["error"] = [f"stopped after {LIMITS[stage]} s"]
    for line in text.splitlines():
        facts |= json.loads(line)
    return facts


def recorded(path: Path) -> dict[tuple[str, str], Facts]:
    """The facts in a file by network and stage; a later line replaces an earlier one."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return {(facts["network"], facts["stage"]): facts for facts in map(json.loads, lines)}


def page(facts: Mapping[tuple[str, str], Facts], names: Iterable[str]) -> str:
    """The whole page."""
    rows = {name: facts.get((name, "machine"), {}) | facts.get((name, "c"), {}) for name in names}
    problems = [
        f"- {name}, {stage}: {' '.join(found['error'])}"
        for (name, stage), found in facts.items()
        if "error" in found
    ]
    problems += [
        f"- {name}, proof: {answer}"
        for name, row in rows.items()
        for answer in row.get("proof_answers", ())
        if not answer.startswith(("assuming ", "addresses: "))
    ]
    return _TEXT.format(
        date=datetime.date.today().isoformat(), machine=machine(),
        shapes=_table(_SHAPES, rows), c=_table(_C, rows), on_machine=_table(_MACHINE, rows),
        problems="\n".join(problems) or "None.",
    )  # fmt: skip


Column = tuple[str, str, str]
"""The head of a column, the fact in it, and its format."""
_SHAPES: tuple[Column, ...] = (
    ("nodes", "nodes", "{:,}"), ("kernels", "kernels", "{:,}"), ("million multiply-adds", "macs", "{:,.1f}"),
    ("MiB of weights", "weights_mib", "{:,.1f}"), ("import and lowering, s", "read_seconds", "{:.1f}"),
)  # fmt: skip
_C: tuple[Column, ...] = (
    ("list `cpu`, s", "cpu_seconds", "{:.1f}"), ("library, s", "emit_seconds", "{:.1f}"),
    ("build, s", "build_seconds", "{:.1f}"), ("memory of the compiler, MiB", "c_memory", "{:,}"),
    ("arena, KiB", "arena_bytes", "kib"), ("its lower bound, KiB", "arena_lower_bound", "kib"),
    ("one run, s", "run_seconds", "{:.2f}"), ("outputs", "outputs", "{}"),
)  # fmt: skip
_MACHINE: tuple[Column, ...] = (
    ("list `dsp_conv`, s", "list_seconds", "{:.1f}"), ("latency, ms", "latency_ms", "{:,.2f}"),
    ("energy, mJ", "energy_mJ", "{:,.1f}"), ("peak in DRAM, KiB", "dram", "kib"),
    ("peak in SRAM, KiB", "sram", "kib"), ("passes proved", "proved", "{}"), ("proof, s", "proof_seconds", "{:.1f}"),
    ("memory of the proof, MiB", "proof_memory", "{:,}"),
)  # fmt: skip


def _table(columns: tuple[Column, ...], rows: Mapping[str, Facts]) -> str:
    heads = ["network", *(head for head, _, _ in columns)]
    lines = [heads, ["---"] * len(heads)]
    lines += [
        [name, *(_cell(_derived(row), fact, form) for _, fact, form in columns)] for name, row in rows.items()
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _derived(row: Facts) -> Facts:
    """The facts with those that follow from them."""
    found = dict(row)
    for memory, size in row.get("peak_bytes", {}).items():
        found[memory.partition("[")[0].lower()] = size
    if "allowed" in row:
        found["outputs"] = (
            f"{row['allowed']:.2g} of the allowed error" if row["allowed"] else "equal, bit for bit"
        )
    return found


def _cell(row: Facts, fact: str, form: str) -> str:
    if fact not in row:
        return "-"
    return f"{row[fact] / 1024:,.0f}" if form == "kib" else form.format(row[fact])


_TEXT = """# Networks

The nine networks that come with the onnx package, with uniform weights and the outputs stored beside them, and networks
with the shapes of published ones, which `python -m tools.networks NAME` writes with random weights (*drawn* networks).
`make networks` measures them and writes this page; a run that was stopped goes on where it was. Seconds are processor
time, compilers and other children included.

Written {date} on {machine}.

## Shapes

*Nodes* counts those of the ONNX graph, *kernels* the blocks of the program as it was lowered. *Import and lowering*
begins with the bytes of the model.

{shapes}

## In C

The list `cpu`, the library that `--emit library` writes, `make` in its folder, and one run of its example, on one
thread, the least of five. A run is a whole process, which maps the weights and checks them first: the speed of the
network alone is in [speed of networks](network-speed.md). *Memory of the compiler* is the most that Stripe itself took
up to the library, without the C compiler. Outputs are compared with those stored beside the model, of drawn networks
with those of ONNX Runtime. The allowed error of an element is 1024 units in its last place, and 16 of those of the
largest element for each layer that sums; the column *outputs* has the largest error as a share of the allowed one.

{c}

## On a machine

The list `dsp_conv`, the simulation of its result on the hardware model `dsp_conv`, and a proof of each pass that
changed the program. *Latency*, *energy* and the peaks are those of the simulation, for one inference; *passes proved*
counts those passes. The independent checkers of schedule and placement look at the result of each pass.

{on_machine}

## Stages that failed

{problems}
"""


def main() -> int:
    """Measures, and writes the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--peers")
    parser.add_argument("--stages", default="c,machine")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    every = list(dict.fromkeys((*stored(), *NETWORKS)))
    path = FOLDER / "facts.jsonl"
    FOLDER.mkdir(parents=True, exist_ok=True)
    done = recorded(path)
    for name in () if options.page else options.names or every:
        for stage in options.stages.split(","):
            if not options.fresh and "error" not in done.get((name, stage), {"error": ""}):
                continue
            done[name, stage] = measure(name, stage, options.peers)
            with path.open("a", encoding="utf-8") as stream:
                print(json.dumps(done[name, stage]), file=stream)
            print(name, stage, done[name, stage].get("error", "done"), flush=True)
    PAGE.write_text(page(done, every), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
