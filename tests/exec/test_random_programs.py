"""Random nests, run whole, in chunks, and point by point in a random order: all must agree."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stripe.exec.interp import interpret
from stripe.ir import (
    Program,
    verify_structural,
)
from tests.exec.random_programs import programs
from tests.support.point_by_point import run


@given(programs(), st.integers(0, 1000), st.sampled_from([1, 200, 1000, 5000]))
def test_engines_and_chunks_agree(program: Program, seed: int, budget: int) -> None:
    assert [str(d) for d in verify_structural(program)] == []
    (ref,) = program.inputs
    data = np.random.default_rng(seed).integers(-9, 10, ref.sizes).astype(np.int32)
    whole = interpret(program, {"A": data})["O"]
    elements = {point: int(data[point]) for point in product(*(range(size) for size in ref.sizes))}
    naive = run(program, {"A": elements}, seed)["O"]
    assert {point: int(whole[point]) for point in naive} == naive
    chunked = interpret(program, {"A": data}, memory_budget=budget)["O"]
    assert np.array_equal(whole, chunked)
    assert np.array_equal(whole, interpret(program, {"A": data}, checks=False)["O"])
