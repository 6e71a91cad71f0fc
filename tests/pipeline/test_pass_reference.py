"""The reference of the passes under `docs/`: up to date, whole, and the same as `--list-passes`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from annotated_types import Gt, Le

from stripe.cli.start import opt
from stripe.passes.registry import BUILTIN, find_pass
from stripe.pipeline.describe import bounded_words, options_of
from tools.reference.passes import groups, reference
from tools.reference.tags import found

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "passes.md"
NAMES = sorted(BUILTIN)


def _section(name: str) -> str:
    section = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert section is not None, f"docs/passes.md has no section {name}; run make docs"
    return section[1]


def test_the_page_is_up_to_date() -> None:
    assert reference() == PAGE.read_text("utf-8"), "run make docs"


def test_every_pass_stands_in_one_group() -> None:
    by_group = groups()
    assert "Others" not in by_group, f"give {by_group['Others']} a group, {NAMES[0]} shows how"
    assert sorted(name for names in by_group.values() for name in names) == NAMES


def test_each_tag_that_code_asks_for_stands_in_the_manual() -> None:
    language = (ROOT / "docs" / "stripe.md").read_text("utf-8")
    for word, modules in found()[1].items():
        assert f"`#{word}`" in language + PAGE.read_text("utf-8"), word
        if any(module.startswith("emit/") for module in modules):
            assert f"`#{word}" in language.split("## Tags")[1], f"the hint {word}"


@pytest.mark.parametrize("name", NAMES)
def test_every_pass_shows_a_block_before_and_after(name: str) -> None:
    blocks = re.findall(r"^```text\n(.*?)^```", _section(name), re.MULTILINE | re.DOTALL)
    assert any("=>" in block for block in blocks)


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_described(name: str) -> None:
    assert [option.name for option in options_of(find_pass(name)) if not option.description] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_pass_has_golden_tests_of_each_option(name: str) -> None:
    texts = [
        file.read_text("utf-8") for file in (ROOT / "tests" / "golden" / name).iterdir() if file.is_file()
    ]
    runs = [line for text in texts for line in text.splitlines() if "RUN:" in line]
    options = {option.name for option in options_of(find_pass(name))}
    assert {option for option in options if not any(_is_given(option, run) for run in runs)} == set()


def _is_given(option: str, run: str) -> bool:
    return re.search(rf"[{{,]{option}=", run) is not None


def test_the_command_line_lists_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert opt(["--list-passes"]) == 0
    listed: dict[str, list[str]] = {}
    for line in capsys.readouterr().out.splitlines():
        if re.match(r"^\w+", line):
            listed[line.split()[0]] = []
        elif option := re.match(r"^ {6}(\w+): ", line):
            listed[list(listed)[-1]].append(option[1])
    assert {name: options for name, options in listed.items() if name in BUILTIN} == {
        name: [option.name for option in options_of(find_pass(name))] for name in NAMES
    }
    for name in NAMES:
        table = _section(name).split("\n\nParts of")[0]
        assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == listed[name]


def test_types_tell_the_bounds_of_numbers() -> None:
    types = {
        option.name: option.type for name in ("autotile", "fusion") for option in options_of(find_pass(name))
    }
    assert types["max_total_size"] == "whole number from 0 on"
    assert types["pipeline_depth"] == "whole number from 1 on or null"
    assert types["fixed"] == "object {NAME: whole number from 1 on}"
    assert types["units"] == 'whole number from 1 on or "all"'
    assert bounded_words("number", [Gt(0), Le(4096)]) == "number above 0 to 4,096"
