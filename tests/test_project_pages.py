"""What README and CONTRIBUTING name exists: make targets, files that links lead to, folders of the layout table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")


def _targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    return set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES)
def test_named_make_targets_exist(page: str) -> None:
    named = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", (ROOT / page).read_text("utf-8")))
    assert named <= _targets()


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page: str) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / page).read_text("utf-8"))
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_readme_shows_the_two_commands_first() -> None:
    first = (ROOT / "README.md").read_text("utf-8").split("```")[1]
    assert re.findall(r"\$ (\S+ \S+)", first) == ["make demo", "make test"]
