"""`make fuzz-input`: all commands on mutated inputs; no case may end as a fault of ours, hang, or give wrong C.

Each case is a command line in a fork of this process, with limits of processor time and memory. It follows from its
seed: `python -m tests.fuzz.inputs --seed S --cases 1` runs case S again.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import forkserver
from pathlib import Path
from random import Random

from stripe.cli import start
from stripe.exec.toolchain import find_compiler
from stripe.ir.package_data import data_dir
from stripe.pipeline.reproducer import Reproducer

SECONDS = 20
MEMORY = 6 << 30

TOOLS: dict[str, Callable[[list[str]], int]] = {
    "opt": start.opt,
    "run": start.run,
    "sim": start.sim,
    "reduce": start.reduce,
    "sweep": start.sweep,
}
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d+|\s+|.", re.DOTALL)
_STRANGE = (
    "0", "-1", "1e400", "nan", "NaN", "9" * 30, "9" * 5000, "\x1b[2J", "\x00", "é", "\ud7ff", "(" * 300, "[" * 300,
    "{{ 1|round(10**9) }}", "{% for i in range(9) %}", "((", "}", '"', "//", "#", "$", "@", "", "true", "null",
    "4294967296", "9223372036854775807", "-9223372036854775809",
)  # fmt: skip
_TILE = (
    "function (A[M=6, K=5]: fp32, B[K, N=4]: fp32) -> (C) { C[i, j : M, N] = +(A[i, k] * B[k, j]); }",
    "function (I[X=8]: i8, K[R=3]: i8) -> (O) { T[x : X] = +(I[x + r - 1] * K[r]), r < 3; O = relu(T) + 1; }",
    "function (A[N=7]: fp32) -> (O, P) { O = A > 0 ? exp(A) : A * 2; P[] = >(A[i]); }",
    "function (A[N=4]: i32, J[M=3]: i32) -> (O) { O = gather(A, J); }",
)
_LISTS = (
    "dce", "fusion,dce", "autotile{only_po2=true},dce", "locate_memory{reqs=[kernel],loc={name=SRAM}}", "unroll",
    "vectorize,prune_indexes",
)  # fmt: skip
_COMMANDS: tuple[tuple[str, list[str]], ...] = (
    ("opt", []),
    ("opt", ["--emit", "c", "-o", "out.c"]),
    ("opt", ["--emit", "json"]),
    ("opt", ["--emit", "library", "-o", "lib"]),
    ("opt", ["--hw", "native", "--config", "cpu", "-o", "out.stripe"]),
    ("opt", ["--verify", "exact", "--passes", "dce"]),
    ("run", []),
    ("run", ["--compare", "interp", "--passes", "dce"]),
    ("sim", ["--counts"]),
    ("sim", ["--hw", "dsp_conv"]),
    ("reduce", ["--test", "stripe-opt {}", "--timeout", "5"]),
)
_SWEEP = """{
  "passes": ["dsp_conv"],
  "workloads": ["good.tile"],
  "axes": { "SRAM_SIZE_KIB": { "log2": [16, 32] }, "DRAM_BYTES": { "values": [16] } },
  "constraints": ["area_mm2 < 400"],
  "objectives": ["latency_us", "energy_pJ"],
  "points": 4
}"""
_RECORDED = (("opt", "--emit=c"), ("run", "--random=3"), ("sim", "--counts"))


@dataclass(slots=True)
class Outcome:
    """The counts of a run, and its failures by the seed of the case."""

    statuses: Counter[str] = field(default_factory=Counter[str])
    formats: Counter[str] = field(default_factory=Counter[str])
    without_hint: Counter[str] = field(default_factory=Counter[str])
    failures: dict[int, str] = field(default_factory=dict[int, str])


def mutated(text: str, random: Random, others: list[str]) -> str:
    """`text` with one to four changes of its tokens, or of the lines that it is made of."""
    words = _TOKEN.findall(text)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(words)) if words else 0
        match random.randrange(9):
            case 0:
                del words[at : at + random.choice((1, 1, 2, 8))]
            case 1:
                words.insert(at, random.choice(_STRANGE))
            case 2:
                words[at : at + 1] = [random.choice(words or [""]) for _ in range(1)]
            case 3:
                words[at:at] = words[at : at + random.randint(1, 30)]
            case 4:
                numbers = [place for place, word in enumerate(words) if word.isdigit()]
                if numbers:
                    words[random.choice(numbers)] = random.choice((*_STRANGE[:7], "1", "2", "1000000"))
            case 5:
                names = [place for place, word in enumerate(words) if word.isidentifier()]
                if len(names) > 1:
                    one, two = random.sample(names, 2)
                    words[one], words[two] = words[two], words[one]
            case 6:
                other = _TOKEN.findall(random.choice(others))
                begin = random.randrange(len(other))
                words[at:at] = other[begin : begin + random.randint(1, 12)]
            case 7:
                words = words[:at] if random.random() < 0.3 else words
            case _:
                char = chr(random.choice((random.randrange(1, 256), random.randrange(0x20, 0x2FFF))))
                words.insert(at, char)
    return "".join(words)


def corpus() -> dict[str, list[str]]:
    """The texts that mutations begin with, by format; programs in Stripe and JSON are made from the Tile ones."""
    found: dict[str, list[str]] = {"tile": list(_TILE)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, text in enumerate(_TILE):
            (folder / f"{number}.tile").write_text(text)
            for target in ("stripe", "json"):
                out = folder / f"{number}.{target}"
                assert start.opt([str(folder / f"{number}.tile"), "--emit", target, "-o", str(out)]) == 0
                found.setdefault(target, []).append(out.read_text())
        found["reproducer"] = [
            Reproducer(
                error="", tool=f"stripe-{tool}", options=(option,), input_format="tile", input=text,
                passes=({"name": "d", "dce": {}},),
            ).model_dump_json(indent=1)
            for (tool, option), text in zip(_RECORDED, _TILE, strict=False)
        ]  # fmt: skip
        import numpy as np

        np.savez(folder / "in.npz", A=np.zeros(7, np.float32))
        found["npz"] = [(folder / "in.npz").read_bytes().decode("latin-1")]
        # Modules load here, once, and not in each fork.
        words = [str(folder / "2.tile"), "--hw", "dsp_conv", "--passes", "dce", "--verify", "exact"]
        for tool in (start.opt, start.run, start.sim):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                assert tool(words) == 0
    found["hw"] = [path.read_text("utf-8") for path in sorted(data_dir("hwmodels").glob("*.json.j2"))]
    found["config"] = [path.read_text("utf-8") for path in sorted(data_dir("optconfigs").glob("*.json.j2"))]
    found["params"] = [path.read_text("utf-8") for path in sorted(data_dir("hwmodels").glob("*.params.json"))]
    found["passes"] = list(_LISTS)
    found["onnx"] = [(Path(__file__).parents[2] / "examples" / "digits.onnx").read_bytes().decode("latin-1")]
    found["sweep"] = [_SWEEP]
    return found


def command_line(kind: str, text: str, random: Random, folder: Path) -> tuple[str, list[str]]:
    """The command and its words, with the mutated text in its file or its option."""
    good = folder / "good.tile"
    good.write_text(_TILE[2], "utf-8")
    tool, words = random.choice(_COMMANDS)
    suffix = {"hw": "json.j2", "config": "json.j2", "reproducer": "json", "sweep": "json.j2"}.get(kind, kind)
    path = folder / f"given.{suffix}"
    path.write_bytes(text.encode("latin-1" if kind in ("npz", "onnx") else "utf-8", "replace"))
    match kind:
        case "sweep":
            return "sweep", ["run", str(path), "--out", str(folder / "results"), "--jobs", "1", "--no-cache"]
        case "tile" | "stripe" | "json" | "onnx":
            return tool, [str(path), *words]
        case "reproducer":
            reduced = [str(path), "--test", "stripe-opt --run-reproducer {}", "--timeout", "5"]
            return random.choice((("opt", ["--run-reproducer", str(path)]), ("reduce", reduced)))
        case "npz":
            return "run", [str(good), "--data", str(path)]
        case "hw":
            return random.choice(("opt", "sim")), [str(good), "--hw", str(path)]
        case "config":
            return "opt", [str(good), "--config", str(path), "--hw", "dsp_conv"]
        case "params":
            shutil.copy(data_dir("hwmodels") / "dsp_conv.json.j2", folder / "m.json.j2")
            path.rename(folder / "m.params.json")
            return "opt", [str(good), "--hw", str(folder / "m.json.j2")]
        case _:
            return "opt", [str(good), "--passes", text.replace("\0", ""), "--hw", "dsp_conv"]


def run_forked(tool: str, words: list[str], folder: Path) -> tuple[int, str]:
    """The exit status and the messages of a command in a process of its own; -9 for a case that hangs."""
    messages = folder / "stderr"
    child = os.fork()
    if child == 0:
        os.setsid()
        vars(forkserver)["_forkserver"].__init__()  # servants of the original are not the fork's
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(folder)
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        for number, place in ((0, os.devnull), (1, os.devnull), (2, str(messages))):
            os.dup2(os.open(place, os.O_RDWR | os.O_CREAT, 0o600), number)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        status = 99
        try:
            status = TOOLS[tool](words)
            sys.stdout.flush()
        finally:
            os._exit(status)
    deadline = time.monotonic() + 6 * SECONDS
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            break
        time.sleep(0.002)
    text = messages.read_text("utf-8", "replace") if messages.exists() else ""
    return os.waitstatus_to_exitcode(status), text


def check(tool: str, words: list[str], folder: Path) -> tuple[int, str, str]:
    """The status, the failure of a case (empty when there is none), and the messages."""
    status, text = run_forked(tool, words, folder)
    if status not in (0, 1, 2, 3):
        return status, f"status {status}", text
    if status and "error" not in text and "DIFFERS" not in text:
        return status, "no message", text
    if any(ord(char) < 32 and char != "\n" for char in text):
        return status, "control character in a message", text
    code = folder / "out.c"
    if status == 0 and code.exists():
        flags = ["-std=c11", "-fsyntax-only", "-w", str(code)]
        result = subprocess.run([find_compiler(), *flags], capture_output=True, text=True, check=False)
        if result.returncode:
            return status, "the C compiler refuses the C", result.stderr
    return status, "", text


def fuzz(seed: int, cases: int, out: Path | None = None, seconds: float = 0) -> Outcome:
    """Runs cases from `seed` on."""
    texts = corpus()
    outcome = Outcome()
    gc.freeze()  # forks share the memory of what is loaded
    started = time.monotonic()
    for number in range(seed, seed + cases):
        if seconds and time.monotonic() - started > seconds:
            break
        random = Random(number)
        kind = random.choice(sorted(texts))
        text = mutated(random.choice(texts[kind]), random, texts[kind])
        with tempfile.TemporaryDirectory(prefix="fuzz-input-") as name:
            folder = Path(name)
            tool, words = command_line(kind, text, random, folder)
            status, failure, messages = check(tool, words, folder)
            outcome.formats[kind] += 1
            outcome.statuses[str(status)] += 1
            if status in (1, 2) and "hint: " not in messages:
                reason = messages.split("error: ", 1)[-1].split("\n")[0]
                outcome.without_hint[re.sub(r"'[^']*'|\d+", "…", reason)[:100]] += 1
            if failure:
                line = f"{kind}: {failure}: stripe-{tool} {' '.join(words)[:200]}"
                outcome.failures[number] = f"{line}\n{messages[:600]}"
                if out is not None:
                    with contextlib.suppress(OSError):
                        shutil.copytree(folder, out / str(number), dirs_exist_ok=True)
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.inputs", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="how many cases")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case; the next ones count on")
    parser.add_argument("--seconds", type=float, default=0, help="start no case after this time; 0: no limit")
    parser.add_argument("--out", type=Path, help="folder of the failures")
    options = parser.parse_args()
    started = time.monotonic()
    outcome = fuzz(options.seed, options.cases, options.out, options.seconds)
    total = sum(outcome.statuses.values())
    print(
        f"seeds {options.seed} to {options.seed + total - 1}: {total} cases in {time.monotonic() - started:.0f} s"
    )
    print(f"  exit statuses: {dict(sorted(outcome.statuses.items()))}")
    print(f"  formats: {dict(sorted(outcome.formats.items()))}")
    print(f"  messages without a hint: {sum(outcome.without_hint.values())}")
    for reason, count in outcome.without_hint.most_common(20):
        print(f"    {count:5d} {reason}")
    print(f"  failures: {len(outcome.failures)}")
    for number, text in outcome.failures.items():
        print(f"  seed {number}: {text}")
    return 3 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
