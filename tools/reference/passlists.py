"""Regions of docs/passlists.md: the shipped lists entry by entry with their own comments, and the stages of passes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from stripe.config.files import find_file, shipped
from stripe.ir import Stage
from stripe.passes.registry import BUILTIN, find_pass
from stripe.pipeline.files import hardware_of, load_pass_list
from tools.reference.hardware import machine
from tools.reference.markdown import table

_COMMENT = re.compile(r"^\s*(?://|##)\s?(.*)$")
_NAME = re.compile(r'\{\s*"name":\s*"([^"]+)"')


def _stages() -> str:
    rows: list[tuple[str, ...]] = []
    for name in sorted(BUILTIN):
        found = find_pass(name)
        requires = found.requires if found.requires is not Stage.TILED else None
        if requires or found.ensures:
            rows.append((f"[`{name}`](passes.md#{name})", _stage(requires), _stage(found.ensures)))
    return table(("pass", "requires", "ensures"), rows)


def _stage(stage: Stage | None) -> str:
    return "" if stage is None else f"`{stage.name.lower()}`"


def reasons(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The comment at the head of a template, and each entry with the comment before it."""
    head: list[str] = []
    pending: list[str] = []
    entries: list[tuple[str, str]] = []
    for line in text.splitlines():
        comment = _COMMENT.match(line)
        if comment and not entries and line.startswith("##"):
            head.append(comment[1])
        elif comment:
            pending.append(comment[1])
        elif name := _NAME.search(line):
            entries.append((name[1], " ".join(pending)))
            pending = []
    return " ".join(head), entries


def _lists() -> str:
    return "\n".join(part for name in shipped("optconfigs") for part in _list(name))


def _list(name: str) -> Iterator[str]:
    path = find_file(name, "optconfigs")
    head, written = reasons(path.read_text("utf-8"))
    hardware = hardware_of(path)
    parameters = machine(hardware).parameters if hardware else {}
    entries = load_pass_list(path, parameters).entries
    of_template = {entry.name: _template_of(entry.name, dict(written)) for entry in entries}
    yield f"### {name}\n\n{head}\n"
    if hardware:
        yield f"For the hardware model `{hardware}`.\n"
    told: set[str] = set()
    rows: list[tuple[str, ...]] = []
    for entry in entries:
        template = of_template[entry.name]
        reason = "as above" if template in told else dict(written)[template] or "as above"
        told.add(template)
        pass_name = entry.pass_.pass_name
        rows.append((f"`{entry.name}`", f"[`{pass_name}`](passes.md#{pass_name})", reason))
    yield table(("entry", "pass", "reason"), rows)


def _template_of(name: str, written: Mapping[str, str]) -> str:
    """The name as the template has it, with expressions in it."""
    for pattern in sorted(written, key=lambda pattern: "{{" in pattern):
        parts = re.split(r"\{\{.*?\}\}", pattern)
        if re.fullmatch(".*".join(map(re.escape, parts)), name):
            return pattern
    raise ValueError(f"the template has no entry '{name}'")


REGIONS: dict[str, Callable[[], str]] = {"stages": _stages, "lists": _lists}
"""The regions of the page."""
