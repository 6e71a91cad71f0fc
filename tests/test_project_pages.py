"""Make targets and files that pages name exist, and links lead to files and headings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md"))),
)


def _targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    return set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES)
def test_named_make_targets_exist(page: str) -> None:
    named = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", (ROOT / page).read_text("utf-8")))
    assert named <= _targets()


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings(page: str) -> None:
    home = (ROOT / page).parent
    for link, anchor in re.findall(
        r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", (ROOT / page).read_text("utf-8")
    ):
        target = home / link if link else ROOT / page
        assert target.exists(), link
        if anchor:
            assert anchor in _anchors(target), f"{link}#{anchor}"


def _anchors(page: Path) -> set[str]:
    """The names of the headings of a page, as GitHub makes them, and of its anchors."""
    text = page.read_text("utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    named = set(re.findall(r'<a id="([\w-]+)"></a>', text))
    return named | {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_readme_shows_the_two_commands_first() -> None:
    first = (ROOT / "README.md").read_text("utf-8").split("```")[1]
    assert re.findall(r"\$ (\S+ \S+)", first) == ["make demo", "make test"]
