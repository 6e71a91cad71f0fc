"""Names with options as `--passes`, `--emit` and `--engine` take them: read, refused with a column, printed back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from stripe.config.spelling import Spelled, print_spelled, read_one, read_spelled
from stripe.ir import ConfigError
from stripe.pipeline.passlist import entry_json, parse_passes, spell


def test_names_options_and_nested_values() -> None:
    text = 'a1:fusion{a_reqs=[conv, "x y"],n=-3,f=2.5,on=true,off=null,loc={name:SRAM,unit="2*i"}}, dce'
    assert read_spelled(text, "--passes") == (
        Spelled(
            "a1",
            "fusion",
            {
                "a_reqs": ["conv", "x y"],
                "n": -3,
                "f": 2.5,
                "on": True,
                "off": None,
                "loc": {"name": "SRAM", "unit": "2*i"},
            },
            4,
        ),
        Spelled("dce", "dce", {}, text.index("dce") + 1),
    )


def test_trailing_commas_and_empty_braces_are_taken() -> None:
    (only,) = read_spelled("p{a=[1,2,],b={},c=[],}", "--passes")
    assert only.options == {"a": [1, 2], "b": {}, "c": []}
    assert read_spelled("p{}", "--passes")[0].options == {}


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("", 1, "no pass is named"),
        ("dce,", 5, "expected the name of a pass"),
        ("dce dce", 5, "unexpected 'd'"),
        ("dce{", 5, "expected the name of an option"),
        ("dce{a}", 6, "expected '=' after 'a'"),
        ("dce{a=}", 7, "expected a value"),
        ("dce{a=[1", 9, "expected ',' or ']'"),
        ("dce{a=1,a=2}", 10, "'a' stands here twice"),
        ("dce{a={b 1}}", 10, "expected ':' after 'b'"),
        ('dce{a="x', 7, "expected a value"),
        ("dce{a=1e400}", 7, "this number is too large"),
        ("dce{a=[1, -1e400]}", 11, "this number is too large"),
        ("dce{a=" + "[" * 60, 57, "nested too deeply"),
        ("dce}", 4, "unexpected '}'"),
    ],
)
def test_errors_have_a_column_and_a_reason(text: str, column: int, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_spelled(text, "--passes")
    assert (caught.value.path, caught.value.col, caught.value.reason) == ("--passes", column, reason)


def test_one_name_is_read_alone() -> None:
    assert read_one("c{openmp=true}", "--emit", "target") == Spelled("c", "c", {"openmp": True}, 1)
    with pytest.raises(ConfigError, match="one target is due, found 2") as caught:
        read_one("c,dot", "--emit", "target")
    assert (caught.value.path, caught.value.col) == ("--emit", 3)
    with pytest.raises(ConfigError, match="no target is named"):
        read_one(" ", "--emit", "target")


_NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
_VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(_NAMES, _NAMES, st.dictionaries(_NAMES, _VALUES, max_size=3))
def test_what_is_printed_reads_back(name: str, pass_name: str, options: dict[str, JsonValue]) -> None:
    (again,) = read_spelled(print_spelled(name, pass_name, options), "--passes")
    assert (again.label, again.name, again.options) == (name, pass_name, options)


def test_a_pass_prints_to_its_own_specification() -> None:
    text = "loc:locate{reqs=conv,loc={name:CONV,unit:1}},prune_idxs,reorder_indexes{recursive=false}"
    entries = parse_passes(text)
    printed = spell(entries)
    assert parse_passes(printed) == entries
    assert printed == (
        "loc:locate_block{reqs=[conv],loc={name:CONV,unit:1}},prune_idxs:prune_indexes,"
        "reorder_indexes{recursive=false}"
    )


def test_a_word_is_read_by_the_type_of_its_option() -> None:
    (entry,) = parse_passes("dce{reqs=true}")
    assert entry_json(entry)["dce"] == {"reqs": ["true"]}
    (entry,) = parse_passes("autotile{max_total_size=1e3,fixed={i:4}}")
    assert entry_json(entry)["autotile"] == {"max_total_size": 1000, "fixed": {"i": 4}}


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("dce,localise", "--passes:1:5: error: unknown pass 'localise'", "did you mean 'localize'?"),
        (
            "reorder_indexes{recursiv=1}",
            "--passes:1:17: $.reorder_indexes.recursiv: error: unknown key 'recursiv'",
            "did you mean 'recursive'?",
        ),
        ("dce,locate{loc={name:X}}", "--passes:1:5: $.locate: error: the key 'reqs' is missing", ""),
        (
            "dce, autotile{cache_width=64, fixed={i:x}}",
            "--passes:1:40: $.autotile.fixed.i: error: expected a whole number, found 'x'",
            "",
        ),
        (
            'dce,autotile{"cache_width" : [3]}',
            "--passes:1:30: $.autotile.cache_width: error: expected a whole number",
            "",
        ),
        (
            "reorder_indexes{recursive=maybe}",
            "--passes:1:27: $.reorder_indexes.recursive: error: expected true or false, found 'maybe'",
            "",
        ),
        (
            "reorder_indexes{recursive=yes}",
            "$.reorder_indexes.recursive: error: expected true or false, found 'yes'",
            "write true",
        ),
        ('autotile{cache_width="3"}', "expected a whole number, found '3'", "write 3, without quotes"),
    ],
)
def test_wrong_passes_and_options_are_named_with_their_place(text: str, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_passes(text)
    assert message in str(caught.value)
    assert hint in str(caught.value)
