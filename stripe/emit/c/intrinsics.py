"""C expressions for the intrinsics and for merging by an aggregation, bit for bit as `stripe.ir.intrinsics` says.

Operands are names of C variables, so that an expression may use one twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stripe.emit.c.dialect import Dialect
from stripe.emit.c.writer import Writer
from stripe.ir import INTRINSICS, Agg, DType


def intrinsic(op: str, args: Sequence[str], dtypes: Sequence[DType], result: DType, writer: Writer) -> str:
    """The expression for `op` on the variables `args` of `dtypes`, giving `result`."""
    dtype = dtypes[0]
    if op == "cast":
        return cast(args[0], dtype, result, writer)
    if len(args) == 2 and args[0] == args[1]:  # compilers warn of a comparison with itself
        if op.startswith("cmp_") and not dtype.is_float:
            return "true" if op in ("cmp_eq", "cmp_le", "cmp_ge") else "false"
        if op in ("min", "max"):
            return args[0]
        if op == "bit_xor" and dtype.kind == "bool":
            return "false"
    form = c_form(op, dtype, writer.dialect)
    if is_operator(form) and not dtype.is_float:
        return _wrapping(form, args, dtype, writer)
    text = f"{args[0]} {form} {args[1]}" if is_operator(form) else _filled(form, args, dtype, writer)
    narrow = result.is_narrow and INTRINSICS[op].rounds
    return f"{writer.helpers.need(f'{result}_round')}({text})" if narrow else text


def c_form(op: str, dtype: DType, dialect: Dialect) -> str:
    """The form of `op` in the row of the intrinsic."""
    spec = INTRINSICS[op]
    if spec.steps is not None and dtype.compute.bits == 32 and dialect.own_functions:
        operands = ", ".join(f"{{{number}}}" for number in range(spec.arity))
        return f"{{steps[{op}]}}({operands})"
    return spec.c_on.get(dtype.kind, spec.c)


def is_operator(form: str) -> bool:
    """Whether a form is the operator of an arithmetic operation and no more."""
    return "{" not in form


def merge(agg: Agg, old: str, new: str, dtype: DType, writer: Writer) -> str:
    """The expression for the value of an element that held `old` after a contribution `new`."""
    return intrinsic(agg.intrinsic(dtype), (old, new), (dtype, dtype), dtype, writer)


def cast(value: str, source: DType, target: DType, writer: Writer) -> str:
    """The variable `value` of `source` converted to `target`."""
    c_type, source_type = writer.dialect.scalar_type(target), writer.dialect.scalar_type(source)
    if source == target:
        return value
    if target.kind == "bool":
        return f"{value} != 0"
    if target.is_integer and source.is_float:
        return f"{writer.helpers.need(f'to_{target}_{source.compute}')}({value})"
    converted = value if source_type == c_type and not target.is_integer else f"({c_type}){value}"
    return f"{writer.helpers.need(f'{target}_round')}({converted})" if target.is_narrow else converted


@dataclass(frozen=True, slots=True)
class Named:
    """Functions and types that a form names, noted as they are asked for."""

    find: Callable[[str], str]

    def __getitem__(self, name: str) -> str:
        return self.find(name)


def _filled(form: str, args: Sequence[str], dtype: DType, writer: Writer) -> str:
    def math(name: str) -> str:
        writer.helpers.headers.add("math")
        return writer.dialect.math(name, dtype)

    return form.format(
        *args,
        c=writer.dialect.scalar_type(dtype),
        one=writer.literal(1, dtype.compute),
        negative="" if dtype.is_float else _wrapping("-", ("0", args[0]), dtype, writer),
        math=Named(math),
        steps=Named(writer.helpers.need),
        helper=Named(lambda name: writer.helpers.need(f"{name}_{dtype}")),
    )


def _wrapping(sign: str, args: Sequence[str], dtype: DType, writer: Writer) -> str:
    """Modulo 2^bits. Narrow types compute in int, which holds every result but the product of two u16."""
    c, (a, b) = writer.dialect.scalar_type(dtype), args
    if dtype.bits < 32 and not (dtype.name == "u16" and sign == "*"):
        return f"({c})({a} {sign} {b})"
    if dtype.kind == "uint" and dtype.bits >= 32:
        return f"{a} {sign} {b}"
    unsigned = writer.dialect.integer(max(dtype.bits, 32), signed=False)
    left = "0u" if a == "0" else f"({unsigned}){a}"
    return f"({c})({left} {sign} ({unsigned}){b})"
