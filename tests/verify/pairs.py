"""Programs before and after a rewrite, written by hand: each pair must prove equal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from stripe.ir import Program, parse_program

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "proof"


@dataclass(frozen=True)
class Pair:
    """A correct rewrite."""

    name: str
    before: Program
    after: Program


def pair(name: str) -> Pair:
    """The pair in `tests/golden/proof/NAME.stripe`: the program before, a line `// -----`, and the program after."""
    path = FOLDER / f"{name}.stripe"
    before, after = path.read_text("utf-8").split("// -----\n")
    return Pair(name, parse_program(before, path.name), parse_program(after, path.name))


@cache
def pairs() -> tuple[Pair, ...]:
    """All correct rewrites."""
    return tuple(pair(path.stem) for path in sorted(FOLDER.glob("*.stripe")))
