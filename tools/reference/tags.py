"""The tags that code sets and asks for, found in the sources: string literals in calls on tags."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import TypeGuard

from stripe.passes.registry import BUILTIN, find_pass
from tools.reference.markdown import table
from tools.reference.modules import ROOT, nodes, part_of, parts
from tools.reference.stripe import lowered_tags

_SETTERS = ("add", "set", "of")
_READERS = ("has_all", "has_any", "get", "lanes")


def found() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """The modules that set each tag, and those that ask for it."""
    setters: dict[str, set[str]] = defaultdict(set)
    readers: dict[str, set[str]] = defaultdict(set)
    shared = _constants(tuple(ast.walk(ast.parse((ROOT / "stripe/ir/tags.py").read_text("utf-8")))))
    for module, inside in nodes().items():
        constants = {**shared, **_constants(inside)}
        for node in inside:
            for found_in, words in ((setters, _set(node, constants)), (readers, _asked(node, constants))):
                for word in words:
                    found_in[word].add(module)
    return setters, readers


def _constants(inside: tuple[ast.AST, ...]) -> dict[str, tuple[str, ...]]:
    """Words, and tuples of words, that a module gives a name."""
    return {
        target.id: tuple(_literals([node.value]))
        for node in inside
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _set(node: ast.AST, constants: dict[str, tuple[str, ...]]) -> Iterator[str]:
    if isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.annotation) == "TagSet":
        yield from _literals([node.value])
    if isinstance(node, ast.keyword) and (node.arg or "").endswith("_set"):
        yield from _literals([node.value])
    if _is_call(node, _SETTERS):
        arguments = node.args[:1] if node.func.attr == "set" else node.args
        yield from _literals(arguments)
        yield from _named(arguments, constants)


def _asked(node: ast.AST, constants: dict[str, tuple[str, ...]]) -> Iterator[str]:
    if (
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], ast.In | ast.NotIn)
        and _on_tags(node.comparators[0])
    ):
        yield from _literals([node.left])
        yield from _named([node.left], constants)
    if _is_call(node, _READERS):
        yield from _literals(node.args)
        yield from _named(node.args, constants)


def _named(found: list[ast.expr], constants: dict[str, tuple[str, ...]]) -> Iterator[str]:
    for node in found:
        if isinstance(node, ast.Name):
            yield from constants.get(node.id, ())


def _is_call(node: ast.AST, methods: tuple[str, ...]) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in methods
        and _on_tags(node.func.value)
    )


def _on_tags(node: ast.expr) -> bool:
    """Whether an expression is a set of tags: `x.tags`, `x.words`, `x.tags.remove(…)`, `Tags`."""
    if isinstance(node, ast.Call):
        node = node.func
        return isinstance(node, ast.Attribute) and _on_tags(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr in ("tags", "words")
    return isinstance(node, ast.Name) and node.id in ("Tags", "tags")


def _literals(found: list[ast.expr]) -> Iterator[str]:
    for node in found:
        if isinstance(node, ast.IfExp):
            yield from _literals([node.body, node.orelse])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Starred | ast.Call):
            inner = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else (
                [node.value] if isinstance(node, ast.Starred) else node.args if isinstance(node.func, ast.Name) else []
            )  # fmt: skip
            yield from _literals(inner)


def by_passes() -> dict[str, list[str]]:
    """The tags that options of passes give by default, with `pass{option}`."""
    given: dict[str, list[str]] = defaultdict(list)
    for name in sorted(BUILTIN):
        for option, field in find_pass(name).model_fields.items():
            default = field.get_default(call_default_factory=True) if not field.is_required() else None
            if option.endswith(("_set", "_tags")) and isinstance(default, tuple):
                for word in default:
                    given[str(word)].append(f"[`{name}{{{option}}}`](passes.md#{name})")
    return given


def tag_table() -> str:
    """Tags that passes set, or that code asks for and pass lists set; the tags of lowering stand elsewhere."""
    setters, readers = found()
    options = by_passes()
    passes = {w for w in setters if any((part_of(m) or "lowering") != "lowering" for m in setters[w])}
    rows = [
        (f"`#{word}`", ", ".join([*options.get(word, []), *parts(iter(sorted(setters[word])))]) or "pass lists",
         ", ".join(parts(iter(sorted(readers[word])))) or "pass lists")
        for word in sorted({*passes, *options, *(readers.keys() - setters.keys() - lowered_tags())})
    ]  # fmt: skip
    return table(("tag", "set by", "asked for by"), rows)
