"""`stripe-sim`, option by option, in process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from shutil import copy

import pytest

from stripe.cli.arguments.sim import HALO_RULES
from stripe.cli.start import sim as main
from stripe.cost.counts.loops import HALOS
from stripe.cost.report.schema import CountsJson, SimulationJson
from stripe.ir import print_program
from tests.support.scheduled import tiles

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).resolve().parents[2]
CONV3X3 = str(ROOT / "examples" / "mappings" / "conv3x3.stripe")


@pytest.fixture
def scheduled(tmp_path: Path) -> str:
    """A scheduled program as a file."""
    path = tmp_path / "scheduled.stripe"
    path.write_text(print_program(tiles(4)), "utf-8")
    return str(path)


def test_tables_are_plain_text_in_a_pipe(scheduled: str, capsys: Capture) -> None:
    assert main([scheduled, "--hw", "dsp_conv"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert re.search(r"inference latency +800 cycles +1\.6 us", out)
    assert "\x1b" not in out
    assert "\nstatements\n" in out
    assert "\nunits (7 more did nothing)\n" in out
    assert "\nmemories, bytes (2 of SRAM hold nothing)\n" in out
    assert "unverified numbers in the hardware model: " in out
    assert "parameters.NUM_CONV = 4" in out
    assert all(line == line.rstrip() for line in out.splitlines())


def test_an_unscheduled_program_names_its_default_units(mm: str, capsys: Capture) -> None:
    assert main([mm, "--hw", "dsp_conv"]) == 0
    assert "note: 1 statement without a location: on CONV, the quickest for them" in capsys.readouterr().out


def test_whole_numbers_are_whole_in_json(scheduled: str, capsys: Capture) -> None:
    assert main([scheduled, "--hw", "dsp_conv", "--json", "-"]) == 0
    text = capsys.readouterr().out
    assert '"latency_cycles": 800,' in text
    assert not re.search(r"\d\.0\b", text)
    assert '"latency_us": 1.6,' in text


def test_numbers_without_any_source_are_unverified(scheduled: str, tmp_path: Path, capsys: Capture) -> None:
    """A model without a params file, and one whose file leaves a number out."""
    shipped = (ROOT / "hwmodels" / "dsp_conv.json.j2").read_text("utf-8")
    params = json.loads((ROOT / "hwmodels" / "dsp_conv.params.json").read_text("utf-8"))
    params["values"] = [entry for entry in params["values"] if entry["path"] != "mem_units.DRAM.size_KiB"]
    (tmp_path / "mine.json.j2").write_text(shipped, "utf-8")
    (tmp_path / "mine.params.json").write_text(json.dumps(params), "utf-8")
    assert main([scheduled, "--hw", str(tmp_path / "mine.json.j2")]) == 0
    assert "mem_units.DRAM (1 without a source)" in capsys.readouterr().out
    assert main([scheduled, "--hw", str(tmp_path / "mine.json.j2"), "--json", "-"]) == 0
    missing = [entry for entry in json.loads(capsys.readouterr().out)["unverified"] if not entry["source"]]
    assert [(entry["path"], entry["value"]) for entry in missing] == [("mem_units.DRAM.size_KiB", 1048576)]
    assert main([scheduled, "--hw", "dsp_conv", "--json", "-"]) == 0
    assert all(entry["source"] for entry in json.loads(capsys.readouterr().out)["unverified"])


def test_a_number_that_its_source_contradicts_is_unverified(
    scheduled: str, tmp_path: Path, capsys: Capture
) -> None:
    """A template changed by hand; numbers that it computes from other parameters than the defaults are not."""
    shipped = (ROOT / "hwmodels" / "dsp_conv.json.j2").read_text("utf-8")
    changed = shipped.replace('"read_pJ_per_byte": 162.5', '"read_pJ_per_byte": 1')
    assert changed != shipped
    (tmp_path / "mine.json.j2").write_text(changed, "utf-8")
    copy((ROOT / "hwmodels" / "dsp_conv.params.json"), tmp_path / "mine.params.json")
    said = "hardware model: mem_units.DRAM.read_pJ_per_byte is 1, its source says 162.5, buses."
    for given in ((), ("-D", "SRAM_SIZE_KIB=1024")):
        assert main([scheduled, "--hw", str(tmp_path / "mine.json.j2"), *given]) == 0
        out = capsys.readouterr().out
        assert said in out
        assert out.count("its source says") == 1
        assert main([scheduled, "--hw", "dsp_conv", *given]) == 0
        assert "its source says" not in capsys.readouterr().out
    assert main([scheduled, "--hw", str(tmp_path / "mine.json.j2"), "--json", "-"]) == 0
    (found,) = (e for e in json.loads(capsys.readouterr().out)["unverified"] if e["stated"] is not None)
    assert (found["value"], found["stated"], found["source"], found["unit"]) == (
        1,
        162.5,
        "unverified",
        "pJ/B",
    )


def test_json_follows_its_schema(scheduled: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "report.json"
    assert main([scheduled, "--hw", "dsp_conv", "--json", str(path)]) == 0
    assert "statements" in capsys.readouterr().out
    report = SimulationJson.model_validate_json(path.read_text("utf-8"))
    assert report.latency_cycles == 800
    assert main([scheduled, "--hw", "dsp_conv", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(path.read_text("utf-8"))


@pytest.mark.parametrize(("what", "key"), [("sim", "latency_cycles"), ("counts", "halo")])
def test_schemas(what: str, key: str, capsys: Capture) -> None:
    assert main(["--schema", what]) == 0
    assert key in json.loads(capsys.readouterr().out)["required"]


def test_trace_and_picture(scheduled: str, tmp_path: Path, capsys: Capture) -> None:
    trace, plot = tmp_path / "trace.json", tmp_path / "picture.svg"
    assert main([scheduled, "--hw", "dsp_conv", "--trace", str(trace), "--plot", str(plot)]) == 0
    capsys.readouterr()
    assert json.loads(trace.read_text("utf-8"))["traceEvents"]
    assert ET.fromstring(plot.read_text("utf-8")).tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize(("halo", "energy"), [("refetch", "208,034,365.44"), ("keep", "200,595,517.44")])
def test_counts_to_the_digit(halo: str, energy: str, capsys: Capture) -> None:
    assert main([CONV3X3, "--hw", "ref16x16", "--counts", "--halo", halo]) == 0
    out = capsys.readouterr().out
    assert f"energy, pJ            {energy}\n" in out
    assert "  W        Wreg   array    115,605,504\n" in out
    assert "  O        array  Orf                          7,225,344\n" in out


def test_counts_need_no_machine(mm: str, capsys: Capture) -> None:
    assert main([mm, "--counts", "--json", "-"]) == 0
    (kernel,) = CountsJson.model_validate_json(capsys.readouterr().out).kernels
    assert (kernel.macs, kernel.energy_pJ) == (8 * 4 * 6, None)


def test_the_halo_rules_are_those_of_the_counts() -> None:
    assert HALO_RULES == HALOS


def test_passes_and_parameters(mm: str, capsys: Capture) -> None:
    fast = [mm, "--hw", "dsp_conv", "-D", "CLOCK_MHZ=1000", "--passes", "prune_indexes", "--json", "-"]
    assert main(fast) == 0
    report = SimulationJson.model_validate_json(capsys.readouterr().out)
    assert (report.clock_mhz, report.parameters["CLOCK_MHZ"]) == (1000, 1000)


@pytest.mark.parametrize(
    ("words", "reason", "hint"),
    [
        ([], "no machine is given to simulate", "--hw dsp_conv"),
        (["--hw", "nativ"], "there is no hardware model called 'nativ'", "did you mean 'native'?"),
        (["--hw", "dsp_con"], "there is no hardware model called 'dsp_con'", "did you mean 'dsp_conv'?"),
        (["--hw", "eye"], "there is no hardware model called 'eye'", "did you mean 'eyeriss'?"),
        (["--hw", "dsp_conv", "--halo", "keep"], "--halo is a rule for counting", "--counts"),
        (["--counts", "--halo", "kept"], "unknown value 'kept'; did you mean 'keep'?", "--help"),
        (["--counts", "--trace", "t.json"], "--counts has no times to show", "leave --trace"),
        (["--hw", "dsp_conv", "--plot", "p.png"], "--plot draws SVG, and 'p.png' ends otherwise", "FILE.svg"),
        (["--hw", "dsp_conv", "--jsom", "x"], "unknown option '--jsom'", "did you mean '--json'?"),
        (["--hw", "dsp_conv", "-D", "NUM_CNV=2"], "has no parameter 'NUM_CNV'", "did you mean 'NUM_CONV'?"),
        (["--hw", "dsp_conv", "--json", "no/such/folder/x.json"], "there is no folder", "make it first"),
    ],
)
def test_wrong_usage(words: list[str], reason: str, hint: str, mm: str, capsys: Capture) -> None:
    assert main([mm, *words]) == 2
    err = capsys.readouterr().err
    assert reason in err
    assert hint in err


def test_without_input(capsys: Capture) -> None:
    assert main(["--hw", "dsp_conv"]) == 2
    assert "no INPUT is given" in capsys.readouterr().err


def test_what_the_machine_cannot_do_names_the_statement(mm: str, capsys: Capture) -> None:
    words = ["--hw", "edge_npu", "--passes", "locate_block{reqs=[kernel],loc={name:MAT}}"]
    assert main([mm, *words]) == 2
    err = capsys.readouterr().err
    assert (
        "statement 0 (kernel_0): exec_units.MAT.ops_per_cycle: error: MAT has no rate for 'mul' of fp32"
        in err
    )


def test_constrained_mappings_are_refused_with_their_place(tmp_path: Path, capsys: Capture) -> None:
    text = (
        Path(CONV3X3).read_text("utf-8").replace("// 3x3, 64 to 64", "1 - k0 >= 0\n        // 3x3, 64 to 64")
    )
    path = tmp_path / "cut.stripe"
    path.write_text(text, "utf-8")
    assert main([str(path), "--counts"]) == 1
    assert (
        "kernel conv3x3: error: block conv3x3 holds copies, and constraints cut its loops"
        in capsys.readouterr().err
    )


def test_a_program_that_does_not_fit_is_refused(scheduled: str, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "o.json"
    assert main([scheduled, "--hw", "dsp_conv", "-D", "SRAM_SIZE_KIB=8", "--json", str(out)]) == 1
    error = capsys.readouterr().err
    assert (
        "kernel" in error
        and "SRAM[0] has 8,192 bytes, and " in error
        and "hint: make its tiles smaller" in error
    )
    assert not out.exists()


def test_help_and_version_load_nothing_heavy() -> None:
    code = (
        "import sys; from stripe.cli.start import sim as main; main(['--help']); "
        "print([m for m in ('numpy', 'islpy', 'pydantic', 'networkx', 'rich') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
    assert "--counts" in done.stdout


def test_on_a_terminal_rich_draws_the_tables(
    scheduled: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main([scheduled, "--hw", "dsp_conv"]) == 0
    assert "┃" in capsys.readouterr().out


def test_the_difference_of_two_simulations_is_explained(tmp_path: Path, capsys: Capture) -> None:
    example = str(ROOT / "examples" / "conv_bias_relu.tile")
    first, second = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    for path, width in ((first, 64), (second, 8)):
        words = [example, "--config", "dsp_conv", "-D", f"DRAM_BYTES={width}", "--json", path]
        assert main(words) == 0
    capsys.readouterr()
    assert main(["--diff", first, second]) == 0
    shown = capsys.readouterr().out
    for letter, path in (("A", first), ("B", second)):
        assert re.search(rf"^  {letter}  {re.escape(path)} +{re.escape(example)} on dsp_conv$", shown, re.M)
    assert re.search(r"DRAM_BYTES +64 +8\n", shown)
    assert re.search(r"latency, cycles +[\d,.]+ +[\d,.]+ +\+[\d,.]+ +\+[\d.]+ %", shown)
    assert "stalls that differ" in shown
    assert main(["--diff", first, first]) == 0
    assert "the simulations are equal" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        (["--diff", "a.json"], 2, "--diff compares two simulations, and one is given"),
        (["--diff", "a.json", "b.json"], 2, "a.json: error: there is no such file"),
    ],
)
def test_a_difference_needs_two_simulations(
    words: list[str],
    status: int,
    reason: str,
    capsys: Capture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == status
    assert reason in capsys.readouterr().err
