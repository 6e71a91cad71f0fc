"""Transposing copies in C: squares of vectors whose rows registers exchange, and plain loops around them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager

from stripe.emit.c.vectors import vector_type
from stripe.emit.c.writer import Writer
from stripe.emit.loops.plan import is_short
from stripe.emit.loops.tiles import interval
from stripe.emit.loops.transposes import Squares
from stripe.ir import DTYPES, DType


def write_transpose(found: Squares, writer: Writer) -> None:
    """The loops over squares, then those over the elements that are left."""
    source, target = writer.scope.areas[found.source], writer.scope.areas[found.target]
    loops = (found.across, found.along)
    limits = [interval(loop) for loop in loops]
    ends = [low + (high - low) // found.lanes * found.lanes for low, high in limits]
    (low, high), (first, last) = limits
    name = _helper(source.pointer.dtype, found.lanes, writer)
    with _loops(writer, found, [(low, ends[0], found.lanes), (first, ends[1], found.lanes)]):
        start, end = writer.element(source), writer.element(target, write=True)
        writer.line(f"{name}(&{start}, {found.by}, &{end}, {found.to});")
    rests = [
        [(low, ends[0], 1), (ends[1], last, 1)],
        [(ends[0], high, 1), (first, last, 1)],
    ]
    for ranges in rests:
        if all(begin < end for begin, end, _ in ranges):
            with _loops(writer, found, ranges):
                writer.line(f"{writer.element(target, write=True)} = {writer.element(source)};")


@contextmanager
def _loops(writer: Writer, found: Squares, ranges: Sequence[tuple[int, int, int]]) -> Generator[None]:
    """The loops `across` and `along`, over these ranges."""
    with ExitStack() as stack:
        for loop, (low, high, step) in zip((found.across, found.along), ranges, strict=True):
            short = is_short(len(range(low, high, step)))
            stack.enter_context(writer.function.loop(loop.var, str(low), str(high), step, is_short=short))
        yield


def _helper(dtype: DType, lanes: int, writer: Writer) -> str:
    """The function that transposes a square: each round exchanges the halves of pairs of rows."""
    c_type, vector = writer.dialect.scalar_type(dtype), vector_type(dtype, lanes, writer)
    mask = vector_type(DTYPES[f"i{dtype.bits}"], lanes, writer)
    low, high = (
        ", ".join(f"{n}, {n + lanes}" for n in range(first, first + lanes // 2)) for first in (0, lanes // 2)
    )
    half, index = lanes // 2, writer.dialect.index_type
    writer.helpers.define(
        "zip",
        """\
// The elements of two vectors in turn.
#ifdef __clang__
#define ST_SHUFFLE(mask, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define ST_SHUFFLE(mask, a, b, ...) __builtin_shuffle(a, b, (mask){__VA_ARGS__})
#endif""",
    )
    rounds = "\n".join(
        f"""\
  for (int n = 0; n < {half}; ++n) {{
    {to}[2 * n] = ST_SHUFFLE({mask}, {of}[n], {of}[n + {half}], {low});
    {to}[2 * n + 1] = ST_SHUFFLE({mask}, {of}[n], {of}[n + {half}], {high});
  }}"""
        for number in range(lanes.bit_length() - 1)
        for of, to in [("rows", "next") if number % 2 == 0 else ("next", "rows")]
    )
    result = "next" if (lanes.bit_length() - 1) % 2 else "rows"
    name = f"st_transpose_{dtype}x{lanes}"
    return writer.helpers.define(
        name,
        f"""\
{writer.dialect.helper} void {name}(const {c_type} *source, {index} by, {c_type} *target, {index} to) {{
#ifdef ST_VECTORS
  {vector} rows[{lanes}], next[{lanes}];
  for (int n = 0; n < {lanes}; ++n) memcpy(&rows[n], source + n * by, sizeof rows[n]);
{rounds}
  for (int n = 0; n < {lanes}; ++n) memcpy(target + n * to, &{result}[n], sizeof {result}[n]);
#else
  for (int n = 0; n < {lanes}; ++n)
    for (int m = 0; m < {lanes}; ++m) target[n * to + m] = source[m * by + n];
#endif
}}""",
    )
