"""Programs as JSON: they read back as they were, follow the schema, and wrong ones are refused with the JSON path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripe.ir import Program, StripeError, check_magnitude, parse_program, print_program, verify_structural
from stripe.ir.text.json_ir import json_schema, parse_json, program_json
from stripe.tile import compile_tile
from tests.support.programs import source

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").rglob("*.tile"))
GOLDEN = sorted((ROOT / "tests" / "golden").rglob("*.stripe"))
TILE_GOLDEN = sorted((ROOT / "tests" / "golden").rglob("*.tile"))


KINDS: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "integer": int, "number": int | float, "boolean": bool,
    "null": type(None),
}  # fmt: skip


def round_trip(program: Program) -> str:
    """The JSON text of a program that has read back as it was."""
    text = json.dumps(program_json(program), allow_nan=False)
    again = parse_json(text)
    assert again == program
    assert print_program(again) == print_program(program)
    check_schema(json.loads(text), json_schema(), json_schema())
    return text


def check_schema(value: Any, schema: Any, whole: Any) -> None:
    """Asserts that `value` follows `schema`, of whose words those are known that ours uses."""
    fields: Any = value
    for word, wanted in schema.items():
        match word:
            case "$ref":
                check_schema(value, whole["$defs"][wanted.rpartition("/")[2]], whole)
            case "type":
                names = wanted if isinstance(wanted, list) else [wanted]
                fitting = [name for name in names if isinstance(value, KINDS[name])]
                assert fitting, (value, wanted)
                assert not isinstance(value, bool) or "boolean" in names, (value, wanted)
            case "required":
                assert set(wanted) <= fields.keys(), (value, wanted)
            case "properties":
                for key in fields.keys() & wanted.keys():
                    check_schema(fields[key], wanted[key], whole)
            case "additionalProperties":
                for key in fields.keys() - schema.get("properties", {}).keys():
                    assert wanted, (key, value)
                    check_schema(fields[key], wanted, whole)
            case "items":
                for item in fields:
                    check_schema(item, wanted, whole)
            case "anyOf":
                assert any(_follows(value, option, whole) for option in wanted), value
            case "const":
                assert value == wanted
            case "enum":
                assert value in wanted
            case _:
                assert word in ("description", "title", "$defs"), word


def _follows(value: Any, schema: Any, whole: Any) -> bool:
    try:
        check_schema(value, schema, whole)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_read_back(path: Path) -> None:
    round_trip(compile_tile(path.read_text("utf-8"), str(path), {}))


def _parts(path: Path) -> Iterator[str]:
    return (part for part in re.split(r"^// -----$", path.read_text("utf-8"), flags=re.MULTILINE) if part)


@pytest.mark.long
def test_golden_programs_read_back() -> None:
    """All golden inputs that are programs; some are there to be refused."""
    read = 0
    for path in (*GOLDEN, *TILE_GOLDEN):
        for part in _parts(path):
            try:
                program = (
                    parse_program(part) if path.suffix == ".stripe" else compile_tile(part, str(path), {})
                )
            except StripeError:
                continue
            read += 1
            round_trip(program)
    assert read > 100


def test_every_kind_of_node() -> None:
    made = json.loads(round_trip(parse_program(source("everything"))))
    main = made["entry"]["statements"][0]
    kernel, gather = main["statements"]
    assert (gather["op"], gather["outputs"], gather["inputs"], gather["deps"]) == (
        "gather",
        ["G"],
        ["D", "I"],
        [0],
    )
    assert kernel["tags"] == {"kernel": None, "pid": 'x "y"', "scale": 0.5}
    assert kernel["indices"][1] == {"name": "j", "range": 2, "affine": None, "tags": {"hot": None}}
    assert kernel["refinements"][1]["bank_dim"] == 0
    assert [device["name"] for device in kernel["refinements"][1]["location"]] == ["A", "B"]
    inner = kernel["statements"][0]
    assert [statement["kind"] for statement in inner["statements"]] == [
        "load", "load_index", "intrinsic", "constant", "intrinsic", "store",
    ]  # fmt: skip
    assert inner["statements"][3]["value"] == "-inf"
    assert made["constants"] == [{"name": "T", "dtype": "fp32", "sizes": [2], "data": "0000803f00000040"}]


KERNEL = ("entry", "statements", 0, "statements", 0)
INNER = (*KERNEL, "statements", 0)


@pytest.mark.parametrize(
    ("path", "value", "message", "hint"),
    [
        (("stripe_ir",), 7, "$: error: this is no program as JSON", '"stripe_ir": 1'),
        ((*KERNEL, "indices", 0, "range"), "8", '$.entry.statements[0].statements[0].indices[0].range: error: '
         'expected a whole number, found "8"', ""),
        ((*KERNEL, "indices", 0, "range"), True, "expected a whole number, found true", ""),
        ((*KERNEL, "indices"), 3, "indices: error: expected a list, found 3", ""),
        ((*KERNEL, "refinements", 0, "dtype"), "fp23", "dtype: error: unknown dtype 'fp23'", "did you mean 'fp32'?"),
        ((*KERNEL, "refinements", 0, "dir"), "int", "dir: error: unknown direction 'int'", "'in'"),
        ((*KERNEL, "refinements", 1, "agg"), "mix", "unknown agg 'mix'", "did you mean"),
        ((*KERNEL, "kind"), "bloc", "kind: error: unknown kind 'bloc'", "did you mean 'block'?"),
        (("entry", "kind"), "load", "$.entry: error: a block stands here, not a load", ""),
        ((*KERNEL, "naem"), "x", "unknown field 'naem'", "did you mean 'name'?"),
        ((*KERNEL, "deps"), None, "the field 'deps' is missing", ""),
        ((*INNER, "statements", 3, "value"), "much", "value: error: unknown number 'much'", "known are inf"),
        ((*INNER, "statements", 3, "value"), True, "expected a number, found true", ""),
        ((*INNER, "statements", 0, "into"), "a b", "'a b' cannot name a scalar", "letters"),
        ((*KERNEL, "refinements", 0, "access", 0, "terms", 0, "divisor"), 0, "a divisor is at least 1, not 0", ""),
        ((*KERNEL, "tags", "pid"), [1], "tags.pid: error: expected a text, a number", ""),
        (("constants", 0, "data"), "0g", "$.constants[0].data: error: the contents of a constant", "two digits"),
    ],
)  # fmt: skip
def test_wrong_programs_are_refused_with_the_path(
    path: tuple[str | int, ...], value: Any, message: str, hint: str
) -> None:
    made: Any = program_json(parse_program(source("everything")))
    place = made
    for step in path[:-1]:
        place = place[step]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    with pytest.raises(StripeError) as caught:
        parse_json(json.dumps(made), "p.json")
    assert str(caught.value).startswith("p.json: $")
    assert message in str(caught.value)
    assert hint in (caught.value.hint or "")


def test_text_that_is_no_json_has_a_line() -> None:
    with pytest.raises(StripeError, match=r"^p.json:2:3: error: this is no JSON: "):
        parse_json("{\n  x", "p.json")
    with pytest.raises(StripeError, match="expected an object, found a list"):
        parse_json("[]")
    with pytest.raises(StripeError, match="nested too deeply"):
        parse_json("[" * 100_000)
    affine = '{"offset": 0, "terms": [{"coefficient": 1, "divisor": 2, "floor": '
    made: Any = program_json(parse_program(source("everything")))
    made["entry"]["refinements"][0]["access"][0] = json.loads(affine * 90 + "{}" + "}]}" * 90)
    with pytest.raises(StripeError, match="nested too deeply"):
        parse_json(json.dumps(made))


@given(st.data())
def test_a_changed_program_is_refused_or_reads_as_text(data: st.DataObject) -> None:
    """One value replaced at random: what passes reading and the verifier has a text that reads back."""
    made: Any = program_json(parse_program(source("everything")))
    place = made
    while True:
        steps = list(place) if isinstance(place, dict) else list(range(len(place)))
        step = data.draw(st.sampled_from(steps))
        if not isinstance(place[step], dict | list) or not place[step] or data.draw(st.integers(0, 9)) == 0:
            break
        place = place[step]
    values = [
        0,
        -1,
        1,
        2,
        64,
        True,
        None,
        0.5,
        "",
        "x",
        "i",
        "a b",
        "block",
        "add",
        "fp32",
        "none",
        "T",
        [],
        {},
    ]
    place[step] = data.draw(st.sampled_from(values))
    try:
        program = parse_json(json.dumps(made))
    except StripeError:
        return
    if not verify_structural(program) and not check_magnitude(program):
        text = print_program(program)
        assert print_program(parse_program(text)) == text
