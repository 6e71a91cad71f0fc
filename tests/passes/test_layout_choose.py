"""The choice of layouts for a whole network: least by exact elimination, beside plain enumeration."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.ir import Buffer
from stripe.passes.layout.choose import Factor, Label, least_choice

TENSORS = [Buffer((0,), name) for name in "ABCDE"]


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Factor], dict[Buffer, tuple[Label, ...]]]:
    """Some factors over up to three of five tensors with up to three labels."""
    labels = {tensor: tuple((dim, 1) for dim in range(draw(st.integers(1, 3)))) for tensor in TENSORS}
    factors: list[Factor] = []
    for _ in range(draw(st.integers(1, 6))):
        tensors = tuple(draw(st.lists(st.sampled_from(TENSORS), min_size=1, max_size=3, unique=True)))
        costs = {choice: float(draw(st.integers(0, 20))) for choice in product(*(labels[t] for t in tensors))}
        factors.append(Factor(tensors, costs))
    return factors, labels


def cost(factors: list[Factor], choice: dict[Buffer, Label]) -> float:
    return sum(factor.costs[tuple(choice[t] for t in factor.tensors)] for factor in factors)


@settings(max_examples=100)
@given(problems())
def test_no_choice_costs_less(problem: tuple[list[Factor], dict[Buffer, tuple[Label, ...]]]) -> None:
    factors, labels = problem
    found = least_choice(factors, labels)
    assert found.keys() == labels.keys()
    everything = (dict(zip(labels, values, strict=True)) for values in product(*labels.values()))
    assert cost(factors, found) == min(cost(factors, choice) for choice in everything)
