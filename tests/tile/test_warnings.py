"""Warnings about Tile, and the readings that they speak of."""

from __future__ import annotations

import pytest

from stripe.ir import DTYPES, StripeError, print_program
from stripe.tile import bind, compile_tile, find_warnings, parse_tile, print_tile
from stripe.tile.operations import result_dtype


def warnings(body: str) -> list[str]:
    return [str(found) for found in find_warnings(bind(parse_tile(function(body), "w.tile")))]


def function(body: str) -> str:
    return f"function (A[N=4], B[N], C[M=6]: i8) -> (O) {{\n  {body}\n}}\n"


def test_nested_conditions_without_brackets() -> None:
    (found,) = warnings("O = A < 0.0 ? B : B < 0.0 ? 1.0 : A;")
    assert found.startswith(
        "w.tile:2:7: warning: nested '?:' groups to the right here, and to the left in PlaidML"
    )
    assert "a ? b : (c ? d : e)" in found


@pytest.mark.parametrize(
    "expression",
    [
        "A < 0.0 ? B : (B < 0.0 ? 1.0 : A)",
        "A < 0.0 ? B < 0.0 ? 1.0 : A : B",
        "(A < 0.0 ? B : A) < 0.0 ? 1.0 : B",
    ],
)
def test_clear_conditions(expression: str) -> None:
    assert warnings(f"O = {expression};") == []


def test_conditions_are_printed_with_brackets() -> None:
    parsed = parse_tile(function("O = A < 0.0 ? B : B < 0.0 ? 1.0 : A;"))
    printed = print_tile(parsed)
    assert "? B : (B < 0.0 ? 1.0 : A)" in printed
    assert parse_tile(printed) == parsed


def test_an_assertion_that_no_output_needs_stops_nothing() -> None:
    (found,) = warnings("X = assert_small(N < 3); Y = X + 1; O = A;")
    assert found.startswith("w.tile:2:7: warning: the assertion 'assert_small' fails; no output needs it")


@pytest.mark.parametrize(
    "body",
    [
        "X = assert_small(N < 3); O = A + X;",
        "X = assert_small(N < 3); Y = X + 1; O[i : Y] = +(A[i]);",
        "X = assert_small(N < 3); O[i : N] = +(A[i]), i < X;",
        "O = A + assert_small(N < 3);",
    ],
)
def test_a_needed_assertion_stops_the_program(body: str) -> None:
    with pytest.raises(StripeError, match="the assertion 'assert_small' fails"):
        bind(parse_tile(function(body)))


@pytest.mark.parametrize(
    ("expression", "kept", "gone"),
    [("N < 8 ? A : B", "load(A)", "load(B)"), ("N > 8 ? A : B", "load(B)", "load(A)")],
)
def test_a_constant_condition_keeps_one_branch(expression: str, kept: str, gone: str) -> None:
    text = print_program(compile_tile(function(f"O = {expression} + 1.0;")))
    text = print_program(compile_tile(function(f"T = {expression}; O = T + 1.0;")))
    assert kept in text
    assert gone not in text
    assert "cond" not in text


def test_the_kept_branch_has_dtype_and_sizes_of_the_condition() -> None:
    text = print_program(
        compile_tile("function (A[N=4]: i8, B[M=3, K=1]: fp32) -> (O) { O = N < 8 ? A : B; }")
    )
    assert "O[0, 0] fp32(3:4, 4:1)" in text
    assert "cast($A, fp32)" in text
    assert "load(B)" not in text


def test_dtypes_of_results() -> None:
    i8, i32, boolean = DTYPES["i8"], DTYPES["i32"], DTYPES["bool"]
    assert result_dtype("exp", [i32]) == DTYPES["fp32"]
    assert result_dtype("relu", [i8]) == i8
    assert result_dtype("add", [boolean, i8]) == result_dtype("add", [i8, boolean]) == i8
