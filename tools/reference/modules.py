"""The sources of the package as syntax trees, and the part of the system that each belongs to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_PARTS = {
    "cost/counts/energy": "energy",
    "cost/counts": "`--counts`",
    "cost/mapping": "[`map`](passes.md#map)",
    "cost/report": "reports",
    "cost": "simulation",
    "emit": "C",
    "exec": "interpreter",
    "hw/checks": "checks of the model",
    "hw/graphviz": "pictures",
    "hw/graph": "routes",
    "ir/check": "verifier",
    "rewrite/cached": "copies in nearer memories",
    "rewrite": "passes",
    "tile": "lowering",
    "verify/machine": "check of schedules",
    "verify": "proof",
}


_ASKED = ("cost", "emit", "exec", "hw", "passes", "rewrite", "tile", "verify")
"""The packages that read hardware models, and set or ask for tags."""


@cache
def trees() -> dict[str, ast.Module]:
    """The modules by path below `stripe/`, without suffix."""
    package = ROOT / "stripe"
    return {
        path.relative_to(package).with_suffix("").as_posix(): ast.parse(path.read_text("utf-8"))
        for name in _ASKED
        for path in sorted((package / name).rglob("*.py"))
    }


@cache
def nodes() -> dict[str, tuple[ast.AST, ...]]:
    """The nodes of each module."""
    return {module: tuple(ast.walk(tree)) for module, tree in trees().items()}


def part_of(module: str) -> str | None:
    """The part of the system, as pages name it; None for the command line, configuration and the IR itself."""
    if module.startswith("passes/"):
        name = module.split("/")[1]
        if name in ("base", "registry", "__init__"):
            return None
        passes = _passes_in(name)
        return ", ".join(f"[`{found}`](passes.md#{found})" for found in passes) or None
    return next((part for prefix, part in _PARTS.items() if f"{module}/".startswith(f"{prefix}/")), None)


@cache
def _passes_in(name: str) -> tuple[str, ...]:
    """The passes of a module or folder under `stripe/passes`."""
    from stripe.passes.registry import BUILTIN, find_pass

    home = f"stripe.passes.{name}"
    return tuple(sorted(
        found for found in BUILTIN if f"{find_pass(found).__module__}.".startswith(f"{home}.")
    ))  # fmt: skip


def parts(modules: Iterator[str]) -> tuple[str, ...]:
    """The parts of these modules, each once, sorted."""
    return tuple(sorted({part for module in modules if (part := part_of(module))}))
