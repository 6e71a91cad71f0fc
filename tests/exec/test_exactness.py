"""Which programs compute the same in any order of their sums, on data of small integers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from stripe.exec.data import random_inputs
from stripe.exec.exactness import MAGNITUDES, best_magnitude, order_free, walk_grains
from stripe.exec.grains import most_to_one
from stripe.exec.interp import interpret
from stripe.ir import Buffer, StripeError
from stripe.tile import compile_tile
from tests.fuzz.__main__ import draw_many
from tests.fuzz.tile_programs import tile_programs


@pytest.mark.parametrize(
    ("text", "free"),
    [
        # 3 less than a small unsigned number may be nearly 2^32, which fp32 rounds
        ("function (A[N=4]: u32, B[N]: fp32) -> (S) { T = A - 3; S[] = +(T[i] * B[i]); }", False),
        ("function (A[N=4]: i32, B[N]: fp32) -> (S) { T = A - 3; S[] = +(T[i] * B[i]); }", True),
        ("function (A[N=4]: u32, B[N]: fp32) -> (S) { T = A + 3; S[] = +(T[i] * B[i]); }", True),
        ("function (A[N=4]: i8) -> (S) { T = as_float(as_int(A * 100, 8), 16); S[] = +(T[i]); }", True),
        ("function (A[N=4]: i8) -> (S) { T = as_float(A * 300, 16); S[] = +(T[i]); }", False),
        # all of the nine points of a 3 x 3 box lead to five elements, three of them to one
        ("function (A[N=3]: fp16, B[N]: fp16) -> (S) { T = 300*A; U[i + j : 5] = +(T[i] * B[j]); S = U; }", False),
    ],
)  # fmt: skip
def test_sums_that_depend_on_their_order(text: str, free: bool) -> None:
    assert order_free(compile_tile(text, "t.tile"), 8) is free


@pytest.mark.parametrize(
    ("ranges", "columns", "most"),
    [
        ({"i": 3, "j": 3}, {"i": (1,), "j": (1,)}, 3),
        ({"i": 3, "j": 5}, {"i": (1,), "j": (2,)}, 3),
        ({"i": 3, "j": 5, "k": 7}, {"i": (1, 0), "j": (1, 0), "k": (0, 1)}, 3),
        ({"i": 3, "j": 5, "k": 7}, {"i": (1, 1), "j": (2, 2), "k": (-1, -1)}, 15),
        ({"i": 3, "j": 5}, {"i": (1, 1), "j": (1, -1)}, 1),
        ({"i": 3, "j": 5}, {"i": (1,)}, 5),  # of j nothing is known
        ({"i": 3, "j": 5}, {"i": (), "j": ()}, 15),
        ({}, {}, 1),
    ],
)
def test_how_many_points_lead_to_one_element(
    ranges: Mapping[str, int], columns: Mapping[str, tuple[int, ...]], most: int
) -> None:
    assert most_to_one(ranges, columns) == most


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_results_are_what_follows_for_them(seed: int) -> None:
    checked = 0
    for text in draw_many(tile_programs(), 60, 7000 + seed):
        try:
            program = compile_tile(text, "fuzz.tile")
        except StripeError:
            continue
        walked = walk_grains(program, max(MAGNITUDES)).grains
        grains = {ref.name: walked[Buffer((0,), ref.name)] for ref in program.outputs}
        results = interpret(program, random_inputs(program, seed))
        assert best_magnitude(program) in MAGNITUDES
        for name, grain in grains.items():
            values = results[name].astype(np.float64)
            finite = values[np.isfinite(values)]
            assert finite.size == values.size or grain.bound == np.inf, text
            assert ((grain.low <= finite) & (finite <= grain.high)).all(), f"{text}{name}: {grain}\n{values}"
            assert not grain.step or not np.fmod(finite, grain.step).any(), f"{text}{name}: {grain}\n{values}"
            checked += grain.bound != np.inf
    assert checked > 40


def test_products_of_thousands_of_factors_have_a_grain() -> None:
    """A power of whole numbers was exact, and no float holds it."""
    text = "function (A[N=40, M=40]: fp16) -> (O) { O[] = *(A[i, j] * A[j, i]); }"
    program = compile_tile(text, "product")
    assert random_inputs(program, 0)["A"].shape == (40, 40)
    assert not order_free(program, 8)
