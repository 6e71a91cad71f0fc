"""Vector types of C and the functions on them: GNU vector extensions, which gcc and clang have on every processor, and
arrays in structs for other compilers. `ST_PLAIN` chooses the latter.
"""

from __future__ import annotations

from collections.abc import Sequence

from stripe.emit.c.intrinsics import Named, intrinsic, is_operator
from stripe.emit.c.writer import Writer
from stripe.ir import DTYPES, INTRINSICS, DType


def vector_type(dtype: DType, lanes: int, writer: Writer) -> str:
    """The type of `lanes` elements, a scalar for one."""
    c_type = writer.dialect.scalar_type(dtype)
    if lanes == 1:
        return c_type
    writer.helpers.headers.add("string")
    writer.helpers.need("vectors")
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
{writer.dialect.helper} {vector} st_splat_{dtype}x{lanes}({c_type} a) {{
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
    return f"{_function(op, dtypes, result, lanes, writer)}({', '.join(args)})"


def multiply_add(args: Sequence[str], dtype: DType, lanes: int, writer: Writer) -> str:
    """a*b + c, in one rounding where the processor has an instruction for it.

    gcc makes that instruction of an expression on vectors only in functions that allow it for all expressions, which
    suits those without other products; elsewhere a loop over the lanes says it, which is slow to compile.
    """
    scalar = writer.helpers.need(f"fma_{dtype}")
    if lanes == 1:
        return f"{scalar}({', '.join(args)})"
    vector = vector_type(dtype, lanes, writer)
    kind = "fma" if writer.function.hazards.contracts else "fma_lanes"
    lines = [
        f"{writer.dialect.helper} {vector} st_{kind}_{dtype}x{lanes}({vector} a, {vector} b, {vector} c) {{"
    ]
    lane_by_lane = [
        f"  for (int n = 0; n < {lanes}; ++n) ST_LANE(c, n) = {scalar}(ST_LANE(a, n), ST_LANE(b, n), ST_LANE(c, n));",
        "  return c;",
    ]
    if writer.function.hazards.contracts:
        lines += ["#ifdef __clang__", "#pragma STDC FP_CONTRACT ON", "#endif", "#ifdef ST_VECTORS"]
    else:
        lines += ["#if defined(ST_VECTORS) && !defined(ST_FMA)"]
    lines += ["  return a * b + c;", "#else", *lane_by_lane, "#endif", "}"]
    name = writer.helpers.define(f"st_{kind}_{dtype}x{lanes}", "\n".join(lines))
    return f"{name}({', '.join(args)})"


def _function(op: str, dtypes: Sequence[DType], result: DType, lanes: int, writer: Writer) -> str:
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
    lines.append(f"    ST_LANE(r, n) = {intrinsic(op, scalars, dtypes, result, writer)};")
    return writer.helpers.define(name, "\n".join([*lines, "  }", "  return r;", "#endif", "}"]))


def _direct(op: str, result: DType, lanes: int, writer: Writer) -> str:
    """The expression on GNU vectors `a` and `b`. Comparisons give masks; signed integers wrap as unsigned ones do."""
    vector = vector_type(result, lanes, writer)
    form = INTRINSICS[op].on_vectors(result.kind)
    if not is_operator(form):
        integers = Named(lambda letter: vector_type(DTYPES[f"{letter}{result.bits}"], lanes, writer))
        return form.format("a", "b", vector=vector, vectors=integers)
    if result.kind != "int":
        return f"a {form} b"
    unsigned = vector_type(DTYPES[f"u{result.bits}"], lanes, writer)
    return f"({vector})(({unsigned})a {form} ({unsigned})b)"
