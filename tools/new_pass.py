"""Writes the files of a new pass: `make new-pass NAME=merge_loops`.

The pass adds a tag, so that all tests pass at once; its file and its golden test say what to fill in.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PASS = '''"""The pass `{name}`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from stripe.ir import Block
from stripe.ir.frozen import replace
from stripe.passes.base import BlockPass, PassContext, PassExample, PassGroup, Refusal, Reqs, TagSet


class {class_name}(BlockPass):
    """Adds tags to blocks with many points. (Fill in: one sentence, then a block before and after, which a test runs.)

        #kernel block [x:8] (                     #kernel #marked block [x:8] (
            in I[x]                        =>         in I[x]
            out O[x]                                  out O[x]
        ) {{ … }}                                   ) {{ … }}

    (Fill in: why the meaning stays.) Tags never change it.
    """

    pass_name: ClassVar[str] = "{name}"
    refused: ClassVar[str] = "not marked"
    group: ClassVar[PassGroup] = PassGroup.STRUCTURE
    example: ClassVar[PassExample] = PassExample("reqs=[contraction]")

    reqs: Reqs = ("kernel",)
    min_points: int = Field(default=2, ge=1, description="leave blocks alone that have fewer points")
    set_tags: TagSet = Field(default=("marked",), description="tags that a block gets")

    def rewrite(self, block: Block, context: PassContext) -> Block | Refusal:
        if block.points < self.min_points:
            return Refusal(f"{{block.points}} points, fewer than {{self.min_points}}")
        if block.tags.has_all(self.set_tags):
            return block  # the same object: nothing changed
        context.applied(block, f"{{block.points}} points marked")
        return replace(block, tags=block.tags.add(*self.set_tags))
'''

GOLDEN = """\
// Fill in: a program that `{name}` has work on, one RUN line for each option, and one for a refusal with its numbers.
// RUN: stripe-opt %s --remarks --passes '{name}{{reqs=[kernel]}}' 2>&1 | filecheck %s
// RUN: stripe-opt %s --passes '{name}{{set_tags=[mine]}}' | filecheck %s --check-prefix=TAGS
// RUN: stripe-opt %s --remarks --passes '{name}{{min_points=1000}}' 2>&1 | filecheck %s --check-prefix=FEW

// CHECK: {name}: applied: kernel_0: 512 points marked
// CHECK: #kernel #marked block [k:8, m:16, n:4]

// TAGS: #kernel #mine block [k:8, m:16, n:4]

// FEW: {name}: missed: kernel_0: not marked: 512 points, fewer than 1000
function (A[M=16, K=8]: fp32, B[K, N=4]: fp32) -> (C) {{
    C[m, n : M, N] = +(A[m, k] * B[k, n]);
}}
"""


def main(arguments: list[str]) -> int:
    """Writes the files; 2 where the name is no name of a pass or is taken."""
    name = arguments[0] if len(arguments) == 1 else ""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        sys.stderr.write("usage: make new-pass NAME=merge_loops (small letters, digits and _)\n")
        return 2
    registry = ROOT / "stripe" / "passes" / "registry.py"
    text = registry.read_text("utf-8")
    entries = re.findall(r'^    "(\w+)": "[\w.]+:\w+",\n', text, re.MULTILINE)
    golden = ROOT / "tests" / "golden" / name / f"{name}.tile"
    code = ROOT / "stripe" / "passes" / f"{name}.py"
    taken = _taken(name, entries, text, code, golden)
    if taken is not None:
        sys.stderr.write(f"error: {taken}; take another name\n")
        return 2
    class_name = "".join(part.capitalize() for part in name.split("_"))
    line = f'    "{name}": "{name}:{class_name}",\n'
    later = next((entry for entry in entries if entry > name), None)
    place = text.index(f'    "{later}": ') if later else text.index(f'    "{entries[-1]}": ')
    place = place if later else text.index("\n", place) + 1
    golden.parent.mkdir(parents=True)
    golden.write_text(GOLDEN.format(name=name), "utf-8")
    code.write_text(PASS.format(name=name, class_name=class_name), "utf-8")
    registry.write_text(text[:place] + line + text[place:], "utf-8")
    page = ROOT / "docs" / "passes.md"
    # A process of its own, for the registry has changed.
    subprocess.run(
        [sys.executable, "-m", "tools.write_docs"], check=True, cwd=ROOT, stdout=subprocess.DEVNULL
    )
    for path in (code, golden, registry, page):
        print(path.relative_to(ROOT))
    return 0


def _taken(name: str, entries: list[str], registry: str, code: Path, golden: Path) -> str | None:
    """Why no pass can have the name: passes, short names, modules of passes or golden tests have it."""
    if name in entries:
        return f"there is a pass '{name}' already"
    short = dict(re.findall(r'^    "(\w+)": "(\w+)",\n', registry, re.MULTILINE))
    if name in short:
        return f"there is a short name '{name}' already, of the pass '{short[name]}'"
    for path in (code, code.with_suffix("")):
        if path.exists():
            return f"there is a module {path.relative_to(ROOT)} already"
    if golden.parent.exists():
        return f"there are golden tests in {golden.parent.relative_to(ROOT)} already"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
