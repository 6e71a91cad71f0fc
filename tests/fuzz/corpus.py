"""Cases that begin where people ended: the programs and pass lists of golden tests, changed a little.

Small random programs rarely have what some passes look for (a stencil, a copy in local memory, a matrix product in
lanes). The golden test of each option has, so its RUN line is a seed: sizes of a Tile program are drawn anew (Stripe
keeps its own), entries of the list go, options change, other passes come between. A pass is reached once it has a
golden test, as each has.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from stripe.config.defines import parse_define
from stripe.hw import load_hardware
from stripe.hw.schema import HardwareModel
from stripe.ir import Block, Program, Stage, StripeError, parse_program, verify_structural
from stripe.passes.registry import pass_names
from stripe.pipeline.passlist import entry_json, parse_passes
from stripe.tile import compile_tile
from tests.fuzz.pass_lists import Entry, changed_lists
from tests.support.golden import SUFFIXES, run_lines
from tests.support.shell import Command, ShellError, parse_line

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
MOST_POINTS = 1_000_000
"""Programs with more take the compiled C, and the interpreter after passes that make small blocks, too long."""

_SIZE = re.compile(r"(?<![\w.\"])\d+(?![\w.\"])")
_TEST_LINE = re.compile(r"^//.*$", re.MULTILINE)
"""What a test says to those who run it; comments inside blocks of Stripe are their names."""


@dataclass(frozen=True, slots=True)
class Seed:
    """A program, the entries that a golden test runs over it, and the machine, where the test names one."""

    text: str
    language: str
    passes: tuple[Entry, ...]
    hardware: HardwareModel | None


def read_program(text: str, language: str) -> Program:
    """Raises StripeError when the compiler refuses the text."""
    return parse_program(text, "fuzz.stripe") if language == "stripe" else compile_tile(text, "fuzz.tile")


@cache
def seeds(pass_name: str) -> tuple[Seed, ...]:
    """The golden tests of a pass: one for each RUN line that compiles its own file."""
    tests = sorted(path for path in (GOLDEN / pass_name).iterdir() if path.suffix in SUFFIXES)
    return tuple(seed for test in tests for seed in _seeds_of(test))


def _seeds_of(test: Path) -> list[Seed]:
    text = test.read_text("utf-8")
    language = test.suffix.removeprefix(".")
    bare = _TEST_LINE.sub("", text).strip() + "\n"
    if not _suits(bare, language):
        return []
    found: list[Seed] = []
    for _, line in run_lines(text):
        try:
            command, *_ = parse_line(line)
            seed = _seed(command, bare, language)
        except (ShellError, StripeError):  # a test of a refusal
            continue
        found += [seed] if seed is not None else []
    return found


def _seed(command: Command, text: str, language: str) -> Seed | None:
    """Raises StripeError for a list that is refused."""
    if command.argv[:2] != ("stripe-opt", "%s"):
        return None
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("--passes", default="")
    parser.add_argument("--hw")
    parser.add_argument("-D", action="append", default=[], dest="defines")
    given, _ = parser.parse_known_args(command.argv[2:])
    if not given.passes:
        return None
    defines = dict(parse_define(define) for define in given.defines)
    hardware = load_hardware(given.hw, defines) if given.hw else None
    return Seed(text, language, tuple(map(entry_json, parse_passes(given.passes))), hardware)


def _suits(text: str, language: str) -> bool:
    """Whether it is a program that is valid and not too large to run."""
    try:
        program = read_program(text, language)
    except StripeError:
        return False
    return not verify_structural(program, Stage.TILED) and points(program.entry) <= MOST_POINTS


def points(block: Block) -> int:
    """How often leaf blocks run."""
    inner = sum(points(each) for each in block.statements if isinstance(each, Block))
    return block.points * max(1, inner)


@st.composite
def seeded(draw: st.DrawFn, hardware: HardwareModel) -> Seed:
    """A seed, its program and its list changed a little; `hardware` is for tests that name no machine."""
    tested = [name for name in pass_names() if (GOLDEN / name).is_dir()]
    found = draw(st.sampled_from(seeds(draw(st.sampled_from(tested)))))
    text = draw(resized(found.text)) if found.language == "tile" else found.text
    machine = found.hardware or hardware
    try:
        program = read_program(text, found.language)
    except Exception:  # noqa: BLE001 - the same
        return Seed(text, found.language, (), machine)
    return Seed(text, found.language, draw(changed_lists(found.passes, program, machine)), machine)


@st.composite
def resized(draw: st.DrawFn, text: str) -> str:
    """The Tile program with other sizes, where it is still one."""

    def other(match: re.Match[str]) -> str:
        size = int(match[0])
        if draw(st.integers(0, 2)):
            return match[0]
        return str(draw(st.sampled_from([max(0, size - 1), size + 1, size // 2, 2 * size, 1, 3, 5, 8, 16])))

    changed = _SIZE.sub(other, text)
    try:
        return changed if _suits(changed, "tile") else text
    except Exception:  # noqa: BLE001 - the check of the case meets it again and reports it
        return changed
