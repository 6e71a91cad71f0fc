"""docs/passes.md: the reference of the passes, from the registry.

Everything in it comes from the classes: the docstring, the options with types, defaults and descriptions, the stages.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from stripe.ir import Stage
from stripe.passes.base import Pass, PassGroup
from stripe.passes.registry import BUILTIN, find_pass
from stripe.pipeline.describe import options_of, parts_of, short_names
from tools.reference.markdown import table
from tools.reference.tags import tag_table

ROOT = Path(__file__).resolve().parents[2]

_HEAD = """\
# The passes

<!-- Written by `make docs` from the classes of the passes, and a test compares: change their docstrings and fields. -->

A pass list names passes with their options, as JSON, `{ "name": "tile_conv", "autotile": { "reqs": ["conv"] } }`, or
in place, `--passes 'autotile{reqs=[conv]}'`. `stripe-opt --list-passes` prints what stands here, `--schema config`
gives it to an editor, and with `--remarks` each pass says what it did and why it left a block alone.
"""

_TAGS = """\
## Tags that passes set

Options with names such as `outer_set` and `fused_set` give the tags that a list chooses; their defaults stand here
with the option. All other tags here are fixed. Passes select blocks by any tag (`reqs`); the last column names the code
that asks for a tag by itself. Hints that no pass gives by itself are set by such options of a list, or by hand.
[Stripe](stripe.md#tags-that-lowering-sets) has the tags of lowering.
"""


def reference() -> str:
    """The whole page, as Markdown."""
    return "\n".join(_page()).rstrip() + "\n"


def groups() -> dict[str, tuple[str, ...]]:
    """The built-in passes by group, in the order of the registry."""
    found = {
        group.value: tuple(name for name in BUILTIN if find_pass(name).group is group) for group in PassGroup
    }
    return {group: names for group, names in found.items() if names}


def _page() -> Iterator[str]:
    yield _HEAD
    yield "| group | passes |"
    yield "| --- | --- |"
    for group, names in groups().items():
        yield f"| {group} | {', '.join(f'[{name}](#{name})' for name in names)} |"
    yield ""
    for names in groups().values():
        for name in names:
            yield from _section(name, find_pass(name))
    yield _TAGS
    yield tag_table()


def _section(name: str, pass_class: type[Pass]) -> Iterator[str]:
    yield f"## {name}"
    yield ""
    also = short_names(name)
    if also:
        yield f"Also `{'`, `'.join(also)}`."
        yield ""
    yield from _markdown(inspect.getdoc(pass_class) or "")
    stages = [
        f"{verb} the stage *{stage.name.lower()}*"
        for verb, stage in (("requires", pass_class.requires), ("ensures", pass_class.ensures))
        if stage is not None and stage is not Stage.TILED
    ]
    if stages:
        yield f"It {' and '.join(stages)}."
        yield ""
    yield from _table("option", pass_class)
    for part in parts_of(pass_class):
        yield f"Parts of a `{part.__name__}`, {{{', '.join(option.name for option in options_of(part))}}}:"
        yield ""
        yield from _table("part", part)
    tests = ROOT / "tests" / "golden" / name
    if tests.is_dir():
        yield f"Examples that are run: [tests/golden/{name}](../tests/golden/{name})."
        yield ""


def _markdown(text: str) -> Iterator[str]:
    """A docstring: its indented blocks fenced, its paragraphs and list items filled anew."""
    for code, part in _parts(text.splitlines()):
        if code:
            yield from ("```text", *(line.removeprefix("    ") for line in part), "```", "")
            continue
        for paragraph in re.split(r"\n\n+", "\n".join(part).strip()):
            for item in re.split(r"\n(?=- )", paragraph):
                hanging = "  " if item.startswith("- ") else ""
                yield textwrap.fill(
                    re.sub(r"\s+", " ", item), 110, subsequent_indent=hanging, break_long_words=False
                )
            yield ""


def _parts(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """The runs of a docstring that are code (indented, empty lines between included) and those that are not."""
    run: list[str] = []
    code = False
    for number, line in enumerate(lines):
        now = line.startswith("    ") and (code or number == 0 or not lines[number - 1].strip())
        if line.strip() and now != code:
            if any(part.strip() for part in run):
                yield code, _trimmed(run)
            run, code = [], now
        run.append(line)
    if any(part.strip() for part in run):
        yield code, _trimmed(run)


def _trimmed(lines: list[str]) -> list[str]:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def _table(kind: str, model: type[BaseModel]) -> Iterator[str]:
    options = options_of(model)
    if not options:
        return
    rows = [
        (f"`{option.name}`", option.type, "required" if option.default is None else f"`{option.default}`",
         option.description)
        for option in options
    ]  # fmt: skip
    yield table((kind, "type", "default", "meaning"), rows)
