"""Make targets and files that pages name exist, and links lead to files and headings."""

from __future__ import annotations

import re
from importlib import import_module
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


def test_the_map_of_the_code_names_modules_that_exist() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if re.match(r"\|.*`(stripe|tools)/", line)]
    assert len(rows) > 10
    for row in rows:
        named = [Path(name) for name in re.findall(r"`([\w/]+\.py)`", row) if "NAME" not in name]
        folders = {path.parent for path in named if path.parts[0] in ("stripe", "tools")}
        for path in named:
            places = {Path()} if path.parts[0] in ("stripe", "tools") else folders
            assert path.name == "__init__.py" or any((ROOT / place / path).is_file() for place in places), (
                path
            )


def test_the_table_of_shared_parts_names_all_modules_of_rewrite() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = page.split("| module | part |")[1].split("\n\n")[0]
    named = {
        name
        for row in table.splitlines()
        for name in re.findall(r"`(\w+)`", row.split("|")[1] if row else "")
    }
    modules = {path.stem for path in (ROOT / "stripe" / "rewrite").glob("*.py")} - {"__init__"}
    assert named == modules


def test_the_table_of_questions_names_functions_that_exist() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = page.split("| question | answer |")[1].split("\n\n")[0]
    answers = re.findall(r"`(stripe/[\w/]+)\.py`: ((?:`\w+`(?:, | and )?)+)", table)
    assert len(answers) >= 9
    for module, names in answers:
        found = import_module(module.replace("/", "."))
        assert [name for name in re.findall(r"\w+", names) if not hasattr(found, name)] == [], module
