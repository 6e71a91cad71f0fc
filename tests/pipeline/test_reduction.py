"""Reduction: what is left still fails, nothing more can go, and every candidate was a valid program."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from stripe.cli.start import reduce as main
from stripe.ir import ConfigError, parse_program, print_program, verify_structural
from stripe.pipeline.reduction.command import Command
from stripe.pipeline.reduction.input import ReductionInput, steps_for
from stripe.pipeline.reduction.search import Search, Step, cuts, smaller_numbers
from stripe.pipeline.reproducer import Reproducer
from stripe.tile import compile_tile
from stripe.verify.soundness import check_memory

TILE = """function (A[N=8, M=6]: i32, B[M, K=5]: fp16, C[K]: fp32) -> (O, P) {
  [[pid(conv)]] T[i, j : N, K] = +(A[i, k] * B[k, j]), k < 4 no_defract;
  U = relu(T) + C;
  V = max(U, C) * 2;
  O = tanh(V - 1) > 0 ? V : U;
  P[j : K] = >(O[i, j] * T[i, j]), i < 3 default C;
}
"""


@dataclass(frozen=True, slots=True)
class Judged:
    """A trial that is over, for tests that need no process."""

    failed: bool

    def fails(self) -> bool:
        return self.failed

    def cancel(self) -> None:
        """Nothing runs."""


def reduced(document: ReductionInput, wanted: str) -> tuple[ReductionInput, list[str]]:
    """What is left when candidates have to contain `wanted`, and all that was tried."""
    tried: list[str] = []

    def start(candidate: ReductionInput) -> Judged:
        tried.append(candidate.text)
        return Judged(wanted in candidate.render())

    search = Search[ReductionInput](
        start, ReductionInput.render, lambda _tried, _kept: None, lambda _best: None
    )
    return search.run(document, steps_for(document)), tried


def test_a_tile_program_shrinks_to_the_statement_that_matters() -> None:
    result, tried = reduced(ReductionInput(TILE, "tile"), "tanh")
    assert result.text.count("=") <= 3
    assert len(result.text.splitlines()) == 3
    assert "tanh(" in result.text
    for text in tried:
        compile_tile(text, "candidate.tile")


def test_a_contraction_loses_what_is_not_needed() -> None:
    result, _ = reduced(ReductionInput(TILE, "tile"), ">(")
    assert "default" not in result.text
    assert "conv" not in result.text
    assert "no_defract" not in result.text
    assert "i32" not in result.text


def test_a_stripe_program_shrinks_and_stays_valid() -> None:
    text = print_program(compile_tile(TILE, "program.tile"))
    result, tried = reduced(ReductionInput(text, "stripe"), "= tanh($")
    program = parse_program(result.text)
    assert len(program.main.statements) == 1
    assert len(result.text.splitlines()) < len(text.splitlines()) / 4
    assert "//" not in result.text.replace(") { // ", "").replace("( // ", "")
    for candidate in tried:
        assert verify_structural(parse_program(candidate)) == []


def test_a_program_that_stays_in_its_buffers_goes_on_to_do_so() -> None:
    example = Path(__file__).resolve().parents[2] / "examples" / "conv_bias_relu.tile"
    text = print_program(compile_tile(example.read_text("utf-8"), "conv.tile"))
    _, tried = reduced(ReductionInput(text, "stripe"), "I[-1 + j + y")
    assert len(tried) > 10
    for candidate in tried:
        assert all(finding.unknown for finding in check_memory(parse_program(candidate)))


def test_passes_and_options_shrink_in_a_reproducer() -> None:
    passes = (
        {"name": "a", "dce": {}},
        {"name": "b", "autotile": {"reqs": ["kernel", "conv"], "only_po2": True}},
        {"name": "c", "fusion": {"a_reqs": ["conv"], "b_reqs": ["eltwise"]}},
    )
    found = Reproducer(error="e", input=TILE, input_format="tile", passes=json.loads(json.dumps(passes)))
    result, _ = reduced(ReductionInput.of(found), '"autotile"')
    assert result.passes == ({"name": "b", "autotile": {}},)
    assert Reproducer.model_validate_json(result.render()).error == "e"


def test_an_input_behind_a_sign_stays() -> None:
    text = "function (A[N=4]: fp32, B[N=4]: fp32) -> (O) {\n  T = tanh(B);\n  O = -A + T;\n}\n"
    result, _ = reduced(ReductionInput(text, "tile"), "-A")
    assert result.text == "function (A[]: fp32) -> (O) {\n  O = -A;\n}\n"


def test_a_second_run_changes_nothing() -> None:
    result, _ = reduced(ReductionInput(TILE, "tile"), "relu(")
    again, _ = reduced(result, "relu(")
    assert again == result


def test_cuts_go_from_all_to_one() -> None:
    assert list(cuts(3)) == [{0, 1, 2}, {0}, {1}, {2}]
    assert list(cuts(0)) == []
    assert list(smaller_numbers(10, 1)) == [1, 5, 9]
    assert list(smaller_numbers(1, 1)) == []


def _grep(word: str, status: int = 1) -> str:
    """A command that ends with `status` when the candidate has the word."""
    code = f"import sys; sys.exit({status} if '{word}' in open(sys.argv[1]).read() else 0)"
    return f'{sys.executable} -c "{code}"'


def test_the_command_line_writes_the_result(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    given, output = tmp_path / "in.tile", tmp_path / "out.tile"
    given.write_text("function (A[N=4]: fp32) -> (O) {\n  T = A + 1;\n  U = T * 2;\n  O = relu(U);\n}\n")
    assert main([str(given), "--test", _grep("relu", 7), "--exit-status", "7", "-o", str(output)]) == 0
    assert output.read_text() == "function (U[]: fp32) -> (O) {\n  O = relu(U);\n}\n"
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "characters became" in captured.err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--test", "true"], 2, "no INPUT is given"),
        (["IN"], 2, "no --test is given"),
        (["IN", "--test", "'"], 2, "--test:"),
        (["IN", "--test", "true"], 1, "the command does not fail on the input as it is"),
        (["IN", "--test", "false", "--exit-status", "9"], 1, "does not end with status 9"),
        (["IN", "--test", "no-such-command-here"], 2, "cannot run 'no-such-command-here'"),
        (["IN", "--tset", "x"], 2, "did you mean '--test'?"),
        (["absent.tile", "--test", "false"], 1, "no such file"),
    ],
)
def test_wrong_use_says_what_is_right(
    arguments: list[str], status: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = tmp_path / "in.tile"
    given.write_text("function (A[N=4]: fp32) -> (O) { O = A; }")
    assert main([str(given) if word == "IN" else word for word in arguments]) == status
    assert message in capsys.readouterr().err


def test_whether_the_result_can_be_written_is_asked_before_the_search(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = tmp_path / "given.tile"
    given.write_text(TILE, encoding="utf-8")
    ran = tmp_path / "ran"
    test = f"{sys.executable} -c \"open({str(ran)!r}, 'w'); raise SystemExit(1)\""
    for output, reason in (
        (tmp_path / "no" / "out.tile", "there is no folder"),
        (tmp_path, "this is a directory"),
    ):
        assert main([str(given), "--test", test, "-o", str(output)]) == 2
        assert reason in capfd.readouterr().err
        assert not ran.exists()


def test_networks_are_reduced_as_stripe(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Their bytes are no text; in a reproducer they are base64."""
    network = tmp_path / "net.onnx"
    network.write_bytes(b"\xf7\x00")
    reproducer = tmp_path / "crash.json"
    found = Reproducer(error="", input_format="onnx", input="9wA=")
    reproducer.write_text(found.model_dump_json())
    for path in (network, reproducer):
        assert main([str(path), "--test", "stripe-opt {}"]) == 2
        error = capfd.readouterr().err
        assert f"{path}: programs in tile and stripe can be reduced, not in onnx" in error
        assert "hint: write it as Stripe first" in error


def test_json_that_is_no_reproducer(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    given = tmp_path / "given.json"
    given.write_text('{"passes": []}', encoding="utf-8")
    assert main([str(given), "--test", "false"]) == 2
    assert "this is no crash reproducer" in capfd.readouterr().err


@pytest.mark.parametrize("jobs", [2, 5])
def test_several_trials_at_a_time_find_the_same(jobs: int) -> None:
    """Trials behind a kept candidate are cancelled, and may be proposed again."""
    cancelled: list[str] = []
    best: list[str] = []

    @dataclass(frozen=True)
    class Trial:
        text: str

        def fails(self) -> bool:
            return "tanh" in self.text

        def cancel(self) -> None:
            cancelled.append(self.text)

    def search(jobs: int) -> tuple[str, int]:
        best.clear()
        found = Search[ReductionInput](
            lambda candidate: Trial(candidate.text),
            ReductionInput.render,
            lambda _tried, _kept: None,
            lambda better: best.append(better.text),
            jobs,
        )
        document = ReductionInput(TILE, "tile")
        return found.run(document, steps_for(document)).text, found.tried

    alone = search(1)
    assert not cancelled
    assert search(jobs) == alone
    assert cancelled
    assert best[-1] == alone[0]
    assert all("tanh" in text for text in best)


CRASHING = "function (A[N=4]: fp32) -> (O) {\n  T = A + 1;\n  O = relu(T);\n}\n"


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_our_own_commands_are_called_in_copies_of_the_process(
    jobs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The shell would not find such a stripe-opt: it fails for programs with relu, and leaves this process alone."""

    def tool(arguments: list[str]) -> int:
        print("heard by nobody")
        if "relu" not in Path(arguments[-1]).read_text("utf-8"):
            return 0
        os.kill(os.getpid(), signal.SIGKILL)
        return 1

    monkeypatch.setattr("stripe.cli.commands.reduce.TOOLS", {"stripe-opt": tool})
    monkeypatch.setattr("shutil.which", lambda _name: None)
    given, output = tmp_path / "in.tile", tmp_path / "out.tile"
    given.write_text(CRASHING, "utf-8")
    assert main([str(given), "--test", "stripe-opt --remarks {}", "-o", str(output), "-j", jobs]) == 0
    assert output.read_text("utf-8").count("\n") == 3
    assert "relu" in output.read_text("utf-8")
    captured = capfd.readouterr()
    assert "heard by nobody" not in captured.out + captured.err


def test_a_command_of_another_installation_is_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: "/elsewhere/stripe-opt")
    command = Command(("stripe-opt",), None, 5.0, {"stripe-opt": lambda _arguments: 1})
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="cannot run 'stripe-opt'"):
        command.start(ReductionInput(TILE, "tile"))


def test_a_command_that_takes_too_long_does_not_fail() -> None:
    def tool(_arguments: list[str]) -> int:
        time.sleep(60)
        return 1

    command = Command(("stripe-opt",), None, 0.2, {"stripe-opt": tool})
    assert not command.start(ReductionInput(TILE, "tile")).fails()


def test_the_best_so_far_is_on_disk_when_the_search_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    given, output = tmp_path / "in.tile", tmp_path / "out.tile"
    given.write_text(TILE, "utf-8")
    search_run = Search[ReductionInput].run

    def run(
        self: Search[ReductionInput], start: ReductionInput, steps: Sequence[Step[ReductionInput]]
    ) -> ReductionInput:
        keep = self.keep

        def stop(better: ReductionInput) -> None:
            keep(better)
            raise KeyboardInterrupt

        self.keep = stop
        return search_run(self, start, steps)

    monkeypatch.setattr(Search, "run", run)
    assert main([str(given), "--test", _grep("relu"), "-o", str(output)]) == 130
    compile_tile(output.read_text("utf-8"), "out.tile")
    assert len(output.read_text("utf-8")) < len(TILE)
    assert "interrupted" in capfd.readouterr().err
