"""The exact meaning of *equal*: interfaces, constants by their bytes, zeros with their sign, and failures of isl."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import islpy as isl
import numpy as np
import pytest

from stripe.ir import (
    DTYPES,
    ConstantBuffer,
    Dim,
    Index,
    Program,
    Role,
    parse_program,
    verify_structural,
)
from stripe.ir.check.magnitude import check_magnitude
from stripe.poly import PolyLimit, Relation
from stripe.tile import compile_tile
from stripe.verify import enumeration
from stripe.verify.assumptions import Assumption
from stripe.verify.enumeration import decide
from stripe.verify.policy import Policy
from stripe.verify.proof import computed
from stripe.verify.proof import prove as proving
from stripe.verify.proof.judge import judge
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.running import not_run
from stripe.verify.proof.witness import Different, Equal, Unknown
from stripe.verify.soundness import check_soundness
from tests.verify.pairs import pairs

PROGRAMS = Path(__file__).parent / "programs"


def program(name: str, *changes: tuple[str, str]) -> Program:
    """A program of the folder, with some of its text replaced."""
    text = (PROGRAMS / f"{name}.stripe").read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_program(text, f"{name}.stripe")


def scaled(weights: list[float]) -> Program:
    bare = (PROGRAMS / "scaled.stripe").read_text("utf-8").replace("#const", "#user")
    before = parse_program(bare, "scaled.stripe")
    refs = tuple(replace(r, role=Role.CONSTANT) if r.name == "W" else r for r in before.entry.refinements)
    data = np.asarray(weights, np.float32).tobytes()
    return replace(
        before,
        entry=replace(before.entry, refinements=refs),
        constants=(ConstantBuffer("W", DTYPES["fp32"], (4,), data),),
    )


class Colliding:
    """A hash that gives one digest for all contents, as an attacker makes 48 bits collide."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def hexdigest(self) -> str:
        return "0" * 64


def test_constants_are_compared_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashlib, "sha256", Colliding)
    monkeypatch.setattr(computed.hashlib, "sha256", Colliding)
    judgement = judge(scaled([1, 2, 3, 4]), scaled([1, 2, 3, 5]))
    assert judgement.answer == "different"
    assert isinstance(prove_equal(scaled([1, 2, 3, 4]), scaled([1, 2, 3, 4])), Equal)


@pytest.mark.parametrize("tensor", ["A", "O"])
def test_strides_of_user_tensors_are_part_of_the_interface(tensor: str) -> None:
    old = (f"{tensor}[0, 0] fp32(4:6, 6:1)", f"{tensor}[i, j] fp32(1:6, 1:1)")
    if tensor == "O":
        old = (f"{tensor}[0, 0]:assign fp32(4:6, 6:1)", f"{tensor}[i, j]:assign fp32(1:6, 1:1)")
    changes = [(text, text.replace("4:6, 6:1", "4:1, 6:4").replace("1:6, 1:1", "1:1, 1:4")) for text in old]
    changes.append((f"{tensor}[0, 0] fp32(4:6, 6:1)", f"{tensor}[0, 0] fp32(4:1, 6:4)"))
    changes = changes if tensor == "O" else changes[:2]
    before, after = program("transposed"), program("transposed", *changes)
    assert verify_structural(after) == []
    judgement = judge(before, after)
    assert judgement.answer == "different"
    assert "fp32(4:1, 6:4)" in str(judgement)


def test_interfaces_are_compared_where_layouts_of_constants_take_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_long(*_: object) -> None:
        raise PolyLimit("too long")

    monkeypatch.setattr(proving, "with_constants_of", too_long)
    before = program("greater")
    after = program("greater", ("O[0] fp32(64:1)", "O[0] fp32(64:2)"))
    assert isinstance(prove_equal(before, before), Unknown)
    for first, second in ((before, after), (after, before)):
        for found in (prove_equal(first, second), decide(first, second)):
            assert isinstance(found, Different)
            assert found.certain


def test_order_and_number_of_user_tensors_are_part_of_the_interface() -> None:
    before = program("transposed")
    a, b, o = before.entry.refinements
    other = replace(before, entry=replace(before.entry, refinements=(b, a, o)))
    judgement = judge(before, other)
    assert judgement.answer == "different"
    assert "the order of the inputs changed" in str(judgement)
    fewer = program("transposed", ("sub($A, $B)", "sub($A, $A)"))
    one = program(
        "transposed",
        ("    #user none new@0x00000000 B[0, 0] fp32(4:6, 6:1)\n", ""),
        ("      in B[0, 0] fp32(4:6, 6:1)\n", ""),
        ("        in B[i, j] fp32(1:6, 1:1)\n", ""),
        ("      1: $B = load(B)\n      2: $O = sub($A, $B)\n      3:", "      1: $O = sub($A, $A)\n      2:"),
    )
    assert judge(fewer, one).answer == "different"


def test_a_product_with_zero_has_a_sign() -> None:
    """1/(-1 * 0.0) is minus infinity, and 1/0.0 is not: no padding is near."""
    before = program("reciprocal")
    after = program("reciprocal", ("$none = mul($A, $zero)", "$none = (fp32)0.0"))
    assert isinstance(prove_equal(before, after), Different)
    assert isinstance(decide(before, after), Different)
    assert judge(before, after).answer == "different"


@pytest.mark.parametrize(
    "access", ["(4*i) mod 7", "floor(5*i/3000000000000000001)", "floor((i + floor(4*i/3))/5)"]
)
def test_numbers_inside_floor_and_mod_stay_below_2_to_62(access: str) -> None:
    wide = ("[i:4]", "[i:2305843009213693952]"), ("in A[i]", f"in A[{access}]"), ("#const", "#user")
    found = check_magnitude(program("scaled", *wide))
    assert ["A" in str(diagnostic) for diagnostic in found] == [True]
    assert check_magnitude(program("scaled", ("[i:4]", "[i:1000000]"), *wide[1:])) == []


@pytest.mark.parametrize(
    "access",
    [
        f"i mod {2**64 + 1}",
        f"floor(i/{2**64 + 1})",
        f"i + {2**70}*floor(i/4)",
        f"floor((i + {2**70}*floor(i/4))/5)",
    ],
)
def test_factors_and_divisors_stay_below_2_to_62_where_values_are_small(access: str) -> None:
    (found,) = check_magnitude(program("scaled", ("in A[i]", f"in A[{access}]"), ("#const", "#user")))
    assert "the access of 'A' reaches" in str(found)
    assert found.hint == "numbers stay below 2^62"


def test_strides_stay_below_2_to_62_where_no_step_is_taken() -> None:
    bare = program("scaled", ("#const", "#user"))
    first, *others = bare.entry.refinements
    wide = replace(first, dims=(Dim(1, 2**70),))
    entry = replace(bare.entry, refinements=(wide, *others))
    assert f"a stride of 'A' reaches {2**70}" in str(check_magnitude(replace(bare, entry=entry))[0])


def test_the_entry_has_no_index() -> None:
    before = program("transposed")
    twice = replace(before, entry=replace(before.entry, indices=(Index("n", 2),)))
    assert [d.message for d in verify_structural(twice)] == ["the entry runs once"]


def test_undefined_elements_are_never_equal() -> None:
    before = program("unwritten")
    after = program("unwritten", ("add($A, $T)", "add($T, $A)"))
    assert check_soundness(before) != []
    assert isinstance(prove_equal(before, after), Different)


def test_a_failure_of_isl_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> bool:
        raise isl.Error("internal error in isl")

    before = program("greater")
    after = program(
        "greater", ("[i:64]", "[i:32, j:2]"), ("[i] fp32", "[2*i + j] fp32"), ("[i]:", "[2*i + j]:")
    )
    assert isinstance(prove_equal(before, after), Equal)
    monkeypatch.setattr(Relation, "equals", fails)
    verdict = prove_equal(before, after)
    assert isinstance(verdict, Unknown)
    assert "isl failed: internal error in isl" in verdict.reason
    monkeypatch.undo()
    monkeypatch.setattr("stripe.verify.proof.reaching.accesses", fails)
    assert isinstance(prove_equal(before, after), Unknown)


def test_an_unconfirmed_difference_is_not_proved() -> None:
    """The greater of two integers is the one that is not less, which is more than the proof knows."""
    before = program("greater", ("fp32", "i32"))
    after = program("greater", ("fp32", "i32"), ("cmp_lt($A, $B)", "cmp_le($A, $B)"))
    judgement = judge(before, after)
    assert judgement.answer == "not proved"
    assert not judgement.accepted
    assert str(judgement).startswith("not proved: O[")
    assert "ran both programs on 7 data sets: they agree, which does not confirm" in str(judgement)


def test_a_difference_at_the_rim_of_floats_counts_without_the_assumption() -> None:
    before = program("greater")
    after = program("greater", ("cmp_lt($A, $B)", "cmp_le($A, $B)"))
    judgement = judge(before, after)
    assert judgement.answer == "not proved"
    assert "they agree, but on zeros of both signs" in str(judgement)
    strict = judge(before, after, Policy(assumed=frozenset({Assumption.FLOAT_ORDER})))
    assert strict.answer == "different"
    assert "zeros of other signs" in str(strict)


def test_an_assumption_that_is_not_granted_is_an_answer_of_its_own() -> None:
    tiled = next(pair for pair in pairs() if pair.name == "tile")
    judgement = judge(tiled.before, tiled.after, Policy(assumed=frozenset()))
    assert (judgement.answer, judgement.accepted) == ("equal under assumptions", False)
    assert str(judgement) == f"equal only under float-order: {Assumption.FLOAT_ORDER.text}"
    assert judge(tiled.before, tiled.after, Policy(frozenset({Assumption.FLOAT_ORDER}))).answer == "equal"


@pytest.mark.parametrize(
    ("first", "second", "flags"),
    [
        ("inverse_of_chain", "inverse_of_sum", tuple(Assumption)[:2]),
        ("inverse_of_base", "inverse_of_sum", tuple(Assumption)[:2]),
        ("inverse_of_chain", "inverse_of_base", tuple(Assumption)[:1]),
        ("onto_mixed_sums", "onto_values", tuple(Assumption)[:2]),
    ],
)
def test_a_sum_that_begins_at_no_zero_has_the_sign_of_its_terms(
    first: str, second: str, flags: tuple[Assumption, ...]
) -> None:
    verdict = prove_equal(program(first), program(second))
    assert isinstance(verdict, Equal)
    assert verdict.assumptions == flags
    enumerated = decide(program(first), program(second))
    assert isinstance(enumerated, Equal)
    assert set(enumerated.assumptions) >= set(flags)


def test_a_run_refutes_an_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both programs run before its *equal* is believed."""
    before = compile_tile("function (A[N=4]: fp32) -> (O) { O = A * 2.0; }", "twice")
    after = compile_tile("function (A[N=4]: fp32) -> (O) { O = A * 3.0; }", "twice")
    monkeypatch.setattr(enumeration, "decide", lambda *_, **__: Equal())
    judgement = judge(before, after, operations=1)
    assert judgement.answer == "different"
    assert "they differ" in str(judgement)
    assert judge(before, before, operations=1).answer == "equal"


def test_programs_that_are_too_large_are_not_run() -> None:
    """The witness is there at once; a run would take hours."""
    text = "function (A[N=4096, N], B[N, N]) -> (C) {{ C[i, j : N, N] = +(A[{}] * B[k, j]); }}"
    before, after = (compile_tile(text.format(index), "large", {}) for index in ("i, k", "k, i"))
    found = judge(before, after)
    assert found.answer == "not proved"
    assert found.run is not None
    assert str(found).splitlines()[-1] == str(found.run)
    assert str(found.run).startswith("not run: too large, some 2")


def test_elements_of_specials_count_as_work() -> None:
    text = "function (E[V={}, D=64]: fp32, I[N=8]: i32) -> (O) {{ O = gather(E, I); }}"
    small, large = (compile_tile(text.format(rows), "rows", {}) for rows in (50_000, 50_000_000))
    assert not not_run(small)
    assert not_run(small, large)


def test_elements_of_tensors_count_as_work_and_as_memory() -> None:
    """Few of them are read, and all are drawn."""
    text = "function (A[N={}]: i8) -> (O) {{ O[i : 16] = +(A[i]), i < 16; }}"
    small, middle, large = (
        compile_tile(text.format(size), "first", {}) for size in (10_000_000, 100_000_000, 2_000_000_000)
    )
    assert not not_run(small)
    assert not_run(small, most=5_000_000)
    assert not_run(middle) == "not run: too large, some 3400000544 bytes"
    assert not_run(large).startswith("not run: too large, some 2")
