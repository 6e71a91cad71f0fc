"""The statements of one point: loads, stores, scalar operations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from stripe.emit.c.intrinsics import c_form, intrinsic, is_operator, merge
from stripe.emit.c.writer import Writer
from stripe.emit.loops.accumulators import Accumulator
from stripe.ir import (
    DTYPES,
    Agg,
    Block,
    Constant,
    DType,
    Intrinsic,
    Load,
    LoadIndex,
    ScalarStatement,
    Store,
    result_dtype,
    scalar_defined,
    scalars_used,
)


def live_statements(block: Block) -> set[int]:
    """The numbers of the statements that some store needs: compilers warn of variables without use."""
    needed: set[str] = set()
    found: set[int] = set()
    for number in range(len(block.statements) - 1, -1, -1):
        statement = block.statements[number]
        defined = scalar_defined(statement)
        if defined is None or defined in needed:
            found.add(number)
            needed.update(scalars_used(statement))
    return found


def emit_statement(
    statement: ScalarStatement | Store,
    block: Block,
    accumulator: Accumulator | None,
    summed_products: Mapping[str, tuple[str, str]],
    writer: Writer,
) -> None:
    """Emits a statement of `block`, a scalar as a `const` variable of its own. A product that a sum alone uses, which
    are the `summed_products`, becomes part of a multiply-add.
    """
    if isinstance(statement, Intrinsic) and statement.into in summed_products:
        return
    if isinstance(statement, Store):
        factors = summed_products.get(statement.value)
        _store(statement, block.ref(statement.ref).agg, accumulator, writer, factors)
        return
    text, dtype = _value(statement, writer)
    use_operands((writer.scalars[name][0] for name in scalars_used(statement)), text, writer)
    name = writer.let(writer.scope.wanted_name(statement.into), text, dtype)
    writer.scalars[statement.into] = (name, dtype)


def use_operands(operands: Iterable[str], text: str, writer: Writer) -> None:
    """Keeps compilers from warnings of variables that the text of an operation does without, such as those of x < x."""
    words = set(re.findall(r"\w+", text))
    for operand in dict.fromkeys(operands):
        if operand not in words:
            writer.line(f"(void){operand};")


def _value(statement: ScalarStatement, writer: Writer) -> tuple[str, DType]:
    match statement:
        case Load(_, ref):
            area = writer.scope.areas[ref]
            return writer.loaded(writer.element(area), area.pointer.dtype), area.pointer.dtype
        case LoadIndex(_, affine):
            dtype = DTYPES["i32"]
            value = writer.affine(writer.scope.affine(affine))
            return f"({writer.dialect.scalar_type(dtype)})({value})", dtype
        case Constant(_, value, dtype):
            return writer.literal(value, dtype), dtype
        case Intrinsic(_, op, inputs, target):
            names = [writer.scalars[name][0] for name in inputs]
            dtypes = [writer.scalars[name][1] for name in inputs]
            dtype = result_dtype(op, dtypes, target)
            return intrinsic(op, names, dtypes, dtype, writer), dtype


def _store(
    statement: Store,
    agg: Agg,
    accumulator: Accumulator | None,
    writer: Writer,
    factors: tuple[str, str] | None,
) -> None:
    if accumulator is not None:
        element = accumulator.name
    else:
        element = writer.element(writer.scope.areas[statement.ref], write=True)
    if factors:
        names, dtype = [writer.scalars[name][0] for name in factors], writer.scalars[factors[0]][1]
        writer.line(f"{element} = {writer.helpers.need(f'fma_{dtype}')}({', '.join((*names, element))});")
        return
    value, dtype = writer.scalars[statement.value]
    if agg is Agg.ASSIGN:
        writer.line(f"{element} = {writer.stored(value, dtype)};")
        return
    form = c_form(agg.intrinsic(dtype), dtype, writer.dialect)
    # C's compound assignment does the same where the type is not promoted and overflow is defined.
    exact = (dtype.is_float and not dtype.is_narrow) or (dtype.kind == "uint" and dtype.bits >= 32)
    if is_operator(form) and exact:
        writer.line(f"{element} {form}= {value};")
    elif accumulator is not None:
        writer.line(f"{element} = {merge(agg, element, value, dtype, writer)};")
    elif form.count("{0}") <= 1:  # the element is read once
        new = merge(agg, writer.loaded(element, dtype), value, dtype, writer)
        writer.line(f"{element} = {writer.stored(new, dtype)};")
    else:
        old = writer.let(f"{statement.ref}_old", writer.loaded(element, dtype), dtype)
        new = writer.let(f"{statement.ref}_new", merge(agg, old, value, dtype, writer), dtype)
        writer.line(f"{element} = {writer.stored(new, dtype)};")
