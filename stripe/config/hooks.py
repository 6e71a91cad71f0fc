"""Calls of `ConfigEnvironment` in the syntax tree of a template, put there before Jinja compiles it."""

from __future__ import annotations

from typing import TypeVar, cast

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

EMIT = " emit"
"""The filter of all output, under a name that no template can spell: filters are called without the sandbox around."""


class Hooks(NodeTransformer):
    """Routes output, loops, `~`, comparisons, slices and literals through the methods of `ConfigEnvironment`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def visit_Output(self, node: nodes.Output) -> nodes.Output:
        self.generic_visit(node)
        node.nodes = [self._emit(child) for child in node.nodes]
        return node

    def _emit(self, child: nodes.Expr) -> nodes.Expr:
        exact, line = isinstance(child, nodes.TemplateData), child.lineno
        value = nodes.Const(child.data, lineno=line) if isinstance(child, nodes.TemplateData) else child
        origin: list[nodes.Expr] = [nodes.Const(part) for part in (self._name, line, exact)]
        return nodes.Filter(value, EMIT, origin, [], None, None, lineno=line)

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        node.iter = _hook("bounded", node.iter, cast("nodes.Expr", node.iter))
        return _weighed(node)

    def visit_Macro(self, node: nodes.Macro) -> nodes.Macro:
        self.generic_visit(node)
        return _weighed(node)

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.CallBlock:
        self.generic_visit(node)
        return _weighed(node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:
        self.generic_visit(node)
        return _hook("tilde", node, *node.nodes)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Expr:
        self.generic_visit(node)
        node.expr = _hook("sized", node.expr, node.expr)
        for operand in node.ops:
            operand.expr = _hook("sized", operand.expr, operand.expr)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:
        self.generic_visit(node)
        slices = isinstance(cast("nodes.Node", node.arg), nodes.Slice)
        return _hook("sized", node, node) if slices else node

    def _literal(self, node: nodes.Tuple | nodes.List | nodes.Dict) -> nodes.Expr:
        self.generic_visit(node)
        target = isinstance(node, nodes.Tuple) and node.ctx != "load"
        return node if target else _hook("sized", node, node)

    visit_Tuple = visit_List = visit_Dict = _literal


_Body = TypeVar("_Body", nodes.For, nodes.Macro, nodes.CallBlock)


def _weighed(node: _Body) -> _Body:
    """The node whose body begins with a call of `spend`."""
    parts = sum(1 for _ in node.find_all(nodes.Node))
    spent = _hook("spend", node, nodes.Const(1 + parts // 8))
    node.body = [nodes.ExprStmt(spent, lineno=node.lineno), *node.body]
    return node


def _hook(method: str, place: nodes.Node, *arguments: nodes.Expr) -> nodes.Expr:
    """A call of one of the environment's own methods."""
    function = nodes.EnvironmentAttribute(method, lineno=place.lineno)
    return nodes.Call(function, [*arguments], [], None, None, lineno=place.lineno)
