"""The proof with its fast paths (unchanged statements, known buffers, computed constants) against the enumeration,
which shares no code with it: on each pass of the golden tests and on the examples, where programs are small enough."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from stripe.hw.load import load_hardware
from stripe.ir import Program, StripeError, parse_program
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes
from stripe.tile import compile_tile
from stripe.verify.enumerated_cells import InvalidProgram
from stripe.verify.enumeration import decide, points
from stripe.verify.proof import judge as judging
from stripe.verify.proof.judge import judge
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Equal, Unknown, Verdict

ROOT = Path(__file__).parents[2]
MOST_POINTS = 5_000
LISTS = ("autotile{reqs=[kernel],outer_set=[tile],inner_set=[inner]},dce", "fusion,localize,scalarize,dce")


def cases() -> Iterator[tuple[Path, str, str]]:
    """Programs with a list of passes and a machine: those of golden tests, and examples with usual lists."""
    for path in sorted((ROOT / "tests/golden").rglob("*.*")):
        if path.suffix not in (".tile", ".stripe") or "Inputs" in path.parts:
            continue
        for line in path.read_text("utf-8").splitlines():
            if line.startswith("// RUN: stripe-opt %s") and "--passes" in line and not line.endswith("\\"):
                words = shlex.split(line.partition("stripe-opt")[2])
                hardware = words[words.index("--hw") + 1] if "--hw" in words else ""
                if "/" not in hardware and not {"--config", "--split-input-file", "-D", "--shape"} & set(
                    words
                ):
                    yield path, words[words.index("--passes") + 1], hardware
    for path in sorted((ROOT / "examples").glob("*.tile")):
        for passes in LISTS:
            yield path, passes, ""


CASES = list(cases())


def check(path: Path, passes: str, hardware: str) -> int:
    """Compares both answers for each pass; gives the number of comparisons."""
    text = path.read_text("utf-8")
    compared = 0
    try:
        entries = parse_passes(passes)
        machine = load_hardware(hardware, {}) if hardware else None
        program: Program = (
            compile_tile(text, path.name, {}) if path.suffix == ".tile" else parse_program(text, path.name)
        )
        for entry in entries:
            result = PassManager((entry,), machine).run(program)
            if result is not program and max(points(program), points(result)) <= MOST_POINTS:
                compare(prove_equal(program, result), program, result)
                compared += 1
            program = result
    except StripeError:
        pass  # a golden test of a message
    return compared


def compare(proved: Verdict, before: Program, after: Program) -> None:
    try:
        enumerated = decide(before, after, most_points=MOST_POINTS)
    except InvalidProgram:
        return  # nothing is said about programs that are wrong in themselves
    assert isinstance(proved, Unknown) or type(proved) is type(enumerated), f"{proved}\n{enumerated}"


SHARES = 8


@pytest.mark.long
@pytest.mark.parametrize("share", range(SHARES))
def test_passes_of_golden_tests_and_examples(share: int) -> None:
    assert sum(check(*case) for case in CASES[share::SHARES]) > 5


def test_nested_floors_get_fewer_steps_of_isl(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is slow there, and enumeration answers anyway."""
    text = (ROOT / "tests/verify/programs/copy.stripe").read_text("utf-8")
    plain = parse_program(text, "copy.stripe")
    nested = parse_program(text.replace("A[x]", "A[5*floor((x + floor(x/80))/5) + x mod 5]"), "nested.stripe")
    asked: list[int] = []

    def unknown(*_: Program, operations: int) -> Verdict:
        asked.append(operations)
        return Unknown("isl gave up")

    monkeypatch.setattr(judging, "prove_equal", unknown)
    assert isinstance(judge(plain, nested, operations=1000).verdict, Equal)
    assert isinstance(judge(plain, plain, operations=1000).verdict, Equal)
    assert asked == [50, 1000]
