"""Parameters: defaults, `-D`, ranges, choices, computed ones, conditions, and what is refused."""

# ruff: noqa: E501 (a row of a table stays together)
from __future__ import annotations

from pathlib import Path

import pytest

from stripe.config.defines import parse_define, parse_value
from stripe.config.files import resolve_parameters
from stripe.config.model import Scalar
from stripe.config.parameters import find_cycle
from stripe.ir.errors import ConfigError

PARAMETERS = """{
  "parameters": {
    "ROWS": { "default": 16, "range": [1, 64], "unit": "PEs", "description": "rows" },
    "COLS": { "default": 8 },
    "PES": { "expression": "ROWS * COLS", "range": [1, 1024] },
    "RATE": { "default": 1.5, "range": [0, 10] },
    "KIND": { "default": "HBM", "choices": ["HBM", "DDR"] },
    "ECC": { "default": false },
  },
  "checks": [ { "that": "ROWS >= COLS", "reason": "the array must not be wider than high" } ],
}"""


def _template(folder: Path, parameters: str | None) -> Path:
    if parameters is not None:
        (folder / "m.params.json").write_text(parameters, "utf-8")
    path = folder / "m.json.j2"
    path.write_text("{{ ROWS }}", "utf-8")
    return path


def test_defaults(tmp_path: Path) -> None:
    assert resolve_parameters(_template(tmp_path, PARAMETERS), {}) == {
        "ROWS": 16, "COLS": 8, "PES": 128, "RATE": 1.5, "KIND": "HBM", "ECC": False,
    }  # fmt: skip


def test_defined_values_take_the_type_of_the_default(tmp_path: Path) -> None:
    given: dict[str, Scalar] = {"ROWS": "0x20", "RATE": "2", "KIND": "DDR", "ECC": "true"}
    values = resolve_parameters(_template(tmp_path, PARAMETERS), given)
    assert values == {"ROWS": 32, "COLS": 8, "PES": 256, "RATE": 2, "KIND": "DDR", "ECC": True}
    assert [type(value) for value in values.values()] == [int, int, int, int, str, bool]


@pytest.mark.parametrize(
    ("defines", "where", "reason", "hint"),
    [
        (
            {"ROWS": "65"},
            "-D ROWS=65",
            "the value of 'ROWS': 65 is not in the range 1 to 64",
            "ROWS: rows, PEs",
        ),
        ({"ROWS": "1.5"}, "-D ROWS=1.5", "the value of 'ROWS': 1.5 is not a whole number", "ROWS: rows, PEs"),
        (
            {"ROWS": "many"},
            "-D ROWS=many",
            "the value of 'ROWS': 'many' is not a whole number",
            "ROWS: rows, PEs",
        ),
        (
            {"ROWS": "true"},
            "-D ROWS=true",
            "the value of 'ROWS': true is not a whole number",
            "ROWS: rows, PEs",
        ),
        (
            {"KIND": "HMB"},
            "-D KIND=HMB",
            "the value of 'KIND': 'HMB' is none of 'HBM', 'DDR'",
            "KIND: no description",
        ),
        ({"ECC": 1}, "-D ECC=1", "the value of 'ECC': 1 is not true or false", "ECC: no description"),
        (
            {"RATE": "nan"},
            "-D RATE=nan",
            "the value of 'RATE': 'nan' is not a number",
            "RATE: no description",
        ),
        ({"PES": 4}, "-D PES=4", "'PES' is computed (ROWS * COLS)", "set COLS, ROWS instead"),
        ({"ROW": 4}, "-D ROW", "m.json.j2 has no parameter 'ROW'", "did you mean 'ROWS'?"),
        (
            {"QQQ": 4},
            "-D QQQ",
            "m.json.j2 has no parameter 'QQQ'",
            "parameters: COLS, ECC, KIND, PES, RATE, ROWS",
        ),
    ],
)
def test_bad_values(tmp_path: Path, defines: dict[str, Scalar], where: str, reason: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_parameters(_template(tmp_path, PARAMETERS), defines)
    assert (caught.value.where, caught.value.reason, caught.value.hint) == (where, reason, hint)


def test_several_bad_values_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_parameters(_template(tmp_path, PARAMETERS), {"ROWS": 0, "RATE": 11})
    assert str(caught.value).count("error:") == 2


def test_names_of_other_templates_are_let_through(tmp_path: Path) -> None:
    path = _template(tmp_path, PARAMETERS)
    assert "TILE" not in resolve_parameters(path, {"TILE": 4}, elsewhere=["TILE"])


def test_conditions_between_parameters(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_parameters(_template(tmp_path, PARAMETERS), {"ROWS": 4})
    assert caught.value.reason == "the array must not be wider than high (COLS = 8, ROWS = 4)"
    assert caught.value.hint == "it must hold that ROWS >= COLS"


def test_without_a_parameter_file_the_template_tells_the_names(tmp_path: Path) -> None:
    path = _template(tmp_path, None)
    assert resolve_parameters(path, {"ROWS": "7"}) == {"ROWS": 7}
    with pytest.raises(ConfigError, match="has no parameter 'ROWZ'"):
        resolve_parameters(path, {"ROWZ": "7"})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ('{ "parameters": { "A": { "expression": "B + 1" }, "B": { "expression": "A + 1" } } }',
         "m.params.json:1:40: $.parameters.A.expression: error: the parameter 'A' is computed from itself: A -> B -> A"),
        ('{ "parameters": { "A": { "expression": "A" } } }', "the parameter 'A' is computed from itself: A -> A"),
        ('{ "parameters": { "AB": { "default": 1 }, "C": { "expression": "AV + 1" } } }',
         "$.parameters.C.expression: error: there is no parameter 'AV'"),
        ('{ "parameters": { "A": { "expression": "1 +" } } }', "'1 +' is no expression"),
        ('{ "parameters": { "A": { "default": 0 }, "B": { "expression": "1 / A" } } }', "cannot be computed: division by zero"),
        ('{ "parameters": { "A": { "default": 3 }, "B": { "expression": "A", "range": [4, 5] } } }',
         "the computed value of 'B': 3 is not in the range 4 to 5"),
        ('{ "parameters": { "A": { "default": 1, "rnge": [0, 1] } } }', "error: unknown key 'rnge'"),
        ('{ "parameters": { "A": { "default": 1, "rnge": [0, 1] } } }', "hint: did you mean 'range'?"),
        ('{ "parameters": { "A": { } } }', "$.parameters.A: error: a parameter needs 'default' or 'expression', one of the two"),
        ('{ "parameters": { "A": { "default": 5, "range": [0, 1] } } }', "the default 5 is not in the range 0 to 1"),
        ('{ "parameters": { "A": { "default": 5, "range": [9, 1] } } }', "the range from 9 to 1 is empty"),
        ('{ "parameters": { "A": { "default": 5, "range": [1, 9], "choices": [5] } } }', "'range' or 'choices', not both"),
        ('{ "parameters": { "A-B": { "default": 5 } } }', "'A-B' is no name: letters, digits and _"),
        ('{ "parameters": { "A": { "default": [1] } } }', "$.parameters.A.default: error: "),
        ('{ "checks": [ { "that": "Z > 1", "reason": "no" } ] }', "$.checks[0].that: error: there is no parameter 'Z'"),
        ('{ "values": [ { "path": "clock_mhz" } ] }', "$.values[0]: error: the key 'source' is missing"),
        ("[]", "error: expected an object, found a list"),
        ('{ "parameters": {', "error: the text ends where a key should be"),
    ],
)  # fmt: skip
def test_bad_parameter_files(tmp_path: Path, parameters: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_parameters(_template(tmp_path, parameters), {})
    assert message in str(caught.value)
    assert caught.value.path == str(tmp_path / "m.params.json")


def test_cycles_are_found_and_stable() -> None:
    assert find_cycle({"A": ["B"], "B": ["C"], "C": []}) == ()
    assert find_cycle({"A": ["C"], "C": ["D"], "D": ["A"], "B": ["A"]}) == ("A", "C", "D")


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("-2", -2), ("0x10", 16), ("1.5", 1.5), ("1e3", 1000.0), ("true", True), ("false", False), ("a=b", "a=b"),
     ("", ""), ("1_000", "1_000"), ("١", "١"), ("inf", "inf"), ("9" * 200, "9" * 200)],
)  # fmt: skip
def test_values_on_the_command_line(text: str, value: Scalar) -> None:
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


def test_definitions_on_the_command_line() -> None:
    assert parse_define("NUM = 4") == ("NUM", "4")
    assert parse_define("URL=a=b") == ("URL", "a=b")
    for text in ("NUM", "=4", "4=4", "a b=1", ""):
        with pytest.raises(ConfigError, match="is no definition"):
            parse_define(text)
