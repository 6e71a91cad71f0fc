"""Counting points, and proving passes."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from typing_extensions import override

from benchmarks import programs
from benchmarks.measure import FOLDER, Row, limited, seconds, timed
from benchmarks.passes import shipped
from stripe.ir import Nest, Program, Store, walk
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.instrument import Instrument
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes
from stripe.poly import count_domain
from stripe.tile import compile_tile
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Equal

LISTS = ("minimal", "cpu", "dsp_conv", "slides")
KERNELS = 100
STRAIGHT = """function (I[X=64, C=8]: fp32, B[C]: fp32) -> (R, Q) {
  S[x, c : X, C] = =(I[x, c]);
  T = S + B;
  R = relu(T);
  Q[c : C] = +(S[x, c]);
}
"""


def rows() -> Iterator[Row]:
    yield _counting()
    yield from _examples()
    yield from _long_program()
    yield _straight_line()


def _counting() -> Row:
    program = compile_tile((FOLDER / "examples" / "slides_layer.tile").read_text(), "slides_layer.tile", {})
    layer = next(program.main.blocks)
    points = count_domain(Nest.root(layer).domain)
    times = timed(lambda: count_domain(Nest.root(layer).domain), 11)
    return limited(f"count the {points:,} points of the slides' layer", times, 0.01, "target: milliseconds")


@dataclass
class _Prover(Instrument):
    """Proves each pass and keeps how long that took."""

    example: str
    seconds: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    unproved: list[str] = field(default_factory=list[str])

    @override
    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        if after is before:
            return
        started = perf_counter()
        verdict = prove_equal(before, after)
        name = f"{self.example}, {entry.name}"
        self.seconds.append((perf_counter() - started, name))
        if not isinstance(verdict, Equal):
            self.unproved.append(name)


def _proved(path: Path, name: str) -> _Prover:
    program = compile_tile(path.read_text(encoding="utf-8"), path.name, {})
    prover = _Prover(f"{path.stem} by {name}")
    shipped(name).run(program, prover)
    return prover


def _examples() -> Iterator[Row]:
    found: list[tuple[float, str]] = []
    unproved: list[str] = []
    for path in sorted((FOLDER / "examples").glob("*.tile")):
        for name in LISTS:
            prover = _proved(path, name)
            found += prover.seconds
            unproved += prover.unproved
    median = statistics.median(each for each, _ in found)
    worst, where = max(found)
    runs = f"{len(found)} passes that changed an example, lists {', '.join(LISTS)}, once each"
    yield Row("prove a pass: median", seconds(median), runs, "under 20 ms", median < 0.02)
    yield Row("prove a pass: worst", seconds(worst), where, "under 1 s", worst < 1.0)
    named = f": {'; '.join(unproved[:5])}" if unproved else ""
    yield Row("passes not proved equal", str(len(unproved)), f"of {len(found)}{named}", "0", not unproved)


def _long_program() -> Iterator[Row]:
    chains = (
        ("dsp_conv", "convolutions", programs.convolutions),
        ("dsp_conv", "matrix products", programs.matmuls),
        ("slides", "convolutions", programs.convolutions),
    )
    for name, what, text in chains:
        program = programs.lowered(text(KERNELS))
        provers: list[_Prover] = []

        def run(program: Program = program, name: str = name, provers: list[_Prover] = provers) -> None:
            provers.append(_Prover(""))
            shipped(name).run(program, provers[-1])

        times = timed(run, 3, warm_up=False)
        last = provers[-1]
        proof = sum(each for each, _ in last.seconds)
        how = f"passes and checks included, {seconds(proof)} of it proofs; not proved: {len(last.unproved)}"
        yield limited(f"prove all of `{name}` on {KERNELS} kernels, {what}", times, 30.0, how)


def _straight_line() -> Row:
    """Code without loops: every statement reads and writes elements of buffers that all others write, too."""
    before = programs.lowered(STRAIGHT)
    after = PassManager(parse_passes("unroll{reqs=[kernel],max_points=1024}")).run(before)
    stores = sum(isinstance(each, Store) for _, block in walk(after.entry) for each in block.statements)
    verdict = prove_equal(before, after)
    times = timed(lambda: prove_equal(before, after), 3, warm_up=False)
    return limited(f"prove the unrolling of 4 kernels into {stores:,} stores", times, 10.0, str(verdict))
