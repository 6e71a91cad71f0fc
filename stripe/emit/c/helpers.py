"""The small C functions that emitted code may call; a file holds just those that it needs.

Their names start with `st_`, which `stripe.emit.c.names` keeps free.
"""

from __future__ import annotations

import re

from stripe.emit.c.dialect import Dialect
from stripe.ir import DTYPES, DType

PREFIX = "st_"

_FIXED: dict[str, tuple[str, tuple[str, ...]]] = {
    "max": ("static inline int64_t st_max(int64_t a, int64_t b) { return a > b ? a : b; }", ()),
    "min": ("static inline int64_t st_min(int64_t a, int64_t b) { return a < b ? a : b; }", ()),
    "clamp": (
        """\
static inline int64_t st_clamp(int64_t x, int64_t last) { return x < 0 ? 0 : x > last ? last : x; }""",
        (),
    ),
    "floordiv": (
        """\
// Quotient rounded down, for n > 0.
static inline int64_t st_floordiv(int64_t a, int64_t n) { return a / n - (a % n < 0); }""",
        (),
    ),
    "mod": (
        """\
// Remainder in [0, n), for n > 0.
static inline int64_t st_mod(int64_t a, int64_t n) { return a % n + (a % n < 0 ? n : 0); }""",
        (),
    ),
    "bits": (
        """\
static inline uint32_t st_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}""",
        (),
    ),
    "float": (
        """\
static inline float st_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}""",
        (),
    ),
    "fp16_load": (
        """\
// The value of IEEE half bits.
static inline float st_fp16_load(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = half & 0x7fffu;
  if (rest >= 0x7c00u) return st_float(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  if (rest >= 0x0400u) return st_float(sign | ((rest << 13) + 0x38000000u));
  const float tiny = (float)rest * 0x1p-24f;
  return sign ? -tiny : tiny;
}""",
        ("float",),
    ),
    "fp16_store": (
        """\
// IEEE half bits of the nearest value, ties to even.
static inline uint16_t st_fp16_store(float x) {
  const uint32_t bits = st_bits(x), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) {
    const uint32_t payload = rest >> 13 & 0x3ffu;
    return (uint16_t)(sign | 0x7c00u | (payload ? payload : 1u));
  }
  if (rest >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
  if (rest >= 0x38800000u) return (uint16_t)(sign | (rest + 0xfffu + (rest >> 13 & 1u) - 0x38000000u) >> 13);
  // The sum with 0.5 rounds to multiples of 2^-24, the step of the subnormals.
  return (uint16_t)(sign | (st_bits(st_float(rest) + 0.5f) - 0x3f000000u));
}""",
        ("bits", "float"),
    ),
    "fp16_round": (
        "static inline float st_fp16_round(float x) { return st_fp16_load(st_fp16_store(x)); }",
        ("fp16_load", "fp16_store"),
    ),
    "bf16_load": (
        "static inline float st_bf16_load(uint16_t bits) { return st_float((uint32_t)bits << 16); }",
        ("float",),
    ),
    "bf16_store": (
        """\
// The bits of a value that bf16 holds exactly.
static inline uint16_t st_bf16_store(float x) { return (uint16_t)(st_bits(x) >> 16); }""",
        ("bits",),
    ),
    "bf16_round": (
        """\
// The nearest value that bf16 holds, ties to even.
static inline float st_bf16_round(float x) {
  const uint32_t bits = st_bits(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return st_float((bits & 0x80000000u) | 0x7fc00000u);
  return st_float((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}""",
        ("bits", "float"),
    ),
    "allocate": (
        """\
static void *st_allocate(size_t bytes) {
  void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (memory == NULL) {
    fprintf(stderr, "out of memory: %zu bytes\\n", bytes);
    abort();
  }
  return memory;
}""",
        (),
    ),
}


class Helpers:
    """The helpers and headers that a file needs, in an order in which C can read them."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._texts: dict[str, str] = {}
        self.headers: set[str] = set(dialect.headers)

    def need(self, name: str) -> str:
        """The C name of the helper `name`, which the file gets: `floordiv`, `div_i32`, `to_u8_fp32`, …"""
        if name not in self._texts:
            text, needs = _FIXED[name] if name in _FIXED else (_typed(name, self._dialect), ())
            for other in needs:
                self.need(other)
            self._texts[name] = text.replace("static inline", self._dialect.helper)
            if name in ("bits", "float"):
                self.headers.add("string")
            elif name == "allocate":
                self.headers |= {"stdio", "stdlib"}
        return PREFIX + name

    def literal(self, text: str) -> str:
        """`text`, a literal, with the header noted that it needs."""
        if "NAN" in text or "INFINITY" in text:
            self.headers.add("math")
        return text

    def texts(self) -> tuple[str, ...]:
        """The functions, each after those that it calls."""
        return tuple(self._texts.values())


def _typed(name: str, dialect: Dialect) -> str:
    """The text of a helper for one dtype: `div mod shl shr` for integers, `to_INTEGER_FLOAT`, `index_u64`."""
    kind, *dtypes = name.split("_")
    dtype = DTYPES[dtypes[0]]
    c = dialect.scalar_type(dtype)
    if kind == "to":
        return _saturate(c, dtype, DTYPES[dtypes[1]])
    return _TYPED[kind](c, dialect.integer(max(dtype.bits, 32), signed=False), dtype)


def _div(c: str, unsigned: str, dtype: DType) -> str:
    if dtype.kind == "uint":
        return f"static inline {c} st_div_{dtype}({c} a, {c} b) {{ return ({c})(b == 0 ? 0 : a / b); }}"
    return f"""\
// Towards zero; 0 for a zero divisor; the lowest number by -1 wraps.
static inline {c} st_div_{dtype}({c} a, {c} b) {{
  if (b == 0) return 0;
  return b == -1 ? ({c})(0u - ({unsigned})a) : ({c})(a / b);
}}"""


def _mod(c: str, _unsigned: str, dtype: DType) -> str:
    safe = "b == 0" if dtype.kind == "uint" else "b == 0 || b == -1"
    return f"static inline {c} st_mod_{dtype}({c} a, {c} b) {{ return ({c})({safe} ? 0 : a % b); }}"


def _fits(dtype: DType) -> str:
    low = "" if dtype.kind == "uint" else "b >= 0 && "
    return f"{low}b < {dtype.bits}"


def _shl(c: str, unsigned: str, dtype: DType) -> str:
    body = f"return ({c})({_fits(dtype)} ? ({unsigned})a << b : 0u);"
    return f"static inline {c} st_shl_{dtype}({c} a, {c} b) {{ {body} }}"


def _shr(c: str, _unsigned: str, dtype: DType) -> str:
    if dtype.kind == "uint":
        return (
            f"static inline {c} st_shr_{dtype}({c} a, {c} b) {{ return ({c})({_fits(dtype)} ? a >> b : 0); }}"
        )
    return f"""\
// Shifts in copies of the sign, without asking what C does with negative numbers.
static inline {c} st_shr_{dtype}({c} a, {c} b) {{
  if (!({_fits(dtype)})) return ({c})(a < 0 ? -1 : 0);
  return ({c})(a < 0 ? ~(~a >> b) : a >> b);
}}"""


def _index(c: str, _unsigned: str, dtype: DType) -> str:
    body = "return i > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)i;"
    return f"static inline int64_t st_index_{dtype}({c} i) {{ {body} }}"


_TYPED = {"div": _div, "mod": _mod, "shl": _shl, "shr": _shr, "index": _index}


def _saturate(c: str, target: DType, source: DType) -> str:
    """From float (also fp16 and bf16, which are float here) or double to an integer."""
    double = source.bits == 64
    value, end = ("double", "") if double else ("float", "f")
    name = re.sub(r"fp16|bf16", "fp32", source.name)
    macro = f"{'U' if target.kind == 'uint' else ''}INT{target.bits}"
    high = f"{float(int(target.max_value) + 1)!r}{end}"
    low, lowest = (
        ("0.0" + end, "0") if target.kind == "uint" else (f"{float(target.min_value)!r}{end}", f"{macro}_MIN")
    )
    return f"""\
// Truncates, saturates, and turns NaN into 0.
static inline {c} st_to_{target}_{name}({value} x) {{
  if (x != x) return 0;
  return x <= {low} ? {lowest} : x >= {high} ? {macro}_MAX : ({c})x;
}}"""
