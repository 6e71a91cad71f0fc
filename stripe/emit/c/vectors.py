"""Vector types of C and the functions on them: GNU vector extensions, which gcc and clang have on every processor, and
arrays in structs for other compilers. `ST_PLAIN` chooses the latter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from stripe.emit.c.elementary import literal, vector_body
from stripe.emit.c.intrinsics import Named, intrinsic, is_operator
from stripe.emit.c.writer import Writer
from stripe.ir import DTYPES, INTRINSICS, DType
from stripe.ir.dtypes import FP32, U32
from stripe.ir.elementary import Kind, ScalarTerm


def vector_type(dtype: DType, lanes: int, writer: Writer) -> str:
    """The type of `lanes` elements, a scalar for one."""
    c_type = writer.dialect.scalar_type(dtype)
    if lanes == 1:
        return c_type
    name = f"st_{dtype}x{lanes}"
    return writer.helpers.define(
        name,
        f"""\
#ifdef ST_VECTORS
typedef {c_type} {name} __attribute__((vector_size({lanes * dtype.bytes})));
#else
typedef struct {{ {c_type} lane[{lanes}]; }} {name};
#endif""",
    )


def loaded(pointer: str, dtype: DType, lanes: int, writer: Writer) -> str:
    """The vector at an element `A[…]`."""
    if lanes == 1:
        return pointer
    vector, c_type = vector_type(dtype, lanes, writer), writer.dialect.scalar_type(dtype)
    name = writer.helpers.define(
        f"st_load_{dtype}x{lanes}",
        f"""\
{writer.dialect.helper} {vector} st_load_{dtype}x{lanes}(const {c_type} *p) {{
  {vector} x;
  memcpy(&x, p, sizeof x);
  return x;
}}""",
    )
    return f"{name}(&{pointer})"


def stored(pointer: str, value: str, dtype: DType, lanes: int, writer: Writer) -> str:
    """The statement that puts a vector at an element `A[…]`."""
    if lanes == 1:
        return f"{pointer} = {value};"
    vector, c_type = vector_type(dtype, lanes, writer), writer.dialect.scalar_type(dtype)
    name = writer.helpers.define(
        f"st_store_{dtype}x{lanes}",
        f"""\
{writer.dialect.helper} void st_store_{dtype}x{lanes}({c_type} *p, {vector} x) {{ memcpy(p, &x, sizeof x); }}""",
    )
    return f"{name}(&{pointer}, {value});"


def splat(value: str, dtype: DType, lanes: int, writer: Writer) -> str:
    """A vector of one scalar."""
    if lanes == 1:
        return value
    vector, c_type = vector_type(dtype, lanes, writer), writer.dialect.scalar_type(dtype)
    lane = ", ".join("a" * lanes)
    name = writer.helpers.define(
        f"st_splat_{dtype}x{lanes}",
        f"""\
ST_UNUSED {writer.dialect.helper} {vector} st_splat_{dtype}x{lanes}({c_type} a) {{
#ifdef ST_VECTORS
  return ({vector}){{{lane}}};
#else
  return ({vector}){{{{{lane}}}}};
#endif
}}""",
    )
    return f"{name}({value})"


def applied(
    op: str, args: Sequence[str], dtypes: Sequence[DType], result: DType, lanes: int, writer: Writer
) -> str:
    """`op` on vectors, or on scalars for one lane."""
    if lanes == 1:
        return intrinsic(op, args, dtypes, result, writer)
    is_expression = INTRINSICS[op].on_vectors(result.kind)
    name = (
        _expression_function(op, dtypes, result, lanes, writer)
        if is_expression
        else _elementary(op, lanes, writer)
    )
    return f"{name}({', '.join(args)})"


_Branch: TypeAlias = tuple[str, Sequence[str]]
"""A condition of the preprocessor, and the lines where it holds."""


def _chosen(branches: Iterable[_Branch], otherwise: Sequence[str]) -> list[str]:
    """The lines of the first branch that holds, as the preprocessor finds it."""
    lines: list[str] = []
    for condition, body in branches:
        lines += [f"#{'elif' if lines else 'if'} {condition}", *body]
    return [*lines, "#else", *otherwise, "#endif"] if lines else [*otherwise]


def multiply_add(args: Sequence[str], dtype: DType, lanes: int, writer: Writer) -> str:
    """a*b + c, in one rounding where the processor has an instruction for it.

    gcc makes that instruction of an expression on vectors only in functions that allow it for all expressions, which
    suits those without other products; elsewhere a function of the compiler says it.
    """
    scalar = writer.helpers.need(f"fma_{dtype}")
    if lanes == 1:
        return f"{scalar}({', '.join(args)})"
    by_lane, expression = _by_lane(scalar, dtype, lanes, writer), ["  return a * b + c;"]
    if writer.function.hazards.contracts:
        name = f"st_fma_{dtype}x{lanes}"
        lines = ["#ifdef __clang__", "#pragma STDC FP_CONTRACT ON", "#endif"]
        lines += _chosen([("defined(ST_VECTORS)", expression)], by_lane)
    else:
        name = f"st_fma_lanes_{dtype}x{lanes}"
        plain = "defined(ST_VECTORS) && !defined(ST_FMA)"
        lines = _chosen([(plain, expression), *_x86_multiply_adds(dtype, lanes, writer)], by_lane)
    return f"{_ternary(name, dtype, lanes, lines, writer)}({', '.join(args)})"


def _ternary(name: str, dtype: DType, lanes: int, lines: Sequence[str], writer: Writer) -> str:
    """The function of three vectors a, b and c with the body `lines`."""
    vector = vector_type(dtype, lanes, writer)
    head = f"ST_UNUSED {writer.dialect.helper} {vector} {name}({vector} a, {vector} b, {vector} c) {{"
    return writer.helpers.define(name, "\n".join([head, *lines, "}"]))


def _by_lane(scalar: str, dtype: DType, lanes: int, writer: Writer) -> list[str]:
    """A loop over the lanes, of which compilers other than gcc make one instruction where they can."""
    call = f"{scalar}(ST_LANE(a, n), ST_LANE(b, n), ST_LANE(c, n))"
    return [
        f"  {vector_type(dtype, lanes, writer)} r = c;  // gcc warns of lanes of a parameter that change",
        f"  for (int n = 0; n < {lanes}; ++n) ST_LANE(r, n) = {call};",
        "  return r;",
    ]


def _x86_multiply_adds(dtype: DType, lanes: int, writer: Writer) -> Iterator[_Branch]:
    """The multiply-adds of gcc on x86, which makes none of lanes, since the options of functions forbid it vectors of
    statements: on a register of all bytes, or on several of 32."""
    gcc, size = "defined(ST_VECTORS) && !defined(__clang__) && defined", lanes * dtype.bytes
    form, mask = ("ps", "short") if dtype.bits == 32 else ("pd", "char")
    on_32 = f"__builtin_ia32_vfmadd{form}256"
    match size:
        case 16:
            yield f"{gcc}(__FMA__)", [f"  return __builtin_ia32_vfmadd{form}(a, b, c);"]
        case 32:
            yield f"{gcc}(__FMA__)", [f"  return {on_32}(a, b, c);"]
        case 64:
            rounding = "4"  # as the processor is set
            call = f"__builtin_ia32_vfmadd{form}512_mask(a, b, c, (unsigned {mask})-1, {rounding})"
            yield f"{gcc}(__AVX512F__)", [f"  return {call};"]
        case _:
            pass
    if size > 32:
        part, whole = vector_type(dtype, 32 // dtype.bytes, writer), vector_type(dtype, lanes, writer)
        yield (
            f"{gcc}(__FMA__)",
            [
                f"  union {{ {whole} whole; {part} part[{size // 32}]; }} x = {{a}}, y = {{b}}, z = {{c}};",
                f"  for (int n = 0; n < {size // 32}; ++n) z.part[n] = {on_32}(x.part[n], y.part[n], z.part[n]);",
                "  return z.whole;",
            ],
        )


def _elementary(op: str, lanes: int, writer: Writer) -> str:
    """The function of fp32 whose steps are operations on vectors. Without multiply-adds these take many more operations
    each: there it is a loop over the lanes, in a function apart."""
    spec, scalar = INTRINSICS[op], writer.helpers.need(op)
    assert spec.steps is not None
    lines = _chosen(
        _x86_multiply_adds(FP32, lanes, writer),
        _by_lane(writer.helpers.need("fma_exact"), FP32, lanes, writer),
    )
    exact = _ternary(f"st_fma_exact_fp32x{lanes}", FP32, lanes, lines, writer)
    dtypes: dict[Kind, DType] = {"f32": FP32, "u32": U32, "bool": DTYPES["i32"]}
    types: dict[Kind, str] = {kind: vector_type(each, lanes, writer) for kind, each in dtypes.items()}

    def constant(term: ScalarTerm) -> str:
        return splat(writer.helpers.with_headers(literal(term)), dtypes[term.kind], lanes, writer)

    vector, c_type, name = types["f32"], writer.dialect.scalar_type(FP32), f"{scalar}_fp32x{lanes}"
    letters = "xy"[: spec.arity]
    head = f"{vector} {name}({', '.join(f'{vector} {letter}' for letter in letters)}) {{"
    body = ["#if defined(ST_VECTORS) && defined(ST_FMA)", f"{writer.dialect.helper} {head}"]
    body += vector_body(spec.steps, spec.arity, types, exact, constant)
    body += ["}", "#else", "#ifdef __GNUC__", "__attribute__((noinline))", "#endif", f"static {head}"]
    for letter in letters:
        body.append(f"  {c_type} {letter}s[{lanes}];")
        body.append(f"  memcpy({letter}s, &{letter}, sizeof {letter}s);")
    call = f"{scalar}({', '.join(f'{letter}s[n]' for letter in letters)})"
    body.append(f"  for (int n = 0; n < {lanes}; ++n) xs[n] = {call};")
    body += ["  memcpy(&x, xs, sizeof xs);", "  return x;", "}", "#endif"]
    return writer.helpers.define(name, "\n".join(body))


def _expression_function(op: str, dtypes: Sequence[DType], result: DType, lanes: int, writer: Writer) -> str:
    """The function of `op` on vectors: an expression on vectors, and lane by lane for other compilers."""
    source = "" if dtypes[-1] == result else f"{dtypes[-1]}_"
    name = f"st_{op}_{source}{result}x{lanes}"
    vectors = [vector_type(dtype, lanes, writer) for dtype in dtypes]
    to = vector_type(result, lanes, writer)
    direct = _direct(op, result, lanes, writer)
    letters = "abc"[: len(dtypes)]
    parameters = ", ".join(f"{vector} {letter}" for vector, letter in zip(vectors, letters, strict=True))
    lines = [f"{writer.dialect.helper} {to} {name}({parameters}) {{"]
    lines += ["#ifdef ST_VECTORS", f"  return {direct};", "#else", f"  {to} r;"]
    scalars = [f"{letter}_n" for letter in letters]
    lines.append(f"  for (int n = 0; n < {lanes}; ++n) {{")
    for scalar, letter, dtype in zip(scalars, letters, dtypes, strict=True):
        lines.append(f"    const {writer.dialect.scalar_type(dtype)} {scalar} = ST_LANE({letter}, n);")
    value = intrinsic(op, scalars, dtypes, result, writer)
    lines.append(f"    ST_LANE(r, n) = {f'-({value})' if INTRINSICS[op].result == 'bool' else value};")
    return writer.helpers.define(name, "\n".join([*lines, "  }", "  return r;", "#endif", "}"]))


def _direct(op: str, result: DType, lanes: int, writer: Writer) -> str:
    """The expression on GNU vectors `a`, `b` and `c`. Signed integers wrap as unsigned ones do."""
    vector = vector_type(result, lanes, writer)
    form = INTRINSICS[op].on_vectors(result.kind)
    if not is_operator(form):
        integers = Named(lambda letter: vector_type(DTYPES[f"{letter}{result.bits}"], lanes, writer))
        return form.format("a", "b", "c", vector=vector, vectors=integers)
    if result.kind != "int":
        return f"a {form} b"
    unsigned = vector_type(DTYPES[f"u{result.bits}"], lanes, writer)
    return f"({vector})(({unsigned})a {form} ({unsigned})b)"
