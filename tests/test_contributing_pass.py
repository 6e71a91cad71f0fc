"""`make new-pass` writes a pass whose tests pass at once; CONTRIBUTING.md shows the files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
KEPT = (
    "docs",
    "examples",
    "grammar",
    "hwmodels",
    "optconfigs",
    "stripe",
    "tests",
    "tilelib",
    "tools",
    "pyproject.toml",
)


def _run(copy: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(
        [sys.executable, *command], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with a new pass `merge_loops`, and what is compiled of it (but for files that are being written)."""
    target = tmp_path_factory.mktemp("project")
    for name in KEPT:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("*.pyc.*"))
        else:
            shutil.copy(source, target / name)
    written = _run(target, "tools/new_pass.py", "merge_loops").split()
    assert written == [
        "stripe/passes/merge_loops.py",
        "tests/golden/merge_loops/merge_loops.tile",
        "stripe/passes/registry.py",
        "docs/passes.md",
    ]
    return target


@pytest.mark.long
def test_all_tests_of_a_new_pass_pass_at_once(copy: Path) -> None:
    found = _run(
        copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "merge_loops or up_to_date or one_group or lists",
        "tests/golden/merge_loops", "tests/test_each_pass.py", "tests/passes/test_docstrings.py",
        "tests/pipeline/test_pass_reference.py",
    )  # fmt: skip
    assert int(re.findall(r"(\d+) passed", found)[0]) >= 8


@pytest.mark.long
def test_a_new_pass_is_in_good_style(copy: Path) -> None:
    ruff = Path(sys.executable).parent / "ruff"
    for arguments in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [ruff, *arguments, "stripe/passes"], cwd=copy, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_files_say_what_to_fill_in(copy: Path) -> None:
    for path in ("stripe/passes/merge_loops.py", "tests/golden/merge_loops/merge_loops.tile"):
        assert "Fill in" in (copy / path).read_text("utf-8")


@pytest.mark.parametrize(
    "name",
    ["", "Merge", "thread", "../x", "fuse", "place", "stencil", "locate", "base", "registry", "proof"],
)
def test_other_names_are_refused_before_anything_is_written(copy: Path, name: str) -> None:
    before = _texts(copy)
    done = subprocess.run(
        [sys.executable, "tools/new_pass.py", name], cwd=copy, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(("usage: make new-pass", "error: there is a", "error: there are"))
    assert _texts(copy) == before


def _texts(copy: Path) -> dict[Path, str]:
    """The files that a new pass is written to, and the modules beside it."""
    found = [*(copy / "stripe/passes").rglob("*.py"), *(copy / "tests/golden").rglob("*.tile")]
    return {path: path.read_text("utf-8") for path in found}


def test_the_page_shows_the_files_as_they_are_written(copy: Path) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for language, path in (
        ("python", "stripe/passes/merge_loops.py"),
        ("tile", "tests/golden/merge_loops/merge_loops.tile"),
    ):
        (shown,) = re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        assert shown in (copy / path).read_text("utf-8")
