"""The promises of every registered pass: a valid program of its stage that text and JSON give back, equal results, the
same object without a change."""

from __future__ import annotations

import json
from functools import lru_cache

import pytest
from hypothesis import HealthCheck, given, reject, settings

from stripe.exec.interp import interpret
from stripe.hw import load_hardware
from stripe.ir import (
    Block,
    ConfigError,
    Program,
    map_statements,
    parse_program,
    print_program,
    verify_structural,
    with_entry,
)
from stripe.ir.frozen import replace
from stripe.ir.text.json_ir import parse_json, program_json
from stripe.passes.base import PassContext, Selection
from stripe.passes.registry import BUILTIN, find_pass
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.instrument import Instrument
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes
from stripe.tile import bind, lower, parse_tile
from tests.passes.kernels import program_of
from tests.passes.programs import assert_same_results
from tests.passes.random_kernels import Made, programs


class Promises(Instrument):
    """Checks each pass of a run."""

    def begin(self, program: Program) -> None:
        require_forms(program)

    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        assert after is before or after != before, f"{entry.label} changed nothing and made a new program"
        require_forms(after)


@lru_cache(maxsize=256)
def require_forms(program: Program) -> None:
    """The program is valid, and text and JSON give it back. (All passes begin with the same programs.)"""
    text = print_program(program)
    assert verify_structural(program, program.stage) == [], text
    again = parse_program(text)
    assert again == program
    assert print_program(again) == text
    assert parse_json(json.dumps(program_json(program))) == program


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_a_pass_keeps_its_promises(name: str) -> None:
    """With the options, the entries before and the machine of its example."""
    case = find_pass(name).example
    entries = parse_passes(",".join([*case.after, f"{name}{{{case.options}}}"]))
    manager = PassManager(entries, load_hardware(case.hardware), (Promises(),))

    @settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
    @given(programs())
    def check(made: Made) -> None:
        kernels, shapes, outputs = made
        before = program_of(kernels, shapes, outputs)
        try:
            after = manager.run(before)
        except ConfigError:  # a machine too small for the program
            reject()
        assert_same_results(before, after)

    check()


@pytest.mark.parametrize("name", sorted(BUILTIN))
@settings(max_examples=2)
@given(made=programs())
def test_a_pass_that_matches_nothing_gives_back_its_program(name: str, made: Made) -> None:
    pass_class = find_pass(name)
    (entry,) = parse_passes(f"{name}{{{pass_class.example.options}}}")
    tags = {field: ("absent",) for field in ("reqs", "a_reqs") if field in pass_class.model_fields}
    if not tags:
        return
    program = program_of(*made)
    model = load_hardware(pass_class.example.hardware)
    assert entry.pass_.model_copy(update=tags).run(program, PassContext(model)) is program


KERNELS = """function (A[M=16, K=8], B[K, N=16]) -> (D) {
    C[i, j : M, N] = +(A[i, k] * B[k, j]);
    D = relu(C) + as_float(index(C, 0), 32);
}"""


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_words_of_fields_select_as_tags_do(name: str) -> None:
    """Options select the same blocks by a tag as by the word of a field, `pipeline_depth`, that these have."""
    case = find_pass(name).example
    *needed, entry = parse_passes(",".join([*case.after, f"{name}{{{case.options}}}"]))
    selecting = [
        option
        for option, field in type(entry.pass_).model_fields.items()
        if any(isinstance(each, Selection) for each in field.metadata)
    ]
    words = [getattr(entry.pass_, option) for option in selecting]
    model = load_hardware(case.hardware)
    program = PassManager(tuple(needed), model).run(lower(bind(parse_tile(KERNELS)), "p"))

    def marked(block: Block) -> Block:
        block = map_statements(block, lambda s: marked(s) if isinstance(s, Block) else s)
        if not any(block.words.has_all(each) for each in words):
            return block
        return replace(block, tags=block.tags.add("marked"), pipeline_depth=2)

    program = with_entry(program, marked(program.entry))
    by_tag, by_field = (
        entry.pass_.model_copy(update=dict.fromkeys(selecting, (word,))).run(
            program, PassContext(model, evaluate=interpret)
        )
        for word in ("marked", "pipeline_depth")
    )
    assert by_field == by_tag
