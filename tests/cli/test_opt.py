"""`stripe-opt`, option by option, in process; what needs a process of its own is in test_process.py."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import sys
from pathlib import Path

import pytest

from stripe.cli.start import opt as main
from stripe.ir import parse_program
from stripe.passes.registry import pass_names
from stripe.pipeline.reproducer import Reproducer
from tests.support.programs import MATMUL, PROGRAMS

Capture = pytest.CaptureFixture[str]


def _stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))


def test_a_program_comes_out_as_it_went_in(mm: str, capsys: Capture) -> None:
    assert main([mm]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (MATMUL, "")


@pytest.mark.parametrize("arguments", [["-"], ["-", "--input-format", "stripe"]])
def test_standard_input(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    _stdin(monkeypatch, f"// a comment\n\n{MATMUL}")
    assert main(arguments) == 0
    assert "// mm" in capsys.readouterr().out


def test_an_unknown_suffix_is_fine_when_the_format_is_said(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "mm.txt"
    path.write_text(MATMUL, "utf-8")
    assert main([str(path), "--input-format", "stripe"]) == 0
    assert capsys.readouterr().out == MATMUL


def test_passes_and_configs_run_in_the_order_given(mm: str, tmp_path: Path, capsys: Capture) -> None:
    config = tmp_path / "c.json"
    config.write_text('{"passes": [{"name": "second", "dce": {}}]}', "utf-8")
    arguments = [
        "--passes",
        "first:prune_indexes",
        "--config",
        str(config),
        "--passes",
        "third:dce,fourth:dce",
    ]
    assert main([mm, *arguments, "--print-ir-after-all", "--verify-roundtrip"]) == 0
    captured = capsys.readouterr()
    shown = [line for line in captured.err.splitlines() if line.startswith("// ----- after")]
    assert [line.split("'")[1] for line in shown] == ["first", "second", "third", "fourth"]
    assert "one:1" not in captured.out


def test_print_ir_after_takes_entry_and_pass_names(mm: str, capsys: Capture) -> None:
    passes = ["--passes", "a:prune_indexes,b:dce,c:dce"]
    assert main([mm, *passes, "--print-ir-after", "a", "--print-ir-after", "dce"]) == 0
    assert capsys.readouterr().err.count("// ----- after") == 3


def test_remarks_go_to_stderr(mm: str, capsys: Capture) -> None:
    assert main([mm, "--passes", "loc:locate{reqs=kernel,loc={name:CONV}}", "--remarks"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "remark: loc: applied: kernel_0: located on CONV[0]\n"
    assert "block<CONV[0]>" in captured.out


def test_timing(mm: str, capsys: Capture) -> None:
    assert main([mm, "--passes", "dce", "--timing"]) == 0
    captured = capsys.readouterr()
    assert captured.out == MATMUL
    whats = [line.split(maxsplit=2)[2] for line in captured.err.splitlines()]
    assert whats == ["what", "reading and lowering the input", "dce", "checks, dumps, prints", "total"]


def test_dump_dir(mm: str, tmp_path: Path) -> None:
    folder = tmp_path / "dumps"
    assert main([mm, "--passes", "x:prune_indexes", "--dump-dir", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "00_input.stripe",
        "01_x.stripe",
        "config.json",
        "dumps.json",
    ]
    assert json.loads((folder / "config.json").read_text("utf-8")) == {
        "passes": [{"name": "x", "prune_indexes": {}}]
    }


def test_dumps_of_an_earlier_run_go_and_nothing_else(mm: str, tmp_path: Path) -> None:
    folder = tmp_path / "dumps"
    assert main([mm, "--passes", "dce,prune_indexes,dce", "--hw", "dsp_conv", "--dump-dir", str(folder)]) == 0
    (folder / "07_mine.stripe").write_text("mine", "utf-8")
    (folder / "notes.txt").write_text("mine", "utf-8")
    (tmp_path / "00_input.stripe").write_text("mine", "utf-8")
    listing = json.loads((folder / "dumps.json").read_text("utf-8"))
    listing["stripe_dumps"] |= {
        name: hashlib.sha256(b"mine").hexdigest() for name in ("../00_input.stripe", "notes.txt")
    }
    (folder / "dumps.json").write_text(json.dumps(listing), "utf-8")
    assert main([mm, "--passes", "prune_indexes", "--dump-dir", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "00_input.stripe", "01_prune_indexes.stripe", "07_mine.stripe", "config.json", "dumps.json", "notes.txt",
    ]  # fmt: skip
    assert (tmp_path / "00_input.stripe").read_text("utf-8") == "mine"
    assert main([mm, "--split-input-file", "--dump-dir", str(folder)]) == 2


def test_a_dumped_pass_list_runs_again(mm: str, tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "dumps"
    assert main([mm, "--passes", "x:locate{reqs=kernel,loc={name:A}}", "--dump-dir", str(folder)]) == 0
    first = capsys.readouterr().out
    assert main([mm, "--config", str(folder / "config.json")]) == 0
    assert capsys.readouterr().out == first


def test_emit_json_follows_its_schema(mm: str, capsys: Capture) -> None:
    assert main([mm, "--emit", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    kernel = made["entry"]["statements"][0]["statements"][0]
    assert made["stripe_ir"] == 1
    assert kernel["indices"][0] == {"name": "i", "range": 8, "affine": None, "tags": {}}
    assert kernel["refinements"][2]["agg"] == "add"
    assert kernel["statements"][2] == {
        "kind": "intrinsic", "deps": [], "tags": {}, "into": "C", "op": "mul", "inputs": ["A", "B"], "dtype": None,
    }  # fmt: skip


def test_emit_dot_shows_blocks_and_buffers(mm: str, capsys: Capture) -> None:
    assert main([mm, "--emit", "dot"]) == 0
    text = capsys.readouterr().out
    assert text.startswith('digraph "mm" {')
    assert '"0.0.A" -> "0.0.0";' in text
    assert '"0.0.0" -> "0.0.C";' in text


def test_emit_c(mm: str, capsys: Capture) -> None:
    assert main([mm, "--emit", "c"]) == 0
    assert "restrict" in capsys.readouterr().out


def test_openmp_is_for_c(mm: str, capsys: Capture) -> None:
    threads = ["--passes", "thread{reqs=kernel,threads=2}"]
    assert main([mm, *threads, "--emit", "c"]) == 0
    assert "#pragma omp" not in capsys.readouterr().out
    assert main([mm, *threads, "--emit", "c{openmp=true}"]) == 0
    assert "#pragma omp" in capsys.readouterr().out
    assert main([mm, "--emit", "stripe{openmp=true}"]) == 2
    assert "--emit:1:8: $.stripe.openmp: error: unknown key 'openmp'" in capsys.readouterr().err
    assert main([mm, "--emit", "c{openmpp=true}"]) == 2
    assert "did you mean 'openmp'?" in capsys.readouterr().err


def test_targets_are_listed_with_their_options(capsys: Capture) -> None:
    assert main(["--list-targets"]) == 0
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if line and line[0] != " "] == [
        "ast", "c", "dot", "json", "library", "stripe", "tile",
    ]  # fmt: skip
    assert main(["--list-targets", "c"]) == 0
    assert "openmp: true or false; default false" in capsys.readouterr().out


def test_output_file_is_whole(mm: str, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "out.stripe"
    assert main([mm, "-o", str(target)]) == 0
    assert target.read_text("utf-8") == MATMUL
    assert capsys.readouterr().out == ""
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_output_follows_links_and_keeps_permissions(mm: str, tmp_path: Path) -> None:
    target = tmp_path / "real.stripe"
    target.write_text("old", "utf-8")
    target.chmod(0o640)
    link = tmp_path / "link.stripe"
    link.symlink_to(target)
    assert main([mm, "-o", str(link)]) == 0
    assert link.is_symlink()
    assert target.read_text("utf-8") == MATMUL
    assert target.stat().st_mode & 0o777 == 0o640


def test_output_to_what_is_no_file_is_written_directly(mm: str) -> None:
    assert main([mm, "-o", os.devnull]) == 0
    assert not Path(os.devnull).is_file()


def test_an_error_leaves_the_old_output_alone(mm: str, tmp_path: Path) -> None:
    target = tmp_path / "out.stripe"
    target.write_text("old", "utf-8")
    broken = tmp_path / "broken.stripe"
    broken.write_text(MATMUL.replace("mul", "mull"), "utf-8")
    assert main([str(broken), "-o", str(target)]) == 1
    assert target.read_text("utf-8") == "old"
    assert len(list(tmp_path.iterdir())) == 3


def test_split_input(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "two.stripe"
    path.write_text(f"{MATMUL}// -----\n{MATMUL}", "utf-8")
    assert main([str(path), "--split-input-file"]) == 0
    assert capsys.readouterr().out == f"{MATMUL}// -----\n{MATMUL}"
    assert main([str(path), "--split-input-file", "--emit", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_split_input_reports_errors_of_all_parts_with_the_lines_of_the_file(
    tmp_path: Path, capsys: Capture
) -> None:
    broken = MATMUL.replace("mul(", "mull(")
    path = tmp_path / "three.stripe"
    path.write_text(f"{broken}// -----\n{MATMUL}// -----\n{broken}", "utf-8")
    assert main([str(path), "--split-input-file"]) == 1
    captured = capsys.readouterr()
    lines = MATMUL.count("\n")
    assert captured.out == ""
    assert f"{path}:18:15:" in captured.err
    assert f"{path}:{18 + 2 * (lines + 1)}:15:" in captured.err


def test_verify_diagnostics(tmp_path: Path, capsys: Capture) -> None:
    expected = MATMUL.replace(
        "      2: $C = mul", "      // expected-error@+1 {{unknown intrinsic}}\n      2: $C = mull"
    )
    path = tmp_path / "e.stripe"
    path.write_text(expected, "utf-8")
    assert main([str(path), "--verify-diagnostics"]) == 0
    assert capsys.readouterr() == ("", "")
    path.write_text(expected.replace("unknown intrinsic", "something else"), "utf-8")
    assert main([str(path), "--verify-diagnostics"]) == 1
    err = capsys.readouterr().err
    assert f"{path}:19: error: expected error was not produced: something else" in err
    assert f"{path}:19: error: unexpected error: " in err


@pytest.mark.parametrize("line", ["expected-remarks@unknown {{no}}", "expected-error@next {{no}}"])
def test_announcements_are_spelled_rightly(line: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "e.stripe"
    path.write_text(f"// {line}\n{MATMUL}", "utf-8")
    assert main([str(path), "--verify-diagnostics"]) == 1
    assert f"{path}:1: error: this announces no message" in capsys.readouterr().err


def test_verify_diagnostics_of_remarks(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "r.stripe"
    text = MATMUL.replace(
        "    0: #agg", "    // expected-remark@+1 {{loc: applied: kernel_0: located on CONV[0]}}\n    0: #agg"
    )
    path.write_text(text, "utf-8")
    command = [str(path), "--verify-diagnostics", "--passes", "loc:locate{reqs=kernel,loc={name:CONV}}"]
    assert main(command) == 0
    assert "block<CONV[0]>" in capsys.readouterr().out
    path.write_text(text.replace("@+1", "@-1"), "utf-8")
    assert main(command) == 1
    assert "unexpected remark" in capsys.readouterr().err


@pytest.mark.usefixtures("bad_passes")
def test_an_error_without_a_line_is_announced_as_such(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "p.stripe"
    path.write_text(f"// expected-error@unknown {{{{this machine cannot}}}}\n{MATMUL}", "utf-8")
    assert main([str(path), "--verify-diagnostics", "--passes", "refuses"]) == 0
    assert capsys.readouterr() == ("", "")


def test_list_passes_and_schema_and_version(capsys: Capture) -> None:
    assert main(["--list-passes"]) == 0
    listing = capsys.readouterr().out
    assert all(f"\n{name}" in f"\n{listing}" for name in pass_names())
    assert main(["--list-passes", "fuse"]) == 0
    assert capsys.readouterr().out in listing
    assert main(["--list-passes", "fussion"]) == 2
    assert "did you mean 'fusion'?" in capsys.readouterr().err
    for what, word in (("config", "passes"), ("hw", "clock_mhz"), ("ir", "entry")):
        assert main(["--schema", what]) == 0
        assert word in json.loads(capsys.readouterr().out)["properties"]
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("stripe-opt ")


def test_schema_goes_to_a_file_too(tmp_path: Path) -> None:
    assert main(["--schema", "config", "-o", str(tmp_path / "s.json")]) == 0
    assert json.loads((tmp_path / "s.json").read_text("utf-8"))["title"] == "pass list"


@pytest.mark.usefixtures("bad_passes")
def test_a_crash_gives_70_one_line_and_a_reproducer_that_replays(
    mm: str, tmp_path: Path, capsys: Capture
) -> None:
    folder = tmp_path / "dumps"
    assert main([mm, "--passes", "prune_indexes,x:crash", "--dump-dir", str(folder)]) == 70
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        "stripe-opt: internal fault: pass 'x' (crash) crashed: RuntimeError: the pass fell over (misbehaving.py:"
    )
    path = line.split("--run-reproducer ")[1]
    assert Path(path).parent == folder
    assert main(["--run-reproducer", path]) == 70
    (again,) = capsys.readouterr().err.splitlines()
    assert "the pass fell over" in again
    assert Path(again.split("--run-reproducer ")[1]).name == Path(path).name
    found = Reproducer.model_validate_json(Path(path).read_text("utf-8"))
    assert found.input == MATMUL
    assert found.passes == ({"name": "prune_indexes", "prune_indexes": {}}, {"name": "x", "crash": {}})
    assert "the pass fell over" in found.error
    assert "RuntimeError" in found.traceback


@pytest.mark.usefixtures("bad_passes")
def test_a_reproducer_of_a_repaired_fault_gives_the_product(mm: str, tmp_path: Path, capsys: Capture) -> None:
    assert main([mm, "--passes", "dce,crash", "--dump-dir", str(tmp_path)]) == 70
    path = Path(capsys.readouterr().err.split("--run-reproducer ")[1].strip())
    path.write_text(path.read_text("utf-8").replace('"crash": {}', '"dce": {}'), "utf-8")
    assert main(["--run-reproducer", str(path)]) == 0
    assert capsys.readouterr().out == MATMUL


@pytest.mark.usefixtures("bad_passes")
def test_invalid_ir_gives_70_and_shows_what_is_wrong(mm: str, tmp_path: Path, capsys: Capture) -> None:
    assert main([mm, "--passes", "invalid", "--dump-dir", str(tmp_path)]) == 70
    err = capsys.readouterr().err
    assert "pass 'invalid' produced invalid IR" in err
    assert "index 'bad' has range 0" in err
    assert main([mm, "--passes", "invalid", "--verify", "none"]) == 0
    assert "bad:0" in capsys.readouterr().out


def test_a_crash_outside_of_passes_leaves_a_reproducer_too(
    mm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def fall(_target: object, _program: object) -> str:
        raise RuntimeError("emission fell over")

    monkeypatch.setattr("stripe.emit.targets.DotTarget.emit", fall)
    assert main([mm, "--emit", "dot", "--dump-dir", str(tmp_path / "d")]) == 70
    path = Path(capsys.readouterr().err.split("--run-reproducer ")[1].strip())
    found = json.loads(path.read_text("utf-8"))
    assert (found["input"], found["options"]) == (MATMUL, ["--emit=dot"])
    assert "emission fell over" in found["traceback"]


def test_a_reproducer_holds_the_program_that_the_result_is_compared_with(
    mm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    other = tmp_path / "other.stripe"
    other.write_text(MATMUL.replace("C[i, j]:add", "C[i, j]:max"), "utf-8")

    def fall(_program: object) -> str:
        raise RuntimeError("emission fell over")

    with monkeypatch.context() as patched:
        patched.setattr("stripe.cli.commands.opt.print_program", fall)
        assert main([mm, "--verify-against", mm, "--dump-dir", str(tmp_path / "d")]) == 70
    path = Path(capsys.readouterr().err.split("--run-reproducer ")[1].strip())
    assert main(["--run-reproducer", str(path)]) == 0
    assert capsys.readouterr().err == f"verify: {mm}: equal\n"
    recorded = json.loads(path.read_text("utf-8"))
    recorded["files"]["verify_against"] = base64.b64encode(other.read_bytes()).decode()
    path.write_text(json.dumps(recorded), "utf-8")
    assert main(["--run-reproducer", str(path)]) == 3
    assert "the program does not compute what" in capsys.readouterr().err


def test_verify_exact_says_that_passes_are_proved(mm: str, capsys: Capture) -> None:
    assert main([mm, "--passes", "x:prune_indexes,dce", "--verify", "exact"]) == 0
    assert capsys.readouterr().err == (
        "verify: x: equal\n"
        "verify: assuming float-order (x): sums and products of floats are merged in any order and grouping\n"
    )


@pytest.mark.usefixtures("bad_passes")
def test_verify_exact_gives_3_and_a_witness(mm: str, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "out.stripe"
    assert main([mm, "--passes", "w:wrong", "--verify", "exact", "-o", str(target)]) == 3
    err = capsys.readouterr().err
    assert "pass 'w' (wrong) changed the meaning of the program" in err
    assert "C[7, " in err
    assert not target.exists()


def test_unknown_answers_end_a_run_where_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(
        "stripe.verify.proof.judge.ENUMERATED", 0
    )  # small programs have an answer without isl
    table, computed = (str(PROGRAMS / f"verify/answers/{name}.stripe") for name in ("table", "computed"))
    against = [table, "--verify-against", computed, "-o", str(tmp_path / "out.stripe")]
    reason = "unknown: 'B' uses numbers that one program computes from indices and the other has at hand"
    assert main([*against, "--verify-unknown", "fail"]) == 3
    err = capsys.readouterr().err
    assert err.startswith(f"error: the program is not proved to compute what {computed} does\n  {reason}\n")
    assert not (tmp_path / "out.stripe").exists()
    for arguments in ([], ["--verify-unknown", "run"]):
        assert main([*against, *arguments]) == 0
        assert f"verify: {computed}: {reason}; ran both programs on " in capsys.readouterr().err
    monkeypatch.undo()
    assert main([*against, "--verify-unknown", "fail"]) == 0
    assert capsys.readouterr().err == f"verify: {computed}: equal\n"


def test_verify_exact_refuses_an_input_that_is_wrong_in_itself(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "race.stripe"
    path.write_text(MATMUL.replace("C[i, j]:add", "C[i, j]:assign"), "utf-8")
    assert main([str(path)]) == 0
    capsys.readouterr()
    assert main([str(path), "--verify", "exact"]) == 1
    err = capsys.readouterr().err
    assert f"{path}: error: C[0, 0]" in err
    assert "  hint: aggregate with :add or another, or write each element once" in err
    assert "kernel_0" in err


def test_printed_programs_parse(mm: str, capsys: Capture) -> None:
    assert main([mm, "--passes", "prune_indexes"]) == 0
    assert parse_program(capsys.readouterr().out).name == "mm"
