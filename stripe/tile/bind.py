"""Binds a Tile function to the shapes of its inputs: what results is typed, with every size a number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stripe.ir.dtypes import DTYPES, FP32, DType
from stripe.ir.errors import ConfigError, StripeError, did_you_mean
from stripe.tile import ast, fold
from stripe.tile.diagnostics import SourceText, raise_collected
from stripe.tile.elaborate import Elaborator, check_sizes
from stripe.tile.printer import print_tile
from stripe.tile.shapes import Binding, TensorShape, sizes_text
from stripe.tile.typed import (
    Const,
    ContractionOp,
    ElementwiseOp,
    Op,
    Operand,
    Origin,
    RandomValue,
    ReshapeOp,
    SpecialOp,
    Tensor,
    TupleValue,
    TypedFunction,
    Value,
    reads,
    results,
)


def bind(function: ast.Function, shapes: Mapping[str, Binding] | None = None) -> TypedFunction:
    """The function with shapes: those of `shapes` (by input name), else those in the file.

    A shape for an output without sizes gives its sizes. Raises StripeError with all errors that were found.
    """
    shapes = shapes or {}
    source = SourceText(function.source or print_tile(function))
    state = Elaborator(source)
    state.taken.update(item.name for item in function.inputs)
    state.taken.update(dim.name for item in function.inputs for dim in item.dims or ())
    state.taken.update(statement.target for statement in function.statements)
    _check_known(function, shapes)
    inputs = _bind_inputs(state, function, shapes)
    state.output_sizes.update(
        {
            name: shape.sizes
            for name, shape in shapes.items()
            if isinstance(shape, TensorShape) and name not in state.env
        }
    )
    _check_outputs(state, function)
    for statement in function.statements:
        state.statement(statement)
    outputs = _outputs(state, function, shapes)
    needed = _needed(function)
    failed = [state.failed_assertions[name] for name in state.failed_assertions if name in needed]
    raise_collected([*state.errors, *failed])
    ignored = tuple(state.failed_assertions.values())
    bound = TypedFunction(inputs, outputs, tuple(state.ops), source, function, ignored)
    typed = _rename_results(bound, state, function)
    return replace(typed, ops=_live(typed))


def _needed(function: ast.Function) -> set[str]:
    """The names that some output is computed from, and the outputs."""
    needed = {output.name for output in function.outputs}
    for statement in reversed(function.statements):
        if statement.target in needed:
            needed |= ast.names_read(statement)
    return needed


def _check_known(function: ast.Function, shapes: Mapping[str, Binding]) -> None:
    """Every shape that the caller gives is for an input or a result."""
    known = [item.name for item in function.inputs] + [statement.target for statement in function.statements]
    for name in shapes:
        if name not in known:
            inputs = ", ".join(item.name for item in function.inputs)
            hint = did_you_mean(name, known, f"the inputs are {inputs or 'none'}")
            raise ConfigError(f"a shape is given for '{name}', which the function does not have", hint=hint)


def _bind_inputs(
    state: Elaborator, function: ast.Function, shapes: Mapping[str, Binding]
) -> tuple[Tensor, ...]:
    sizes = _dimension_sizes(state, function, shapes)
    found: list[Tensor] = []
    for item in function.inputs:
        if item.name in state.defined_at:
            state.errors.append(
                state.source.error(f"'{item.name}' is defined twice", item.span, "rename one of them")
            )
            continue
        state.defined_at[item.name] = item.span
        try:
            value = _input_value(state.source, item, shapes.get(item.name), sizes)
        except StripeError as error:
            state.errors.append(error)
            state.env[item.name] = None
            continue
        state.env[item.name] = value
        if isinstance(value, Tensor):
            found.append(value)
    for name, size in sizes.items():
        if name in state.defined_at:
            span = state.defined_at[name]
            state.errors.append(
                state.source.error(f"'{name}' is both a tensor and a dimension", span, "rename one of them")
            )
        else:
            state.env[name] = None if size is None else fold.integer(size)
    for item in function.inputs:
        state.defined_at.update(
            {dim.name: dim.span for dim in item.dims or () if dim.name not in state.defined_at}
        )
    return tuple(found)


def _dimension_sizes(
    state: Elaborator, function: ast.Function, shapes: Mapping[str, Binding]
) -> dict[str, int | None]:
    """The size of each dimension name, None where it is not known; the caller's shapes go before the file's sizes."""
    sizes: dict[str, int | None] = {}
    fixed = [item for item in function.inputs if item.dims is not None]
    given = [item for item in fixed if item.name in shapes]
    for item in given + [item for item in fixed if item.name not in shapes]:
        assert item.dims is not None
        shape = shapes.get(item.name)
        numbers = [dim.size for dim in item.dims]
        if isinstance(shape, TensorShape) and len(shape.sizes) == len(item.dims):
            numbers = list(shape.sizes)
        for dim, number in zip(item.dims, numbers, strict=True):
            known = sizes.get(dim.name)
            if number is not None and known is not None and known != number:
                reason = f"the dimension '{dim.name}' is {known} elsewhere and {number} here"
                hint = "one name has one size; use another name, or give shapes that agree"
                state.errors.append(state.source.error(reason, dim.span, hint))
            elif number is not None or dim.name not in sizes:
                sizes[dim.name] = number if number is not None else known
    return sizes


def _input_value(
    source: SourceText, item: ast.Input, given: Binding | None, sizes: Mapping[str, int | None]
) -> Value:
    if isinstance(given, (int, float)):
        if item.dims:
            hint = f"give a shape: {item.name}={'x'.join('8' for _ in item.dims)}"
            raise source.error(f"'{item.name}' is a tensor, and a constant is given for it", item.span, hint)
        return fold.integer(given) if isinstance(given, int) else fold.float_(given)
    if item.dims is None:
        if given is None:
            hint = (
                f"give one from outside: --shape {item.name}=128x20:fp32, or write {item.name}[M=128, K=20]"
            )
            raise source.error(f"the shape of '{item.name}' is not known", item.span, hint)
        found = given.sizes
    else:
        found = _fixed_sizes(source, item, item.dims, given, sizes)
    dtype = _dtype(item, given)
    check_sizes(source, item.name, found, dtype.bytes, item.span)
    return Tensor(item.name, found, dtype)


def _dtype(item: ast.Input, given: TensorShape | None) -> DType:
    if given is not None and given.dtype is not None:
        return given.dtype
    return DTYPES[item.dtype] if item.dtype is not None else FP32


def _fixed_sizes(
    source: SourceText,
    item: ast.Input,
    dims: tuple[ast.InputDim, ...],
    given: TensorShape | None,
    sizes: Mapping[str, int | None],
) -> tuple[int, ...]:
    if given is not None and len(given.sizes) != len(dims):
        reason = f"'{item.name}' has rank {len(dims)}, the shape given for it is {sizes_text(given.sizes)}"
        raise source.error(
            reason, item.span, f"give {len(dims)} sizes: {item.name}={'x'.join(d.name for d in dims)}"
        )
    if given is not None:
        return given.sizes
    found: list[int] = []
    for dim in dims:
        size = sizes.get(dim.name)
        if size is None:
            hint = f"write {dim.name}=64 in the file, or --shape {item.name}={'x'.join('64' for _ in dims)}"
            raise source.error(f"the size of dimension '{dim.name}' is not known", dim.span, hint)
        found.append(size)
    return tuple(found)


def _check_outputs(state: Elaborator, function: ast.Function) -> None:
    """Outputs are named once, are no inputs, and some statement defines each."""
    targets = [statement.target for statement in function.statements]
    seen: set[str] = set()
    for output in function.outputs:
        reason, hint = None, ""
        if output.name in seen:
            reason, hint = f"the output '{output.name}' is named twice", "name it once"
        elif output.name in state.defined_at:
            reason, hint = (
                f"the output '{output.name}' is an input",
                f"copy it: {output.name}_OUT = {output.name}",
            )
        elif output.name not in targets:
            reason = f"no statement defines the output '{output.name}'"
            hint = did_you_mean(output.name, targets, f"add a statement: {output.name} = …")
        seen.add(output.name)
        if reason is not None:
            state.errors.append(state.source.error(reason, output.span, hint))


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
    """Outputs that are other names of a tensor become its name; where that cannot be, they become copies."""
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


def rename_tensors(op: Op, renames: Mapping[str, str]) -> Op:
    """The operation with tensors renamed; names that are not in `renames` stay."""

    if not any(tensor.name in renames for tensor in (*reads(op), *results(op))):
        return op

    def tensor(value: Tensor) -> Tensor:
        return replace(value, name=renames[value.name]) if value.name in renames else value

    def operand(value: Operand) -> Operand:
        return tensor(value) if isinstance(value, Tensor) else value

    match op:
        case ContractionOp():
            inputs = tuple(replace(access, operand=operand(access.operand)) for access in op.inputs)
            default = None if op.default is None else operand(op.default)
            return replace(op, out=tensor(op.out), inputs=inputs, default=default)
        case ElementwiseOp():
            return replace(op, out=tensor(op.out), operands=tuple(map(operand, op.operands)))
        case ReshapeOp():
            return replace(op, out=tensor(op.out), source=tensor(op.source))
        case SpecialOp():
            outputs, inputs = tuple(map(tensor, op.outputs)), tuple(map(tensor, op.inputs))
            return replace(op, outputs=outputs, inputs=inputs)
        case _:
            return replace(op, out=tensor(op.out))


def _live(typed: TypedFunction) -> tuple[Op, ...]:
    """The operations that some output depends on."""
    needed = {output.name for output in typed.outputs}
    kept: list[Op] = []
    for op in reversed(typed.ops):
        if any(tensor.name in needed for tensor in results(op)):
            needed.update(tensor.name for tensor in reads(op))
            kept.append(op)
    return tuple(reversed(kept))
