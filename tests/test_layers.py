"""The layers of the package hold: an import points downwards only (the contracts are in pyproject.toml)."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path


def test_imports_point_downwards() -> None:
    lint = Path(sys.executable).parent / "lint-imports"
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run([lint], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_pass_imports_a_pass() -> None:
    """A pass is a file or a folder of `stripe/passes`; parts that several passes need stand in `stripe/rewrite`."""
    folder = Path(__file__).resolve().parents[1] / "stripe" / "passes"
    for path in sorted(folder.rglob("*.py")):
        own = path.relative_to(folder).parts[0].removesuffix(".py")
        nodes = [
            node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)
        ]
        modules = [
            node.module.split(".")
            for node in nodes
            if node.module is not None and node.module.startswith("stripe.passes.")
        ]
        others = {module[2] for module in modules} - {"base", own}
        assert not others, f"{path.relative_to(folder)} imports {', '.join(sorted(others))}"


def test_files_form_no_circle() -> None:
    """Imports inside functions count; those for types alone do not."""
    root = Path(__file__).resolve().parents[1]
    files = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((root / "stripe").rglob("*.py"))
    }
    imported: dict[str, set[str]] = {}
    for module, path in files.items():
        tree = ast.parse(path.read_text("utf-8"))
        typing = {
            inner
            for node in ast.walk(tree)
            if isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        imports = [
            (node.module, alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node not in typing and node.module is not None
            for alias in node.names
        ]
        names = {f"{place}.{name}" if f"{place}.{name}" in files else place for place, name in imports}
        imported[module] = (names & files.keys()) - {module}
    TopologicalSorter(imported).prepare()  # raises CycleError, which shows the circle
