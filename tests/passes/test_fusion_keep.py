"""`fusion{overlap=keep}`: chains of windows run in steps over rings, and mean what they meant."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.ir import Program
from stripe.tile import compile_tile
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Equal
from tests.passes.programs import run_pass


@dataclass(frozen=True)
class Layer:
    """One statement that reads windows: O[x] = AGG(I[step*x + reach*k - pad] * W[k]), k < width, which a sum weighs."""

    agg: str
    width: int
    step: int
    reach: int
    padded: bool

    def text(self, number: int, size: int) -> tuple[str, int]:
        """The statement, and how many elements it has; none where the window is larger than what it reads."""
        if self.agg == "relu":
            return f"T{number + 1} = relu(T{number});", size
        extent = self.reach * (self.width - 1) + 1
        pad = extent // 2 if self.padded else 0
        count = (size + 2 * pad - extent) // self.step + 1
        read = f"T{number}[{self.step}*x + {self.reach}*k - {pad}, c]"
        value = f"{read} * W{number}[k]" if self.agg == "+" else read
        return f"T{number + 1}[x, c : {count}, 2] = {self.agg}({value}), k < {self.width};", count


LAYERS = st.builds(
    Layer,
    st.sampled_from(["+", "+", ">", "<", "relu"]),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 2),
    st.booleans(),
)


def chain(layers: list[Layer], size: int) -> Program | None:
    """The layers one after the other, on a tensor of `size` by 2; None where nothing is left at the end."""
    first, lines = size, list[str]()
    weights = "".join(f", W{number}[K{number}={layer.width}]" for number, layer in enumerate(layers))
    for number, layer in enumerate(layers):
        line, size = layer.text(number, size)
        lines.append(line)
        if size < 1:
            return None
    text = f"function (T0[X={first}, C=2]{weights}) -> (T{len(layers)}) {{ {' '.join(lines)} }}"
    return compile_tile(text, "chain.tile", {})


@settings(max_examples=25)
@given(st.lists(LAYERS, min_size=2, max_size=3), st.integers(8, 20), st.integers(2, 6), st.integers(1, 2))
def test_any_chain_keeps_its_meaning(layers: list[Layer], size: int, steps: int, recompute: int) -> None:
    program = chain(layers, size)
    if program is None:
        return
    options = {"overlap": "keep", "max_steps": steps, "max_recompute": recompute}
    result, _ = run_pass(program, "fusion", **options)
    assert isinstance(prove_equal(program, result), Equal)


PAIR = """function (A[X=9]: fp32) -> (C) {{
    B[x : 7] = +(A[x + k]), k < 3;
    C[x : 5] = >({read}), k < {count};
}}"""
KEEP = {"overlap": "keep", "max_steps": 4}


@pytest.mark.parametrize(
    ("read", "count", "reason"),
    [
        ("B[6 - x - k]", 3, "no dimension to keep an overlap of"),
        ("B[x + k] * B[k]", 3, "no dimension to keep an overlap of"),
        ("B[x + k - 4]", 11, "all 7 elements of dimension 0 of B are alive at once"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_reason(read: str, count: int, reason: str) -> None:
    program = compile_tile(PAIR.format(read=read, count=count), "pair.tile", {})
    result, remarks = run_pass(program, "fusion", **KEEP)
    assert result is program
    assert f"not fused with kernel_1: overlap not kept: {reason}" in str(remarks[0])


def test_steps_have_no_dependences_yet() -> None:
    text = """function (A[X=9]: fp32) -> (D) {
        [[first]] B[x : 7] = +(A[x + k]), k < 3;
        [[second]] C[x : 5] = >(B[x + k]), k < 3;
        D[x : 3] = <(C[x + k]), k < 3;
    }"""
    two, _ = run_pass(
        compile_tile(text, "three.tile", {}), "fusion", a_reqs=["first"], fused_set=["steps"], **KEEP
    )
    ordered, _ = run_pass(two, "compute_deps", reqs=["steps"])
    assert any(statement.deps for statement in next(ordered.main.blocks).statements)
    result, remarks = run_pass(ordered, "fusion", **KEEP)
    assert result is ordered
    assert "its statements have dependences already: fuse before compute_deps" in str(remarks[0])


def test_a_limit_and_tiles_give_the_number_of_steps() -> None:
    program = compile_tile(PAIR.format(read="B[x + k]", count=3), "pair.tile", {})
    cases: list[tuple[dict[str, object], int]] = [
        ({"max_steps": 2}, 2),
        ({"max_steps": 16}, 5),
        ({"tiles": {"x": 2}}, 3),
    ]
    for options, steps in cases:
        _, remarks = run_pass(program, "fusion", overlap="keep", **options)  # pyright: ignore[reportArgumentType]
        assert f"run in {steps} steps" in str(remarks[0])


def test_what_others_read_is_not_kept() -> None:
    text = """function (A[X=9]: fp32) -> (C, D) {
        [[a]] B[x : 7] = +(A[x + k]), k < 3;
        [[b]] C[x : 5] = >(B[x + k]), k < 3;
        D[] = +(B[x]);
    }"""
    program = compile_tile(text, "three.tile", {})
    result, remarks = run_pass(program, "fusion", a_reqs=["a"], b_reqs=["b"], **KEEP)
    assert result is program
    assert "overlap not kept: B is needed outside too" in str(remarks[0])
