"""Passes and pass lists: how they grow with the program, and how fast tiles are searched."""

from __future__ import annotations

import gc
import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from benchmarks import programs
from benchmarks.measure import Row, limited, seconds, timed
from stripe.hw import load_hardware
from stripe.hw.schema import HardwareModel
from stripe.ir import Program
from stripe.passes.autotile.autotile import Autotile
from stripe.passes.base import PassContext, Remark
from stripe.pipeline.checks.structure import StructureCheck
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.instrument import Instrument
from stripe.pipeline.manager import PassManager
from stripe.pipeline.setup import read_setup

SIZES = (10, 30, 100, 300, 1000)
TILED = "function (I[H=1024, W=1024, CI=32]: i8, K[KH=3, KW=3, CI, CO=64]: i8) -> (O) {\n" \
        "  O[x, y, co : H, W, CO] = +(I[x + i - 1, y + j - 1, ci] * K[i, j, ci, co]);\n}\n"  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A shipped pass list with the machine that it is for, if any."""

    entries: tuple[PassEntry, ...]
    hardware: HardwareModel | None

    def run(self, program: Program, *watchers: Instrument) -> Program:
        """The program after all passes, its structure checked after each, as the command line does."""
        checks = (*watchers, StructureCheck(self.hardware))
        return PassManager(self.entries, self.hardware, checks).run(program)


@lru_cache
def shipped(name: str, machine: str | None = None) -> Pipeline:
    """The pass list `name` with the default parameters of `machine`, or of the machine that it names."""
    return Pipeline(*read_setup([("config", name)], machine, {}))


def rows() -> Iterator[Row]:
    yield from _growth()
    yield from _tiles()


def _growth() -> Iterator[Row]:
    pipeline = shipped("dsp_conv")
    medians: list[
        float
    ] = []  # of processor time: a slope over minutes must not follow what else the machine does
    for size in SIZES:
        program = programs.lowered(programs.convolutions(size))
        gc.collect()
        times = timed(
            lambda program=program: pipeline.run(program), 5 if size < 300 else 3, warm_up=size < 300
        )
        medians.append(statistics.median(times.cpu))
        if size == SIZES[-1]:
            how = "convolutions, biases, residual additions and ReLUs; with the structural check after each pass"
            yield limited(f"{size} kernels through `dsp_conv`", times, 60.0, how)
    per_kernel = ", ".join(f"{seconds(t / n)} at {n}" for n, t in zip(SIZES, medians, strict=True))
    slope = statistics.linear_regression([math.log(n) for n in SIZES], [math.log(t) for t in medians]).slope
    yield Row(
        f"log-log slope of time over kernels, {SIZES[0]} to {SIZES[-1]}", f"{slope:.2f}",
        f"processor time per kernel: {per_kernel}", "under 1.1", slope < 1.1,
    )  # fmt: skip


class _Counted:
    """Listens to remarks and keeps what `autotile` tells of its search."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, remark: Remark) -> None:
        if " tiles, by " in remark.message:
            self.text = remark.message.splitlines()[0]


def _tiles() -> Iterator[Row]:
    program = programs.lowered(TILED)
    hardware = load_hardware("dsp_conv")
    tile = Autotile.model_validate({"reqs": ["contraction"], "memory": "SRAM"})
    said = _Counted()
    tile.run(program, PassContext(hardware, said))
    times = timed(lambda: tile.run(program, PassContext(hardware)), 5)
    kernel = next(program.main.blocks)
    space = math.prod(index.range for index in kernel.iterated)
    rate = space / times.median
    yield Row(
        "`autotile`: tilings of the slides' layer decided per second", f"{rate:.3g}/s",
        f"{space:.3g} tilings in {seconds(times.median)} ({times}), most of them pruned by bounds: {said.text}",
        "at least 1e+06/s a core", rate >= 1e6,
    )  # fmt: skip
