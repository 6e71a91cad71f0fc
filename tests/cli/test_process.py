"""What only a process of its own shows: what help imports, interrupts, closed pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest

from stripe.cli import start
from tests.support.programs import MATMUL

ROOT = Path(__file__).resolve().parents[2]

HEAVY = ("difflib", "numpy", "networkx", "islpy", "lark", "pydantic", "jinja2", "json5", "ml_dtypes", "rich")


def _python(code: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], input=stdin, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("command", ["opt", "run"])
def test_help_imports_nothing_heavy(command: str) -> None:
    done = _python(
        f"import sys, json\nfrom stripe.cli.start import {command} as main\nstatus = main(['--help'])\n"
        "print(json.dumps([status, sorted(sys.modules)]))"
    )
    status, modules = json.loads(done.stdout.splitlines()[-1])
    assert status == 0
    assert [name for name in modules if name.split(".")[0] in HEAVY] == []


@pytest.mark.parametrize(
    ("words", "allowed", "passes"),
    [
        ("tests/programs/matmul.stripe", set[str](), set[str]()),
        ("tests/programs/matmul.stripe --passes dce", {"pydantic"}, {"base", "dce", "registry"}),
        ("examples/matmul.tile", {"islpy"}, set[str]()),
        ("examples/matmul.tile --passes dce", {"islpy", "pydantic"}, {"base", "dce", "registry"}),
        (
            "examples/matmul.tile --passes dce --hw dsp_conv",
            {"islpy", "pydantic", "jinja2"},
            {"base", "dce", "registry"},
        ),
    ],
)
def test_a_compile_imports_its_parts_alone(words: str, allowed: set[str], passes: set[str]) -> None:
    done = _python(
        "import sys, json\nfrom stripe.cli.start import opt\n"
        f"status = opt({words.split()} + ['-o', {os.devnull!r}])\nprint(json.dumps([status, sorted(sys.modules)]))"
    )
    status, modules = json.loads(done.stdout.splitlines()[-1])
    assert status == 0
    assert {name for name in HEAVY if name in modules} == allowed
    loaded = {name.removeprefix("stripe.passes.") for name in modules if name.startswith("stripe.passes.")}
    assert loaded == passes


def test_reading_passes_and_machines_imports_no_numerics() -> None:
    """All passes, shipped lists and machines: numpy and networkx wait for a block or a route that needs them."""
    done = _python(
        "import sys\nfrom stripe.config.files import shipped\nfrom stripe.hw import load_hardware\n"
        "from stripe.passes.registry import find_pass, pass_names\nfrom stripe.pipeline.setup import read_setup\n"
        "for name in pass_names(): find_pass(name)\nfor name in shipped(): load_hardware(name)\n"
        "for name in shipped('optconfigs'): read_setup([('config', name)], None, {})\nprint(*sys.modules)"
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert {"pydantic", "jinja2", "stripe.passes.autotile.autotile"} < loaded
    assert not loaded & {"numpy", "networkx", "lark", "json5", "rich", "ml_dtypes"}
    work = {"stripe.cost.time.workload", "stripe.passes.autotile.tiler", "stripe.passes.fusion.rings"}
    assert not loaded & work, "the work of a pass waits for its run"


@pytest.mark.parametrize(("argument", "frozen"), [("", True), ("sys.argv[1:]", False)])
def test_a_process_of_a_command_ends_without_a_search_for_garbage(argument: str, frozen: bool) -> None:
    """The search is a sixth of a short run. A process that calls the command keeps its own."""
    done = _python(
        "import gc, sys\nfrom stripe.cli.start import opt\n"
        f"sys.argv = ['stripe-opt', 'tests/programs/matmul.stripe', '-o', {os.devnull!r}]\n"
        f"print(opt({argument}), gc.get_freeze_count() > 0)"
    )
    assert done.stdout == f"0 {frozen}\n"


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    path = tmp_path / "mm.stripe"
    path.write_text(MATMUL, "utf-8")
    code = (
        "import os, sys\nfrom stripe.cli.start import opt as main\n"
        "read, write = os.pipe()\nos.close(read)\nos.dup2(write, 1)\n"
        f"sys.exit(main([{str(path)!r}]))"
    )
    done = _python(code)
    assert (done.returncode, done.stderr) == (141, "")


def test_an_interrupt_is_130(tmp_path: Path) -> None:
    code = (
        "import sys\nimport stripe.cli.input as files\nfrom stripe.cli.start import opt as main\n"
        "def stop(path):\n    raise KeyboardInterrupt\n"
        "files.input_bytes = stop\nsys.exit(main(['x.stripe']))"
    )
    done = _python(code)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stripe-opt: interrupted\n")


@pytest.mark.parametrize("command", ["opt", "run", "sim", "reduce"])
def test_an_interrupt_while_modules_load_is_quiet(command: str) -> None:
    """What raises stands for the first module that a command imports."""
    code = (
        "import sys\nfrom stripe.cli import start\n"
        "class Stop:\n    def find_spec(self, *_):\n        raise KeyboardInterrupt\n"
        f"sys.meta_path.insert(0, Stop())\nsys.exit(start.{command}())"
    )
    done = _python(code)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_what_other_code_makes_of_an_interrupt_is_one_all_the_same(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\nimport stripe.cli.input as files\nfrom stripe.cli.start import opt as main\n"
        "def stop(path):\n    try:\n        os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt:\n        raise ImportError('cannot load')\n"
        "files.input_bytes = stop\nsys.exit(main(['x.stripe']))"
    )
    done = _python(code)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stripe-opt: interrupted\n")


def test_the_commands_start_where_interrupts_are_quiet() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    for name, place in scripts.items():
        module, _, function = place.partition(":")
        assert (name, module) == (f"stripe-{function}", "stripe.cli.start")
        assert callable(getattr(start, function))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("opt", ["--help"]),
        ("opt", ["--list-passes"]),
        ("opt", ["{path}"]),
        ("run", ["{path}"]),
        ("sim", ["{path}", "--counts"]),
        ("sim", ["{path}", "--hw", "dsp_conv", "--config", "dsp_conv"]),
    ],
)
def test_output_that_cannot_be_written_is_said(
    command: str,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "mm.stripe"
    path.write_text(MATMUL, "utf-8")
    given = [word.format(path=path) for word in words]
    for stdout, reason in (("/dev/full", "cannot be written: No space left on device"), (None, "is closed")):
        with monkeypatch.context() as patch, Path(stdout or os.devnull).open("w", encoding="utf-8") as full:
            patch.setattr(sys, "stdout", full if stdout else None)
            assert getattr(start, command)(given) == 2
            with suppress(OSError):
                full.close()  # writes what it holds back
        hint = "redirect it to another file"
        assert (
            capsys.readouterr().err == f"stripe-{command}: error: standard output {reason}\n  hint: {hint}\n"
        )


def test_full_and_closed_standard_output_of_a_process(tmp_path: Path) -> None:
    path = tmp_path / "mm.stripe"
    path.write_text(MATMUL, "utf-8")
    line = [sys.executable, "-c", "import sys; from stripe.cli.start import opt; sys.exit(opt())", str(path)]
    for redirection, reason in (
        (">/dev/full", "cannot be written: No space left on device"),
        (">&-", "is closed"),
    ):
        words = ["sh", "-c", f'"$@" {redirection}', "sh", *line]
        done = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith(f"stripe-opt: error: standard output {reason}\n")


def test_odd_file_names_and_encodings(tmp_path: Path) -> None:
    path = tmp_path / "caf\udce9\nb.stripe"
    path.write_text(MATMUL.replace("// mm", "// m×m"), "utf-8")
    code = (
        "import sys\nsys.stdout.reconfigure(encoding='ascii')\nfrom stripe.cli.start import opt as main\n"
        f"sys.exit(main([{str(path)!r}, '--verify-roundtrip']) + main([{str(path)!r}, '-o', {str(tmp_path / 'o')!r}]))"
    )
    done = _python(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert "// m\\xd7m" in done.stdout
    assert "// m×m" in (tmp_path / "o").read_text("utf-8")
