"""The layers of the package hold: an import points downwards only (the contracts are in pyproject.toml)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_imports_point_downwards() -> None:
    lint = Path(sys.executable).parent / "lint-imports"
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run([lint], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
