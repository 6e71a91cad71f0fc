"""Binds a Tile function to the shapes of its inputs and elaborates its statements: all sizes are numbers then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from stripe.ir.errors import ConfigError, StripeError, did_you_mean
from stripe.tile import ast
from stripe.tile.builtins import FUNCTION_NAMES
from stripe.tile.diagnostics import SourceText, raise_collected
from stripe.tile.elaborate import Elaborator
from stripe.tile.inputs import bind_inputs, check_outputs
from stripe.tile.printer import print_tile
from stripe.tile.scope import Expansion
from stripe.tile.shapes import Binding, TensorShape, sizes_text
from stripe.tile.typed import (
    Const,
    ElementwiseOp,
    Op,
    Origin,
    RandomValue,
    Tensor,
    TupleValue,
    TypedFunction,
    reads,
    rename_tensors,
    results,
)


def bind(function: ast.Function, shapes: Mapping[str, Binding] | None = None) -> TypedFunction:
    """The function with shapes: those of `shapes` (by input name), else those in the file.

    A shape for an output without sizes gives its sizes. Raises StripeError with all errors that were found.
    """
    shapes = shapes or {}
    source = SourceText(function.source or print_tile(function))
    functions = {callee.name: callee for callee in function.callees}
    state = Elaborator(source, function=function, made=Expansion(functions=functions))
    taken = state.made.taken
    taken.update(item.name for item in function.inputs)
    taken.update(dim.name for item in function.inputs for dim in item.dims or ())
    taken.update(statement.target for statement in function.statements)
    state.errors += _clashes(function)
    _check_known(function, shapes)
    inputs = bind_inputs(state, function, shapes)
    state.output_sizes.update(
        {
            name: shape.sizes
            for name, shape in shapes.items()
            if isinstance(shape, TensorShape) and name not in state.env
        }
    )
    check_outputs(state, function)
    state.run()
    outputs = _outputs(state, function, shapes)
    needed = ast.names_needed(function)
    failed = [state.failed_assertions[name] for name in state.failed_assertions if name in needed]
    raise_collected([*state.errors, *failed])
    ignored = tuple(state.failed_assertions.values())
    bound = TypedFunction(inputs, outputs, tuple(state.made.ops), source, function, ignored)
    typed = _rename_results(bound, state, function)
    return replace(typed, ops=_live(typed))


def _clashes(function: ast.Function) -> Iterator[StripeError]:
    """Functions of the file whose names mean something else."""
    for callee in function.callees:
        if callee.name in FUNCTION_NAMES or callee.name.startswith("assert_"):
            reason = f"'{callee.name}' is a built-in function"
            yield SourceText(callee.source).error(reason, callee.span, "choose another name")


def _check_known(function: ast.Function, shapes: Mapping[str, Binding]) -> None:
    """Every shape that the caller gives is for an input or a result."""
    known = [item.name for item in function.inputs] + [statement.target for statement in function.statements]
    for name in shapes:
        if name not in known:
            inputs = ", ".join(item.name for item in function.inputs)
            hint = did_you_mean(name, known, f"the inputs are {inputs or 'none'}")
            raise ConfigError(f"a shape is given for '{name}', which the function does not have", hint=hint)


def _outputs(state: Elaborator, function: ast.Function, shapes: Mapping[str, Binding]) -> tuple[Tensor, ...]:
    found: list[Tensor] = []
    for output in function.outputs:
        value = state.env.get(output.name)
        if value is None:
            continue
        if isinstance(value, (TupleValue, RandomValue)):
            hint = "return its parts: element(T, 0), prng_value(R), prng_state(R)"
            state.errors.append(
                state.source.error(f"the output '{output.name}' is no tensor", output.span, hint)
            )
            continue
        tensor = Tensor(output.name, value.sizes, value.dtype)
        found.append(tensor)
        wanted = shapes.get(output.name)
        if isinstance(wanted, TensorShape) and wanted.sizes != tensor.sizes:
            reason = f"'{output.name}' is {sizes_text(tensor.sizes)}; {sizes_text(wanted.sizes)} is asked for"
            state.errors.append(state.source.error(reason, output.span, "change the sizes in its definition"))
    return tuple(found)


def _rename_results(typed: TypedFunction, state: Elaborator, function: ast.Function) -> TypedFunction:
    """Renames each tensor that is an output under another name; an input, or an output twice, is copied instead."""
    made = {tensor.name for op in typed.ops for tensor in results(op)}
    claimed = {output.name for output in typed.outputs} & made
    renames: dict[str, str] = {}
    copies: list[Op] = []
    statements = {statement.target: statement for statement in function.statements}
    for output in typed.outputs:
        value = state.env[output.name]
        assert isinstance(value, (Tensor, Const))
        if isinstance(value, Tensor) and value.name == output.name:
            continue
        if isinstance(value, Tensor) and value.name in made and value.name not in claimed | renames.keys():
            renames[value.name] = output.name
            continue
        node = statements[output.name]
        text = f"{output.name} = {value.name if isinstance(value, Tensor) else str(value.value).lower()}"
        copies.append(ElementwiseOp(output, "ident", (value,), Origin(text, node.attributes, node.span)))
    return replace(typed, ops=tuple(rename_tensors(op, renames) for op in (*typed.ops, *copies)))


def _live(typed: TypedFunction) -> tuple[Op, ...]:
    """The operations that some output depends on."""
    needed = {output.name for output in typed.outputs}
    kept: list[Op] = []
    for op in reversed(typed.ops):
        if any(tensor.name in needed for tensor in results(op)):
            needed.update(tensor.name for tensor in reads(op))
            kept.append(op)
    return tuple(reversed(kept))
