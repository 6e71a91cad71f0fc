"""Rendering: numbers, comments, includes, the sandbox and its limits, and places in the template."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripe.config.document import read_json
from stripe.config.model import Scalar
from stripe.config.template import TemplateFile, evaluate, free_names, includes_files, render_json
from stripe.ir.errors import ConfigError

PARAMETERS: dict[str, Scalar] = {"SIZE": 512, "NUM": 4, "RATE": 2.5, "ON": True, "KIND": "HBM"}


def _file(folder: Path, text: str, name: str = "m.json.j2") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def _error(folder: Path, text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        render_json(_file(folder, text), PARAMETERS)
    assert caught.value.exit_status == 2
    return caught.value


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("SIZE / NUM", "128"), ("SIZE / 3 * 3", "512"), ("7 / 2", "3.5"), ("RATE * 2", "5"), ("2 ** 10", "1024"),
        ("SIZE // 100", "5"), ("SIZE % 100", "12"), ("-SIZE", "-512"), ("ON", "true"), ("none", "null"),
        ("KIND", "HBM"),
        ("[SIZE, NUM] | max", "512"), ("min(SIZE, 3)", "3"), ("ceil(SIZE / 100)", "6"), ("log2(SIZE)", "9"),
        ("KIND ~ NUM", "HBM4"), ("KIND ~ SIZE / NUM", "HBM128"), ("range(NUM / 2) | join(',')", "0,1"),
        ("(SIZE / 48) | round(2)", "10.67"), ("1 if ON else 0", "1"), ("NUM in [1, 4]", "true"), ("KIND[:1]", "H"),
        ("{'HBM': 8, 'DDR': 2}[KIND]", "8"), ("'x' if NUM is even else 'y'", "x"), ("KIND + '2'", "HBM2"),
        ("10 ** 20 / 10", "10000000000000000000"), ("1e30", "1e+30"), ("0.1 + 0.2", "0.30000000000000004"),
    ],
)  # fmt: skip
def test_values(tmp_path: Path, expression: str, text: str) -> None:
    assert TemplateFile(_file(tmp_path, "{{ " + expression + " }}")).render(PARAMETERS) == text


def test_blocks_and_comments_leave_no_lines(tmp_path: Path) -> None:
    source = (
        "a\n  {% for i in range(2) %}\n  b{{ i }}\n  {% endfor %}\nc ## gone {{ nothing }}\n{# gone #}d\n"
    )
    assert TemplateFile(_file(tmp_path, source)).render({}) == "a\n  b0\n  b1\nc\nd\n"


def test_name_spaces_macros_and_loops(tmp_path: Path) -> None:
    source = (
        "{% set n = namespace(sum=0) %}{% for i in range(4) %}{% set n.sum = n.sum + i %}{% endfor %}"
        "{% macro twice(x) %}{{ 2 * x }}{% endmacro %}"
        "{{ n.sum }} {{ twice(n.sum) }}{% for k, v in {'a': 1, 'b': 2}.items() %} {{ k }}{{ v }}"
        "{{ '.' if loop.last else ',' }}{% endfor %}"
    )
    assert TemplateFile(_file(tmp_path, source)).render({}) == "6 12 a1, b2."


@pytest.mark.parametrize(
    "text",
    [
        '{% include "p.j2" %}', '{%+ include "p.j2" %}', '{%- include "p.j2" -%}', '{%\tinclude NAME %}',
        '{% from "p.j2" import x %}', '{%+ import "p.j2" as p %}', '{% extends "p.j2" %}',
        '{% if A %}{%+include["p.j2"]%}{% endif %}',
    ],
)  # fmt: skip
def test_a_template_that_reads_other_files_is_known_however_it_is_spelled(text: str, tmp_path: Path) -> None:
    assert includes_files(_file(tmp_path, text))


def test_words_about_other_files_are_no_includes(tmp_path: Path) -> None:
    text = '{# {% include "p.j2" %} #}{% raw %}{% include "p.j2" %}{% endraw %}{{ "{% include x %}" }}'
    assert not includes_files(_file(tmp_path, text))


def test_includes_come_from_the_templates_own_folder(tmp_path: Path) -> None:
    inner = tmp_path / "in"
    inner.mkdir()
    _file(inner, '"n": {{ NUM }}', "part.j2")
    _file(tmp_path, "secret", "outside.j2")
    (inner / "link.j2").symlink_to(tmp_path / "outside.j2")
    assert render_json(_file(inner, '{ {% include "part.j2" %} }'), PARAMETERS).data == {"n": 4}
    for name in ("../outside.j2", str(tmp_path / "outside.j2"), "link.j2", "..\\\\outside.j2"):
        with pytest.raises(ConfigError, match="does not lie in the template's own folder"):
            TemplateFile(_file(inner, f'{{% include "{name}" %}}')).render(PARAMETERS)


@pytest.mark.parametrize(
    "expression",
    [
        "''.__class__.__mro__", "NUM.__class__", "NUM['__class__']", "NUM|attr('__class__')", "NUM.bit_length()",
        "'{0.__class__}'.format(NUM)", "KIND.upper()", "range.__globals__", "namespace.__init__.__globals__",
        "self.__init__.__globals__", "self._TemplateReference__context", "cycler.__init__", "lipsum(5)", "joiner()",
        "dict(a=1)", "[NUM]|map(attribute='__class__')|list", "[NUM]|map('attr', '__class__')|join",
        "loop.__class__", "namespace()._Namespace__attrs", "{}.update({})", "[].append(1)", "''|format", "NUM|pprint",
        "open('/etc/passwd')", "import os", "__import__('os')", "NUM|tojson", "range(2).__class__", "x|xmlattr",
        "(1).real", "caller.__globals__", "config", "request", "get_flashed_messages", "url_for.__globals__",
    ],
)  # fmt: skip
def test_python_is_out_of_reach(tmp_path: Path, expression: str) -> None:
    error = _error(tmp_path, "{\n" + '"a": {{ ' + expression + " }} }")
    assert error.line == 2


def test_an_escape_says_so(tmp_path: Path) -> None:
    error = _error(tmp_path, '{\n\n "a": {{ "".__class__.__mro__ }} }')
    path = tmp_path / "m.json.j2"
    assert str(error).startswith(
        f"{path}:3: error: '.__class__' reaches for Python: a template may compute numbers and texts, nothing else"
    )


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(10 ** 10) %}{% endfor %}",
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
        "{% for i in range(90000) %}{{ range(100000)|sum }}{% endfor %}",
        "{% for i in range(90000) %}{% if 5 in range(90000)|list %}{% endif %}{% endfor %}",
        "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
        "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
        "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
        "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}",
        "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x %}{{ n.x }}{{ n.x }}{% endset %}{% endfor %}",
        "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = [n.x, n.x]|join(n.x) %}{% endfor %}",
        "{% macro m(x) %}{{ m(x) }}{{ m(x) }}{% endmacro %}{{ m(1) }}",
        "{% for i in range(30) recursive %}{{ loop(range(30)) }}{% endfor %}",
        "{{ 9 ** 9 ** 9 }}", "{{ 2 ** 1000 }}", "{{ 'x' * 10 ** 9 }}", "{{ '%1000000000d' % 3 }}",
        "{{ [0] * 10 ** 9 }}",
        '{% include "m.json.j2" %}', "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{% for i in range(2) %}" * 60 + "{% endfor %}" * 60, "{{ 1e308 * 1e308 }}",
    ],
)  # fmt: skip
def test_work_is_bounded(tmp_path: Path, source: str) -> None:
    """Without a bound on its work, none of these would ever end."""
    _error(tmp_path, source)


VALUES = "templates compute with numbers, texts, and lists of these"
JINJA = "see Jinja's manual for its syntax"


@pytest.mark.parametrize(
    ("source", "line", "col", "reason", "hint"),
    [
        ('{\n "a": {{ NUN }} }', 2, None, "'NUN' is not defined", "did you mean 'NUM'?"),
        ('{ "a": {{ XYZ }} }', 1, None, "'XYZ' is not defined",
         "give it with -D XYZ=VALUE (parameters: KIND, NUM, ON, RATE, SIZE)"),
        ('{\n {% if ON %}\n "a": 1\n }', 3, None, "unexpected end of template.", JINJA),
        ('{\n "a": {{ NUM / 0 }} }', 2, None, "division by zero", "test the divisor with {% if %} first"),
        ('{\n "a": {{ NUM|upp }} }', 2, None, "templates have no filter 'upp'", "did you mean 'upper'?"),
        ('{\n "a": {{ [NUM] }} }', 2, None, "a list cannot be written here", VALUES),
        ('{\n "a": {{ KIND * 2 }} }', 2, None, "'*' takes numbers, not 'HBM'", VALUES),
        ('{\n "a": {{ range(1.5)|join }} }', 2, None, "range() takes whole numbers, not 1.5", VALUES),
        ('{\n "a": “b” }', 2, 7, "a typographic quote “ (U+201C)", 'write "'),
        ('{\n "a": {{ NUM }},\n "b": c }', 3, 7, "expected a value, found 'c'", 'strings take quotes: "c"'),
        ('{\n {% for i in range(2) %}\n "a{{ i }}": 1\n {% endfor %}\n}', 3, None,
         "expected ',' or '}', found '\"'", 'objects are {"key": value, ...}, lists [value, ...]'),
        ('{% include "part.json" %}', 1, None, "there is no 'part.json' in the template's folder",
         "name a file that lies beside it"),
        ("{\n {% set x = 1 / %} }", 2, None, "unexpected 'end of statement block'", JINJA),
    ],
)  # fmt: skip
def test_errors_name_the_templates_line(
    tmp_path: Path, source: str, line: int, col: int | None, reason: str, hint: str | None
) -> None:
    error = _error(tmp_path, source)
    assert error.path == str(tmp_path / "m.json.j2")
    assert (error.line, error.col, error.hint) == (line, col, hint)
    assert error.reason.startswith(reason)


def test_errors_in_an_included_file_name_that_file(tmp_path: Path) -> None:
    _file(tmp_path, '"a": 1,\n"b": oops\n', "part.j2")
    error = _error(tmp_path, '{\n{% include "part.j2" %}\n}')
    assert (error.path, error.line, error.col) == (str(tmp_path / "part.j2"), 2, 6)
    _file(tmp_path, '"a": 1,\n\n"b": {{ OOPS }}', "part.j2")
    error = _error(tmp_path, '{\n{% include "part.j2" %}\n}')
    assert (error.path, error.line) == (str(tmp_path / "part.j2"), 3)


def test_lines_count_right_after_blocks_comments_and_macros(tmp_path: Path) -> None:
    source = (
        "{\n## one\n{# two\nlines #}\n{% macro m() %}\nx\n{% endmacro %}\n{%- if ON %}\n\n"
        '"a": 1,\n{% for i in range(3) %}\n\n{# #}\n"b{{ i }}": {{ i }},\n{% endfor %}\n{% endif %}\n"c": oops\n}'
    )
    assert _error(tmp_path, source).line == source.count("\n", 0, source.index("oops")) + 1


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes('{"a": "é"}'.encode("latin-1"))
    (tmp_path / "binary.json").write_bytes(b"{\x00}")
    (tmp_path / "big.json").write_text(" " * 1_100_000)
    for name, reason in [
        ("latin.json", "this is not UTF-8 text (byte 7 is 0xe9)"),
        ("binary.json", "this is a binary file"),
        ("big.json", "the file has more than 1000000 characters"),
        ("", "this is a directory, not a file"),
        ("latim.json", "there is no such file"),
    ]:
        with pytest.raises(ConfigError) as caught:
            read_json(tmp_path / name)
        assert caught.value.reason == reason
    assert caught.value.hint == f"did you mean '{tmp_path / 'latin.json'}'?"


def test_free_names(tmp_path: Path) -> None:
    path = _file(tmp_path, "{% set a = SIZE %}{% for i in range(NUM) %}{{ a + i + max(1, B) }}{% endfor %}")
    assert free_names(path) == {"SIZE", "NUM", "B"}
    with pytest.raises(ConfigError, match="expected token"):
        free_names(_file(tmp_path, "{{ a b }} {{ ? }}"))


def test_evaluate() -> None:
    assert evaluate("SIZE / NUM", PARAMETERS) == 128
    assert evaluate("SIZE > NUM and ON", PARAMETERS) is True
    for expression in ("SIZE /", "SIZ", "[1]", "''.__class__", "1 / 0", "2 ** 9999"):
        with pytest.raises(ConfigError):
            evaluate(expression, PARAMETERS)
