"""Files that the tests of the commands read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.programs import MATMUL


@pytest.fixture
def mm(tmp_path: Path) -> str:
    """The matrix product as a file."""
    path = tmp_path / "mm.stripe"
    path.write_text(MATMUL, "utf-8")
    return str(path)
