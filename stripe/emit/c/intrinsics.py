"""C expressions for the intrinsics and for merging by an aggregation, bit for bit as `stripe.ir.intrinsics` says.

Operands are names of C variables, so that an expression may use one twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from stripe.emit.c.literals import is_narrow
from stripe.emit.c.writer import Writer
from stripe.ir import Agg, DType

_ANY = {
    "ident": "{0}", "cond": "{0} ? {1} : {2}", "cmp_eq": "{0} == {1}", "cmp_ne": "{0} != {1}", "cmp_lt": "{0} < {1}",
    "cmp_le": "{0} <= {1}", "cmp_gt": "{0} > {1}", "cmp_ge": "{0} >= {1}", "relu": "{0} < 0 ? 0 : {0}",
    "zelu": "{0} < 0 ? 0 : {0}", "min": "{0} < {1} ? {0} : {1}", "max": "{0} > {1} ? {0} : {1}",
}  # fmt: skip
_INTEGER = {
    "bit_and": "({c})({0} & {1})", "bit_or": "({c})({0} | {1})", "bit_xor": "({c})({0} ^ {1})", "bit_not": "({c})~{0}",
}  # fmt: skip
_FORMS: dict[str, dict[str, str]] = {
    # A shift of a bool by 0 or 1 to the left stays different from 0.
    "bool": {**_ANY, "bit_not": "!{0}", "bit_left": "{0}", "bit_right": "{0} && !{1}", "bit_and": "{0} && {1}",
             "bit_or": "{0} || {1}", "bit_xor": "{0} != {1}"},
    "int": {**_ANY, **_INTEGER},
    "uint": {**_ANY, **_INTEGER, "relu": "{0}", "zelu": "{0}", "abs": "{0}"},
    # A NaN in the second operand makes a comparison false and is returned.
    "float": {**_ANY, "neg": "-{0}", "min": "{0} < {1} || {0} != {0} ? {0} : {1}",
              "max": "{0} > {1} || {0} != {0} ? {0} : {1}"},
}  # fmt: skip
"""Expressions that are exact on each kind of dtype."""

_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}
_EXACT_MATH = {"ceil": "ceil", "floor": "floor", "round": "round", "abs": "fabs"}
"""C functions whose result a narrow float holds whenever it holds the operand."""
_MATH = {"mod": "fmod"} | {
    name: name
    for name in "exp log sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh pow".split()
}
_HELPERS = {"div": "div", "mod": "mod", "bit_left": "shl", "bit_right": "shr"}
_AGGREGATION = {Agg.ADD: "add", Agg.MUL: "mul", Agg.MIN: "min", Agg.MAX: "max"}


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
    if op in (forms := _FORMS[dtype.kind]):
        return forms[op].format(*args, c=writer.dialect.scalar_type(dtype))
    return _float(op, args, dtype, writer) if dtype.is_float else _integer(op, args, dtype, writer)


def merge(agg: Agg, old: str, new: str, dtype: DType, writer: Writer) -> str:
    """The expression for the value of an element that held `old` after a contribution `new`."""
    if agg is Agg.ASSIGN:
        return new
    if dtype.kind == "bool":
        return f"{old} || {new}" if agg in (Agg.ADD, Agg.MAX) else f"{old} && {new}"
    return intrinsic(_AGGREGATION[agg], (old, new), (dtype, dtype), dtype, writer)


def cast(value: str, source: DType, target: DType, writer: Writer) -> str:
    """The variable `value` of `source` converted to `target`."""
    c_type, source_type = writer.dialect.scalar_type(target), writer.dialect.scalar_type(source)
    if source == target:
        return value
    if target.kind == "bool":
        return f"{value} != 0"
    if target.is_integer and source.is_float:
        wide = "fp32" if is_narrow(source) else source.name
        return f"{writer.helpers.need(f'to_{target}_{wide}')}({value})"
    converted = value if source_type == c_type and not target.is_integer else f"({c_type}){value}"
    return f"{writer.helpers.need(f'{target}_round')}({converted})" if is_narrow(target) else converted


def _float(op: str, args: Sequence[str], dtype: DType, writer: Writer) -> str:
    def math(name: str, *operands: str) -> str:
        writer.helpers.headers.add("math")
        return f"{writer.dialect.math(name, dtype)}({', '.join(operands)})"

    if op in _EXACT_MATH:
        return math(_EXACT_MATH[op], *args)
    if op == "sigmoid":
        one = "1.0" if dtype.bits == 64 else "1.0f"
        rounded = f"{one} / ({one} + {math('exp', f'-{args[0]}')})"
    elif op in _MATH:
        rounded = math(_MATH[op], *args)
    else:
        rounded = f"{args[0]} {({**_ARITHMETIC, 'div': '/'})[op]} {args[1]}"
    return f"{writer.helpers.need(f'{dtype}_round')}({rounded})" if is_narrow(dtype) else rounded


def _integer(op: str, args: Sequence[str], dtype: DType, writer: Writer) -> str:
    if op in _ARITHMETIC:
        return _wrapping(_ARITHMETIC[op], args, dtype, writer)
    if op in _HELPERS:
        return f"{writer.helpers.need(f'{_HELPERS[op]}_{dtype}')}({args[0]}, {args[1]})"
    negative = _wrapping("-", ("0", args[0]), dtype, writer)
    return negative if op == "neg" else f"{args[0]} < 0 ? {negative} : {args[0]}"


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
