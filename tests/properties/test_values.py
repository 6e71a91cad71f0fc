"""Values of the IR are frozen, and the three spellings of a pass denote one value."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from stripe.config.document import parse_document
from stripe.ir import print_program
from stripe.passes.base import Pass, TagReqs, TagSet
from stripe.passes.registry import BUILTIN, find_pass
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.passlist import entry_json, parse_passes, read_pass_list, spell
from tests.passes.kernels import program_of
from tests.passes.random_kernels import Made, programs


def parts(value: object) -> Iterator[object]:
    """The dataclasses that a value of the IR is made of."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in dataclasses.fields(value):
            yield from parts(getattr(value, field.name))
    elif isinstance(value, tuple):
        for item in value:
            yield from parts(item)


@settings(max_examples=5)
@given(programs())
def test_values_of_the_ir_are_frozen_slotted_and_hashable(made: Made) -> None:
    program = program_of(*made)
    text = print_program(program)
    seen: set[type] = set()
    for value in parts(program):
        assert not hasattr(value, "__dict__")
        assert isinstance(hash(value), int)
        for field in dataclasses.fields(value) if type(value) not in seen else ():  # pyright: ignore[reportArgumentType]
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(value, field.name, None)
        seen.add(type(value))
    assert print_program(program) == text


WORDS = st.lists(
    st.sampled_from(["kernel", "conv", "my.tag-2", "true", "x y".replace(" ", "_")]), max_size=3
).map(tuple)
VALUES: dict[object, st.SearchStrategy[object]] = {
    bool: st.booleans(),
    int: st.integers(-4, 4096),
    float: st.floats(0, 1e6, allow_nan=False) | st.integers(0, 9).map(float),
    int | None: st.none() | st.integers(1, 64),
    TagReqs: WORDS,
    TagSet: WORDS,
    dict[str, int]: st.dictionaries(st.sampled_from(["k", "m", "n"]), st.integers(1, 16), max_size=3),
}
"""Values of options by their types; options of other types keep the value of the example."""


@st.composite
def passes(draw: st.DrawFn, pass_class: type[Pass]) -> Pass:
    """A pass with drawn options."""
    (entry,) = parse_passes(f"{pass_class.pass_name}{{{pass_class.example.options}}}")
    drawn = {
        field.alias or name: draw(VALUES[field.annotation])
        for name, field in pass_class.model_fields.items()
        if field.annotation in VALUES and draw(st.booleans())
    }
    try:
        return pass_class.model_validate(entry.pass_.model_dump(by_alias=True, exclude_unset=True) | drawn)
    except ValidationError:
        reject()


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_the_spellings_of_a_pass_denote_one_value(name: str) -> None:
    """JSON, `--passes` and the class."""

    @settings(max_examples=15)
    @given(passes(find_pass(name)))
    def check(pass_: Pass) -> None:
        entry = PassEntry("mine", pass_)
        document = parse_document(json.dumps({"passes": [entry_json(entry)]}), "list.json")
        assert read_pass_list(document).entries == (entry,)
        assert parse_passes(spell((entry,))) == (entry,)

    check()
