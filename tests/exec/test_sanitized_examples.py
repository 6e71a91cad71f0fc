"""The emitted C of the examples, before and after every shipped pass list, under address and undefined sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripe.config.files import find_file, shipped
from stripe.exec.compare import compare, tolerance_for
from stripe.exec.compile import compile_program
from stripe.exec.data import random_inputs
from stripe.exec.interp import interpret
from stripe.hw import load_hardware
from stripe.ir import Program
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import hardware_of, load_pass_list
from stripe.tile import compile_tile
from tests.support.compilers import sanitized

LARGE = {"slides_layer"}
"""Too many points to be run in a test."""
EXAMPLES = sorted(p for p in (Path(__file__).parents[2] / "examples").glob("*.tile") if p.stem not in LARGE)
SHORT = {"conv_bias_relu", "average_pool"}


def _after(program: Program, name: str) -> Program:
    path = find_file(name, "optconfigs")
    hardware = load_hardware(hardware_of(path) or "dsp_conv", {})
    return PassManager(load_pass_list(path, hardware.parameters).entries, hardware).run(program)


def _is_clean(program: Program, before: Program) -> None:
    inputs = random_inputs(before, 0)
    given = {ref.name: inputs[ref.name] for ref in program.inputs}
    result = compile_program(program, sanitized()).run(given)
    assert not compare(interpret(before, inputs), result, tolerance_for(before))


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.stem in SHORT], ids=lambda path: path.stem)
def test_some_examples_are_clean(example: Path) -> None:
    program = compile_tile(example.read_text("utf-8"), example.name)
    _is_clean(_after(program, "dsp_conv"), program)


@pytest.mark.slow
@pytest.mark.parametrize("pass_list", ["", *shipped("optconfigs")], ids=lambda name: name or "none")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_clean(example: Path, pass_list: str) -> None:
    program = compile_tile(example.read_text("utf-8"), example.name)
    _is_clean(_after(program, pass_list) if pass_list else program, program)
