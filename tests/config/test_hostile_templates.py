"""Templates that take long, grow, or nest without end: each ends within seconds, as an error with its place."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from stripe.config.template import TemplateFile, evaluate, render_json
from stripe.ir import ConfigError

SECONDS = 10.0
"""Of processor time, for any template; machines with much to do are slower than this in real time."""


def _render(folder: Path, text: str) -> str:
    path = folder / "t.json.j2"
    path.write_text(text, "utf-8")
    started = time.process_time()
    try:
        return TemplateFile(path).render({})
    finally:
        assert time.process_time() - started < SECONDS


MACRO = "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}"
HEAVY = (
    "{% for i in range(20000) %}{% for j in range(150) %}"
    + "{% set x = 1 %}" * 900
    + "{% endfor %}{% endfor %}"
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{ 1|round(1000000000) }}", "round() takes a whole number of digits"),
        ("{{ 1|round(-1000000000) }}", "round() takes a whole number of digits"),
        ("{{ [1]|map('round', 1000000000)|join }}", "round() takes a whole number of digits"),
        ("{{ 2.0 ** 100000 }}", "too large"),
        ("{{ 1e400 }}", "too large"),
        ("{{ -1e400 }}", "too large"),
        ("{% if 1e400 > 1 %}{% endif %}", "too large"),
        ("{{ '1e400'|float }}", "no finite number"),
        ("{{ range('1e400'|float)|length }}", "too large"),
        (f"{{{{ {'9' * 5000} }}}}", "too long"),
        (MACRO, "more than 4000000 steps"),
        (HEAVY, "more than 4000000 steps"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nested too deeply"),
        ("{% for i in range(2) %}{% endfor %}" * 20_000, "more than 20000 words"),
        ("{{ 1 }}" * 100_000, "more than 20000 words"),
        ("{% set x = 1 %}" * 20_000, "more than 20000 words"),
        ("{{ 1" + "<1" * 50_000 + " }}", "more than 20000 words"),
        ("{{ 1" + "|abs" * 50_000 + " }}", "more than 20000 words"),
        ("{% for i in range(1) %}" * 2000 + "{% endfor %}" * 2000, "nested too deeply"),
        ("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "nested too deeply"),
        ("{{ [1]|map('nothing')|join }}", "nothing"),
        ("{% for i in range(100) %}" + "{{ range(100000)|map('abs')|join }}" + "{% endfor %}", "4000000 steps"),
        ("{% for i in range(100) %}" + "{{ range(100000)|select|list|length }}" + "{% endfor %}", "4000000 steps"),
    ],
)  # fmt: skip
def test_what_takes_long_ends_with_a_reason(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        _render(tmp_path, text)
    assert reason in str(caught.value)
    assert caught.value.path == str(tmp_path / "t.json.j2")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{{ 2.567|round(2) }}", "2.57"),
        ("{{ 2.5|round(0, 'floor') }}", "2"),
        ("{{ [1, -2]|map('abs')|join(',') }}", "1,2"),
        ("{{ [{'a': 1}, {'a': 2}]|map(attribute='a')|join }}", "12"),
        ("{{ [1, 2, 3]|select('odd')|join }}", "13"),
        ("{{ [4, 6]|select('divisibleby', 3)|list|length }}", "1"),
        ("{{ [0, 2]|select|join }}", "2"),
        ("{{ [1, 2, 3]|reject('odd')|join }}", "2"),
        ("{{ [1, 2]|map('string')|map('upper')|join }}", "12"),
        ("{% for i in range(20000) %}{% endfor %}", ""),
        ("{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "3210"),
    ],
)
def test_what_is_short_works(text: str, result: str, tmp_path: Path) -> None:
    assert _render(tmp_path, text) == result


def test_a_number_beyond_floats_in_json_has_its_place(tmp_path: Path) -> None:
    path = tmp_path / "t.json.j2"
    path.write_text('{ "a": 1,\n  "b": 1e400 }', "utf-8")
    with pytest.raises(ConfigError, match="too large") as caught:
        render_json(path, {})
    assert (caught.value.line, caught.value.col) == (2, 8)


def test_an_expression_with_a_number_beyond_floats() -> None:
    with pytest.raises(ConfigError, match="too large"):
        evaluate("1e400", {})
