"""Hardware models that are wrong: one row for each way, with what is said about it."""

# ruff: noqa: E501 (a row of a table stays together)
from __future__ import annotations

from pathlib import Path

import pytest

from stripe.cli.start import opt
from stripe.config.files import shipped
from stripe.hw import load_hardware
from stripe.hw.checks import find_gaps
from stripe.ir import ConfigError

EXAMPLES = Path(__file__).parents[2] / "examples"

GOOD = """{
  "clock_mhz": 100,
  "mem_units": {
    "DRAM": { "size_KiB": 1024 },
    "SRAM": { "count": 2, "size_KiB": 16, "banks": 4 },
  },
  "exec_units": { "CONV": { "ops_per_cycle": 64 } },
  "tx_units": { "DMA": {} },
  "buses": [
    { "sources": ["DRAM"], "sinks": ["DMA"], "bytes_per_cycle": 8 },
    { "sources": ["DMA"], "sinks": ["DRAM", "SRAM[0]", "SRAM[1]"], "bytes_per_cycle": 8 },
    { "sources": ["SRAM"], "sinks": ["DMA", "CONV[0]"], "bytes_per_cycle": 8 },
    { "sources": ["CONV"], "sinks": ["SRAM"], "bytes_per_cycle": 8, "name": "back" },
  ]
}
"""


def _load(folder: Path, text: str) -> None:
    path = folder / "m.json.j2"
    path.write_text(text, "utf-8")
    load_hardware(str(path))


def test_the_model_that_is_made_bad_below_is_good(tmp_path: Path) -> None:
    _load(tmp_path, GOOD)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # units that do not exist
        ('"sinks": ["DMA"]', '"sinks": ["DMB"]', "m.json.j2:10:38: $.buses[0].sinks[0]: error: there is no unit 'DMB'"),
        ('"sinks": ["DMA"]', '"sinks": ["DMB"]', "hint: did you mean 'DMA'?"),
        ('"SRAM[1]"]', '"SRAM[2]"]', "$.buses[1].sinks[2]: error: there is no 'SRAM[2]': SRAM has 2 units"),
        ('"CONV[0]"]', '"CONV[-1]"]', "$.buses[2].sinks[1]: error: 'CONV[-1]' names no unit"),
        ('"CONV[0]"]', '"X"]', "hint: units: DRAM, SRAM, CONV, DMA"),
        # names
        ('"DMA": {}', '"DMA": {}, "CONV": {}', "m.json.j2:8:28: $.tx_units.CONV: error: 'CONV' is already the name of a unit"),
        ('"DMA": {}', '"DMA": {}, "DMA": {}', "m.json.j2:8:28: error: the key 'DMA' stands here twice"),
        ('"DMA": {}', '"D-A": {}', "error: 'D-A' is no name: letters, digits and _"),
        ('"bytes_per_cycle": 8 },\n    { "sources": ["CONV"]', '"bytes_per_cycle": 8, "name": "back" },\n    { "sources": ["CONV"]',
         "$.buses[3].name: error: another bus is called 'back' too"),
        # what hangs in the air
        ('"sinks": ["SRAM"]', '"sinks": []', "$.buses[3].sinks: error: the bus 'back' leads nowhere: it has no sinks"),
        ('"sources": ["DRAM"]', '"sources": []', "$.buses[0].sources: error: bus 0 comes from nowhere: it has no sources"),
        ('"exec_units": { "CONV": { "ops_per_cycle": 64 } },', "", "error: the machine has no execution unit"),
        # numbers
        ('"clock_mhz": 100', '"clock_mhz": 0', "m.json.j2:2:16: $.clock_mhz: error: must be more than 0, not 0"),
        ('"size_KiB": 1024', '"size_KiB": -4', "$.mem_units.DRAM.size_KiB: error: must be more than 0, not -4"),
        ('"size_KiB": 1024', '"size_KiB": 0.0001', "$.mem_units.DRAM: error: size_KiB 0.0001 is no whole number of bytes"),
        ('"size_KiB": 1024', '"size_bytes": 8.5', "$.mem_units.DRAM.size_bytes: error: expected a whole number, found 8.5"),
        ('"size_KiB": 1024', '"size_KiB": 4, "size_bytes": 4096', "a memory needs its size: 'size_KiB' or 'size_bytes', one of"),
        ('{ "size_KiB": 1024 }', "{}", "$.mem_units.DRAM: error: a memory needs its size"),
        ('"count": 2', '"count": 0', "$.mem_units.SRAM.count: error: must be at least 1, not 0"),
        ('"count": 2', '"count": -1', "$.mem_units.SRAM.count: error: must be at least 1, not -1"),
        ('"count": 2', '"count": 1e9', "$.mem_units.SRAM.count: error: must be at most 65536, not 1000000000"),
        ('"count": 2', '"count": 1.5', "$.mem_units.SRAM.count: error: expected a whole number, found 1.5"),
        ('"count": 2', '"count": "two"', "$.mem_units.SRAM.count: error: expected a whole number, found 'two'"),
        ('"banks": 4', '"banks": 3', "$.mem_units.SRAM: error: its size of 16384 bytes does not divide into 3 banks"),
        ('"banks": 4', '"alignment": 32768', "error: alignment 32768 is more than the memory's size of 16384 bytes"),
        ('"banks": 4', '"kind": "cash"', "$.mem_units.SRAM.kind: error: expected 'explicit' or 'cache', found 'cash'"),
        ('"bytes_per_cycle": 8,', '"bytes_per_cycle": -8,', "$.buses[3].bytes_per_cycle: error: must be more than 0, not -8"),
        ('"bytes_per_cycle": 8,', '"bytes_per_cycle": Infinity,', "$.buses[3].bytes_per_cycle: error: expected a finite number"),
        ('"bytes_per_cycle": 8,', '"bytes_per_cycle": [8],', "$.buses[3].bytes_per_cycle: error: expected a number, found a list"),
        ('"ops_per_cycle": 64', '"ops_per_cycle": 0', "$.exec_units.CONV.ops_per_cycle: error: must be more than 0, not 0"),
        ('"ops_per_cycle": 64', '"ops_per_cycle": { "i8": 0 }', "CONV.ops_per_cycle.i8: error: must be more than 0, not 0"),
        ('"ops_per_cycle": 64', '"ops_per_cycle": { "i9": 1 }', "unknown operation or dtype 'i9'"),
        ('"ops_per_cycle": 64', '"ops_per_cycle": { "mul:fp31": 1 }', "unknown dtype 'fp31'; did you mean 'fp32'?"),
        # keys
        ('"ops_per_cycle": 64', '"ops_per_cycel": 64', "m.json.j2:7:29: $.exec_units.CONV.ops_per_cycel: error: unknown key 'ops_per_cycel'"),
        ('"ops_per_cycle": 64', '"ops_per_cycel": 64', "hint: did you mean 'ops_per_cycle'?"),
        ('"ops_per_cycle": 64', "", "$.exec_units.CONV: error: the key 'ops_per_cycle' is missing"),
        ('"clock_mhz": 100', '"clock_Mhz": 100', "hint: did you mean 'clock_mhz'?"),
        ('"clock_mhz": 100,', "", "m.json.j2:1:1: $: error: the key 'clock_mhz' is missing"),
        ('"name": "back"', '"nmae": "back"', "$.buses[3].nmae: error: unknown key 'nmae'"),
        ('"mem_units": {', '"mem_units": [', "m.json.j2:4:11: error: expected ',' or ']', found ':'"),
        ('"tx_units": { "DMA": {} }', '"tx_units": ["DMA"]', "$.tx_units: error: expected an object, found a list"),
        # stencils
        ('"ops_per_cycle": 64', '"ops_per_cycle": 64, "stencils": [{ "idxs": [] }]', "stencils[0].idxs: error: needs at least 1 entries"),
        ('"ops_per_cycle": 64', '"ops_per_cycle": 64, "stencils": [{ "idxs": [{ "name": "i", "size": 0, "outs": [], "ins": [] }] }]',
         "error: the size of the index 'i' must be at least 1, or -1 for the whole range"),
        ('"ops_per_cycle": 64', '"ops_per_cycle": 64, "stencils": [{ "idxs": [{ "name": "i", "size": 4, "outs": [-2], "ins": [] }] }]',
         "stencils[0].idxs[0].outs[0]: error: must be at least -1, not -2"),
        ('"ops_per_cycle": 64', '"ops_per_cycle": 64, "stencils": [{ "idxs": [{ "name": "i", "size": 4, "outs": [], "ins": [] }],'
         ' "combination": "mull" }]', "unknown combination 'mull'; did you mean 'mul'?"),
        # the text
        ('"clock_mhz": 100,', '"clock_mhz": 100', "m.json.j2:3:3: error: expected ',' or '}', found '\"'"),
        ('"clock_mhz"', "”clock_mhz”", "m.json.j2:2:3: error: a typographic quote ” (U+201D) stands where a straight \" belongs"),
        ('"clock_mhz": 100', '"clock_mhz": {{ CLOCK }}', "m.json.j2:2: error: 'CLOCK' is not defined"),
        ('"clock_mhz": 100', '"clock_mhz": {{ "".__class__ }}', "m.json.j2:2: error: '.__class__' reaches for Python"),
    ],
)  # fmt: skip
def test_says_what_is_wrong(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = GOOD[::-1].replace(old[::-1], new[::-1], 1)[::-1]  # the last occurrence
    assert text != GOOD
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)
    assert message in str(caught.value)
    assert caught.value.exit_status == 2
    assert str(tmp_path / "m.json.j2") == caught.value.path


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    text = GOOD.replace('"clock_mhz": 100', '"clock_mhz": 0').replace('"count": 2', '"count": 0, "contt": 1')
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)
    assert str(caught.value).count("error:") == 3
    assert len(caught.value.others) == 2


def test_an_error_in_a_loop_shows_the_rendered_line(tmp_path: Path) -> None:
    text = GOOD.replace(
        '["DRAM", "SRAM[0]", "SRAM[1]"]', '["DRAM", {% for i in range(3) %}"SRAM[{{ i }}]",{% endfor %}]'
    )
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)
    message = str(caught.value)
    assert "m.json.j2:11: $.buses[1].sinks[3]: error: there is no 'SRAM[2]': SRAM has 2 units" in message
    assert '"sinks": ["DRAM", "SRAM[0]","SRAM[1]","SRAM[2]",]' in message


@pytest.mark.parametrize(
    ("old", "new", "gaps"),
    [
        ('"DRAM": {', '"ROM": { "size_KiB": 1 }, "DRAM": {', ["memories: no bus reaches this memory (ROM[0])"]),
        ('"DRAM": {', '"ROM": { "count": 4, "size_KiB": 1 }, "DRAM": {', ["memories: no bus reaches this memory (all 4 ROM)"]),
        ('"buses": [', '"buses": [ { "sources": ["ROM[1]"], "sinks": ["DMA"], "bytes_per_cycle": 1 },',
         ["memories: no bus reaches this memory (ROM[0], ROM[2])"]),
        ('["DMA", "CONV[0]"]', '["DMA"]', ["execution units: no bus brings data from a memory (CONV[0])"]),
        ('"sources": ["CONV"]', '"sources": ["DMA"]', ["execution units: no bus takes results to a memory (CONV[0])"]),
        ('"DMA": {}', '"DMA": {}, "NOC": {}', ["transfer units: data that enter go nowhere: no bus has it as a source (NOC[0])"]),
        ('{ "CONV": {', '{ "DSP": { "ops_per_cycle": 8, "count": 2 }, "CONV": {',
         ["execution units: no bus brings data from a memory (all 2 DSP); no bus takes results to a memory (all 2 DSP)"]),
        ('"DRAM": {', '"ROM": { "size_KiB": 1 }, "FLASH": { "count": 2, "size_KiB": 1 }, "DRAM": {',
         ["memories: no bus reaches this memory (ROM[0], all 2 FLASH)"]),
    ],
)  # fmt: skip
def test_a_partial_model_loads_with_a_line_for_each_kind(
    tmp_path: Path, old: str, new: str, gaps: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        GOOD.replace('"DRAM": {', '"ROM": { "count": 3, "size_KiB": 1 }, "DRAM": {')
        if "ROM[1]" in new
        else GOOD
    )
    path = tmp_path / "m.json.j2"
    path.write_text(text.replace(old, new, 1), "utf-8")
    assert list(find_gaps(load_hardware(str(path)))) == gaps
    assert opt([str(EXAMPLES / "matmul.tile"), "--hw", str(path), "-o", str(tmp_path / "o")]) == 0
    assert capsys.readouterr().err == "".join(f"warning: hardware model 'm': {gap}\n" for gap in gaps)


def test_shipped_models_have_no_gaps() -> None:
    assert [gap for name in shipped() for gap in find_gaps(load_hardware(name))] == []
