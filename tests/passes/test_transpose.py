"""The pass `transpose`: who decides the order of a buffer's dimensions, and what keeps its layout."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.ir import Program
from tests.passes.kernels import kernel, program_of
from tests.passes.programs import lines_of, run_pass

SHAPES = {"A": (3, 4, 5), "T": (3, 4, 5), "O": (3,), "B": (4, 5)}


def reduction(inner: str, *more: str) -> Program:
    """T is made from A and reduced."""
    kernels = [
        kernel("T[a,b,c] = assign ident(A[a,b,c])", {"a": 3, "b": 4, "c": 5}, SHAPES, tags=("make",)),
        kernel(f"O[a] = add ident(T[{inner}])", {"a": 3, "b": 4}, SHAPES, tags=("use",)),
        *(kernel(text, {"c": 5, "b": 4}, SHAPES, tags=("more",)) for text in more),
    ]
    return program_of(kernels, SHAPES, ["O", "B"])


def test_the_dimension_that_is_accumulated_over_becomes_contiguous() -> None:
    result, remarks = run_pass(reduction("a,b,2"), "transpose", reqs=["use"])
    assert lines_of(result, "> T[") == [
        "#tmp none new@0x00000000<[0]> T[0, 0, 0] fp32(3:20, 4:1, 5:4)",
        "inout<[0]> T[0, 0, 0]:assign fp32(3:20, 4:1, 5:4)",
        "out<[0]> T[a, b, c]:assign fp32(1:20, 1:1, 1:4)",
        "in<[0]> T[a, b, 2] fp32(1:20, 1:1, 1:4)",
    ]
    assert str(remarks[0]) == (
        "applied: T: transposed: 3:20, 4:1, 5:4 instead of 3:20, 4:5, 5:1; accumulation walks 0, 4, 0, "
        "inner loops 0, 4, 0"
    )


def test_without_accumulation_the_inner_loop_decides() -> None:
    program = reduction("a,b,2", "B[b,c] = assign ident(T[1,b,c])")
    result, _ = run_pass(program, "transpose", reqs=["more"])
    assert "fp32(3:20, 4:1, 5:4)" in lines_of(result, "none new")[-1]


def test_user_tensors_keep_their_layout() -> None:
    kernels = [kernel("O[a] = add ident(A[a,b,2])", {"a": 3, "b": 4}, SHAPES)]
    program = program_of(kernels, SHAPES, ["O"])
    result, remarks = run_pass(program, "transpose")
    assert result is program
    assert str(remarks[0]) == (
        "missed: A: not transposed: its layout is the user's (accumulation walks 0, 4, 0, inner loops 0, 4, 0); "
        "see layout"
    )


def test_reqs_choose_voters() -> None:
    program = reduction("a,b,2")
    assert run_pass(program, "transpose", interpreted=True, reqs=["elsewhere"])[0] is program


@settings(deadline=None, max_examples=20)
@given(st.permutations(["a", "b"]), st.integers(0, 1), st.booleans())
def test_any_program_keeps_its_meaning(order: list[str], place: int, more: bool) -> None:
    inner = [*order[:place], "2", *order[place:]]
    bounds = {"a": 3, "b": 4}
    shapes = SHAPES | {"T": tuple(bounds.get(name, 5) for name in inner), "A": (60,)}
    make = kernel(
        f"T[{','.join(n if n != '2' else 'c' for n in inner)}] = assign ident(A[20*a+5*b+c])",
        {"a": 3, "b": 4, "c": 5},
        shapes,
    )
    use = kernel(f"O[a] = add ident(T[{','.join(inner)}])", {"a": 3, "b": 4}, shapes)
    again = kernel(f"O[a] = add ident(T[{','.join(inner)}])", {"b": 4, "a": 3}, shapes)
    program = program_of([make, use, *([again] if more else [])], shapes, ["O"])
    once, _ = run_pass(program, "transpose")
    twice, _ = run_pass(once, "transpose")
    assert twice is once
