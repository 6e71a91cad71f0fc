"""Emitted C against a library that people use, on the same data, on one core, in the same run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import programs
from benchmarks.measure import Row, seconds, timed
from stripe.exec.compile import CompileOptions, compile_program
from stripe.exec.data import random_inputs
from stripe.ir import ConfigError, Program
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes

SIZE = 512
RUNS = 7
TILES = "autotile{reqs=[contraction],max_total_size=32768,outer_set=[tiled],inner_set=[tile]}"
FAST = CompileOptions(level="O3", native=True, reorder=True)
PLAIN = CompileOptions(level="O3", native=True)


def rows() -> Iterator[Row]:
    program = programs.lowered(programs.matmul(SIZE))
    inputs = random_inputs(program)
    left, right = inputs["A"], inputs["B"]
    flops = 2 * SIZE**3
    peer = timed(lambda: left @ right, 21).median
    yield Row(
        f"matrix product {SIZE}x{SIZE}x{SIZE}, fp32: numpy", f"{flops / peer / 1e9:.3g} GFLOP/s",
        f"{seconds(peer)}; numpy {np.__version__} with its OpenBLAS, one thread, median of 21",
    )  # fmt: skip
    tiled = PassManager(parse_passes(TILES)).run(program)
    variants: list[tuple[str, Program, CompileOptions]] = [
        ("C as lowered", program, PLAIN),
        ("C as lowered, `reorder`", program, FAST),
        ("C tiled by `autotile` for 32 KiB, `reorder`", tiled, FAST),
    ]
    for what, variant, options in variants:
        try:
            built = compile_program(variant, options)
        except ConfigError as error:
            yield Row(f"the same, {what}", "not measured", str(error))
            return
        assert np.array_equal(built.run(inputs)["C"], left @ right)
        took = built.bench(inputs, RUNS).median
        yield Row(
            f"the same, {what}", f"{flops / took / 1e9:.3g} GFLOP/s",
            f"{seconds(took)}, {took / peer:.3g} times numpy's time; -O3 -march=native, one thread, median of {RUNS}; "
            "results equal",
        )  # fmt: skip
