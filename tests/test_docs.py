"""The commands of README and docs run as printed, and give what is printed under them.

In a block marked `console`, a line that begins with `$ ` is a command and the lines under it are from its output, in
their order and next to each other; a line `…` stands for any lines. Commands run in a folder of their own that holds
`examples`; those for setting up (`make`, `git`) are left to continuous integration, which runs them as its first step.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of a page, and the output that the page shows."""

    page: str
    command: str
    output: tuple[str, ...]


def _commands(page: Path) -> list[Shown]:
    found: list[Shown] = []
    for block in _BLOCK.findall(page.read_text("utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *output = part.rstrip("\n").split("\n")
            if not command.startswith(("make ", "git ")):
                found.append(Shown(page.name, command, tuple(output)))
    return found


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_commands_do_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    for shown in _commands(page):
        done = subprocess.run(
            shown.command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, f"$ {shown.command}\n{done.stdout}"
        assert _matches(shown.output, done.stdout.split("\n")), f"$ {shown.command}\n{done.stdout}"


def _matches(shown: tuple[str, ...], lines: list[str]) -> bool:
    """Whether the pieces between the lines `…` stand in the output, in this order."""
    position = 0
    for piece in "\n".join(shown).split("…"):
        wanted = piece.strip("\n").split("\n") if piece.strip("\n") else []
        starts = range(position, len(lines) - len(wanted) + 1)
        found = next((start for start in starts if lines[start : start + len(wanted)] == wanted), None)
        if found is None:
            return False
        position = found + len(wanted)
    return True


def test_the_pages_have_commands() -> None:
    assert len(_commands(ROOT / "README.md")) >= 8
