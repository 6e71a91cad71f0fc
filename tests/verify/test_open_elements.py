"""Runs beside the proof: a difference counts where no granted assumption allows it, whatever becomes of the number."""

from __future__ import annotations

import pytest

import stripe
from stripe.ir import DTYPES, Program
from stripe.tile import compile_tile
from stripe.verify.assumptions import ALL, Assumption
from stripe.verify.proof.judge import judge
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.running import data_sets, run_on_all
from stripe.verify.proof.witness import Equal
from tests.support.programs import build
from tests.verify.test_answers import program


def chain(first: str, second: str, third: str) -> Program:
    """Three products of floats whose partial sums overflow in some orders, as an integer."""
    terms = (("add($x, $y)", f"add(${first}, ${second})"), ("add($s, $z)", f"add($s, ${third})"))
    return program("overflowing_chain", *terms)


ASSIGNED = (
    ("T[i]:add", "T[i]:assign"),
    ("2: T = store($x)", "2: $s = add($x, $y)"),
    ("3: T = store($y)", "3: T = store($s)"),
)
PADDED = "padded_inverse"
PAIRS: dict[Assumption, tuple[Program, Program]] = {
    Assumption.ZERO_SIGN: (program("inverses_of_sums"), program("inverses_of_sums", *ASSIGNED)),
    Assumption.FLOAT_ORDER: (chain("x", "y", "z"), chain("z", "y", "x")),
    Assumption.FINITE: (program(PADDED), program(PADDED, ("      6: T = store($none)\n", ""))),
}
"""Programs that are equal under an assumption, which is not seen in the results at once: an infinity of the other
sign, an integer, the choice between two numbers."""


@pytest.mark.parametrize("flag", PAIRS)
def test_no_run_confirms_what_an_assumption_allows(flag: Assumption) -> None:
    before, after = PAIRS[flag]
    verdict = prove_equal(before, after)
    assert isinstance(verdict, Equal)
    assert flag in verdict.assumptions
    for first, second in ((before, after), (after, before)):
        assert run_on_all(first, second, ALL - {flag}).failed
        found = run_on_all(first, second, ALL)
        assert not found.failed
        assert found.allowed


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (program("inverses_of_sums"), program("inverses_of_sums", ("(fp32)1.0", "(fp32)2.0"))),
        (chain("x", "y", "z"), chain("x", "y", "y")),
        (program(PADDED), program(PADDED, ("(fp32)2.0", "(fp32)3.0"))),
        (program("reciprocal"), program("reciprocal", ("$none = mul($A, $zero)", "$none = (fp32)0.0"))),
    ],
)
def test_other_differences_count_beside_open_elements(before: Program, after: Program) -> None:
    assert run_on_all(before, after, ALL).failed


def inverses(*statements: str, dtype: str = "fp32") -> Program:
    """The inverses $q of sums $T, and what `statements` make of both in $O, a number of the given dtype."""
    lines = ["$q = div($one, $T)", *statements, "O = store($O)"]
    text = "\n      ".join(f"{number}: {line}" for number, line in enumerate(lines, 2))
    typed = [
        (old, old.replace("fp32", dtype)) for old in ("O[0] fp32", "O[0]:assign fp32", "O[i]:assign fp32")
    ]
    return program("inverses_of_sums", *typed, ("2: $O = div($one, $T)\n      3: O = store($O)", text))


ZEROS_TO = ("$z = (fp32)0.0", "$c = cmp_eq($T, $z)", "$n = (fp32)12345.0", "$r = cond($c, $n, $q)")


@pytest.mark.parametrize(("copy", "dtype"), [("$O = ident({})", "fp32"), ("$O = cast({}, i32)", "i32")])
def test_between_infinities_of_both_signs_there_is_no_number(copy: str, dtype: str) -> None:
    before = inverses(copy.format("$q"), dtype=dtype)
    after = inverses(*ZEROS_TO, copy.format("$r"), dtype=dtype)
    assert not run_on_all(before, before, ALL).failed
    for first, second in ((before, after), (after, before)):
        assert run_on_all(first, second, ALL).failed


def test_padding_is_a_number_or_nan() -> None:
    """0 * log(0) is NaN, or 0, and nothing else."""
    text = "function (A[N=32]: fp32) -> (O) {{ R = relu(A); P = R * log(R); O = {}; }}"
    before, after = (compile_tile(text.format(value), "entropy", {}) for value in ("P", "R == 0 ? 42.0 : P"))
    for first, second in ((before, after), (after, before)):
        assert run_on_all(first, second, ALL).failed


def test_signs_of_several_zeros_decide_a_number() -> None:
    """The number of products that are zeros with a minus, each merged with 0 or not."""
    merged = program("zeros_with_a_minus")
    plain = program("zeros_with_a_minus", ("T[i, k]:add", "T[i, k]:assign"))
    for first, second in ((merged, plain), (plain, merged)):
        verdict = prove_equal(first, second)
        assert isinstance(verdict, Equal)
        assert verdict.assumptions == (Assumption.ZERO_SIGN,)
        assert run_on_all(first, second, ALL - {Assumption.ZERO_SIGN}).failed
        assert run_on_all(first, second, ALL).agrees


ROW_SUMS = """
    0: #kernel block [i:64, k:{count}] ( // sum
        in A[i, k] fp8e5m2(1:64, 1:1)
        out O[i]:add fp8e5m2(1:1)
    ) {{
      0: $A = load(A)
      1: O = store($A)
    }}"""


def test_programs_agree_on_some_data_beside_what_is_open() -> None:
    """All sums of many narrow floats are open: they depend on the order."""
    whole, part = (
        build("in A fp8e5m2(64 64)\nout O fp8e5m2(64)", ROW_SUMS.format(count=count)) for count in (64, 16)
    )
    assert not run_on_all(whole, part, ALL).agrees
    assert run_on_all(whole, whole, ALL).agrees


def test_roundings_that_are_not_granted_are_no_agreement() -> None:
    """Sums of numbers that are not exact differ in their last bits in another order."""
    text = "function (A[I=300, K=7]: fp32) -> (O) {{ T = tanh(A); O[i : I] = +(T[i, {}]); }}"
    before, after = (compile_tile(text.format(index), "sums", {}) for index in ("k", "6 - k"))
    assert run_on_all(before, after, ALL).agrees
    for granted in (frozenset[Assumption](), ALL - {Assumption.FLOAT_ORDER, Assumption.FOLDED}):
        found = run_on_all(before, after, granted)
        assert not found.agrees
        assert not found.failed
        assert "up to roundings" in str(found)
        assert run_on_all(before, before, granted).agrees


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if DTYPES[dtype].is_float])
def test_signs_of_zeros_count_where_they_are_not_granted(dtype: str) -> None:
    text = f"function (A[N=32]: {dtype}) -> (O) {{{{ O = {{}}; }}}}"
    before, after = (compile_tile(text.format(value), "minus", {}) for value in ("-A", "0 - A"))
    assert "zeros of other signs" in run_on_all(before, after, ALL - {Assumption.ZERO_SIGN}).failed
    assert run_on_all(before, after, ALL).agrees


@pytest.mark.parametrize(("dtype", "terms"), [("bf16", 128), ("bf16", 4096), ("fp16", 4096), ("fp32", 4096)])
def test_sums_of_many_terms_are_open_by_a_rounding_for_each(dtype: str, terms: int) -> None:
    """One after the other, terms of a large sum are lost, and in parts they are not."""
    text = f"function (A[N=4, K={terms}]: {dtype}) -> (O) {{ O[i : N] = +(A[i, k] * A[i, k]); }}"
    before = compile_tile(text, "squares")
    split = stripe.run_passes(
        before, "split_reduction{reqs=[contraction],vector_bytes=32}", hardware="x86_avx2"
    )
    assert split is not before
    for first, second in ((before, split), (split, before)):
        assert judge(first, second).answer == "equal"


def test_data_on_which_the_first_program_breaks_say_nothing() -> None:
    """The holes of its result hold the pad if inputs are finite."""
    before = program("padded_channels")
    after = program(
        "padded_channels",
        (
            "2: $c = mul($a, $w)\n      3: O",
            "2: $b = mul($a, $w)\n      3: $one = (fp32)1.0\n      4: $c = mul($b, $one)\n      5: O",
        ),
    )
    found = run_on_all(before, after, ALL)
    assert found.agrees
    assert found.sets == len(tuple(data_sets(before))) - 1


@pytest.mark.parametrize("number", ["div($zero, $zero)", "div($one, $zero)"])
@pytest.mark.parametrize(
    "merges", [(), (("T[i]:add fp32", "T[i]:assign fp32"), ("T = store($A)", "$B = add($A, $n)"))]
)
def test_infinities_and_nan_are_open_only_where_they_come_from_an_overflow(
    number: str, merges: tuple[tuple[str, str], ...]
) -> None:
    """A sum with NaN is NaN in any order."""
    stored = (("T = store($n)", "T = store($B)"),) if merges else ()
    before = program("sum_of_two", *merges, *stored)
    after = program("sum_of_two", ("add($A, $zero)", number), *merges, *stored)
    for first, second in ((before, after), (after, before)):
        assert run_on_all(first, second, ALL).failed


BESIDE_A_SUM = """
    0: #kernel block [k:300] ( // sum
        in A[{place}] bf16(1:1)
        out S[0]:add bf16(1:1)
    ) {{
      0: $a = load(A)
      1: $p = mul($a, $a)
      2: S = store($p)
    }}
    1: #kernel block [i:64] ( // beside
        in D[i] i32(1:1)
        out O[i] i32(1:1)
    ) {{
      0: $d = load(D)
      1: $c = (i32)3
      2: $z = (i32){other}
      3: $q = cmp_eq($d, $c)
      4: $o = cond($q, $z, $d)
      5: O = store($o)
    }}
    2: #kernel block [] ( // behind
        in S[0] bf16(1:1)
        out O[64] i32(1:1)
    ) {{
      0: $s = load(S)
      1: $o = cast($s, i32)
      2: O = store($o)
    }}"""


def test_elements_that_no_long_sum_reaches_count() -> None:
    """A sum of 300 squares in bf16 may be any number, so may an integer made of it; integers beside it are exact."""
    tensors = "in A bf16(300)\nin D i32(64)\ntmp S bf16(1)\nout O i32(65)"
    before, after, other_order = (
        build(tensors, BESIDE_A_SUM.format(other=other, place=place))
        for other, place in ((3, "k"), (0, "k"), (3, "299 - k"))
    )
    for first, second in ((before, after), (after, before)):
        assert "'O'" in run_on_all(first, second, ALL).failed
    found = run_on_all(before, other_order, ALL)
    assert not found.failed
    assert "seed 2" in found.allowed


BEHIND_A_SUM = "function (A[N=4, K=600]: bf16, X[N]: bf16) -> (O) {{ B = A - A + 4; {} O = {}; }}"


@pytest.mark.parametrize(
    "result",
    [
        "S",
        "S * S - 3000 * S",
        "as_int(S, 32)",
        "S == 2400 ? 1 : 0",
        "S == 1024 ? 1 : 0",
        "max(min(S, 2000), 1500) * X",
        "recip(S - 2400)",
        "S + X > 2000 ? 0 * S : X",
    ],
)
def test_elements_behind_a_long_sum_are_open(result: str) -> None:
    """One after the other, terms of a sum of 600 are lost: it is 1024; in parts, none of which has as many, 2400."""
    parts = "P[i, j : N, 6] = +(B[i, 100 * j + k]), k < 100; S[i : N] = +(P[i, j]);"
    whole, split = (
        compile_tile(BEHIND_A_SUM.format(text, result), "sum", {})
        for text in ("S[i : N] = +(B[i, k]);", parts)
    )
    for first, second in ((whole, split), (split, whole)):
        found = run_on_all(first, second, ALL)
        assert not found.failed
        assert "seed 0" in found.allowed
