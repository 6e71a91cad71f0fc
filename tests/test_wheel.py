"""The wheel carries its grammars, hardware models and pass lists: built, installed into an empty venv, and run."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MATMUL = """\
function (A[M=16, K=8]: fp32, B[K, N=4]: fp32) -> (C) {
    C[m, n : M, N] = +(A[m, k] * B[k, n]);
}
"""

pytestmark = pytest.mark.slow


def _run(*command: str | Path, cwd: Path) -> str:
    """Run a command away from the checkout, as somebody would who never saw it; its standard output."""
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT, cwd=folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the console scripts of an environment that holds only the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("empty")
    _run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    scripts = folder / "venv" / "bin"
    _run(scripts / "python", "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    return scripts


def test_the_wheel_holds_all_data_files_and_no_tests(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for kind in ("grammar", "hwmodels", "optconfigs", "tilelib"):
        for path in (ROOT / kind).rglob("*.*"):
            assert f"stripe/data/{path.relative_to(ROOT).as_posix()}" in names
    assert "stripe/py.typed" in names
    assert not [name for name in names if name.startswith(("tests/", "grammar/", "examples/"))]


def test_help(installed: Path, tmp_path: Path) -> None:
    assert "usage: stripe-opt" in _run(installed / "stripe-opt", "--help", cwd=tmp_path)
    assert "usage: stripe-run" in _run(installed / "stripe-run", "--help", cwd=tmp_path)


def test_grammars_hardware_model_and_pass_list_are_found_by_name(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "matmul.tile").write_text(MATMUL, "utf-8")
    options = ("--hw", "dsp_conv", "--config", "dsp_conv", "-o", "out.stripe")
    _run(installed / "stripe-opt", "matmul.tile", *options, cwd=tmp_path)
    again = _run(installed / "stripe-opt", "out.stripe", cwd=tmp_path)
    assert "#program block" in again
