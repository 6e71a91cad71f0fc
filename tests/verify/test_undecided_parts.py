"""A part of a program without an answer hides no difference and no error in another part."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stripe.ir import Program
from stripe.poly import PolyLimit
from stripe.verify import soundness as checks
from stripe.verify.proof.judge import judge
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Different, Equal, Unknown
from stripe.verify.soundness import Finding, check_soundness
from tests.support.programs import build

PRODUCTS = """
    {at}: #kernel block [x:30000] ( // products
        in A[x] i32(1:1)
        out O[x]:{agg} i32(1:1)
    ) {{
      0: $a = load(A)
      1: $s = {seven}
      2: $y = mul($a, $s)
      3: O = store($y)
    }}"""
REPLACED = """
      1: $z = (i32)1000
      2: $c = cmp_eq($d, $z)
      3: $n = (i32){instead}
      4: $r = cond($c, $n, $d)
      5: O = store($r)
    }}"""
"""1000 becomes another number."""
COPIES = (
    """
    {at}: #kernel block [x:30000] ( // copies
        in A[30000 + x] i32(1:1)
        out O[30000 + x]:{agg} i32(1:1)
    ) {{
      0: $d = load(A)"""
    + REPLACED
)


def parts(seven: str, instead: int, agg: str, *, products_first: bool) -> Program:
    """Products and copies in one output."""
    texts = (PRODUCTS, COPIES) if products_first else (COPIES, PRODUCTS)
    kernels = (text.format(at=at, seven=seven, instead=instead, agg=agg) for at, text in enumerate(texts))
    return build("in A i32(60000); out O i32(60000)", "".join(kernels))


TENSORS = "in A i32(60000); in D i32(3); out U i32(60000); out O i32(3)"
SHIFT = """
    {at}: #kernel block [x:60000] ( // shift
        in A[x] i32(1:1)
        out U[x]:assign i32(1:1)
    ) {{
      0: $a = load(A)
      1: $s = {seven}
      2: $y = add({order})
      3: U = store($y)
    }}"""
COPY = (
    """
    {at}: #kernel block [j:3] ( // copy
        in D[j{far}] i32(1:1)
        out O[j]:assign i32(1:1)
    ) {{
      0: $d = load(D)"""
    + REPLACED
)


def layers(
    *,
    order: str = "$a, $s",
    seven: str = "(i32)7",
    instead: int = 1000,
    shift_first: bool = True,
    far: str = "",
) -> Program:
    """A sum with a number in U, and in O a copy with another number `instead` of 1000."""
    kernels = (
        SHIFT.format(at=int(not shift_first), seven=seven, order=order),
        COPY.format(at=int(shift_first), instead=instead, far=far),
    )
    return build(TENSORS, "".join(kernels if shift_first else kernels[::-1]))


@pytest.mark.parametrize("shift_first", [True, False])
def test_an_output_without_an_answer_hides_no_difference(shift_first: bool) -> None:
    """No data has 1000, and no enumeration takes so many points."""
    before = layers(shift_first=shift_first)
    same, other = (
        layers(seven="load_index(7)", instead=instead, shift_first=shift_first) for instead in (1000, 0)
    )
    assert isinstance(prove_equal(before, same), Unknown)
    found = judge(before, other)
    assert isinstance(found.verdict, Different)
    assert found.verdict.witness.buffer == "O"
    assert (found.answer, found.accepted) == ("not proved", False)


@pytest.mark.parametrize("agg", ["assign", "add"])
@pytest.mark.parametrize("products_first", [True, False])
def test_an_element_without_an_answer_hides_no_difference(agg: str, products_first: bool) -> None:
    before, same, other = (
        parts(seven, instead, agg, products_first=products_first)
        for seven, instead in (("(i32)7", 1000), ("load_index(7)", 1000), ("load_index(7)", 0))
    )
    assert isinstance(prove_equal(before, same), Unknown)
    for first, second in ((before, other), (other, before)):
        found = prove_equal(first, second)
        assert isinstance(found, Different)
        assert found.witness.element is not None
        assert found.witness.element[0] >= 30000


def _fails(*_: object) -> Iterator[Finding]:
    raise PolyLimit("too tangled")
    yield


@pytest.mark.parametrize("check", ["check_bounds", "check_races", "check_read"])
def test_a_check_without_an_answer_hides_no_difference(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, check, _fails)
    before = layers()
    assert isinstance(prove_equal(before, layers(instead=0)), Different)
    found = prove_equal(before, layers(order="$s, $a"))
    assert isinstance(found, Unknown)
    assert "too tangled" in found.reason
    assert isinstance(prove_equal(before, layers()), Equal)


def test_a_check_without_an_answer_hides_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "check_races", _fails)
    wrong = layers(far=" + 1")
    found = prove_equal(layers(), wrong)
    assert isinstance(found, Different)
    assert found.certain
    kinds = {finding.unknown for finding in check_soundness(wrong)}
    assert kinds == {True, False}
