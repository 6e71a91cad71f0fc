"""Smaller Tile functions: fewer statements, outputs and attributes, simpler expressions, smaller sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from stripe.ir import StripeError
from stripe.pipeline.reduction.search import Step, cuts, smaller_numbers
from stripe.tile import ast, compile_tile, print_tile

Fold = Callable[[ast.Expr], Iterator[ast.Expr]]


def fewer_statements(function: ast.Function) -> Iterator[ast.Function]:
    """Without some statements; a tensor of theirs that others use becomes an input of the same shape."""
    shapes = _shapes(function)
    for cut in cuts(len(function.statements)):
        kept = tuple(s for n, s in enumerate(function.statements) if n not in cut)
        if not kept:
            continue
        known = {item.name for item in function.inputs}
        extra: dict[str, ast.Input] = {}
        for number in sorted(cut):
            name = function.statements[number].target
            if name in shapes and name not in known:
                extra[name] = shapes[name]
        targets = {statement.target for statement in kept}
        outputs = tuple(o for o in function.outputs if o.name in targets) or (ast.Output(kept[-1].target),)
        yield _used_inputs(
            replace(function, inputs=(*function.inputs, *extra.values()), outputs=outputs, statements=kept)
        )


def _shapes(function: ast.Function) -> dict[str, ast.Input]:
    """The tensors of the function as inputs with their sizes; none when it does not compile."""
    try:
        program = compile_tile(print_tile(function), "<reduce>")
    except Exception:  # noqa: BLE001 - a compiler that crashes may be what is being reduced
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
    words = set(body.replace("(", " ").replace(")", " ").replace("[", " ").replace("]", " ").replace(",", " ")
                .replace(";", " ").split())  # fmt: skip
    used = tuple(
        item
        for item in function.inputs
        if item.name in words or any(dim.name in words for dim in item.dims or ())
    )
    return replace(function, inputs=used or function.inputs[:1])


def fewer_inputs(function: ast.Function) -> Iterator[ast.Function]:
    """Without some inputs."""
    for cut in cuts(len(function.inputs)):
        yield replace(function, inputs=tuple(i for n, i in enumerate(function.inputs) if n not in cut))


def fewer_outputs(function: ast.Function) -> Iterator[ast.Function]:
    """Without some outputs; one stays."""
    if len(function.outputs) > 1:
        for cut in cuts(len(function.outputs)):
            yield replace(function, outputs=tuple(o for n, o in enumerate(function.outputs) if n not in cut))


def plainer_statements(function: ast.Function) -> Iterator[ast.Function]:
    """Statements without attributes, constraints, `default`, `no_defract`; with simpler combinations."""
    for number, statement in enumerate(function.statements):
        for simple in _plainer(statement):
            yield _with_statement(function, number, simple)


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
    for cut in cuts(len(statement.bounds)):
        yield replace(statement, bounds=tuple(b for n, b in enumerate(statement.bounds) if n not in cut))


def simpler_expressions(function: ast.Function) -> Iterator[ast.Function]:
    """With one expression or polynomial in place of which one of its parts stands, or a smaller number."""
    for number, statement in enumerate(function.statements):
        for simple in _simpler_statement(statement):
            yield _with_statement(function, number, simple)


def _simpler_statement(statement: ast.Stmt) -> Iterator[ast.Stmt]:
    if isinstance(statement, ast.Assignment):
        for value in simpler(statement.value):
            yield replace(statement, value=value)
        return
    for indices in _one_simpler(statement.output.indices):
        yield replace(statement, output=replace(statement.output, indices=indices))
    if statement.sizes is not None:
        for sizes in _one_simpler(statement.sizes):
            yield replace(statement, sizes=sizes)
        for dim in range(len(statement.sizes)):
            fewer = statement.output.indices[:dim] + statement.output.indices[dim + 1 :]
            sizes = statement.sizes[:dim] + statement.sizes[dim + 1 :]
            yield replace(statement, output=replace(statement.output, indices=fewer), sizes=sizes or None)
    for place, access in enumerate(statement.inputs):
        for indices in _one_simpler(access.indices):
            inputs = list(statement.inputs)
            inputs[place] = replace(access, indices=indices)
            yield replace(statement, inputs=tuple(inputs))
    for place, bound in enumerate(statement.bounds):
        for limit in simpler(bound.limit):
            bounds = list(statement.bounds)
            bounds[place] = replace(bound, limit=limit)
            yield replace(statement, bounds=tuple(bounds))


def _one_simpler(expressions: tuple[ast.Expr, ...]) -> Iterator[tuple[ast.Expr, ...]]:
    for place, expression in enumerate(expressions):
        for simple in simpler(expression):
            yield (*expressions[:place], simple, *expressions[place + 1 :])


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
            for cut in cuts(len(rest)):
                kept = tuple(pair for n, pair in enumerate(rest) if n not in cut)
                yield ast.Chain(first, kept) if kept else first
            for part in simpler(first):
                yield ast.Chain(part, rest)
            for place, (op, operand) in enumerate(rest):
                for part in simpler(operand):
                    yield ast.Chain(first, (*rest[:place], (op, part), *rest[place + 1 :]))
        case ast.Unary(op, operand):
            yield operand
            for part in simpler(operand):
                yield ast.Unary(op, part)
        case ast.Cond(condition, then, other):
            yield from (then, other, condition)
            for first, second, third in _one_simpler((condition, then, other)):
                yield ast.Cond(first, second, third)
        case ast.Call(name, arguments):
            yield from arguments
            for parts in _one_simpler(arguments):
                yield ast.Call(name, parts)
        case _:
            return


def smaller_inputs(function: ast.Function) -> Iterator[ast.Function]:
    """With one smaller or missing dimension of an input; with fp32 in place of another dtype."""
    for number, item in enumerate(function.inputs):
        changed: list[ast.Input] = [] if item.dtype in (None, "fp32") else [replace(item, dtype="fp32")]
        dims = item.dims or ()
        for place, dim in enumerate(dims):
            for size in smaller_numbers(dim.size or 1, 1):
                changed.append(
                    replace(item, dims=(*dims[:place], replace(dim, size=size), *dims[place + 1 :]))
                )
            changed.append(replace(item, dims=(*dims[:place], *dims[place + 1 :])))
        for fresh in changed:
            inputs = (*function.inputs[:number], fresh, *function.inputs[number + 1 :])
            yield replace(function, inputs=inputs)


def _with_statement(function: ast.Function, number: int, statement: ast.Stmt) -> ast.Function:
    statements = (*function.statements[:number], statement, *function.statements[number + 1 :])
    return _used_inputs(replace(function, statements=statements))


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
