"""Every pass, with what it needs before it, on every example: it finds work, and all that it does is proved."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripe.cli.start import opt
from stripe.passes.registry import BUILTIN, find_pass

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"
EXAMPLES = sorted((ROOT / "examples").glob("*.tile"))


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_what_a_pass_does_to_the_examples_is_proved(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    case = find_pass(name).example
    entries = [*case.after, f"{name}{{{case.options}}}"]
    changed: list[str] = []
    for example in [*EXAMPLES, *(GOLDEN / program for program in case.programs)]:
        arguments = [
            "--passes",
            ",".join(entries),
            "--hw",
            case.hardware,
            "--verify",
            "exact",
            "-o",
            "/dev/null",
        ]
        status = opt([str(example), *arguments])
        said = capsys.readouterr().err.splitlines()
        assert status == 0, (example.name, said)
        # A program too large to be run at its addresses is proved all the same.
        verdicts = [
            line
            for line in said
            if line.startswith("verify: ")
            and not line.startswith("verify: assuming ")
            and "not run: too large" not in line
        ]
        assert [line for line in verdicts if not line.endswith(": equal")] == [], example.name
        if any(line.startswith(f"verify: {name}: ") for line in verdicts):
            changed.append(example.name)
    assert changed, f"{name} found nothing to do in any example"
