"""The JSON5 reader agrees with the package json5, knows where things stand, and explains what it refuses."""

from __future__ import annotations

import json
import math

import json5
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from stripe.config.json5 import JsonSyntaxError, parse_json5, value_at
from stripe.ir.text.json_place import json_path

_TEXTS = [
    "{}", "[]", "null", " true ", "[1, 2,]", "{a: 1, 'b': 2, \"c\": 3,}", "// c\n1", "/* c */ [1 /* d */, 2]",
    "[0x1F, .5, 5., +3, -0x10, 1e3, -1.5E-2, 0, -0]", '"a\\n\\u0041\\x41\\\nb\\q"', "{$a_1: 'it\"s'}",
    "[Infinity, -Infinity]",
    "{a: {b: [{c: 1}]}}", "{ünï: 1}", "\ufeff\u00a0[]", "['\\'', \"\\\\\"]",
]  # fmt: skip


@pytest.mark.parametrize("text", _TEXTS)
def test_agrees_with_json5(text: str) -> None:
    assert parse_json5(text).data == json5.loads(text)


_VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(_VALUES, st.sampled_from([None, 2]), st.booleans())
def test_reads_what_json_writes(value: JsonValue, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    read = parse_json5(text)
    assert read.data == value
    for path, offset in read.offsets.values.items():
        part = value_at(value, path)
        if isinstance(part, str):
            assert text[offset] == '"'
        if isinstance(part, (list, dict)):
            assert text[offset] in "[{"
    assert all(text[offset] == '"' for offset in read.offsets.keys.values())


@given(st.text(alphabet="{}[]:,'\"/*ab01.-+xe \n\\“”", max_size=30))
def test_reads_or_explains(text: str) -> None:
    try:
        read = parse_json5(text)
    except JsonSyntaxError as error:
        assert 0 <= error.offset <= len(text)
        return
    try:
        other = json5.loads(text)
    except (ValueError, RecursionError):
        return  # we read texts in lists without commas between them, and json5 has faults with some numbers
    assert read.data == other or (isinstance(other, float) and math.isnan(other))


def outcome(text: str) -> str:
    try:
        return repr(parse_json5(text).data)
    except JsonSyntaxError:
        return "refused"


@given(
    st.text(alphabet="{}[]:,'\"\\01.-e \n", max_size=12)
    | st.lists(st.sampled_from([*"{}[],:", '"a"', '"b,]"', "1e999", "-0", "1.5", " ", "NaN"])).map("".join)
)
def test_the_fast_reader_differs_in_nothing(text: str) -> None:
    """A comment takes the reader to its own grammar; without one the standard library reads what is plain JSON."""
    assert outcome(text) == outcome(text + "//")


@pytest.mark.parametrize(
    "text", ["[,]", "{,}", "[1,]", '{"a": 1,}', "[1,,]", '["a,]",]', "[1e999]", "[-0]", "[" * 99 + "]" * 99]
)
def test_commas_and_numbers_of_the_fast_reader(text: str) -> None:
    assert outcome(text) == outcome(text + "//")


def test_texts_in_a_list_need_no_commas() -> None:
    assert parse_json5('[ "a" \'b\', "c" ]').data == ["a", "b", "c"]


def test_nan() -> None:
    value = parse_json5("NaN").data
    assert isinstance(value, float) and math.isnan(value)


@pytest.mark.parametrize(
    ("text", "offset", "reason"),
    [
        ('{”a": 1}', 1, 'a typographic quote ” (U+201D) stands where a straight " belongs'),
        ('{"a”: 1, "b": 2}', 3, 'a typographic quote ” (U+201D) stands where a straight " belongs'),
        ('{"a”: 1\n}', 3, 'a typographic quote ” (U+201D) stands where a straight " belongs'),
        ("['a’]", 3, "a typographic quote ’ (U+2019) stands where a straight ' belongs"),
        ('{"a": 1 … }', 8, "an ellipsis '…' (U+2026) is no part of JSON"),
        ("[1 2]", 3, "expected ',' or ']', found '2'"),
        ('{"a" 1}', 5, "expected ':' after the key 'a', found '1'"),
        ('{"a": 1', 7, "the text ends where ',' or '}' should be"),
        ("", 0, "the text ends where a value should be"),
        ("{} {}", 3, "expected the end of the file, found '{'"),
        ("[conv]", 1, "expected a value, found 'conv'"),
        ("{a: 1, a: 2}", 7, "the key 'a' stands here twice"),
        ("[\x07]", 1, "expected a value, found the character U+0007"),
        ("{1: 2}", 1, "expected a key, found '1'"),
        ("[012]", 2, "'0' goes on with a character that numbers do not have"),
        ("[12px]", 3, "'12' goes on with a character that numbers do not have"),
        ("[" + "9" * 500 + "]", 1, "this number is too long"),
        ("[" * 200, 100, "nested deeper than 100 levels"),
        ("/* c", 0, "this comment has no end"),
        ('["abc]', 1, "this string has no end"),
        ('["\\ud800"]', 1, "an escape '\\u' in this string gives half a character"),
        ('["\\u12G4"]', 2, "'\\u' wants 4 hexadecimal digits"),
    ],
)
def test_refuses(text: str, offset: int, reason: str) -> None:
    with pytest.raises(JsonSyntaxError) as caught:
        parse_json5(text)
    assert (caught.value.reason, caught.value.offset) == (reason, offset)


def test_a_closed_string_with_a_typographic_quote_is_not_blamed() -> None:
    with pytest.raises(JsonSyntaxError, match="expected ',' or '}'"):
        parse_json5('{"a": "the ‘so-called’ “unit” x" "b": 1}')


def test_paths_are_written_as_people_write_them() -> None:
    assert json_path(("buses", 2, "sinks", 0)) == "$.buses[2].sinks[0]"
    assert json_path(("a b", "c")) == "$['a b'].c"
    assert json_path(()) == "$"
