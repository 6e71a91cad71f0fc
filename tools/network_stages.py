"""One stage of a network, measured in a process of its own: `python -m tools.network_stages machine|c MODEL [FOLDER]`.

Each line of the output is a JSON object with facts that are known from then on, so that a process that is stopped has
told the rest. Seconds are processor time, those of compilers and other children included. `machine`: the network
through the list dsp_conv, simulated, then each pass proved. `c`: the list cpu, a library, its build and its run on the
inputs in FOLDER/inputs.npz, compared with FOLDER/outputs.npz.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from typing_extensions import override

import stripe
from stripe import output
from stripe.emit.targets import FolderTarget, parse_target
from stripe.exec.compare import LOOSE, compare, layered, worst_element
from stripe.ir import Program
from stripe.pipeline.checks.proof import ExactCheck
from stripe.pipeline.checks.structure import StructureCheck
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.instrument import Instrument
from stripe.pipeline.manager import PassManager
from stripe.pipeline.setup import read_setup
from stripe.verify.policy import ANY

MIB = 1 << 20
RUNS = 5


class Changes(Instrument):
    """The programs before and after each pass that changed something, and the time of each pass."""

    def __init__(self) -> None:
        self.found: list[tuple[PassEntry, Program, Program]] = []
        self.seconds: Counter[str] = Counter()
        self._started = 0.0

    @override
    def before(self, entry: PassEntry, program: Program) -> None:
        self._started = time.process_time()

    @override
    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        self.seconds[entry.name] += time.process_time() - self._started
        if after is not before:
            self.found.append((entry, before, after))


def used() -> float:
    """Processor seconds of this process and of children that ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def peak() -> int:
    """MiB of memory that this process or a child of it had at most."""
    # Linux carries the peak of the process that started this one over into `ru_maxrss`; `VmHWM` begins anew.
    (own,) = re.findall(r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text("ascii"), re.MULTILINE)
    return max(int(own), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) // 1024


def tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def machine(path: Path) -> None:
    """The network on the hardware model dsp_conv."""
    program = _read(path)
    entries, hardware = read_setup([("config", "dsp_conv")], None, {})
    assert hardware is not None
    changes, started = Changes(), used()
    result = PassManager(entries, hardware, (changes, StructureCheck(hardware))).run(program)
    slowest = ", ".join(f"{name} {seconds:.1f}" for name, seconds in changes.seconds.most_common(3))
    tell(list_seconds=used() - started, list_memory=peak(), slowest=slowest)
    started = used()
    report = stripe.simulate(result, hardware)
    peaks = {memory.memory: memory.peak_bytes for memory in report.memories}
    tell(
        simulation_seconds=used() - started, latency_ms=report.latency_us / 1e3, cycles=report.latency_cycles,
        macs=report.macs / 1e6, peak_bytes=peaks, energy_mJ=report.energy_pJ / 1e9, scheduled=report.scheduled,
    )  # fmt: skip
    answers: list[str] = []
    started = used()
    proof = ExactCheck(answers.append, ANY)
    proof.begin(program)
    for entry, before, after in changes.found:
        at = used()
        proof.after(entry, before, after)
        answers.append(f"{entry.name}: {used() - at:.1f} s")
    proof.end(result)
    verdicts = (line for line in answers if not line.startswith("verify: assuming "))
    found = [line.partition(": ")[2].strip() for line in verdicts if line.startswith("verify: ")]
    other = [line for line in found if not line.endswith(": equal")]
    times = [line for line in answers if not line.startswith("verify: ")]
    tell(
        proof_seconds=used() - started, proof_memory=peak(), proved=len(found) - len(other),
        proof_answers=other, proof_passes=times,
    )  # fmt: skip


def _read(path: Path) -> Program:
    model = onnx.load(path)
    nodes = len(model.graph.node)
    del model
    started = used()
    program = stripe.read(path)
    weights = sum(len(constant.data) for constant in program.constants) / MIB
    tell(
        read_seconds=used() - started, nodes=nodes, kernels=len(program.main.statements), weights_mib=weights
    )
    return program


def library(path: Path, folder: Path) -> None:
    """The network as a library in C, built and run."""
    program = _read(path)
    started = used()
    compiled = stripe.run_passes(program, "cpu")
    tell(cpu_seconds=used() - started)
    target, started = parse_target("library", "target"), used()
    assert isinstance(target, FolderTarget)
    into = folder / "library"
    output.check_folder(into, target.mark)
    output.write_folder(into, target.files(compiled), target.mark, target.owned)
    header = (into / "net.h").read_text("utf-8")
    sizes = {
        name.lower(): int(re.search(rf"#define NET_{name} \(?(\d+)", header)[1])  # pyright: ignore[reportOptionalSubscript]
        for name in ("ARENA_BYTES", "ARENA_LOWER_BOUND")
    }
    tell(emit_seconds=used() - started, c_memory=peak(), **sizes)
    started = used()
    clock = time.perf_counter()
    subprocess.run(["make", "-s", "-j2", "example"], cwd=into, check=True)
    tell(build_seconds=used() - started, build_clock=time.perf_counter() - clock, build_memory=peak())
    _run(program, into, folder)


def _run(program: Program, into: Path, folder: Path) -> None:
    """Runs the example on the inputs, and compares its outputs."""
    inputs, expected = (dict(np.load(folder / f"{name}.npz")) for name in ("inputs", "outputs"))
    paths: list[str] = []
    for ref, array in zip(program.inputs, inputs.values(), strict=True):
        paths.append(str(folder / f"{ref.name}.in"))
        Path(paths[-1]).write_bytes(np.ascontiguousarray(array).tobytes())
    outputs = [folder / f"{ref.name}.out" for ref in program.outputs]
    command = ["./example", *paths, *map(str, outputs)]
    times: list[float] = []
    for _ in range(RUNS):
        started = used()
        subprocess.run(command, cwd=into, check=True)
        times.append(used() - started)
    found = {
        name: np.frombuffer(path.read_bytes(), ref.dtype.numpy()).reshape(expected[name].shape)
        for name, path, ref in zip(expected, outputs, program.outputs, strict=True)
    }
    tolerance = layered(LOOSE, program)
    differences = compare(expected, found, tolerance)
    worst = worst_element(expected, found, tolerance)
    tell(
        run_seconds=min(times), equal=not differences, differences=list(map(str, differences)),
        allowed=worst.ratio if worst else 0.0,
    )  # fmt: skip


def main() -> int:
    """Runs a stage."""
    stage, path, *folder = sys.argv[1:]
    stages: dict[str, Callable[[], None]] = {
        "machine": lambda: machine(Path(path)),
        "c": lambda: library(Path(path), Path(folder[0])),
    }
    stages[stage]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
