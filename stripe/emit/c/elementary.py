"""The elementary functions of `stripe.ir.elementary` in C: one statement for each operation."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence

from stripe.emit.c.dialect import Dialect
from stripe.ir import INTRINSICS
from stripe.ir.dtypes import FP32, FP64, U32
from stripe.ir.elementary import Kind, ScalarTerm, Terms, traced

_FORMS = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "lt": "{0} < {1}",
    "eq": "{0} == {1}", "and": "{0} & {1}", "or": "{0} | {1}", "xor": "{0} ^ {1}", "not": "!{0}",
    "select": "{0} ? {1} : {2}",
    "fma": "st_fma_exact({0}, {1}, {2})",
    "shl": "{0} << {1}", "shr": "{0} >> {1}", "bits": "st_bits({0})", "float": "st_float({0})", "at": "{table}[{0}]",
    "widen": "({c}){0}", "narrow": "({c}){0}", "count": "({c})({int32}){0}",
}  # fmt: skip


_VECTOR_FORMS = _FORMS | {
    "not": "~{0}", "select": INTRINSICS["cond"].vector, "fma": "{multiply_add}({0}, {1}, {2})", "bits": "({vector}){0}",
    "float": "({vector}){0}", "count": "__builtin_convertvector(({vectors[i]}){0}, {vector})",
}  # fmt: skip
"""Forms of the terms on GNU vectors, in the words of `IntrinsicSpec.vector`; `multiply_add` is a function."""


def definition(name: str, function: Terms, arity: int, dialect: Dialect) -> str:
    """The C function called `name`."""
    inputs, terms = traced(function, arity)
    tables: dict[tuple[float, ...], str] = {}

    def spelled(term: ScalarTerm, args: Sequence[str]) -> str:
        table = ""
        if isinstance(term.value, tuple):
            table = tables.setdefault(term.value, f"table_{len(tables)}")
        int32 = dialect.integer(32, signed=True)
        return _FORMS[term.op].format(*args, c=_type(term.kind, dialect), table=table, int32=int32)

    names = dict(zip(inputs, "xy", strict=False))
    lines = _statements(terms, names, spelled, lambda kind: _type(kind, dialect), literal)
    c = _type("f32", dialect)
    head = f"ST_UNUSED static inline {c} {name}({', '.join(f'{c} {names[term]}' for term in inputs)}) {{"
    double = f"{dialect.constant} {_type('f64', dialect)}"
    rows = [
        f"  {double} {table}[{len(values)}] = {{{', '.join(value.hex() for value in values)}}};"
        for values, table in tables.items()
    ]
    return "\n".join([head, *rows, *lines, "}"])


def vector_body(
    function: Terms,
    arity: int,
    types: Mapping[Kind, str],
    multiply_add: str,
    constant: Callable[[ScalarTerm], str],
) -> list[str]:
    """The statements of a function of GNU vectors `x` and `y` whose terms `ir.elementary.is_lanewise`. `types` are the
    vectors of the kinds, with masks for "bool"; `multiply_add` is the function of a multiply-add on them."""
    inputs, terms = traced(function, arity)

    def spelled(term: ScalarTerm, args: Sequence[str]) -> str:
        vectors = {"i": types["bool"]}
        return _VECTOR_FORMS[term.op].format(
            *args, vector=types[term.kind], vectors=vectors, multiply_add=multiply_add
        )

    return _statements(terms, dict(zip(inputs, "xy", strict=False)), spelled, types.__getitem__, constant)


def _statements(
    terms: Sequence[ScalarTerm],
    names: dict[ScalarTerm, str],
    spelled: Callable[[ScalarTerm, Sequence[str]], str],
    type_of: Callable[[Kind], str],
    constant: Callable[[ScalarTerm], str],
) -> list[str]:
    """A statement for each term, and the return of the last; `names` are those of the inputs."""
    names, lines = dict(names), list[str]()
    for term in terms:
        if term.op == "constant":
            names[term] = constant(term)
            continue
        names[term] = f"t{len(lines)}"
        lines.append(
            f"  const {type_of(term.kind)} {names[term]} = {spelled(term, [names[arg] for arg in term.args])};"
        )
    return [*lines, f"  return {names[terms[-1]]};"]


def _type(kind: Kind, dialect: Dialect) -> str:
    if kind == "bool":
        return "int"
    return dialect.scalar_type({"f32": FP32, "f64": FP64, "u32": U32}[kind])


def literal(term: ScalarTerm) -> str:
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
