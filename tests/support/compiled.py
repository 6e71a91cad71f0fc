"""Each example under each shipped pass list, compiled once in a process: the tests of both ask for one run.

Tests that share a run have parameters `of(example)`: xdist gives them to one worker (`tests/support/sharing.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest
from typing_extensions import override

from stripe.config.files import shipped
from stripe.exec.data import random_inputs
from stripe.exec.interp import interpret
from stripe.hw.schema import HardwareModel
from stripe.ir import Program, parse_program, print_program
from stripe.passes.base import Remark
from stripe.pipeline.checks.dependences import DependenceCheck
from stripe.pipeline.checks.proof import ExactCheck
from stripe.pipeline.checks.structure import RoundTripCheck, StructureCheck
from stripe.pipeline.engines import Arrays
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.instrument import Instrument
from stripe.pipeline.manager import PassManager
from stripe.pipeline.setup import read_setup
from stripe.tile import compile_tile
from stripe.verify.policy import ANY

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.tile"))
LISTS = shipped("optconfigs")
LARGE = frozenset({"slides_layer"})
"""Examples with too many points to be run in a test."""
SMALL = [path for path in EXAMPLES if path.stem not in LARGE]
COSTLY = frozenset({"network", "conv_quantized", "slides_layer"})
"""Examples that lists which ask for prices compile for seconds: `make test-long`."""
PROCESSORS = frozenset({"cpu"})
"""Lists that ask for none."""


@dataclass
class Compiled(Instrument):
    """A run like that of `stripe-opt EXAMPLE --config LIST --verify exact --verify-roundtrip --remarks`."""

    hardware: HardwareModel | None
    answers: list[str] = field(default_factory=list[str])
    """The answers of the proof, and its assumptions."""
    remarks: list[tuple[PassEntry, Remark]] = field(default_factory=list[tuple[PassEntry, Remark]])
    _result: Program | None = None

    @property
    def program(self) -> Program:
        """The program after all passes, as it was printed and read."""
        assert self._result is not None
        return self._result

    @property
    def verdicts(self) -> list[str]:
        """The answers of the proof alone."""
        return [line for line in self.answers if not line.startswith("verify: assuming ")]

    @override
    def remark(self, entry: PassEntry, remark: Remark) -> None:
        self.remarks.append((entry, remark))

    @override
    def end(self, program: Program) -> None:
        self._result = parse_program(print_program(program))


@cache
def compiled(example: Path, pass_list: str) -> Compiled:
    """The run of one example under one shipped list, or that of a file."""
    entries, hardware = read_setup([("config", pass_list)], None, {})
    run = Compiled(hardware)
    checks = (
        RoundTripCheck(),
        StructureCheck(hardware),
        ExactCheck(run.answers.append, ANY),
        DependenceCheck(),
    )
    PassManager(entries, hardware, (run, *checks)).run(lowered(example))
    return run


@cache
def lowered(example: Path) -> Program:
    """The example before all passes."""
    return compile_tile(example.read_text("utf-8"), example.name)


@cache
def interpreted(example: Path) -> tuple[Arrays, Arrays]:
    """Random inputs of an example, and the outputs that the interpreter gives before all passes."""
    program = lowered(example)
    inputs = random_inputs(program, 0)
    return inputs, interpret(program, inputs)


def of(example: Path, *values: str) -> object:
    """The parameters `example, *values` of a test; its case is named after the example."""
    names = (Path(value).name.partition(".")[0] for value in values)
    marks = (pytest.mark.long,) if example.stem in COSTLY and PROCESSORS.isdisjoint(values) else ()
    return pytest.param(example, *values, id="-".join((example.stem, *names)), marks=marks)
