"""The commands of README and docs run as printed, and give what is printed under them; programs in them are valid, and
tables are those of the code.

In a block marked `console`, a line that begins with `$ ` is a command and the lines under it are from its output, in
their order and next to each other; a line `…` stands for any lines, `…` within a line for any text. Commands are those
of pyproject.toml, whatever was installed, and run in a folder of their own that holds `examples`: plain ones in this
process, others in a shell, and so does the first of each name in README. Those for setting up (`make`, `git`) are left
to continuous integration, which runs them as its first step.
The Python blocks of a page run one after the other, in one module; a block `text` under one is all that it prints,
where `…` stands for any text. A block marked `tile` or `stripe` is a program.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest

from stripe.ir import parse_program, print_program
from stripe.ir.check.structure import verify_structural
from stripe.tile import compile_tile
from tests.support.shell import TOOLS, Command, ShellError, parse_line, run_pipeline
from tools.reference.tile import require_rows
from tools.write_docs import pages

ROOT = Path(__file__).resolve().parents[1]


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of a page, and the output that the page shows."""

    page: str
    command: str
    output: tuple[str, ...]


def _commands(page: Path) -> list[Shown]:
    found: list[Shown] = []
    for block in _blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *output = part.rstrip("\n").split("\n")
            if not command.startswith(("make ", "git ")):
                found.append(Shown(page.name, command, tuple(output)))
    return found


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the commands that pyproject.toml declares."""
    folder = tmp_path_factory.mktemp("bin")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    for name, target in declared.items():
        module, function = target.split(":")
        lines = (
            f"#!{sys.executable}", "import sys", f"from {module} import {function}",
            "if __name__ == '__main__':", f"    sys.exit({function}())", "",
        )  # fmt: skip
        (folder / name).write_text("\n".join(lines), "utf-8")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_commands_do_what_the_page_shows(page: Path, tmp_path: Path, commands: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    found = (str(commands), str(Path(sys.executable).parent), os.environ.get("PATH", ""))
    path = os.pathsep.join(found)
    started = set[str]() if page.stem == "README" else {*TOOLS}
    for shown in _commands(page):
        plain = _plain(shown.command)
        name = plain.argv[0] if plain is not None else ""
        if plain is not None and name in started:
            (outcome,) = run_pipeline((plain,), tmp_path)
            status, text = outcome.status, outcome.stdout
        else:
            done = subprocess.run(
                shown.command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120,
            )  # fmt: skip
            status, text = done.returncode, done.stdout
            started.add(name)
        assert status == 0, f"$ {shown.command}\n{text}"
        assert _matches(shown.output, text.split("\n")), f"$ {shown.command}\n{text}"


def _plain(text: str) -> Command | None:
    """A command of the project without pipes, redirections and expansions."""
    if "$" in text:
        return None
    try:
        commands = parse_line(f"{text} 2>&1")
    except ShellError:
        return None
    first = commands[0]
    plain = len(commands) == 1 and first.argv[0] in TOOLS and (first.stdin or first.stdout) is None
    return first if plain else None


def _matches(shown: tuple[str, ...], lines: list[str]) -> bool:
    """Whether the pieces between the lines `…` stand in the output, in this order; `…` within a line is any text."""
    position = 0
    for is_gap, piece in groupby(shown, lambda line: line == "…"):
        if is_gap:
            continue
        text = "\n".join(piece).strip("\n")
        wanted = [re.compile(".*".join(map(re.escape, line.split("…")))) for line in text.split("\n")]
        starts = range(position, len(lines) - len(wanted) + 1)
        found = next((start for start in starts if all(map(_fits, wanted, lines[start:]))), None)
        if found is None:
            return False
        position = found + len(wanted)
    return True


def _fits(pattern: re.Pattern[str], line: str) -> bool:
    return pattern.fullmatch(line) is not None


def test_the_pages_have_commands() -> None:
    assert len(_commands(ROOT / "README.md")) >= 8


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_python_prints_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    blocks = re.findall(
        r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```$)?", page.read_text("utf-8"), re.M | re.S
    )
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), names)
        wanted, got = shown.replace("…", "..."), printed.getvalue()
        assert doctest.OutputChecker().check_output(wanted, got, doctest.ELLIPSIS), f"{code}\n{got}"


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_programs_are_valid(page: Path) -> None:
    for text in _blocks(page, "tile"):
        compile_tile(text, "page")
    for text in _blocks(page, "stripe"):
        program = parse_program(text)
        assert not verify_structural(program)
        assert parse_program(print_program(program)) == program


def test_generated_pages_are_up_to_date() -> None:
    stale = [page.name for page, text in pages().items() if text != page.read_text("utf-8")]
    assert stale == [], "run make docs"


def test_a_table_of_the_manual_names_its_missing_rows() -> None:
    with pytest.raises(
        ValueError, match=r"TABLE of tools/reference/tile\.py: no row for: cbrt, hypot; no function: ad"
    ):
        require_rows("TABLE", {"ad": "sum", "sub": "difference"}, {"sub", "hypot", "cbrt"})


def test_every_page_stands_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    assert [page.name for page in PAGES if f"({page.name})" not in index and page.name != "README.md"] == []
