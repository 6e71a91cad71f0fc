"""The pass `constant_tensor`: loads of what holds one value everywhere."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.ir import DTYPES, Block, ConstantBuffer, Program, Refinement, Role, Tags
from stripe.rewrite.copy import fill_block
from tests.passes.kernels import kernel, program_of
from tests.passes.programs import lines_of, run_pass
from tests.support.programs import source

FILLED = source("passes/constant_tensor/filled")


def test_a_chain_of_copies_of_a_constant_is_seen_through() -> None:
    result, remarks = run_pass(FILLED, "constant_tensor")
    assert lines_of(result, "load(", "(fp32)") == [
        "0: $c = (fp32)0.5",
        "0: $t = (fp32)0.5",
        "0: $i = load(I)",
        "1: $u = (fp32)0.5",
    ]
    assert not lines_of(result, "in<[0]> U[", "in<[0]> T[")
    assert [str(remark) for remark in remarks] == [
        "applied: copy: loads of T became (fp32)0.5",
        "applied: use: loads of U became (fp32)0.5",
    ]
    swept, _ = run_pass(result, "dce")
    assert len(swept.main.statements) == 1


@pytest.mark.parametrize(
    ("options", "loads"),
    [({"reqs": ["kernel"]}, 1), ({"reqs": ["use"]}, 3)],
)
def test_options(options: dict[str, object], loads: int) -> None:
    result, _ = run_pass(FILLED, "constant_tensor", interpreted=True, **options)
    assert len(lines_of(result, "= load(")) == loads


@pytest.mark.parametrize(
    "change",
    [
        ("U[x]:assign fp32(1:1)\n    ) {\n      0: $t", "U[x]:add fp32(1:1)\n    ) {\n      0: $t"),
        ("0: $t = load(T)\n      1:", "0: $a = load(T)\n      1: $t = exp($a)\n      2:"),
    ],
)
def test_other_stores_are_left_alone(change: tuple[str, str]) -> None:
    result, _ = run_pass(FILLED.replace(*change), "constant_tensor")
    assert "1: $u = load(U)" in lines_of(result, "load(U)")


def with_constant(values: list[float]) -> Program:
    """O = A * W with a constant W."""
    shapes = {name: (len(values),) for name in ("A", "W", "O")}
    use = kernel("O[x] = assign mul(A[x], W[x])", {"x": len(values)}, shapes)
    program = program_of([use], shapes, ["O"])

    def constant(ref: Refinement) -> Refinement:
        return replace(ref, role=Role.CONSTANT) if ref.name == "W" else ref

    entry = replace(program.entry, refinements=tuple(map(constant, program.entry.refinements)))
    buffer = ConstantBuffer(
        "W", entry.ref("W").dtype, (len(values),), struct.pack(f"<{len(values)}f", *values)
    )
    return Program(entry, (buffer,))


def test_constants_of_equal_elements() -> None:
    result, _ = run_pass(with_constant([2.0, 2.0, 2.0]), "constant_tensor")
    assert lines_of(result, "(fp32)") == ["1: $W = (fp32)2.0"]
    program = with_constant([2.0, 2.0, 2.5])
    assert run_pass(program, "constant_tensor")[0] is program
    signs = with_constant([0.0, -0.0])
    assert run_pass(signs, "constant_tensor")[0] is signs


SHAPES: dict[str, tuple[int, ...]] = dict.fromkeys(("A", "T", "U", "O"), (6,))
STEPS = ["fill T 0.5", "fill T -0.0", "fill U 0.5", "copy T U", "copy U T", "add T U"]


def step(text: str) -> Block:
    """One statement of a random program."""
    what, target, operand = text.split()
    if what == "fill":
        ref = Refinement.alloc(target, DTYPES["fp32"], (6,))
        return fill_block("fill", ref, [(0, 5)], float(operand), Tags.of("kernel"))
    op = "ident" if what == "copy" else "exp"
    return kernel(f"{target}[x] = assign {op}({operand}[x])", {"x": 6}, SHAPES)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(STEPS), max_size=5))
def test_any_program_keeps_its_meaning(steps: list[str]) -> None:
    blocks = [step(text) for text in ("fill T 0.5", "copy U T", *steps)]
    use = kernel("O[x] = assign mul(A[x], T[x])", {"x": 6}, SHAPES)
    again = kernel("O[x] = assign mul(A[x], U[x])", {"x": 6}, SHAPES)
    run_pass(program_of([*blocks, use, again], SHAPES, ["O"]), "constant_tensor")
