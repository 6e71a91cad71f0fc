"""The pass `constant_fold`: what is computed while compiling, and what is left for the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.exec.interp import interpret
from stripe.ir import ConstantBuffer, Program, Refinement, Role, Special, verify_structural
from stripe.passes.base import PassContext, Remark
from stripe.passes.registry import find_pass
from tests.passes.kernels import kernel, program_of
from tests.passes.programs import assert_same_results, lines_of, run_pass

SHAPES = {"A": (4,), "W": (4,), "S": (4,), "V": (4, 4), "R": (4,), "O": (4,), "P": (2,)}
X = {"x": 4}
XY = {"x": 4, "y": 4}
KERNELS = {
    "scale": kernel("S[x] = assign exp(W[x])", X, SHAPES, name="scale"),
    "outer": kernel("V[x,y] = assign mul(S[x], W[y])", XY, SHAPES, name="outer"),
    "sum": kernel("R[x] = add ident(V[x,y])", XY, SHAPES, name="sum"),
    "use": kernel("O[x] = assign mul(A[x], R[x])", X, SHAPES, name="use"),
    "mixed": kernel("R[x] = add mul(A[x], W[y])", XY, SHAPES, name="mixed"),
    "half": kernel("S[x] = assign neg(W[x])", {"x": 2}, SHAPES, name="half"),
    "other": kernel("P[x] = assign add(W[x], S[x])", {"x": 2}, SHAPES, name="other"),
}


def program(*names: str, constants: Sequence[str] = ("W",)) -> Program:
    """The kernels as main, with some inputs as constants."""
    made = program_of([KERNELS[name] for name in names], SHAPES, ["O", "P"])

    def constant(ref: Refinement) -> Refinement:
        return replace(ref, role=Role.CONSTANT) if ref.name in constants else ref

    entry = replace(made.entry, refinements=tuple(map(constant, made.entry.refinements)))
    data = {name: np.arange(1, 1 + np.prod(SHAPES[name]), dtype="<f4") / 4 for name in constants}
    buffers = [
        ConstantBuffer(name, entry.ref(name).dtype, SHAPES[name], array.tobytes())
        for name, array in data.items()
    ]
    return Program(entry, tuple(buffers))


def fold(before: Program, **options: object) -> tuple[Program, list[str]]:
    """Runs the pass as the pass manager does; checks that it kept the meaning."""
    remarks: list[Remark] = []

    def evaluate(part: Program, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        assert verify_structural(part) == []
        return interpret(part, inputs)

    context = PassContext(listener=remarks.append, evaluate=evaluate)
    after = find_pass("constant_fold").model_validate(options).run(before, context)
    assert verify_structural(after) == []
    assert_same_results(before, after)
    return after, [str(remark) for remark in remarks]


def test_a_chain_that_depends_on_constants_alone_vanishes() -> None:
    result, remarks = fold(program("scale", "outer", "sum", "use"))
    assert [block.name for block in result.main.blocks] == ["use"]
    assert [buffer.name for buffer in result.constants] == ["R"]
    assert lines_of(result, "#const") == ["#const none new@0x00000000<[0]> R[0] fp32(4:1)"]
    weights = np.arange(1, 5, dtype="f4") / 4
    expected = np.exp(weights) * weights.sum()
    np.testing.assert_allclose(np.frombuffer(result.constants[0].data, "<f4"), expected, rtol=1e-6)
    assert remarks == [
        "applied: scale: folded into S",
        "applied: outer: folded into V",
        "applied: sum: folded into R",
    ]


def test_what_the_input_reaches_stays() -> None:
    result, _ = fold(program("scale", "outer", "sum", "mixed", "use"))
    assert [block.name for block in result.main.blocks] == ["sum", "mixed", "use"]
    assert [buffer.name for buffer in result.constants] == ["W", "V"]


def test_outputs_are_never_folded() -> None:
    result, _ = fold(program("scale", "other"))
    assert [block.name for block in result.main.blocks] == ["other"]


def test_blocks_without_the_tags_stay() -> None:
    result, _ = fold(program("scale", "outer", "sum", "use"), reqs=["nothing"])
    assert [block.name for block in result.main.blocks] == ["scale", "outer", "sum", "use"]


def test_buffers_within_the_limit_fold_where_a_larger_one_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stripe.passes.constant_fold.MAX_BYTES", 63)
    result, _ = fold(program("scale", "outer", "sum", "use"))
    assert [block.name for block in result.main.blocks] == ["outer", "sum", "use"]


def test_what_is_partly_undefined_stays() -> None:
    before = program("half", "other")
    result, remarks = fold(before)
    assert result is before
    assert remarks == ["missed: S: not folded: some of its elements are never written"]


def test_without_somebody_to_compute_nothing_is_folded() -> None:
    before = program("scale", "outer", "sum", "use")
    result, remarks = run_pass(before, "constant_fold")
    assert result is before
    assert "not folded: no evaluator is given" in str(remarks[0])


def test_dependences_pass_over_what_is_folded() -> None:
    before = program("scale", "outer", "sum", "use")
    main = before.main
    chain = tuple(
        replace(s, deps=(n - 1,)) if n and not isinstance(s, Special) else s
        for n, s in enumerate(main.statements)
    )
    entry = replace(before.entry, statements=(replace(main, statements=chain),))
    result, _ = fold(Program(entry, before.constants))
    assert result.main.statements[0].deps == ()


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(["scale", "outer", "sum", "mixed", "other"]), max_size=5), st.booleans())
def test_any_program_keeps_its_meaning(names: list[str], more: bool) -> None:
    start = ["scale", "outer", "sum", "use"]
    fold(program(*start, *names, constants=("W", "A") if more else ("W",)))
