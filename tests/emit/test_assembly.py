"""The inner loops of gcc's assembly for the list `cpu`: registers hold the results, and no lane is computed alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import stripe
from stripe.emit.c import emit_c
from stripe.emit.c.dialect import FLAGS

KERNELS = {
    "matmul": "function (A[M=100, K=64], B[K, N=96]) -> (C) { C[i, j : M, N] = +(A[i, k] * B[k, j]); }",
    "conv": "function (I[H=28, W=28, CI=32], K[J=3, L=3, CI, CO=64]) -> (O) "
    "{ O[y, x, co : H, W, CO] = +(I[y + j - 1, x + i - 1, ci] * K[j, i, ci, co]); }",
    "depthwise": "function (I[H=32, W=32, C=32], K[J=3, L=3, C]) -> (O) "
    "{ O[y, x, c : H, W, C] = +(I[y + j - 1, x + i - 1, c] * K[j, i, c]); }",
}
MACHINES = {"x86_avx512": "x86-64-v4", "x86_avx2": "x86-64-v3"}


def inner_loops(assembly: str) -> list[list[str]]:
    """The instructions of each loop that has no label inside: from a label to the jump back to it."""
    found: list[list[str]] = []
    label, body = "", [""]
    for line in assembly.splitlines():
        text = line.strip()
        if match := re.match(r"(\.L\d+):", text):
            label, body = match[1], []
        elif re.match(rf"j\w+\s+{re.escape(label)}$", text) and label:
            found.append(body)
        elif text and not text.startswith("."):
            body.append(text)
    return found


def multiply_adds(loop: list[str]) -> int:
    return sum("vfmadd" in line and "ps" in line for line in loop)


def assembly_of(tile: str, machine: str, folder: Path) -> str:
    """What gcc makes of a Tile program by the list `cpu` for a machine; skips the test where it cannot."""
    gcc, flags = shutil.which("gcc"), f"-march={MACHINES[machine]}"
    if gcc is None:
        pytest.skip("no gcc on the path")
    probe = subprocess.run([gcc, flags, "-E", "-x", "c", "/dev/null"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip(f"gcc has no {flags}: another architecture, or older than 11")
    program = stripe.run_passes(stripe.parse(tile, name="kernel.tile"), "cpu", hardware=machine)
    source, target = folder / "kernel.c", folder / "kernel.s"
    source.write_text(emit_c(program))
    subprocess.run([gcc, *FLAGS, "-O3", flags, "-S", source, "-o", target], check=True)
    return target.read_text()


@pytest.mark.long
@pytest.mark.parametrize("machine", list(MACHINES))
@pytest.mark.parametrize("kernel", list(KERNELS))
def test_inner_loops_neither_spill_nor_compute_lanes_alone(kernel: str, machine: str, tmp_path: Path) -> None:
    loops = inner_loops(assembly_of(KERNELS[kernel], machine, tmp_path))
    interior = max(loops, key=multiply_adds)
    spilled = [
        line for line in interior if re.search(r"\(%r[sb]p[,)]", line) and re.search(r"%[xyz]mm", line)
    ]
    alone = [line for line in interior if re.match(r"v(fmadd\d+|add|mul|mova?)ss\b", line)]
    assert multiply_adds(interior) >= 8
    assert not alone
    if kernel == "depthwise":
        # The sum is written out with its tile, beside which not all weights fit the registers: they are loaded again,
        # and still there are fewer loads than operands.
        loads = [line for line in interior if re.search(r"\(.*%[xyz]mm", line)]
        assert len(loads) < 2 * sum("vfmadd" in line or "vmulps" in line for line in interior)
    else:
        assert not spilled


FUNCTIONS = {
    "softmax": "function (X[M=64, N=512]) -> (O) { O = builtin_softmax(X, M, N); }",
    "attention": """function (Q[H=4, T=64, D=64], K[H, S=64, D], V[H, S, E=64]) -> (O) {
  QK[h, t, s : H, T, S] = +(Q[h, t, d] * K[h, s, d]);
  M[h, t, 0 : H, T, 1] = >(QK[h, t, s]);
  P = exp(QK - M);
  SUM[h, t, 0 : H, T, 1] = +(P[h, t, s]);
  W = P / SUM;
  O[h, t, e : H, T, E] = +(W[h, t, s] * V[h, s, e]);
}""",
}


@pytest.mark.parametrize("machine", list(MACHINES))
@pytest.mark.parametrize("kernel", list(FUNCTIONS))
def test_nothing_beside_an_exponential_computes_lanes_alone(
    kernel: str, machine: str, tmp_path: Path
) -> None:
    """gcc makes no vectors in such a function, whose sums it would round wrongly: C says each of them."""
    assembly = assembly_of(FUNCTIONS[kernel], machine, tmp_path)
    assert multiply_adds([line for line in assembly.splitlines() if "vfmadd" in line]) >= 8
    assert re.findall(r"\bv(?:fn?madd\d+|mul)ss\b.*", assembly) == []
