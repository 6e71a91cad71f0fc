"""The elementary functions of `stripe.ir.elementary` in C: one statement for each operation."""

from __future__ import annotations

import math
import struct

from stripe.emit.c.dialect import Dialect
from stripe.ir.dtypes import FP32, FP64, U32
from stripe.ir.elementary import Kind, ScalarTerm, Terms, traced

NEEDS = ("bits", "float", "fused")
"""Helpers that the functions call."""

_FORMS = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "lt": "{0} < {1}",
    "eq": "{0} == {1}", "and": "{0} & {1}", "or": "{0} | {1}", "xor": "{0} ^ {1}", "not": "!{0}",
    "select": "{0} ? {1} : {2}",
    "fma": "st_fused({0}, {1}, {2})",
    "shl": "{0} << {1}", "shr": "{0} >> {1}", "bits": "st_bits({0})", "float": "st_float({0})", "at": "{table}[{0}]",
    "widen": "({c}){0}", "narrow": "({c}){0}", "count": "({c})({int32}){0}",
}  # fmt: skip


def definition(name: str, function: Terms, arity: int, dialect: Dialect) -> str:
    """The C function called `name`."""
    inputs, terms = traced(function, arity)
    names = dict(zip(inputs, "xy", strict=False))
    tables: dict[tuple[float, ...], str] = {}
    lines: list[str] = []
    for term in terms:
        if term.op == "constant":
            names[term] = _literal(term)
            continue
        table = ""
        if isinstance(term.value, tuple):
            table = tables.setdefault(term.value, f"table_{len(tables)}")
        names[term] = f"t{len(lines)}"
        text = _FORMS[term.op].format(
            *(names[arg] for arg in term.args),
            c=_type(term.kind, dialect), table=table, int32=dialect.integer(32, signed=True),
        )  # fmt: skip
        lines.append(f"  const {_type(term.kind, dialect)} {names[term]} = {text};")
    c = _type("f32", dialect)
    head = f"static inline {c} {name}({', '.join(f'{c} {names[term]}' for term in inputs)}) {{"
    double = f"{dialect.constant} {_type('f64', dialect)}"
    rows = [
        f"  {double} {table}[{len(values)}] = {{{', '.join(value.hex() for value in values)}}};"
        for values, table in tables.items()
    ]
    return "\n".join([head, *rows, *lines, f"  return {names[terms[-1]]};", "}"])


def _type(kind: Kind, dialect: Dialect) -> str:
    if kind == "bool":
        return "int"
    return dialect.scalar_type({"f32": FP32, "f64": FP64, "u32": U32}[kind])


def _literal(term: ScalarTerm) -> str:
    """A constant as C has it: floats as their bits are."""
    if term.kind == "u32":
        return f"{term.value}u"
    value = float(term.value) if isinstance(term.value, (int, float)) else 0.0
    if not math.isfinite(value):
        return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
    if term.kind == "f32":
        value = struct.unpack("f", struct.pack("f", value))[0]
        return f"{value.hex()}f"
    return value.hex()
