"""The block before and after in the docstring of each pass: the pass makes the one of the other."""

from __future__ import annotations

import inspect

import pytest

from stripe.exec.interp import interpret
from stripe.hw import load_hardware
from stripe.ir import print_program
from stripe.passes.base import PassContext
from stripe.passes.registry import BUILTIN, find_pass
from tests.support.sketch import completed, fits, sides


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_the_docstring_shows_what_the_pass_does(name: str) -> None:
    pass_class = find_pass(name)
    options, before, after = sides(inspect.getdoc(pass_class) or "")
    program = completed(before)
    result = pass_class.model_validate_json(options).run(
        program, PassContext(load_hardware(pass_class.example.hardware), evaluate=interpret)
    )
    text = print_program(result)
    assert result is not program
    assert fits(after, text) == "", text
