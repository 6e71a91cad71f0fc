"""Every function and class of the package has a user besides its tests."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

USERS = (
    "stripe/**/*.py", "benchmarks/**/*.py", "tools/**/*.py", "examples/**/*.py", "grammar/*.lark", "docs/**/*.md",
    "README.md", "CONTRIBUTING.md", "pyproject.toml",
)  # fmt: skip

CALLED_BY_NAME = (
    # Jinja calls these methods of the classes of `stripe/config/sandbox.py` and `hooks.py`
    "call_binop", "get_source", "wrap_str_format", "visit_.*",
    # for programs with a parallelism of their own, and for tests of what a point computes
    "SerialExecutor",
)  # fmt: skip


def _defined(tree: ast.Module) -> Iterator[str]:
    """Names of functions and classes that nothing but their name registers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("__"):
            marks = " ".join(map(ast.unparse, node.decorator_list))
            if not re.search(r"override|register|validator|serializer", marks):
                yield node.name


def test_functions_have_users_besides_tests() -> None:
    words: Counter[str] = Counter()
    for pattern in USERS:
        for path in ROOT.glob(pattern):
            # a package that passes a name on is no user of it, but for the public one
            if path.name != "__init__.py" or path.parent == ROOT / "stripe":
                words.update(re.findall(r"\w+", path.read_text("utf-8")))
    unused = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "stripe").rglob("*.py"))
        if path.name != "__init__.py"
        for name in _defined(ast.parse(path.read_text("utf-8")))
        if words[name] == 1 and not re.fullmatch("|".join(CALLED_BY_NAME), name)
    ]
    assert not unused, "delete them, or move them to the tests:\n" + "\n".join(unused)
