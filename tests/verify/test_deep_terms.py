"""Terms deeper than Python's stack, and terms that hold one part in very many places: an answer, never a fault."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from stripe.ir import Intrinsic, Program, Store, with_entry, with_statements
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes
from stripe.tile import compile_tile
from stripe.verify.proof import contributions
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Different, Equal, Unknown
from tests.support.programs import load
from tests.support.tiers import some

CHAINS = {
    "one operand": ("relu", "$", None),
    "a number": ("add", "$", "n"),
    "a number that is not computed": ("mul", "$", "c"),
    "a number first": ("sub", "n", "$"),
}
"""The operation of a chain and its operands: `$` for the operation before, else a scalar of the program."""


def grown(op: str, first: str, second: str | None, *, count: int, last: str, copied: bool = False) -> Program:
    """The program with a chain of operations between load and store, and a last one on it."""
    program = load("verify/deep_term")
    (kernel,) = program.main.blocks
    *loads, _ = kernel.statements
    start = [Intrinsic("t0", "ident" if copied else "relu", ("x",))]
    names = [
        tuple(f"t{n}" if name == "$" else name for name in (first, second) if name) for n in range(count)
    ]
    if copied:  # the same by other statements
        start.append(Intrinsic("t", "relu", ("t0",)))
        names[0] = tuple("t" if name == "t0" else name for name in names[0])
    chain = [Intrinsic(f"t{n + 1}", op, operands) for n, operands in enumerate(names)]
    end = [Intrinsic("end", last, (f"t{count}",)), Store("O", "end")]
    kernel = with_statements(kernel, [*loads, *start, *chain, *end])
    main = with_statements(program.main, [kernel])
    return with_entry(program, with_statements(program.entry, [main]))


@pytest.mark.parametrize("name", some(CHAINS, every=2))
def test_deep_terms(name: str) -> None:
    chain = CHAINS[name]
    before = grown(*chain, count=1300, last="neg")
    assert isinstance(prove_equal(before, grown(*chain, count=1300, last="neg", copied=True)), Equal)
    found = prove_equal(before, grown(*chain, count=1300, last="abs"))
    assert isinstance(found, Different)
    assert "A[0]" in str(found) or "…" in str(found)
    assert len(str(found)) < 10_000


def test_terms_that_are_too_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contributions, "_MOST_PARTS", 1200)
    chain = CHAINS["one operand"]
    found = prove_equal(grown(*chain, count=1300, last="neg"), grown(*chain, count=1300, last="abs"))
    assert isinstance(found, Unknown)
    assert "an element-wise chain is too long" in found.reason


@pytest.mark.parametrize("start", ["s", "c"])
def test_terms_that_hold_one_part_often(start: str) -> None:
    """60 squares of a term without coordinates: a number that is not computed, or a buffer without dimensions."""
    before = grown("mul", "$", "$", count=60, last="neg")
    after = grown("mul", "$", "$", count=60, last="abs")
    for program in (before, after):
        assert isinstance(prove_equal(program, program), Equal)

    def of(program: Program) -> Program:
        (kernel,) = program.main.blocks
        statements = [
            Intrinsic("t0", "relu", (start,)) if s == kernel.statements[4] else s for s in kernel.statements
        ]
        return with_entry(
            program,
            with_statements(
                program.entry, [with_statements(program.main, [with_statements(kernel, statements)])]
            ),
        )

    found = prove_equal(of(before), of(after))
    assert isinstance(found, Unknown)
    assert "an element-wise chain is too long" in found.reason


@contextmanager
def few_frames(number: int) -> Generator[None]:
    """At most so many calls inside of one another, beside those around."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + number)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


LAYERS = {
    "operations": "T{next} = relu(T{n});",
    "sums": "S{n}[i : 4] = +(T{n}[j] * A[i]); T{next} = relu(S{n});",
    "specials": "T{next} = gather(T{n}, I);",
}


def layers(step: str, first: str, count: int) -> Program:
    steps = " ".join(step.format(n=n, next=n + 1) for n in range(count))
    text = f"function (A[N=4]: fp32, I[N]: i32) -> (B) {{ T0 = {first}; {steps} B = T{count} + 1.0; }}"
    return compile_tile(text, "layers", {})


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("most_parts", some([4, 20_000], every=2))
def test_many_layers_need_no_deep_stack(kind: str, most_parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """12 layers behind a difference, also where a term is too large and nothing behind it can be defined."""
    before, after = (layers(LAYERS[kind], first, 12) for first in ("relu(A)", "abs(A)"))
    monkeypatch.setattr(contributions, "_MOST_PARTS", most_parts)
    with few_frames(80):
        found = prove_equal(before, after)
    assert isinstance(found, Different | Unknown)


def test_padding_behind_many_layers_needs_no_deep_stack() -> None:
    """A product with 0 vanishes where no layer before has an infinity."""
    sums = "".join(f" X{n}[i : N] = +(X{n - 1}[j] * W[i, j]);" for n in range(1, 16))
    rim = "O[i : M] = +(X15[j] * V[i + j - 1]);"
    text = f"function (X0[N=3]: fp32, W[N, N]: fp32, V[M=9]: fp32) -> (O) {{{sums} {rim} }}"
    before = compile_tile(text, "layers", {})
    after = PassManager(parse_passes("pad{allow_nonfinite=true}")).run(before)
    assert before != after
    with few_frames(80):
        assert isinstance(prove_equal(before, after), Equal)
