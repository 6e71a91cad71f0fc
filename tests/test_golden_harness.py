"""The golden-test harness itself: what passes, what fails, and what a failure shows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.golden import run_lines, substitute
from tests.support.shell import Command, ShellError, parse_line

LIT_CONFIG = Path(__file__).parent / "golden" / "lit.cfg.py"


def _fake_main(argv: Sequence[str] | None = None) -> int:
    """Stands in for stripe-opt: copies its input in capitals; --fail, --crash, --fault and --talk do as they say."""
    arguments = list(argv or [])
    if "--crash" in arguments:
        raise RuntimeError("boom")
    if "--talk" in arguments:
        print("note: talking", file=sys.stderr)
    if "--exit" in arguments:
        raise SystemExit(2)
    names = [name for name in arguments if not name.startswith("--")]
    for name in names:
        text = sys.stdin.read() if name == "-" else Path(name).read_text("utf-8")
        sys.stdout.write(text.upper())
    return 70 if "--fault" in arguments else 1 if "--fail" in arguments else 0


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with the harness and a fake stripe-opt."""
    monkeypatch.setattr("stripe.cli.start.opt", _fake_main)
    pytester.makeconftest("pytest_plugins = ['tests.support.golden']")
    return pytester


def _add(project: pytest.Pytester, name: str, text: str) -> Path:
    path = project.path / "tests" / "golden" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_a_matching_check_passes(project: pytest.Pytester) -> None:
    _add(project, "a.tile", "// RUN: stripe-opt %s | filecheck %s\nabc\n// CHECK: ABC\n")
    project.runpytest_inprocess().assert_outcomes(passed=1)


def test_a_wrong_check_fails_and_shows_command_output_and_check(project: pytest.Pytester) -> None:
    _add(project, "a.tile", "// RUN: stripe-opt %s | filecheck %s\nabc\n// CHECK: XY{{Z+}}\n")
    result = project.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*a.tile:1: RUN line failed*", "$ stripe-opt *exit status 0*", "ABC", "$ filecheck*exit status 1*"]
    )
    result.stdout.fnmatch_lines(['*a.tile:3: *error:* Couldn\'t match "XY{{Z+}}".'])


@pytest.mark.parametrize(
    ("run", "passed"),
    [
        ("stripe-opt %s --fail", False),
        ("not stripe-opt %s --fail", True),
        ("not stripe-opt %s", False),
        ("not not stripe-opt %s", True),
        ("not stripe-opt --exit", True),
        ("not stripe-opt --fault", False),
        ("not stripe-opt --crash", False),
        ("stripe-opt --fail %s | filecheck %s", False),
        ("stripe-opt --talk %s | filecheck %s --check-prefix=NOTE", False),
        ("stripe-opt --talk %s 2>&1 | FileCheck %s --check-prefix=NOTE", True),
        ("stripe-opt --talk %s 2> %t.err | filecheck %s", True),
        ("stripe-opt - < %s | filecheck %s", True),
        ("cat %s | stripe-opt - | filecheck %s", True),
        ("cat %S/a.tile | diff %s -", True),
        ("stripe-opt %s | diff %s -", False),
        ("stripe-opt %s > %t", True),
        ("stripe-opt %s | filecheck --check-prefixes=NONE %s", False),
        ("stripe-opt %s | filecheck --no-such-option=1 %s", False),
        ("stripe-opt '--a|b' %s | filecheck %s", True),
        ("stripe-opt %s && stripe-opt %s", False),
        ("stripe-opt %s |", False),
        ("stripe-opt '%s", False),
        ("unheard-of %s", False),
        ("not unheard-of %s", False),
    ],
)
def test_run_lines(project: pytest.Pytester, run: str, passed: bool) -> None:
    _add(project, "a.tile", f"// RUN: {run}\nabc\n// CHECK: ABC\n// NOTE: note: talking\n")
    project.runpytest_inprocess().assert_outcomes(passed=int(passed), failed=int(not passed))


def test_lines_run_in_order_and_share_the_temporary_name(project: pytest.Pytester) -> None:
    text = (
        "// RUN: stripe-opt %s > %t\n// RUN: stripe-opt %t \\\n// RUN:   | filecheck %s\nabc\n// CHECK: ABC\n"
    )
    _add(project, "a.stripe", text)
    project.runpytest_inprocess().assert_outcomes(passed=1)


def test_a_file_without_a_run_line_fails(project: pytest.Pytester) -> None:
    _add(project, "a.tile", "abc\n")
    result = project.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no RUN line*"])


def test_inputs_and_other_folders_are_not_collected(project: pytest.Pytester) -> None:
    _add(project, "Inputs/a.tile", "abc\n")
    _add(project, "../../examples/a.tile", "abc\n")
    _add(project, "config.json", "{}\n")
    project.runpytest_inprocess().assert_outcomes()


def test_an_exception_shows_its_traceback(project: pytest.Pytester) -> None:
    _add(project, "a.tile", "// RUN: stripe-opt --crash %s\n")
    project.runpytest_inprocess().stdout.fnmatch_lines(["*an exception got out*", "RuntimeError: boom"])


def test_streams_and_folder_are_restored(project: pytest.Pytester) -> None:
    _add(project, "a.tile", "// RUN: stripe-opt --crash %s\n")
    streams, folder = (sys.stdin, sys.stdout, sys.stderr), Path.cwd()
    project.runpytest_inprocess()
    assert (sys.stdin, sys.stdout, sys.stderr) == streams
    assert Path.cwd() == folder


def test_whole_goldens_are_compared_and_blessed(project: pytest.Pytester) -> None:
    project.makepyfile("def test_it(golden):\n    golden('demo', 'new\\n')\n")
    missing = project.runpytest_inprocess()
    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines(["*no golden*demo.txt; `pytest --bless` writes it*"])
    path = _add(project, "whole/demo.txt", "old\n")
    differs = project.runpytest_inprocess()
    differs.assert_outcomes(failed=1)
    differs.stdout.fnmatch_lines(["-old", "+new", "*pytest --bless*"])
    project.runpytest_inprocess("--bless").assert_outcomes(passed=1)
    assert path.read_text("utf-8") == "new\n"
    project.runpytest_inprocess().assert_outcomes(passed=1)


def test_run_lines_are_found_and_continued() -> None:
    text = "// RUN: one \\\n// RUN: two\n\n# RUN: three\n// CHECK: RUN\n"
    assert run_lines(text) == [(1, "one two"), (4, "three")]


def test_substitutions() -> None:
    line = substitute("x %s %S %t %T 5%%s", Path("/d/a.tile"), Path("/tmp/q"))
    assert line == "x /d/a.tile /d /tmp/q/a.tile.tmp /tmp/q 5%s"


def test_parsing_of_a_pipeline() -> None:
    assert parse_line('a --passes \'p{k=v, l="|"},q\' <in 2>&1 | b "x y" -D N=3 >out') == (
        Command(("a", "--passes", 'p{k=v, l="|"},q'), merge_stderr=True, stdin="in"),
        Command(("b", "x y", "-D", "N=3"), stdout="out"),
    )
    assert parse_line("a ''") == (Command(("a", "")),)
    with pytest.raises(ShellError, match="no file name after '>'"):
        parse_line("a > | b")


@pytest.mark.slow
def test_lit_reads_the_same_files(tmp_path: Path) -> None:
    (tmp_path / "lit.cfg.py").write_text(LIT_CONFIG.read_text("utf-8"), "utf-8")
    (tmp_path / "good.tile").write_text("// RUN: cat %s | FileCheck %s\n// CHECK: {{R}}UN\n", "utf-8")
    (tmp_path / "bad.tile").write_text("// RUN: cat %s | filecheck %s\n// CHECK: no{{ }}such\n", "utf-8")
    (tmp_path / "not.test").write_text("// RUN: not diff %s %S/bad.tile\n", "utf-8")
    lit = Path(sys.executable).parent / "lit"
    done = subprocess.run([lit, "-v", tmp_path], capture_output=True, text=True, check=False)
    assert "PASS: stripe-opt :: good.tile" in done.stdout
    assert "PASS: stripe-opt :: not.test" in done.stdout
    assert "FAIL: stripe-opt :: bad.tile" in done.stdout


@pytest.mark.slow
def test_all_golden_files_pass_under_lit() -> None:
    lit = Path(sys.executable).parent / "lit"
    done = subprocess.run([lit, "-v", "-j2", LIT_CONFIG.parent], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
