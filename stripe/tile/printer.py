"""Prints the syntax tree of Tile; `stripe.tile.parser` reads it back to an equal tree."""

from __future__ import annotations

import re

from stripe.tile import ast

_ID = re.compile(r"_*[A-Z][A-Za-z0-9_]*'?|_+(?![A-Za-z_])[A-Za-z0-9_]*'?")
_IDXID = re.compile(r"_*[a-z][A-Za-z0-9_]*'?")
_KEYWORDS = frozenset({"function", "polynomial", "expression", "contraction", "default", "no_defract"})


def tensor_id(name: str) -> str:
    """A name of a tensor or a dimension, escaped where it begins with a small letter."""
    return name if _ID.fullmatch(name) else f"#{name}"


def print_tile(function: ast.Function) -> str:
    """The whole function as text, after those that it may call, ending with a newline."""
    callees = "".join(f"{print_tile(callee)}\n" for callee in function.callees)
    inputs = ", ".join(map(_input, function.inputs))
    outputs = ", ".join(tensor_id(output.name) for output in function.outputs)
    body = "".join(f"  {print_statement(statement)};\n" for statement in function.statements)
    name = f"{_function_name(function.name)} " if function.name else ""
    return f"{callees}function {name}({inputs}) -> ({outputs}) {{\n{body}}}\n"


def print_statement(statement: ast.Stmt, *, attributes: bool = True) -> str:
    """One statement without its semicolon."""
    prefix = "".join(f"{_attribute(attribute)} " for attribute in statement.attributes) if attributes else ""
    if isinstance(statement, ast.Assignment):
        return f"{prefix}{tensor_id(statement.target)} = {print_expr(statement.value)}"
    return prefix + _contraction(statement)


def print_expr(expr: ast.Expr, *, tight: bool = False) -> str:
    """An expression or a polynomial; `tight` prints products without blanks, as `2*i`."""
    match expr:
        case ast.IntLit(value):
            return str(value)
        case ast.FloatLit(text):
            return text
        case ast.Name(name):
            return tensor_id(name)
        case ast.IndexName(name):
            return _idxid(name)
        case ast.Unary(op, operand):
            literal = isinstance(operand, (ast.IntLit, ast.FloatLit))
            return op + _operand(operand, ast.UNARY_LEVEL + literal, tight)
        case ast.Chain(first, rest):
            level = ast.LEVELS[rest[0][0]]
            text = _operand(first, level + 1, tight)
            for op, operand in rest:
                sign = op if tight and level == ast.LEVELS["*"] else f" {op} "
                text += f"{sign}{_operand(operand, level + 1, tight)}"
            return text
        case ast.Cond(condition, then, other):
            last = f"({print_expr(other)})" if isinstance(other, ast.Cond) else print_expr(other)
            return f"{_operand(condition, 1, tight)} ? {print_expr(then)} : {last}"
        case ast.Call(function, arguments):
            return f"{_function_name(function)}({', '.join(map(print_expr, arguments))})"


def print_polynomial(expr: ast.Expr) -> str:
    """An index polynomial."""
    return print_expr(expr, tight=True)


def print_access(access: ast.TensorAccess) -> str:
    """A tensor with its index polynomials."""
    return f"{tensor_id(access.tensor)}[{', '.join(map(print_polynomial, access.indices))}]"


def _operand(expr: ast.Expr, least: int, tight: bool) -> str:
    text = print_expr(expr, tight=tight)
    return text if ast.level(expr) >= least else f"({text})"


def _contraction(node: ast.Contraction) -> str:
    sizes = "" if node.sizes is None else f" : {', '.join(map(print_expr, node.sizes))}"
    output = print_access(node.output)[:-1] + sizes + "]"
    inputs = list(map(print_access, node.inputs))
    if node.comb == "?":
        inside = f"{inputs[0]} == {inputs[1]} ? {inputs[2]}"
    else:
        inside = f" {node.comb} ".join(inputs)
    bounds = "".join(
        f", {print_polynomial(bound.polynomial)} < {print_expr(bound.limit)}" for bound in node.bounds
    )
    dtype = f": {node.dtype}" if node.dtype is not None else ""
    agg = f"{output}{dtype} = {node.agg}({inside}){bounds}"
    agg += " no_defract" if node.no_defract else ""
    return agg + (f" default {tensor_id(node.default.name)}" if node.default is not None else "")


def _input(node: ast.Input) -> str:
    dims = "" if node.dims is None else f"[{', '.join(map(_dim, node.dims))}]"
    return f"{tensor_id(node.name)}{dims}" + (f": {node.dtype}" if node.dtype is not None else "")


def _dim(node: ast.InputDim) -> str:
    return tensor_id(node.name) + (f"={node.size}" if node.size is not None else "")


def _attribute(node: ast.Attribute) -> str:
    parameters = f"({', '.join(node.parameters)})" if node.parameters else ""
    return f"[[{_idxid(node.name)}{parameters}]]"


def _idxid(name: str) -> str:
    return name if _IDXID.fullmatch(name) and name not in _KEYWORDS else f"${name}"


def _function_name(name: str) -> str:
    return name if _ID.fullmatch(name) else _idxid(name)
