"""Sums written with `+` are sums by aggregation, in the proof and in the enumeration; so are chains of maxima."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripe.ir import Program
from stripe.tile import compile_tile
from stripe.verify.assumptions import Assumption
from stripe.verify.enumeration import decide
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Different, Equal
from tests.support.running import run_both

PROGRAMS = Path(__file__).parent / "programs/chains"
BOOLS = ("all", "any")
ALL = sorted(path.name.partition(".")[0] for path in PROGRAMS.glob("*.before.tile"))
NAMES = [name for name in ALL if name not in BOOLS]


def compiled(name: str, version: str, dtype: str) -> Program:
    text = (PROGRAMS / f"{name}.{version}.tile").read_text("utf-8")
    head, close, body = text.partition(") ->")
    return compile_tile(head.replace("]", f"]: {dtype}") + close + body, f"{name}.{version}.tile", {})


@pytest.mark.parametrize("dtype", ["fp32", "i32"])
@pytest.mark.parametrize("name", NAMES)
def test_chains_are_aggregations(name: str, dtype: str) -> None:
    before, after = compiled(name, "before", dtype), compiled(name, "after", dtype)
    flag = Assumption.ZERO_SIGN if name in ("largest", "smallest") else Assumption.FLOAT_ORDER
    for verdict in (prove_equal(before, after), prove_equal(after, before), decide(before, after)):
        assert isinstance(verdict, Equal), verdict
        assert (flag in verdict.assumptions) == (dtype == "fp32")
    assert run_both(before, after) == ""


@pytest.mark.parametrize("name", BOOLS)
def test_chains_of_bools_are_aggregations(name: str) -> None:
    before, after = compiled(name, "before", "bool"), compiled(name, "after", "bool")
    for verdict in (prove_equal(before, after), prove_equal(after, before), decide(before, after)):
        assert isinstance(verdict, Equal), verdict
        assert verdict.assumptions == ()
    assert run_both(before, after) == ""


@pytest.mark.parametrize("name", BOOLS)
def test_bits_of_integers_are_no_sums_of_bools(name: str) -> None:
    """`|` of integers is no aggregation: the answer is never *equal*."""
    before, after = compiled(name, "before", "i32"), compiled(name, "after", "i32")
    assert not isinstance(prove_equal(before, after), Equal)
    assert isinstance(decide(before, after), Different)


@pytest.mark.parametrize("name", ALL)
def test_broken_chains_are_different(name: str) -> None:
    dtype = "bool" if name in BOOLS else "fp32"
    before, broken = compiled(name, "before", dtype), compiled(name, "broken", dtype)
    assert isinstance(prove_equal(before, broken), Different)
    assert isinstance(decide(before, broken), Different)
    assert run_both(before, broken) != ""
