"""Pass lists: rendering, checks with JSON path and line, the machine that a list names, and the exported schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripe.ir import ConfigError
from stripe.passes.registry import SHORT_NAMES, find_pass, pass_names
from stripe.pipeline.describe import config_schema, hardware_schema, ir_schema, list_passes
from stripe.pipeline.files import hardware_of, load_pass_list, located_hardware, names_of, parameters_of
from stripe.pipeline.passlist import entry_json, parse_passes


def _write(folder: Path, text: str, name: str = "list.json.j2") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_templates_comments_and_trailing_commas(tmp_path: Path) -> None:
    path = _write(
        tmp_path,
        """\
## a comment of the template
{
  "hardware": "dsp_conv",  // a comment of JSON5
  "passes": [
{% for unit in range(UNITS) %}
    { "name": "loc_{{ unit }}",
      "locate": { "reqs": ["k{{ unit }}"], "loc": { "name": "CONV", "unit": {{ 6 / UNITS }} } } },
{% endfor %}
  ],
}
""",
    )
    found = load_pass_list(path, {"UNITS": 2})
    assert [entry.name for entry in found.entries] == ["loc_0", "loc_1"]
    assert found.hardware == hardware_of(path) == "dsp_conv"
    assert entry_json(found.entries[1]) == {
        "name": "loc_1",
        "locate_block": {"reqs": ["k1"], "loc": {"name": "CONV", "unit": 3}},
    }


def test_lists_include_files_of_their_folder(tmp_path: Path) -> None:
    _write(tmp_path, '{ "name": "clean", "dce": {} },', "clean.j2")
    path = _write(tmp_path, '{ "passes": [ {% include "clean.j2" %} ] }')
    assert [entry.name for entry in load_pass_list(path, {}).entries] == ["clean"]
    assert parameters_of(path, {"ONLY_IN_THE_INCLUDED": "1"}, ()) == {}


def test_the_path_of_a_machine_starts_at_the_list(tmp_path: Path) -> None:
    path = tmp_path / "lists" / "list.json"
    assert located_hardware("../m.json.j2", path) == str(tmp_path / "lists" / "../m.json.j2")
    assert located_hardware("m.json", path) == str(tmp_path / "lists" / "m.json")
    assert located_hardware(str(tmp_path / "m.json"), path) == str(tmp_path / "m.json")
    assert located_hardware("dsp_conv", path) == "dsp_conv"


def test_a_list_may_have_parameters_of_its_own(tmp_path: Path) -> None:
    path = _write(
        tmp_path, '{ "passes": [ { "name": "x", "reorder_indexes": { "recursive": {{ FIX }} } } ] }'
    )
    assert names_of(path) == {"FIX"}
    assert parameters_of(path, {"FIX": "true"}, ()) == {"FIX": True}
    with pytest.raises(ConfigError, match="no parameter 'FX'") as caught:
        parameters_of(path, {"FX": "1"}, ())
    assert caught.value.hint == "did you mean 'FIX'?"
    assert parameters_of(path, {"FX": "1"}, ("FX",)) == {}


@pytest.mark.parametrize(
    ("text", "place", "reason", "hint"),
    [
        ("[]", ":1:1: $", "a pass list is an object", "passes"),
        ("{}", ":1:1: $", "the key 'passes' is missing", '"passes"'),
        ('{"pases": []}', ":1:2: $.pases", "unknown key 'pases'", "did you mean 'passes'?"),
        ('{"passes": {}}', ":1:12: $.passes", "'passes' is a list", "["),
        ('{"passes": [3]}', ":1:13: $.passes[0]", "an entry of a pass list is an object", "name"),
        ('{"passes": [{"dce": {}}]}', ":1:13: $.passes[0]", "the key 'name' is missing", "name"),
        ('{"passes": [{"name": 3, "dce": {}}]}', ":1:22: $.passes[0].name", "'name' is a text", "name"),
        ('{"passes": [{"name": "x"}]}', ":1:13: $.passes[0]", "entry 'x' has no pass", "PASS"),
        ('{"passes": [{"name": "x", "dec": {}}]}', ":1:27: $.passes[0].dec", "unknown pass 'dec'", "mean 'dce'?"),
        (
            '{"passes": [{"name": "x", "dce": {}, "localize": {}}]}',
            ":1:38: $.passes[0].localize", "entry 'x' has several passes: dce and localize", "an entry of its own",
        ),
        (
            '{"passes": [{"name": "x", "dce": {}, "reqs": []}]}',
            ":1:38: $.passes[0].reqs", "unknown key 'reqs' beside the pass 'dce'", "inside \"dce\"",
        ),
        (
            '{"passes": [\n {"name": "x", "dce": {"rek": []}}]}',
            ":2:24: $.passes[0].dce.rek", "unknown key 'rek'", "reqs",
        ),
        (
            '{"passes": [{"name": "x", "dce": {"reqs": "main"}}]}',
            ":1:43: $.passes[0].dce.reqs", "expected a list, found 'main'", 'write ["main"]',
        ),
        (
            '{"passes": [{"name": "x", "reorder_indexes": {"recursive": "yes"}}]}',
            ":1:60: $.passes[0].reorder_indexes.recursive", "expected true or false, found 'yes'", "write true",
        ),
        (
            '{"passes": [{"name": "x", "reorder_indexes": {"recursive": 0}}]}',
            ":1:60: $.passes[0].reorder_indexes.recursive", "expected true or false, found 0", "write false",
        ),
        (
            '{"passes": [{"name": "x", "autotile": {"cache_width": "3"}}]}',
            ":1:55: $.passes[0].autotile.cache_width", "expected a whole number, found '3'", "write 3, without quotes",
        ),
        (
            '{"passes": [{"name": "x", "autotile": {"cache_width": true}}]}',
            ":1:55: $.passes[0].autotile.cache_width", "expected a whole number, found true", "",
        ),
        (
            '{"passes": [{"name": "x", "locate": {"loc": {"name": "CONV"}}}]}',
            ":1:37: $.passes[0].locate", "the key 'reqs' is missing", "",
        ),
        (
            '{"passes": [{"name": "x", "autotile": {"vector_bytes": 1000000000000000000000000000000}}]}',
            ":1:56: $.passes[0].autotile.vector_bytes", "a number stays below 2^62", "",
        ),
        (
            '{"passes": [{"name": "x", "autotile": {"fixed": {"m": 5000000000000000000}}}]}',
            ":1:49: $.passes[0].autotile.fixed", "a number stays below 2^62", "",
        ),
        ('{"passes": [\n}', ":2:1", "expected a value", ""),
        ('{"passes": [], "hardware": 3}', ":1:28: $.hardware", "'hardware' is the name", "text"),
        ('{"hardware": 3, "passes": []}', ":1:14: $.hardware", "'hardware' is the name", "text"),
        ('{"passes": [\n{{ NUM }} ]}', ":2", "'NUM' is not defined", "-D NUM=VALUE"),
        ('{"passes": [\n{% for %} ]}', ":2", "", ""),
        ('{{ "{" }}\n"hardware": {{ \'"x"\' }}, "passes": []}', "", "must be readable before", "a line of its own"),
    ],
)  # fmt: skip
def test_errors_have_line_json_path_reason_and_suggestion(
    tmp_path: Path, text: str, place: str, reason: str, hint: str
) -> None:
    path = _write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_pass_list(path, {})
    assert caught.value.place.startswith(f"{path}{place}")
    assert reason in caught.value.reason
    assert hint in (caught.value.hint or "")


def test_whole_numbers_may_be_written_as_json_schema_has_them(tmp_path: Path) -> None:
    path = _write(tmp_path, '{"passes": [{"name": "x", "autotile": {"cache_width": 1e3}}]}')
    (entry,) = load_pass_list(path, {}).entries
    options = entry_json(entry)["autotile"]
    assert isinstance(options, dict)
    assert repr(options["cache_width"]) == "1000"


def test_what_is_wrong_is_told_in_the_order_of_the_text(tmp_path: Path) -> None:
    path = _write(
        tmp_path, '{"passes": [{"name": "x", "autotile": {"cache_width": 1.5, "acc_idxs": 1, "exclude": 3}}]}'
    )
    with pytest.raises(ConfigError) as caught:
        load_pass_list(path, {})
    keys = [error.place.rpartition(".")[2] for error in (caught.value, *caught.value.others)]
    assert keys == ["cache_width", "acc_idxs", "exclude"]


def test_all_wrong_entries_are_reported_at_once(tmp_path: Path) -> None:
    path = _write(
        tmp_path, '{"passes": [{"name": "a", "dec": {}}, {"name": "b"}, {"name": "c", "dce": {"x": 1}}]}'
    )
    with pytest.raises(ConfigError) as caught:
        load_pass_list(path, {})
    assert [
        one.place.rpartition(" ")[2]
        for one in (caught.value, *caught.value.others)
        if isinstance(one, ConfigError)
    ] == [
        "$.passes[0].dec",
        "$.passes[1]",
        "$.passes[2].dce.x",
    ]


def test_every_pass_is_in_the_schema_and_in_the_listing() -> None:
    schema = str(config_schema())
    listing = list_passes()
    for name in pass_names():
        assert f"'{name}':" in schema
        assert f"\n{name}" in f"\n{listing}"
        for option, field in find_pass(name).model_fields.items():
            assert f"{field.alias or option}: " in listing
    for short, full in SHORT_NAMES.items():
        if full in pass_names():
            assert f"'{short}':" in schema


def test_schemas_describe_options() -> None:
    assert "tags that a block must have" in str(config_schema())
    assert "clock_mhz" in str(hardware_schema()["properties"])
    assert "stripe_ir" in str(ir_schema()["properties"])


def test_every_pass_prints_its_defaults_back() -> None:
    for name in pass_names():
        fields = find_pass(name).model_fields.values()
        if not any(field.is_required() for field in fields):
            (entry,) = parse_passes(name)
            assert entry_json(entry) == {"name": name, name: {}}
