"""`make demo`: a convolution with bias and ReLU, from Tile to C for the machine `dsp_conv`; three results that agree,
and what it takes there; then a network in ONNX as a library in C, built and run.

Every command that it runs is shown as one would type it. Files go to out/demo.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
SOURCE = "examples/conv_bias_relu.tile"
NETWORK = "examples/digits.onnx"
OUT = Path("out/demo")

Floats = npt.NDArray[np.float32]


def main() -> int:
    """Runs the demonstration; exit status 0 when all three results agree and the machine could be simulated."""
    (ROOT / OUT).mkdir(parents=True, exist_ok=True)
    title("The program, in Tile")
    print((ROOT / SOURCE).read_text("utf-8"))
    title("The same in Stripe: blocks of index points, with views of the tensors that they touch")
    command("stripe-opt", SOURCE)
    title(
        "Fused, tiled, localised and located for the machine dsp_conv, by the pass list dsp_conv; each pass is proved"
    )
    command("stripe-opt", SOURCE, "--config", "dsp_conv", "--remarks", "--verify", "exact")
    title("C for that program, and the compiler's word that it is clean")
    code = str(OUT / "conv_bias_relu.c")
    command("stripe-opt", SOURCE, "--config", "dsp_conv", "--emit", "c", "-o", code)
    command("cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-c", code, "-o", code[:-1] + "o")
    text = (ROOT / code).read_text("utf-8")
    print("", text[text.index('ST_FUNCTION("') :], sep="\n")
    title("The same data through interpreter, C and numpy")
    status = compare_results()
    title("What it takes on the machine: time, bytes and energy, and a picture of them")
    picture, trace = str(OUT / "timeline.svg"), str(OUT / "trace.json")
    command("stripe-sim", SOURCE, "--config", "dsp_conv", "--plot", picture, "--trace", trace)
    print(f"\nthe timeline lies in {picture} (any browser), the trace in {trace} (https://ui.perfetto.dev)")
    title("A network in ONNX: its results beside those of another implementation, and a library in C to ship")
    library = str(OUT / "digits")
    here = (NETWORK, "--config", "cpu", "--hw", "native")
    command("stripe-run", *here, "--engine", "c", "--compare", "onnx")
    command("stripe-opt", *here, "--emit", "library{weights=object}", "-o", library)
    command("make", "-s", "-C", library, "example")
    command(str(Path(library) / "example"))
    return status


def compare_results() -> int:
    """Runs interpreter and C on random data, computes the same with numpy, and compares bit for bit."""
    rng = np.random.default_rng(2026)
    shapes = {"I": (16, 16, 8), "K": (3, 3, 8, 16), "B": (16,)}
    data = {name: rng.integers(-8, 9, shape).astype(np.float32) for name, shape in shapes.items()}
    inputs = str(OUT / "inputs.npz")
    np.savez(ROOT / inputs, allow_pickle=False, **data)
    results = {"numpy": convolution(data["I"], data["K"], data["B"])}
    for engine in ("interp", "c"):
        target = str(OUT / f"{engine}.npz")
        passes = () if engine == "interp" else ("--config", "dsp_conv")
        command("stripe-run", SOURCE, *passes, "--engine", engine, "--data", inputs, "--out", target)
        with np.load(ROOT / target) as archive:
            results[engine] = archive["O"]
    agree = all(np.array_equal(result, results["numpy"]) for result in results.values())
    print()
    if agree:
        print("interpreter, C and numpy agree, bit for bit")
        return 0
    for name, result in results.items():
        print(f"{name}: {np.count_nonzero(result != results['numpy'])} elements differ from numpy's")
    print("the three results DIFFER")
    return 1


def convolution(image: Floats, kernel: Floats, bias: Floats) -> Floats:
    """The layer written for numpy by hand: shift the padded image under each element of the kernel."""
    height, width, _ = image.shape
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)))
    total = np.zeros((height, width, kernel.shape[3]), np.float32)
    for j in range(kernel.shape[0]):
        for i in range(kernel.shape[1]):
            total += padded[j : j + height, i : i + width] @ kernel[j, i]
    return np.maximum(total + bias, np.float32(0))


def title(text: str) -> None:
    """A heading."""
    print(f"\n=== {text} ===\n", flush=True)


def command(*words: str) -> None:
    """Shows a command and runs it from the root of the repository; a failure ends the demonstration."""
    print(f"$ {shlex.join(words)}", flush=True)
    program = BIN / words[0]
    done = subprocess.run([program if program.exists() else words[0], *words[1:]], cwd=ROOT, check=False)
    if done.returncode != 0:
        sys.exit(f"the command failed with exit status {done.returncode}")


if __name__ == "__main__":
    sys.exit(main())
