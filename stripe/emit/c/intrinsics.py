"""C expressions for the intrinsics and for merging by an aggregation, bit for bit as `stripe.ir.intrinsics` says.

Operands are names of C variables, so that an expression may use one twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from stripe.emit.c.literals import is_narrow
from stripe.emit.c.writer import Writer
from stripe.ir import Agg, DType

_COMPARE = {"cmp_eq": "==", "cmp_ne": "!=", "cmp_lt": "<", "cmp_le": "<=", "cmp_gt": ">", "cmp_ge": ">="}
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}
_BITS = {"bit_and": "&", "bit_or": "|", "bit_xor": "^"}
_MATH = frozenset("exp log sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh pow".split())
_EXACT_MATH = {"ceil": "ceil", "floor": "floor", "round": "round", "abs": "fabs"}
"""C functions whose result a narrow float holds whenever it holds the operand."""
_AGGREGATION = {Agg.ADD: "add", Agg.MUL: "mul", Agg.MIN: "min", Agg.MAX: "max"}


def intrinsic(op: str, args: Sequence[str], dtypes: Sequence[DType], result: DType, writer: Writer) -> str:
    """The expression for `op` on the variables `args` of `dtypes`, giving `result`."""
    if op == "ident":
        return args[0]
    if op == "cond":
        return f"{args[0]} ? {args[1]} : {args[2]}"
    if op == "cast":
        return cast(args[0], dtypes[0], result, writer)
    dtype = dtypes[0]
    if op in _COMPARE:
        return _compare(_COMPARE[op], args, dtype)
    if op in ("relu", "zelu"):
        return _rectify(args[0], dtype)
    if op in ("min", "max"):
        return _extremum(op, args[0], args[1], dtype)
    if dtype.kind == "bool":
        return _bool_bits(op, args)
    return _float(op, args, dtype, writer) if dtype.is_float else _integer(op, args, dtype, writer)


def merge(agg: Agg, old: str, new: str, dtype: DType, writer: Writer) -> str:
    """The expression for what an element holding `old` holds after a contribution `new`."""
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


def _compare(sign: str, args: Sequence[str], dtype: DType) -> str:
    if args[0] == args[1] and not dtype.is_float:  # compilers warn of a comparison with itself
        return "true" if sign in ("==", "<=", ">=") else "false"
    return f"{args[0]} {sign} {args[1]}"


def _rectify(x: str, dtype: DType) -> str:
    if dtype.kind == "uint":
        return x
    return f"{x} < 0 ? 0 : {x}"


def _extremum(op: str, a: str, b: str, dtype: DType) -> str:
    if a == b:
        return a
    sign = "<" if op == "min" else ">"
    if dtype.is_float:  # a NaN in `b` makes the comparison false and is returned
        return f"{a} {sign} {b} || {a} != {a} ? {a} : {b}"
    return f"{a} {sign} {b} ? {a} : {b}"


def _bool_bits(op: str, args: Sequence[str]) -> str:
    if op == "bit_not":
        return f"!{args[0]}"
    a, b = args
    if op == "bit_left":  # 1 shifted by 0 or 1 stays different from 0
        return a
    if op == "bit_right":
        return f"{a} && !{b}"
    if op == "bit_xor":
        return "false" if a == b else f"{a} != {b}"
    return f"{a} {'&&' if op == 'bit_and' else '||'} {b}"


def _float(op: str, args: Sequence[str], dtype: DType, writer: Writer) -> str:
    if op in _EXACT_MATH:
        return _math(_EXACT_MATH[op], args, dtype, writer)
    if op == "neg":
        return f"-{args[0]}"
    if op in _ARITHMETIC:
        exact = f"{args[0]} {_ARITHMETIC[op]} {args[1]}"
    elif op == "div":
        exact = f"{args[0]} / {args[1]}"
    elif op == "mod":
        exact = _math("fmod", args, dtype, writer)
    elif op == "sigmoid":
        one = "1.0" if dtype.bits == 64 else "1.0f"
        exact = f"{one} / ({one} + {_math('exp', [f'-{args[0]}'], dtype, writer)})"
    elif op in _MATH:
        exact = _math(op, args, dtype, writer)
    else:
        raise AssertionError(f"no C for '{op}' on {dtype}")
    return f"{writer.helpers.need(f'{dtype}_round')}({exact})" if is_narrow(dtype) else exact


def _math(name: str, args: Sequence[str], dtype: DType, writer: Writer) -> str:
    writer.helpers.headers.add("math")
    return f"{writer.dialect.math(name, dtype)}({', '.join(args)})"


def _integer(op: str, args: Sequence[str], dtype: DType, writer: Writer) -> str:
    c = writer.dialect.scalar_type(dtype)
    if op in _ARITHMETIC:
        return _wrapping(_ARITHMETIC[op], args, dtype, writer)
    if op in _BITS:
        return f"({c})({args[0]} {_BITS[op]} {args[1]})"
    if op == "bit_not":
        return f"({c})~{args[0]}"
    if op == "neg":
        return _wrapping("-", ("0", args[0]), dtype, writer)
    if op == "abs":
        x = args[0]
        return x if dtype.kind == "uint" else f"{x} < 0 ? {_wrapping('-', ('0', x), dtype, writer)} : {x}"
    helper = {"div": "div", "mod": "mod", "bit_left": "shl", "bit_right": "shr"}[op]
    return f"{writer.helpers.need(f'{helper}_{dtype}')}({args[0]}, {args[1]})"


def _wrapping(sign: str, args: Sequence[str], dtype: DType, writer: Writer) -> str:
    """Modulo 2^bits. Narrow types compute in int, which holds every result but the product of two u16."""
    c, (a, b) = writer.dialect.scalar_type(dtype), args
    if dtype.bits < 32 and not (dtype.name == "u16" and sign == "*"):
        return f"({c})({a} {sign} {b})"
    unsigned = writer.dialect.integer(max(dtype.bits, 32), signed=False)
    if dtype.kind == "uint" and dtype.bits >= 32:
        return f"{a} {sign} {b}"
    left = "0u" if a == "0" else f"({unsigned}){a}"
    return f"({c})({left} {sign} ({unsigned}){b})"
