"""Each example under each shipped pass list, compiled once in a process: the tests of both ask for one run.

Tests that share a run have parameters `of(example)`: xdist gives them to one worker (`tests/support/sharing.py`).
"""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from stripe.cli.start import opt
from stripe.config.files import shipped
from stripe.exec.data import random_inputs
from stripe.exec.interp import interpret
from stripe.ir import Program, parse_program
from stripe.pipeline.engines import Arrays
from stripe.tile import compile_tile

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.tile"))
LISTS = shipped("optconfigs")
LARGE = frozenset({"slides_layer"})
"""Examples with too many points to be run in a test."""
SMALL = [path for path in EXAMPLES if path.stem not in LARGE]


@dataclass(frozen=True)
class Compiled:
    """A run of `stripe-opt EXAMPLE --config LIST --verify exact --verify-roundtrip --remarks`."""

    status: int
    out: str
    err: str

    @property
    def program(self) -> Program:
        """The program after all passes."""
        assert self.status == 0, self.err
        return parse_program(self.out)

    @property
    def verdicts(self) -> list[str]:
        """The answers of the proof; `--remarks` adds their assumptions, which are no answers."""
        lines = [line for line in self.err.splitlines() if line.startswith("verify: ")]
        return [line for line in lines if not line.startswith("verify: assuming ")]


@cache
def compiled(example: Path, pass_list: str) -> Compiled:
    """The run of one example under one shipped list."""
    words = [str(example), "--config", pass_list, "--verify", "exact", "--verify-roundtrip", "--remarks"]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        status = opt(words)
    return Compiled(status, out.getvalue(), err.getvalue())


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


def of(example: Path, *values: object) -> object:
    """The parameters `example, *values` of a test; its case is named after the example."""
    return pytest.param(example, *values, id="-".join((example.stem, *(str(value) for value in values))))
