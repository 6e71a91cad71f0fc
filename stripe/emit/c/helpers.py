"""The small C functions that emitted code may call; a file holds just those that it needs.

Their names start with `st_`, which `stripe.emit.c.names` keeps free.
"""

from __future__ import annotations

import re

from stripe.emit.c.dialect import Dialect
from stripe.emit.c.elementary import definition
from stripe.emit.c.narrow import narrow_helper
from stripe.ir import DTYPES, INTRINSICS

PREFIX = "st_"

FIXED: dict[str, str] = {
    "max": "static inline int64_t st_max(int64_t a, int64_t b) { return a > b ? a : b; }",
    "min": "static inline int64_t st_min(int64_t a, int64_t b) { return a < b ? a : b; }",
    "clamp": """\
static inline int64_t st_clamp(int64_t x, int64_t last) { return x < 0 ? 0 : x > last ? last : x; }""",
    "floordiv": """\
// Quotient rounded down, for n > 0.
static inline int64_t st_floordiv(int64_t a, int64_t n) { return a / n - (a % n < 0); }""",
    "mod": """\
// Remainder in [0, n), for n > 0.
static inline int64_t st_mod(int64_t a, int64_t n) { return a % n + (a % n < 0 ? n : 0); }""",
    "bits": """\
static inline uint32_t st_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}""",
    "float": """\
static inline float st_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}""",
    "bf16_load": "static inline float st_bf16_load(uint16_t bits) { return st_float((uint32_t)bits << 16); }",
    "bf16_store": """\
// The bits of a value that bf16 holds exactly.
static inline uint16_t st_bf16_store(float x) { return (uint16_t)(st_bits(x) >> 16); }""",
    "bf16_round": """\
// The nearest value that bf16 holds, ties to even.
static inline float st_bf16_round(float x) {
  const uint32_t bits = st_bits(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return st_float((bits & 0x80000000u) | 0x7fc00000u);
  return st_float((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}""",
    "vectors": """\
// Vectors of numbers: extensions of C that gcc and clang have for every processor, else arrays.
#if defined(__GNUC__) && !defined(ST_PLAIN)
#define ST_VECTORS
#define ST_LANE(x, n) (x)[n]
#pragma GCC diagnostic ignored "-Wpsabi"
#else
#define ST_LANE(x, n) (x).lane[n]
#endif""",
    "function": """\
// A function of a block, which gcc compiles by itself (noipa): it rounds products of one function together with sums of
// others that it inlines beside them, in spite of its options (bug 107647), and leaves out the call of one where it
// writes addresses from null on (12.2). Its options stand in one attribute: a second one makes it forget the first.
//   fp-contract=fast           products are rounded together with the sums that take them, anywhere
//   rounding-math              the zero of a negated sum of products keeps its sign
//   stack-reuse=none           arrays of blocks beside each other lie apart, of which it loses stores (109925, 111422)
//   no-tree-loop-distribution  no loop made two, in the wrong order of stores (112859, 112281, 115347)
//   no-predictive-commoning    no values carried from iteration to iteration in registers, which the results fill, and
//                              of which it loses some (106892)
//   no-tree-slp-vectorize      no vectors of statements beside each other, in which it leaves out roundings (12.2)
//   no-ssa-phiopt              no x for x == c ? k : x where a use cannot tell them: x gets a wrong range (108166); no
//                              maximum of minima whose bounds are crossed (111331)
//   no-tree-reassoc            no comparisons of one number joined, of which it loses some (118915)
//   no-expensive-optimizations without loops: no subtractions with borrow for chains of masks (107131)
//   no-tree-loop-vectorize     no vectors of loops with several sums, of which it loses terms (107212, 110381), or
//                              which it rounds together with products in spite of its options (107647); nor of loops
//                              of which one iteration stores several elements of a buffer: it exchanges them (114375),
//                              or reads behind the end of an input for them (12.2)
#if defined(__GNUC__) && !defined(__clang__)
#define ST_FUNCTION(...) __attribute__((noipa, optimize(__VA_ARGS__)))
#else
#define ST_FUNCTION(...)
#endif""",
    "given": """\
// Elements that gcc does not know: where it knows them, and the second half of 32 bytes is 0, it stores the first half
// twice, for processors with AVX-512 (108599).
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((noipa))
#endif
static const void *st_given(const void *elements) { return elements; }""",
    "unused": """\
#if defined(__GNUC__)
#define ST_UNUSED __attribute__((unused))
#else
#define ST_UNUSED
#endif""",
    "multiply_add": """\
// ST_FMA: the processor has an instruction for a*b + c in one rounding.
#if defined(__FMA__) || defined(__aarch64__) || defined(__ARM_FEATURE_FMA) || defined(FP_FAST_FMAF)
#define ST_FMA
#endif""",
    "fma_fp32": """\
// a*b + c, in one rounding where the processor has an instruction for it.
ST_UNUSED static inline float st_fma_fp32(float a, float b, float c) {
#ifdef ST_FMA
  return fmaf(a, b, c);
#else
  return a * b + c;
#endif
}""",
    "fma_exact": """\
// a*b + c in one rounding. Without an instruction the sum in double precision is rounded to odd, and then to float.
ST_UNUSED static inline float st_fma_exact(float a, float b, float c) {
#ifdef ST_FMA
  return fmaf(a, b, c);
#else
  const double product = (double)a * b, total = product + c, other = total - product;
  const double error = (product - (total - other)) + (c - other), out = total < 0 ? -error : error;
  uint64_t bits;
  double odd;
  memcpy(&bits, &total, sizeof bits);
  const uint64_t even = (bits & 1u) ^ 1u, more = out > 0 ? even : 0u, less = out < 0 ? even : 0u;
  bits = bits + more - less;
  memcpy(&odd, &bits, sizeof odd);
  return (float)odd;
#endif
}""",
    "fma_fp64": """\
ST_UNUSED static inline double st_fma_fp64(double a, double b, double c) {
#ifdef ST_FMA
  return fma(a, b, c);
#else
  return a * b + c;
#endif
}""",
    "allocate": """\
static void *st_allocate(size_t bytes) {
  void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (memory == NULL) {
    fprintf(stderr, "out of memory: %zu bytes\\n", bytes);
    abort();
  }
  return memory;
}""",
}


TYPED: dict[tuple[str, str], str] = {
    ("div", "uint"): "static inline {c} st_div_{t}({c} a, {c} b) {{ return ({c})(b == 0 ? 0 : a / b); }}",
    ("div", "int"): """\
// Towards zero; 0 for a zero divisor; the lowest number by -1 wraps.
static inline {c} st_div_{t}({c} a, {c} b) {{
  if (b == 0) return 0;
  return b == -1 ? ({c})(0u - ({unsigned})a) : ({c})(a / b);
}}""",
    ("mod", "uint"): "static inline {c} st_mod_{t}({c} a, {c} b) {{ return ({c})(b == 0 ? 0 : a % b); }}",
    (
        "mod",
        "int",
    ): "static inline {c} st_mod_{t}({c} a, {c} b) {{ return ({c})(b == 0 || b == -1 ? 0 : a % b); }}",
    ("shl", "uint"): (
        "static inline {c} st_shl_{t}({c} a, {c} b) {{ return ({c})(b < {bits} ? ({unsigned})a << b : 0u); }}"
    ),
    ("shl", "int"): (
        "static inline {c} st_shl_{t}({c} a, {c} b) {{ "
        "return ({c})(b >= 0 && b < {bits} ? ({unsigned})a << b : 0u); }}"
    ),
    (
        "shr",
        "uint",
    ): "static inline {c} st_shr_{t}({c} a, {c} b) {{ return ({c})(b < {bits} ? a >> b : 0); }}",
    ("shr", "int"): """\
// Shifts in copies of the sign, without asking what C does with negative numbers.
static inline {c} st_shr_{t}({c} a, {c} b) {{
  if (!(b >= 0 && b < {bits})) return ({c})(a < 0 ? -1 : 0);
  return ({c})(a < 0 ? ~(~a >> b) : a >> b);
}}""",
    ("index", "uint"): """\
static inline int64_t st_index_{t}({c} i) {{ return i > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)i; }}""",
    ("to", "uint"): """\
// Truncates, saturates, and turns NaN into 0.
static inline {c} st_to_{t}_{source}({value} x) {{
  if (x != x) return 0;
  return x <= 0.0{end} ? 0 : x >= {high}{end} ? UINT{bits}_MAX : ({c})x;
}}""",
    ("to", "int"): """\
// Truncates, saturates, and turns NaN into 0. gcc takes (float)(int)x for trunc(x), which keeps the sign of a zero.
static inline {c} st_to_{t}_{source}({value} x) {{
  if (!(x <= -1.0{end} || x >= 1.0{end})) return 0;
  return x <= -{high}{end} ? INT{bits}_MIN : x >= {high}{end} ? INT{bits}_MAX : ({c})x;
}}""",
}
"""Helpers for integers {t} of the type {c}, by kind. `to` converts from `float`, also of narrow floats, or `double`."""


def _typed(name: str, dialect: Dialect) -> str:
    """The text of a helper for one dtype: `div_i32`, `to_u8_fp32`, …"""
    helper, dtype_name, *source = name.split("_")
    dtype = DTYPES[dtype_name]
    double = source == ["fp64"]
    return TYPED[helper, dtype.kind].format(
        c=dialect.scalar_type(dtype), t=dtype, bits=dtype.bits,
        unsigned=dialect.integer(max(dtype.bits, 32), signed=False),
        source="".join(source), value="double" if double else "float", end="" if double else "f",
        high=repr(float(int(dtype.max_value) + 1)),
    )  # fmt: skip


_MACROS = {macro: name for name, text in FIXED.items() for macro in re.findall(r"#define (ST_\w+)", text)}
"""The helper that defines each macro."""

_HEADERS = {
    "memcpy": "string", "fma": "math", "fmaf": "math", "FP_FAST_FMAF": "math", "NAN": "math", "INFINITY": "math",
    "fprintf": "stdio", "aligned_alloc": "stdlib",
}  # fmt: skip
"""The header of each word of the C library."""


class Helpers:
    """The helpers and headers that a file needs, in an order in which C can read them."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._texts: dict[str, str] = {}
        self.headers: set[str] = set(dialect.headers)

    def need(self, name: str) -> str:
        """The C name of the helper `name`, which the file gets: `floordiv`, `div_i32`, `to_u8_fp32`, …"""
        c_name = PREFIX + name
        if c_name not in self._texts:
            text = self._found(name)
            for called in re.findall(rf"\b{PREFIX}(\w+)\(", text):
                if called != name:
                    self.need(called)
            self.define(c_name, text.replace("static inline", self._dialect.helper))
        return c_name

    def define(self, c_name: str, text: str) -> str:
        """Adds the text that defines `c_name`, unless the file has it, behind the macros that it names; the functions
        that it calls are there."""
        if c_name not in self._texts:
            for macro in re.findall(r"\bST_\w+", text):
                maker = _MACROS.get(macro)
                if maker is not None and PREFIX + maker != c_name:
                    self.need(maker)
            self._texts[c_name] = self.with_headers(text)
        return c_name

    def _found(self, name: str) -> str:
        """The text of a helper."""
        if name in FIXED:
            return FIXED[name]
        first, _, form = name.rpartition("_")
        if first in DTYPES:  # fp16_load
            dtype = DTYPES[first]
            return narrow_helper(dtype, form, self._dialect.memory_type(dtype))
        spec = INTRINSICS.get(name)
        if spec is None or spec.steps is None:
            return _typed(name, self._dialect)
        return definition(PREFIX + name, spec.steps, spec.arity, self._dialect)

    def with_headers(self, text: str) -> str:
        """`text`, whose headers the file includes."""
        self.headers |= {_HEADERS[word] for word in re.findall(r"\w+", text) if word in _HEADERS}
        return text

    def texts(self) -> tuple[str, ...]:
        """The functions, each after those that it calls."""
        return tuple(self._texts.values())
