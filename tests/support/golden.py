"""Golden tests as a pytest plugin: files with RUN lines are collected and run in process; whole texts are compared.

A process per test would cost fifty times more. The same files stay valid under `lit` (see tests/golden/lit.cfg.py),
whose substitutions and exit-status rules this follows: lines run in order, a pipeline fails with any of its parts.
"""

from __future__ import annotations

import difflib
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.shell import Outcome, ShellError, parse_line, run_pipeline

SUFFIXES = frozenset({".tile", ".stripe", ".test"})
"""`.test` is for command lines that need no input file."""
INPUTS = "Inputs"
"""Folders of this name hold files that tests read, not tests."""
PROOF = "proof"
"""The folder of programs before and after a rewrite, which `tests/verify` proves (`tests/verify/pairs.py`)."""

_RUN = re.compile(r"(?://|#)\s*RUN:\s*(.*?)\s*$")
_SHOWN_LINES = 60


class GoldenError(Exception):
    """A golden test that failed; the message is all that the user sees."""


def run_lines(text: str) -> list[tuple[int, str]]:
    """The RUN lines of a test with their line numbers; one that ends in a backslash goes on in the next."""
    found: list[tuple[int, str]] = []
    open_line = False
    for number, line in enumerate(text.splitlines(), start=1):
        match = _RUN.search(line)
        if match is None:
            continue
        body = match[1]
        if open_line:
            first, before = found.pop()
            found.append((first, f"{before}{body}"))
        else:
            found.append((number, body))
        open_line = body.endswith("\\")
        if open_line:
            start, whole = found.pop()
            found.append((start, whole.removesuffix("\\")))
    return found


def substitute(line: str, test: Path, folder: Path) -> str:
    """Replace `%s` (the test), `%S` (its folder), `%t` (a temporary name of its own), `%T` (a folder) and `%%`."""
    values = {
        "%s": str(test),
        "%S": str(test.parent),
        "%t": str(folder / f"{test.name}.tmp"),
        "%T": str(folder),
        "%%": "%",
    }
    return re.sub(r"%[sStT%]", lambda match: values[match[0]], line)


def run_test(test: Path) -> None:
    """Run all RUN lines of a test. Raises GoldenError for the first that fails."""
    lines = run_lines(test.read_text("utf-8"))
    if not lines:
        raise GoldenError(f"{test}: no RUN line (what tests only read belongs into a folder {INPUTS}/)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, line in lines:
            command = substitute(line, test, folder)
            try:
                outcomes = run_pipeline(parse_line(command), folder)
            except ShellError as error:
                raise GoldenError(f"{test}:{number}: in the RUN line: {error}\n  {line}") from None
            if any(outcome.status != 0 or outcome.crashed for outcome in outcomes):
                raise GoldenError(_report(test, number, command, outcomes))


def _report(test: Path, number: int, line: str, outcomes: tuple[Outcome, ...]) -> str:
    parts = [f"{test}:{number}: RUN line failed", f"  {line}"]
    for outcome in outcomes:
        state = "an exception got out" if outcome.crashed else f"exit status {outcome.status}"
        parts.append(f"\n$ {' '.join(outcome.command.argv)}   [{state}]")
        for title, text in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
            if text.strip():
                parts.append(f"--- {title}\n{_shorten(text)}")
    return "\n".join(parts)


def _shorten(text: str) -> str:
    """Both ends of a long text: the start says what it is, the end what went wrong."""
    lines = text.rstrip("\n").split("\n")
    hidden = len(lines) - 2 * _SHOWN_LINES
    if hidden > 0:
        lines[_SHOWN_LINES:-_SHOWN_LINES] = [f"... {hidden} more lines ..."]
    return "\n".join(lines)


class GoldenFile(pytest.File):
    """A file that is one test."""

    def collect(self) -> Iterator[pytest.Item]:
        yield GoldenItem.from_parent(self, name="RUN")


class GoldenItem(pytest.Item):
    """All RUN lines of one file."""

    def runtest(self) -> None:
        run_test(self.path)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        if isinstance(excinfo.value, GoldenError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, str(self.path.relative_to(self.config.rootpath))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect golden tests, wherever below a folder `golden` they lie."""
    inside = file_path.relative_to(parent.config.rootpath).parts
    if file_path.suffix in SUFFIXES and "golden" in inside and not {INPUTS, PROOF} & {*inside}:
        return GoldenFile.from_parent(parent, path=file_path)
    return None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--bless`."""
    parser.addoption(
        "--bless", action="store_true", help="rewrite tests/golden/whole/ with what came out now"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` compares `text` with tests/golden/whole/NAME.txt; `pytest --bless` rewrites the file."""
    folder = request.config.rootpath / "tests" / "golden" / "whole"
    bless = bool(request.config.getoption("--bless"))

    def check(name: str, text: str) -> None:
        path = folder / f"{name}.txt"
        expected = path.read_text("utf-8") if path.exists() else None
        if expected == text:
            return
        if bless:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            return
        if expected is None:
            pytest.fail(f"no golden {path}; `pytest --bless` writes it", pytrace=False)
        lines = difflib.unified_diff(
            expected.splitlines(), text.splitlines(), str(path), "what came out", lineterm=""
        )
        diff = "\n".join(lines) or "(only the line ends differ)"
        pytest.fail(f"{diff}\n\nIf the change is meant: `pytest --bless`", pytrace=False)

    return check
