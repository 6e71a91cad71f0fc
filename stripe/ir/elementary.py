"""Elementary functions on fp32 as sequences of operations, which every engine carries out in the same order.

Each operation rounds once, and there are no branches: C compilers make vectors of the loops around them, and numpy
computes the same bits. A multiply-add of f32 is an operation of its own: one instruction of most processors, and
sums in double precision for the others. `tests/emit/test_elementary.py` tests the bounds; an ulp is
the distance of two neighbours of the exact result. The polynomials were fitted by Lawson's iteration (reweighted least
squares, which tends to the smallest maximum). The reductions are those of Cody and Waite, Software Manual for the
Elementary Functions, 1980, and of Payne and Hanek, Radian reduction for trigonometric functions, 1983.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

Kind = Literal["f32", "f64", "u32", "bool"]
"""The types of terms."""
Terms = Callable[..., "ScalarTerm"]
"""A function of arguments in f32, with a result in f32."""


@dataclass(frozen=True, eq=False, slots=True)
class ScalarTerm:
    """The result of an operation on terms; u32 wraps. `value` is that of a constant, or the rows of a table.

    `count` takes a u32 below 2^31 as a number, `bits` and `float` go between f32 and its bits, `at` is an element of a
    table, `fma` is a*b + c in one rounding.
    """

    op: str
    kind: Kind
    args: tuple[ScalarTerm, ...] = ()
    value: float | int | tuple[float, ...] = 0

    def __add__(self, other: Operand) -> ScalarTerm:
        return self._with("add", other)

    def __radd__(self, other: Operand) -> ScalarTerm:
        return self.lifted(other) + self

    def __sub__(self, other: Operand) -> ScalarTerm:
        return self._with("sub", other)

    def __rsub__(self, other: Operand) -> ScalarTerm:
        return self.lifted(other) - self

    def __mul__(self, other: Operand) -> ScalarTerm:
        return self._with("mul", other)

    def __rmul__(self, other: Operand) -> ScalarTerm:
        return self.lifted(other) * self

    def __truediv__(self, other: Operand) -> ScalarTerm:
        return self._with("div", other)

    def __rtruediv__(self, other: Operand) -> ScalarTerm:
        return self.lifted(other) / self

    def __and__(self, other: Operand) -> ScalarTerm:
        return self._with("and", other)

    def __or__(self, other: Operand) -> ScalarTerm:
        return self._with("or", other)

    def __xor__(self, other: Operand) -> ScalarTerm:
        return self._with("xor", other)

    def __rshift__(self, other: Operand) -> ScalarTerm:
        return self._with("shr", other)

    def __lshift__(self, other: Operand) -> ScalarTerm:
        return self._with("shl", other)

    def __lt__(self, other: Operand) -> ScalarTerm:
        return self._with("lt", other, "bool")

    def __gt__(self, other: Operand) -> ScalarTerm:
        return self.lifted(other) < self

    def same(self, other: Operand) -> ScalarTerm:
        """Whether two numbers are equal."""
        return self._with("eq", other, "bool")

    def as_(self, op: str, kind: Kind) -> ScalarTerm:
        """The result of an operation of one operand."""
        return ScalarTerm(op, kind, (self,))

    def at(self, table: tuple[float, ...]) -> ScalarTerm:
        """The element of a table of f64."""
        return ScalarTerm("at", "f64", (self,), table)

    def _with(self, op: str, other: Operand, kind: Kind | None = None) -> ScalarTerm:
        return ScalarTerm(op, kind or self.kind, (self, self.lifted(other)))

    def lifted(self, other: Operand) -> ScalarTerm:
        """A number as a constant of the kind of this term."""
        return other if isinstance(other, ScalarTerm) else ScalarTerm("constant", self.kind, (), other)


Operand = ScalarTerm | int | float


def is_lanewise(function: Terms, arity: int) -> bool:
    """Whether all terms have 32 bits, so that they are operations on vectors of as many lanes."""
    return all(term.kind != "f64" for term in traced(function, arity)[1])


@lru_cache(maxsize=64)
def traced(function: Terms, arity: int) -> tuple[tuple[ScalarTerm, ...], tuple[ScalarTerm, ...]]:
    """The inputs of a function, and all its terms in an order in which they can be computed; the last is the result."""
    inputs = tuple(ScalarTerm("input", "f32", (), number) for number in range(arity))
    order: dict[ScalarTerm, None] = {}

    def visit(term: ScalarTerm) -> None:
        if term not in order:
            for arg in term.args:
                visit(arg)
            order[term] = None

    visit(function(*inputs))
    return inputs, tuple(term for term in order if term.op != "input")


def _select(condition: ScalarTerm, first: Operand, second: ScalarTerm) -> ScalarTerm:
    return ScalarTerm("select", second.kind, (condition, second.lifted(first), second))


def _polynomial(x: ScalarTerm, coefficients: Sequence[float]) -> ScalarTerm:
    """By Horner's rule; the coefficients begin with the constant one."""
    result = x.lifted(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = _fused(result, x, coefficient) if x.kind == "f32" else result * x + coefficient
    return result


def _fused(a: ScalarTerm, b: Operand, c: Operand) -> ScalarTerm:
    """a*b + c in one rounding."""
    return ScalarTerm("fma", "f32", (a, a.lifted(b), a.lifted(c)))


def _absolute(x: ScalarTerm) -> ScalarTerm:
    return (x.as_("bits", "u32") & 0x7FFFFFFF).as_("float", "f32")


def _opposite(x: ScalarTerm) -> ScalarTerm:
    return (x.as_("bits", "u32") ^ 0x80000000).as_("float", "f32")


def _signed(magnitude: ScalarTerm, sign: ScalarTerm) -> ScalarTerm:
    """A number without sign, with that of another one."""
    return (magnitude.as_("bits", "u32") | (sign.as_("bits", "u32") & 0x80000000)).as_("float", "f32")


def _power_of_two(exponent: ScalarTerm) -> ScalarTerm:
    """2^(exponent - 150) as f32, for an exponent whose result is normal."""
    return ((exponent - (150 - 127)) << 23).as_("float", "f32")


_ROUND = 12582912.0  # 1.5 * 2^23: a sum with it is rounded to a whole number, which stands in the last bits
_ROUND_BITS = 0x4B400000
_LOG2_E = 1.44269504088896341
# the first has 9 bits: its products with exponents are exact
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_LN2 = (0.693147182464599609, -1.90465429995776804e-9)
_EXP = (1.0, 1.0, 0.5, 0.16666512191295624, 0.0416661873459816, 0.008369598537683487, 0.0013951717410236597)


def _scaled(x: ScalarTerm, exponent: ScalarTerm) -> ScalarTerm:
    """x * 2^(exponent - 300), in two factors, because the result may be subnormal."""
    half = exponent >> 1
    return x * _power_of_two(half) * _power_of_two(exponent - half)


def exp(x: ScalarTerm) -> ScalarTerm:
    """Error below 1 ulp. x = k ln 2 + r, so that exp(x) = 2^k exp(r).

    The sum with `shift` has k + 254 in its last bits. The scale 2^k is two factors, because the result may be
    subnormal: their exponents, which add up to k + 254, are halves of these bits. A large k ends at a scale that
    overflows; r is then positive or no number, and so is the result.
    """
    shift, most = _ROUND + 254.0, _ROUND_BITS + 254 + 129
    x = _select(x < -104.0, -104.0, x)
    bits = _fused(x, _LOG2_E, shift).as_("bits", "u32")
    bits = _select(bits > most, most, bits)
    k = bits.as_("float", "f32") - shift
    r = _fused(k, -_LN2[1], _fused(k, -_LN2[0], x))
    half = bits >> 1
    first, second = ((exponent << 23).as_("float", "f32") for exponent in (half, bits - half))
    return _polynomial(r, _EXP) * first * second


_LOG = (
    0.3333331048488617, -0.25000008940696716, 0.2000216692686081, -0.16668090224266052,
    0.1421855241060257, -0.12403086572885513, 0.1189352497458458, -0.11694324761629105,
    0.06757530570030212,
)  # fmt: skip
_SQRT_HALF_BITS = 0x3F3504F3
_SMALLEST = 2.0**-126


def log(x: ScalarTerm) -> ScalarTerm:
    """Error below 1 ulp. x = 2^k (1 + f) with f between sqrt(1/2) - 1 and sqrt(2) - 1."""
    small = x < _SMALLEST
    bits = _select(small, x * 2.0**23, x).as_("bits", "u32") + (0x3F800000 - _SQRT_HALF_BITS)
    k = (bits >> 23).as_("count", "f32") - _select(
        small, 127.0 + 23.0, ScalarTerm("constant", "f32", (), 127.0)
    )
    f = ((bits & 0x7FFFFF) + _SQRT_HALF_BITS).as_("float", "f32") - 1.0
    square = f * f
    near = k * _LN2_LOW + square * f * _polynomial(f, _LOG) - square * 0.5
    found = f + near + k * _LN2_HIGH
    found = _select(x < float("inf"), found, x)  # infinite, or no number
    return _select(x.same(0.0), float("-inf"), _select(x < 0.0, float("nan"), found))


def sigmoid(x: ScalarTerm) -> ScalarTerm:
    """1 / (1 + exp(-x)) with an error below 3 ulp: the exponential of a negative number does not overflow."""
    raised = exp(0.0 - _absolute(x))
    return _select(x < 0.0, raised, ScalarTerm("constant", "f32", (), 1.0)) / (raised + 1.0)


_TANH = (
    -0.3333328068256378, 0.1333138346672058, -0.05373400077223778, 0.020618122071027756,
    -0.005679303780198097,
)  # fmt: skip


def tanh(x: ScalarTerm) -> ScalarTerm:
    """Error below 2 ulp: a polynomial near zero, else 1 - 2 / (exp(2x) + 1)."""
    size = _absolute(x)
    square = x * x
    near = size + size * square * _polynomial(square, _TANH)
    far = 1.0 - 2.0 / (exp(size + size) + 1.0)
    return _signed(_select(size < 0.625, near, far), x)


_ERF = (
    0.12837916612625122, -0.3761262595653534, 0.11283581703901291, -0.026853572577238083,
    0.005187676753848791, -0.000800279260147363, 7.823972555343062e-05,
)  # fmt: skip
_ERFC = (
    -0.00019370632071513683, 1.1296073198318481, 0.6331565380096436, 0.10849650949239731,
    -0.025267019867897034, 0.0042323702946305275, -0.0004493985034059733, 2.2995602193986997e-05,
    -9.105529130692958e-08,
)  # fmt: skip


def erf(x: ScalarTerm) -> ScalarTerm:
    """Error below 1.4 ulp: a polynomial up to 1, else 1 - exp(-q), q a polynomial."""
    size = _absolute(x)
    near = size + size * _polynomial(x * x, _ERF)
    clamped = _select(size > 4.0, 4.0, size)
    far = 1.0 - exp(0.0 - _polynomial(clamped, _ERFC))
    return _signed(_select(size < 1.0, near, far), x)


_LOG2 = (
    2.885390081777927, 0.9617966939259771, 0.577078016717143, 0.41219847169205226, 0.32061181800414906,
    0.26158816592255296, 0.24120088720357596,
)  # fmt: skip
_EXP2 = (
    1.0000000000000313, 0.6931471805435261, 0.24022650695392742, 0.055504109506434925,
    0.009618129243536859, 0.0013333441688450649, 0.00015403401997294815, 1.531240031416118e-05,
    1.3265996283841028e-06,
)  # fmt: skip
_ROUND_64 = 6755399441055744.0  # 1.5 * 2^52


def pow(x: ScalarTerm, y: ScalarTerm) -> ScalarTerm:
    """Error below 1 ulp, in double precision: 2^(y log2 x). The special cases are those of C (Annex F)."""
    size = _absolute(x)
    small = size < _SMALLEST
    bits = _select(small, size * 2.0**24, size).as_("bits", "u32") + (0x3F800000 - _SQRT_HALF_BITS)
    k = (bits >> 23).as_("count", "f32") - _select(
        small, 127.0 + 24.0, ScalarTerm("constant", "f32", (), 127.0)
    )
    m = ((bits & 0x7FFFFF) + _SQRT_HALF_BITS).as_("float", "f32").as_("widen", "f64")
    s = (m - 1.0) / (m + 1.0)
    wide = y.as_("widen", "f64")
    exponent = wide * (k.as_("widen", "f64") + s * _polynomial(s * s, _LOG2))
    exponent = _select(exponent > 160.0, 160.0, _select(exponent < -160.0, -160.0, exponent))
    whole = (exponent + _ROUND_64) - _ROUND_64
    scale = (whole.as_("narrow", "f32") + _ROUND).as_("bits", "u32") - (_ROUND_BITS - 300)
    found = _scaled(_polynomial(exponent - whole, _EXP2).as_("narrow", "f32"), scale)
    # x of 0 and infinity
    grows = _select(size.same(0.0), y < 0.0, y > 0.0)
    edge = _select(grows, float("inf"), ScalarTerm("constant", "f32", (), 0.0))
    found = _select(size.same(0.0) | size.same(float("inf")), edge, found)
    # y of infinity
    large = _absolute(y)
    grows = _select(size < 1.0, y < 0.0, y > 0.0)
    edge = _select(size.same(1.0), 1.0, _select(grows, float("inf"), ScalarTerm("constant", "f32", (), 0.0)))
    found = _select(large.same(float("inf")), edge, found)
    # x below 0: numbers of 2^24 and more are even, others are whole where rounding leaves them
    clamped = _select(large < 16777216.0, large, ScalarTerm("constant", "f32", (), 16777216.0)).as_(
        "widen", "f64"
    )
    is_whole = ((clamped + _ROUND_64) - _ROUND_64).same(clamped)
    half = clamped * 0.5
    is_even = ((half + _ROUND_64) - _ROUND_64).same(half)
    negative = (x.as_("bits", "u32") >> 31).same(1)
    flipped = _select(negative, _select(is_whole, _select(is_even, found, _opposite(found)), found), found)
    undefined = (x < 0.0) & (size < float("inf")) & _not(is_whole)
    found = _select(undefined, float("nan"), flipped)
    found = _select(_not(x.same(x)) | _not(y.same(y)), x + y, found)
    return _select(x.same(1.0) | y.same(0.0), 1.0, found)


def _not(condition: ScalarTerm) -> ScalarTerm:
    return condition.as_("not", "bool")


_FIRST = 100
"""Biased exponent up to which sin x is x and cos x is 1 in fp32."""


def _two_over_pi() -> tuple[tuple[float, ...], ...]:
    """For each exponent of fp32 from _FIRST on: 2^e 2/pi modulo 4 in three parts, the first two of 29 bits."""
    digits = _machin(300)
    parts: tuple[list[float], ...] = ([], [], [])
    for biased in range(_FIRST, 256):
        rest = Fraction(2, 1) ** (biased - 150) * 2 / digits % 4
        for part, bits in zip(parts, (27, 56, 0), strict=True):
            taken = Fraction(int(rest * 2**bits), 2**bits) if bits else rest
            part.append(float(taken))
            rest -= taken
    return tuple(map(tuple, parts))


def _machin(bits: int) -> Fraction:
    """Pi to so many bits: 16 arctan(1/5) - 4 arctan(1/239)."""

    def arctan(inverse: int) -> Fraction:
        unit, total, sign, power, n = 1 << (bits + 32), 0, 1, inverse, 1
        while unit // (power * n):
            total += sign * (unit // (power * n))
            sign, power, n = -sign, power * inverse * inverse, n + 2
        return Fraction(total, unit)

    return 16 * arctan(5) - 4 * arctan(239)


_SIN = (-0.1666666716337204, 0.008333329111337662, -0.00019839256128761917, 2.7175644845556235e-06)
_COS = (0.04166664555668831, -0.0013887305976822972, 2.4431203200947493e-05)
_HALF_PI = 1.57079632679489662


def _circular(x: ScalarTerm, quarter: float) -> ScalarTerm:
    """sin(x + quarter pi / 2): x = (k + r) pi / 2, where r lies between -1/2 and 1/2 and k counts modulo 4."""
    bits = x.as_("bits", "u32") & 0x7FFFFFFF
    biased = bits >> 23
    tiny = biased < _FIRST
    index = _select(tiny, 0, biased - _FIRST)
    high, middle, low = _two_over_pi()
    m = ((bits & 0x7FFFFF) | 0x800000).as_("count", "f64")
    coarse, fine = m * index.at(high), m * index.at(middle)
    k = (coarse + fine + _ROUND_64) - _ROUND_64
    r = ((coarse - k) + fine + m * index.at(low)) * _HALF_PI
    angle = _select(tiny, _absolute(x), r.as_("narrow", "f32"))
    sign = _select((x.as_("bits", "u32") >> 31).same(1), -1.0, ScalarTerm("constant", "f32", (), 1.0))
    turns = _select(tiny, 0.0, k)
    if quarter:
        turns, sign = turns + quarter, ScalarTerm("constant", "f32", (), 1.0)
    j = turns - ((turns * 0.25 + _ROUND_64) - _ROUND_64) * 4.0  # of -2 to 2
    square = angle * angle
    sine = angle + angle * square * _polynomial(square, _SIN)
    cosine = 1.0 - square * 0.5 + square * square * _polynomial(square, _COS)
    odd = j.same(1.0) | j.same(-1.0)
    value = _select(odd, cosine, sine)
    value = _select((j < 0.0) | (j > 1.0), 0.0 - value, value) * sign
    return _select((x - x).same(0.0), value, x - x)  # infinity and no number have none


def sin(x: ScalarTerm) -> ScalarTerm:
    """Error below 1.6 ulp."""
    return _circular(x, 0.0)


def cos(x: ScalarTerm) -> ScalarTerm:
    """Error below 1.6 ulp."""
    return _circular(x, 1.0)
