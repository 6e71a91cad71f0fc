"""The emitted C of the examples, before and after every shipped pass list, under address and undefined sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripe.exec.compare import compare, tolerance_for
from stripe.exec.compile import compile_program
from stripe.ir import Program
from tests.support.compiled import LISTS, SMALL, compiled, interpreted, lowered, of
from tests.support.compilers import sanitized

SHORT = {"conv_bias_relu", "average_pool"}


def _is_clean(program: Program, example: Path) -> None:
    inputs, expected = interpreted(example)
    given = {ref.name: inputs[ref.name] for ref in program.inputs}
    result = compile_program(program, sanitized()).run(given)
    assert not compare(expected, result, tolerance_for(lowered(example)))


@pytest.mark.parametrize("example", [of(e) for e in SMALL if e.stem in SHORT])
def test_some_examples_are_clean(example: Path) -> None:
    _is_clean(compiled(example, "dsp_conv").program, example)


@pytest.mark.slow
@pytest.mark.parametrize("example", [of(e) for e in SMALL])
def test_every_example_is_clean_before_all_passes(example: Path) -> None:
    _is_clean(lowered(example), example)


@pytest.mark.slow
@pytest.mark.parametrize(("example", "pass_list"), [of(e, name) for e in SMALL for name in LISTS])
def test_every_example_is_clean(example: Path, pass_list: str) -> None:
    _is_clean(compiled(example, pass_list).program, example)
