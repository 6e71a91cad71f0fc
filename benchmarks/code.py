"""Emitted C against a library that people use, on the same data, on one core, in the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks import programs
from benchmarks.measure import Row, seconds, timed
from benchmarks.passes import shipped
from stripe.exec.arith import Array
from stripe.exec.compile import CompileOptions, compile_program
from stripe.exec.data import random_inputs
from stripe.ir import ConfigError, Program
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes

SIZE = 512
RUNS = 21
TILES = "autotile{reqs=[contraction],max_total_size=32768,outer_set=[tiled],inner_set=[tile]}"
FAST = CompileOptions(level="O3", native=True, reorder=True)
PLAIN = CompileOptions(level="O3", native=True)
FLAGS = "-O3 -march=native -ffp-contract=off"


@dataclass(frozen=True, slots=True)
class Work:
    """A Tile program of two inputs with what numpy does for it."""

    name: str
    text: str
    operations: int
    peer: Callable[[Array, Array], Array]
    tiled: bool = False


WORKS = (
    Work(f"matrix product {SIZE}x{SIZE}x{SIZE}", programs.matmul(SIZE), 2 * SIZE**3, lambda a, b: a @ b, tiled=True),
    Work(
        f"matrix product {2 * SIZE}x{2 * SIZE}x{2 * SIZE}", programs.matmul(2 * SIZE), 16 * SIZE**3,
        lambda a, b: a @ b,
    ),
    Work(
        f"product with a transposed matrix, {SIZE}x{SIZE}x{SIZE}", programs.matmul_transposed(SIZE), 2 * SIZE**3,
        lambda a, b: a @ b.T,
    ),
    Work(f"matrix times vector {SIZE}x{SIZE}", programs.matrix_vector(SIZE), 2 * SIZE**2, lambda a, b: a @ b),
)  # fmt: skip


CHAIN = """function (I[H=64, W=64, C=128], F1[O=128, C], F2[P=128, O]) -> (R) {
  T[h, w, k : H, W, O] = +(I[h, w, c] * F1[k, c]);
  R[h, w, k : H, W, P] = +(T[h, w, c] * F2[k, c]);
}"""
"""Two chained 1x1 convolutions, as in docs/hexagon.md."""
PACKED_OPTIONS = {
    "-O2": CompileOptions(level="O2"),
    "-O2 -march=native": CompileOptions(level="O2", native=True),
    "as stripe-run compiles": FAST,
}
PACKED = "layout{refs=[T,R],map=HWC8h8w32c},layout{refs=[F1,F2],map=OI8i32o4i}"


def rows() -> Iterator[Row]:
    for work in WORKS:
        yield from _compared(work)
    yield from _packed()


def _packed() -> Iterator[Row]:
    """C for packed layouts beside C for plain ones, in turn."""
    plain = programs.lowered(CHAIN)
    packed = PassManager(parse_passes(PACKED)).run(plain)
    inputs = random_inputs(plain)
    what = "two chained 1x1 convolutions, fp32, packed as NHWC8h8w32c and OIHW8i32o4i"
    for flags, options in PACKED_OPTIONS.items():
        first, second = (compile_program(program, options) for program in (plain, packed))
        assert np.array_equal(first.run(inputs)["R"], second.run(inputs)["R"])
        ratio = median(
            second.bench(inputs, 1).processor[0] / first.bench(inputs, 1).processor[0] for _ in range(RUNS)
        )
        yield Row(
            what, f"{ratio:.2f} times unpacked",
            f"processor time, copies inside included; {flags}, median of {RUNS} pairs; results equal",
            target="at most 1.2", ok=ratio <= 1.2,
        )  # fmt: skip
        what = "the same"


def _compared(work: Work) -> Iterator[Row]:
    """numpy and the variants of the emitted C, in turn on the same data."""
    program = programs.lowered(work.text)
    inputs = random_inputs(program)
    left, right = inputs["A"], inputs["B"]
    expected = work.peer(left, right)
    peer = timed(lambda: work.peer(left, right), RUNS).median
    yield Row(
        f"{work.name}, fp32: numpy", f"{work.operations / peer / 1e9:.3g} GFLOP/s",
        f"{seconds(peer)}; numpy {np.__version__} with its OpenBLAS, one thread, median of {RUNS}",
    )  # fmt: skip
    for what, variant, options in _variants(program, tiled=work.tiled):
        try:
            built = compile_program(variant, options)
        except ConfigError as error:
            yield Row(f"the same, {what}", "not measured", str(error))
            return
        assert np.array_equal(built.run(inputs)["C"], expected)
        took = built.bench(inputs, RUNS).median
        beside = timed(lambda: work.peer(left, right), RUNS).median
        yield Row(
            f"the same, {what}", f"{work.operations / took / 1e9:.3g} GFLOP/s",
            f"{seconds(took)}, {took / beside:.3g} times numpy's time right after; {FLAGS}, one thread, median of "
            f"{RUNS}; results equal",
        )  # fmt: skip


def _variants(program: Program, *, tiled: bool) -> Iterator[tuple[str, Program, CompileOptions]]:
    yield "C as lowered, `reorder`", program, FAST
    if tiled:
        tiles = PassManager(parse_passes(TILES)).run(program)
        yield "C tiled by `autotile` for 32 KiB, `reorder`", tiles, FAST
    yield "C by the pass list `cpu` for this processor", shipped("cpu", "native").run(program), PLAIN
