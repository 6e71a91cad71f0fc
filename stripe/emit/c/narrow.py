"""C functions between `float` and the bits of a narrow float, derived from the row of its dtype.

The bits are a sign, `DType.exponent` bits of a biased exponent and a fraction; the codes above the largest value are
infinity, where the type has one, and NaN.
"""

from __future__ import annotations

from stripe.ir import DType

_LOAD = """\
// The value of the bits of {t}.
static inline float st_{t}_load({c} bits) {{
  const uint32_t sign = (uint32_t)(bits & {sign}u) << {shift}, rest = bits & {mask}u;{special}
  if (rest >= {normal}u) return st_float(sign | ((rest << {drop}) + {rebias}u));
  const float tiny = (float)rest * 0x1p{step}f;
  return sign ? -tiny : tiny;
}}"""
_SPECIAL = """
  if (rest > {largest}u) return st_float(sign | {beyond});"""
_STORE = """\
// The bits of the nearest value of {t}, ties to even.
static inline {c} st_{t}_store(float x) {{
  const uint32_t bits = st_bits(x), sign = bits >> {shift} & {sign}u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) {nan}
  if (rest < {least}u) {{
    // The sum with {magic} rounds to multiples of 2^{step}, the step of the subnormals.
    return ({c})(sign | (st_bits(st_float(rest) + {magic}f) - {magic_bits}u));
  }}
  const uint32_t code = (rest + {half}u + (rest >> {drop} & 1u) - {rebias}u) >> {drop};
  return ({c})(sign | (code > {largest}u ? {over}u : code));
}}"""
_NAN = """{{
    const uint32_t payload = rest >> {drop} & {fraction}u;
    return ({c})(sign | {over}u | (payload ? payload : 1u));
  }}"""
_ROUND = "static inline float st_{t}_round(float x) {{ return st_{t}_load(st_{t}_store(x)); }}"


def narrow_helper(dtype: DType, form: str, c: str) -> str:
    """The text of the function `load`, `store` or `round` of a float with elements of the C type `c`."""
    if form == "round":
        return _ROUND.format(t=dtype)
    fraction = dtype.mantissa - 1
    mask = (1 << dtype.bits - 1) - 1
    smallest = 1 - dtype.bias - fraction  # the exponent of the smallest subnormal
    infinity = ((1 << dtype.exponent) - 1) << fraction
    largest = infinity - 1 if dtype.has_infinity else dtype.largest_code
    drop = 23 - fraction
    facts: dict[str, object] = {
        "t": dtype, "c": c, "sign": hex(mask + 1), "mask": hex(mask), "shift": 32 - dtype.bits,
        "normal": hex(1 << fraction), "drop": drop, "rebias": hex((127 - dtype.bias) << 23), "step": smallest,
        "largest": hex(largest), "fraction": hex((1 << fraction) - 1), "half": hex((1 << drop - 1) - 1),
        "least": hex((128 - dtype.bias) << 23), "magic": f"0x1p{smallest + 23}",
        "magic_bits": hex((127 + smallest + 23) << 23), "over": hex(min(largest + 1, mask)),
    }  # fmt: skip
    # NaN keeps as much of its payload as there is room for.
    if form == "store":
        nan = _NAN.format(**facts) if dtype.has_infinity else f"return ({c})(sign | {hex(mask)}u);"
        return _STORE.format(nan=nan, **facts)
    beyond = "0x7f800000u | (rest & {fraction}u) << {drop}" if dtype.has_infinity else "0x7fc00000u"
    special = _SPECIAL.format(beyond=beyond.format(**facts), **facts) if largest < mask else ""
    return _LOAD.format(special=special, **facts)
