"""Smaller Tile functions: fewer statements, outputs and attributes, simpler expressions, smaller sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from stripe.ir import StripeError
from stripe.pipeline.reduction.search import Step, cuts, fewer, one_changed, smaller_numbers
from stripe.tile import ast, compile_tile, print_tile


def fewer_statements(function: ast.Function) -> Iterator[ast.Function]:
    """Without some statements; a tensor of theirs that others use becomes an input of the same shape."""
    shapes = _shapes(function)
    for cut in cuts(len(function.statements)):
        kept = tuple(s for n, s in enumerate(function.statements) if n not in cut)
        if not kept:
            continue
        known = {item.name for item in function.inputs}
        lost = dict.fromkeys(function.statements[number].target for number in sorted(cut))
        inputs = (*function.inputs, *(shapes[name] for name in lost if name in shapes.keys() - known))
        targets = {statement.target for statement in kept}
        outputs = tuple(o for o in function.outputs if o.name in targets) or (ast.Output(kept[-1].target),)
        yield _used_inputs(replace(function, inputs=inputs, outputs=outputs, statements=kept))


def _shapes(function: ast.Function) -> dict[str, ast.Input]:
    """The tensors of the function as inputs with their sizes; none when it does not compile."""
    try:
        program = compile_tile(print_tile(function), "<reduce>")
    except Exception:  # noqa: BLE001 - crashes of the compiler are reduced too
        return {}
    return {
        ref.name: ast.Input(
            ref.name,
            tuple(ast.InputDim(f"{ref.name}{n}", s) for n, s in enumerate(ref.sizes)),
            ref.dtype.name,
        )
        for ref in program.entry.refinements
    }


def _used_inputs(function: ast.Function) -> ast.Function:
    """Without inputs that no statement names (tensors and sizes are upper-case words, so the text tells)."""
    body = print_tile(replace(function, inputs=(), outputs=()))
    words = set(re.findall(r"\w+", body))
    used = tuple(
        item
        for item in function.inputs
        if item.name in words or any(dim.name in words for dim in item.dims or ())
    )
    return replace(function, inputs=used or function.inputs[:1])


def fewer_inputs(function: ast.Function) -> Iterator[ast.Function]:
    """Without some inputs."""
    for inputs in fewer(function.inputs):
        yield replace(function, inputs=inputs)


def fewer_outputs(function: ast.Function) -> Iterator[ast.Function]:
    """Without some outputs; one stays."""
    for outputs in fewer(function.outputs) if len(function.outputs) > 1 else ():
        yield replace(function, outputs=outputs)


def plainer_statements(function: ast.Function) -> Iterator[ast.Function]:
    """Statements without attributes, constraints, `default`, `no_defract`; with simpler combinations."""
    return _with_one_statement(function, _plainer)


def _plainer(statement: ast.Stmt) -> Iterator[ast.Stmt]:
    if statement.attributes:
        yield replace(statement, attributes=())
    if isinstance(statement, ast.Assignment):
        return
    if statement.default is not None:
        yield replace(statement, default=None)
    if statement.no_defract:
        yield replace(statement, no_defract=False)
    if statement.comb:
        for access in statement.inputs:
            yield replace(statement, comb="", inputs=(access,))
    for bounds in fewer(statement.bounds):
        yield replace(statement, bounds=bounds)


def simpler_expressions(function: ast.Function) -> Iterator[ast.Function]:
    """With one expression or polynomial replaced by one of its parts, or by a smaller number."""
    return _with_one_statement(function, _simpler_statement)


def _simpler_statement(statement: ast.Stmt) -> Iterator[ast.Stmt]:
    if isinstance(statement, ast.Assignment):
        for value in simpler(statement.value):
            yield replace(statement, value=value)
        return
    for output in _simpler_access(statement.output):
        yield replace(statement, output=output)
    if statement.sizes is not None:
        for sizes in one_changed(statement.sizes, simpler):
            yield replace(statement, sizes=sizes)
        for dim in range(len(statement.sizes)):
            fewer = statement.output.indices[:dim] + statement.output.indices[dim + 1 :]
            sizes = statement.sizes[:dim] + statement.sizes[dim + 1 :]
            yield replace(statement, output=replace(statement.output, indices=fewer), sizes=sizes or None)
    for inputs in one_changed(statement.inputs, _simpler_access):
        yield replace(statement, inputs=inputs)
    for bounds in one_changed(statement.bounds, lambda b: (replace(b, limit=x) for x in simpler(b.limit))):
        yield replace(statement, bounds=bounds)


def _simpler_access(access: ast.TensorAccess) -> Iterator[ast.TensorAccess]:
    for indices in one_changed(access.indices, simpler):
        yield replace(access, indices=indices)


def simpler(expression: ast.Expr) -> Iterator[ast.Expr]:
    """The parts of an expression, then the expression with one part simpler."""
    match expression:
        case ast.IntLit(value):
            for number in smaller_numbers(abs(value), 0):
                yield ast.IntLit(number)
        case ast.Chain(first, rest):
            yield first
            for _, operand in rest:
                yield operand
            for kept in fewer(rest):
                yield ast.Chain(first, kept) if kept else first
            for part in simpler(first):
                yield ast.Chain(part, rest)
            for changed in one_changed(rest, lambda pair: ((pair[0], part) for part in simpler(pair[1]))):
                yield ast.Chain(first, changed)
        case ast.Unary(op, operand):
            yield operand
            for part in simpler(operand):
                yield ast.Unary(op, part)
        case ast.Cond(condition, then, other):
            yield from (then, other, condition)
            for first, second, third in one_changed((condition, then, other), simpler):
                yield ast.Cond(first, second, third)
        case ast.Call(name, arguments):
            yield from arguments
            for parts in one_changed(arguments, simpler):
                yield ast.Call(name, parts)
        case _:
            return


def smaller_inputs(function: ast.Function) -> Iterator[ast.Function]:
    """With one smaller or missing dimension of an input; with fp32 in place of another dtype."""
    for inputs in one_changed(function.inputs, _smaller_input):
        yield replace(function, inputs=inputs)


def _smaller_input(item: ast.Input) -> Iterator[ast.Input]:
    if item.dtype not in (None, "fp32"):
        yield replace(item, dtype="fp32")
    dims = item.dims or ()
    for place, dim in enumerate(dims):
        for size in smaller_numbers(dim.size or 1, 1):
            yield replace(item, dims=(*dims[:place], replace(dim, size=size), *dims[place + 1 :]))
        yield replace(item, dims=(*dims[:place], *dims[place + 1 :]))


def _with_one_statement(
    function: ast.Function, changes: Callable[[ast.Stmt], Iterator[ast.Stmt]]
) -> Iterator[ast.Function]:
    for statements in one_changed(function.statements, changes):
        yield _used_inputs(replace(function, statements=statements))


def compiles(text: str) -> bool:
    """Whether the compiler takes the text. A crash counts as taking it, since crashes are reduced too."""
    try:
        compile_tile(text, "<reduce>")
    except StripeError:
        return False
    except Exception:  # noqa: BLE001 - see above
        return True
    return True


STEPS: tuple[Step[ast.Function], ...] = (
    fewer_statements, fewer_outputs, plainer_statements, simpler_expressions, smaller_inputs, fewer_inputs,
)  # fmt: skip
