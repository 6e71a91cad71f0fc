"""One description of a command: from the field of an option follow parser, help, record, replay and completion."""

from __future__ import annotations

import ast
import shutil
import subprocess
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pytest

from stripe.cli import guard, job, reproducer
from stripe.cli.arguments.compile import CompileSpec
from stripe.cli.arguments.opt import OptSpec
from stripe.cli.arguments.reduce import ReduceSpec
from stripe.cli.arguments.run import RunSpec
from stripe.cli.arguments.sim import SimSpec
from stripe.cli.arguments.sweep import SUBCOMMANDS, RunSweepSpec, SweepSpec
from stripe.cli.completion import completion
from stripe.cli.option import Spec, option
from stripe.cli.start import opt
from stripe.cli.usage import UsageError, number
from stripe.frontends.frontend import Source
from tests.support.programs import MATMUL

Capture = pytest.CaptureFixture[str]
SPECS = (OptSpec, RunSpec, SimSpec, ReduceSpec, SweepSpec, *SUBCOMMANDS.values())
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Wider(OptSpec):
    """The command with options of its own, each declared by one field."""

    level: int = option("--level", group="output", metavar="N", read=number(0), default=2, help="how wide")
    wide: bool = option("--wide", group="output", help="wider")
    colour: str | None = option(
        "--colour", group="watching the passes", choices=("red", "blue"), replayed=False, help="x"
    )
    words_: tuple[str, ...] = option("--word", group="output", metavar="W", many=True, help="words")


def test_an_option_is_one_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["x.tile", "--level", "3", "--wide", "--word", "a", "--word=-b", "--colour", "red"]
    spec = Wider.read(words)
    assert (spec.level, spec.wide, spec.colour, spec.words_) == (3, True, "red", ("a", "-b"))
    assert Wider.read([]).level == 2
    assert "--colour red|blue" in Wider.parser().format_help()
    with pytest.raises(UsageError, match="no whole number from 0 on"):
        Wider.read(["--level", "x"])
    assert spec.words() == ("--level=3", "--wide", "--word=a", "--word=-b")
    assert "--colour" in completion(Wider, "bash")
    monkeypatch.setitem(reproducer.REPLAYED, "stripe-opt", Wider)
    crashed = job.Job(("stripe-opt",), spec, Source(MATMUL.encode(), "x.stripe", "stripe"))
    path = reproducer.write(crashed, "it fell over", None)
    assert path is not None
    path = path.rename(tmp_path / path.name)
    again = job.Job(("stripe-opt",), Wider.read(["--colour", "blue"]))
    assert reproducer.read_into(again, str(path)) == replace(spec, colour="blue", input=None)


@pytest.mark.parametrize("spec", SPECS)
def test_words_of_a_command_line_are_read_back(spec: type[Spec]) -> None:
    assert spec().words() == ()
    for described, (name, made) in zip(fields(spec), spec.options(), strict=False):
        assert made.help
        assert name.isidentifier()
        assert described.metadata["options"]


def test_a_positional_argument_is_recorded_as_a_word() -> None:
    spec = RunSweepSpec.read(["sweep.json", "-D", "N=1", "--out", "results"])
    assert spec.words() == ("sweep.json", "-D=N=1")
    assert RunSweepSpec.read(spec.words()).define == ("N=1",)


def test_the_record_leaves_out_what_is_recorded_as_read() -> None:
    words = [
        "a.tile", "--passes", "dce", "--config=c", "--passes=unroll", "--hw", "h", "-D", "N=1", "--shape", "A=2:fp32",
        "--verify", "exact", "--emit", "c{openmp=true}", "--remarks", "-o", "x", "--verify-against", "b.tile",
    ]  # fmt: skip
    spec = OptSpec.read(words)
    assert spec.pass_sources == (("passes", "dce"), ("config", "c"), ("passes", "unroll"))
    assert spec.words() == (
        "--shape=A=2:fp32", "--verify=exact", "--emit=c{openmp=true}", "--verify-against=b.tile",
    )  # fmt: skip
    assert OptSpec.read(spec.words()).words() == spec.words()


def test_a_reproducer_of_another_tool_is_refused(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "x.json"
    text = (
        '{"stripe_reproducer": 2, "error": "", "tool": "TOOL", "options": OPTIONS, "input_format": "FORM", '
    )
    text += '"input": ""}'
    for tool, options, form, reason in (
        ("stripe-fly", "[]", "stripe", "no command is called 'stripe-fly'"),
        ("stripe-opt", '["--emitt=c"]', "stripe", "unknown option '--emitt'"),
        ("stripe-sim", '["--halo=keep"]', "stripe", "--halo is a rule for counting"),
        ("stripe-opt", "[]", "fortran", "no language is called 'fortran'"),
    ):
        path.write_text(text.replace("TOOL", tool).replace("OPTIONS", options).replace("FORM", form), "utf-8")
        assert opt(["--run-reproducer", str(path)]) == 2
        assert reason in capsys.readouterr().err


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_all_options(spec: type[Spec], shell: str) -> None:
    script = completion(spec, shell)
    for _, made in spec.options():
        for flag in made.flags:
            assert (flag if shell != "fish" else f" {flag.lstrip('-')} ") in script
    if issubclass(spec, CompileSpec):
        assert "dsp_conv" in script
        assert "exact" in script
    if shutil.which(shell):
        done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("stripe-opt --verify ex", ["exact"]),
        ("stripe-opt --config dsp", ["dsp_conv"]),
        ("stripe-opt --print-ir-after-", ["--print-ir-after-all", "--print-ir-after-change"]),
        ("stripe-sweep ver", ["verify"]),
        ("stripe-sweep run --sched", ["--scheduler"]),
    ],
)
def test_bash_completes(line: str, wanted: list[str]) -> None:
    words = " ".join(f"'{word}'" for word in line.split())
    spec = OptSpec if line.startswith("stripe-opt") else SUBCOMMANDS["run"]
    script = (
        f"{completion(spec, 'bash')}\nCOMP_WORDS=({words})\nCOMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
        f"_{spec.family()[0].prog.replace('-', '_')}\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == wanted


def test_completion_is_printed(capsys: Capture) -> None:
    assert opt(["--completion", "bash"]) == guard.OK
    assert capsys.readouterr().out == completion(OptSpec, "bash")


def test_the_light_side_imports_nothing_heavy_at_the_top() -> None:
    """Functions of the light side may import; at the top of its files stand the standard library and itself."""
    light = [
        *(ROOT / "stripe/cli/arguments").glob("*.py"),
        ROOT / "stripe/frontends/registry.py",
        ROOT / "stripe/emit/target_names.py",
        ROOT / "stripe/verify/policy.py",
        ROOT / "stripe/verify/assumptions.py",
    ]
    light += [
        ROOT / f"stripe/cli/{name}.py" for name in ("start", "guard", "option", "usage", "job", "streams")
    ]
    for path in light:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stripe"):
                known = ("stripe.cli.", "stripe.exit_status", "stripe.frontends.", "stripe.emit.target_names")
                known += ("stripe.verify.policy", "stripe.verify.assumptions")
                assert (node.module or "").startswith(known), (path.name, node.module)
