"""The inputs of a Tile function: their shapes, and the sizes of the dimensions that they name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from stripe.ir.dtypes import DTYPES, FP32
from stripe.ir.errors import StripeError, did_you_mean
from stripe.ir.span import Span
from stripe.tile import ast, fold
from stripe.tile.diagnostics import SourceText
from stripe.tile.shapes import MAX_BYTES, Binding, TensorShape, sizes_text
from stripe.tile.typed import Tensor, Value


@dataclass(slots=True)
class Bindings:
    """The names of a function: their values so far, the places that define them, the errors found.

    A name that maps to None depends on a statement with an error; its users are skipped silently."""

    source: SourceText
    env: dict[str, Value | None] = field(default_factory=dict[str, "Value | None"])
    defined_at: dict[str, Span] = field(default_factory=dict[str, Span])
    errors: list[StripeError] = field(default_factory=list[StripeError])


def bind_inputs(state: Bindings, function: ast.Function, shapes: Mapping[str, Binding]) -> tuple[Tensor, ...]:
    """Defines inputs and dimensions in `state`, errors included, and gives the tensors among the inputs."""
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
    state: Bindings, function: ast.Function, shapes: Mapping[str, Binding]
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
    dtype = DTYPES[item.dtype] if item.dtype is not None else FP32
    if given is not None and given.dtype is not None:
        dtype = given.dtype
    require_sizes(source, item.name, found, dtype.bytes, item.span)
    return Tensor(item.name, found, dtype)


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


def require_sizes(source: SourceText, name: str, sizes: tuple[int, ...], width: int, span: Span) -> None:
    """Raises StripeError for sizes below 1 and for tensors past 2^63 bytes."""
    for place, size in enumerate(sizes):
        if size < 1:
            reason = f"dimension {place} of '{name}' has size {size}"
            raise source.error(reason, span, "sizes are at least 1; check how this one is computed")
    if width * prod(sizes) > MAX_BYTES:
        reason = f"'{name}' has {prod(sizes)} elements ({sizes_text(sizes)}), more than an address can reach"
        raise source.error(reason, span, "a tensor has less than 2^63 bytes")


def check_outputs(state: Bindings, function: ast.Function) -> None:
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
