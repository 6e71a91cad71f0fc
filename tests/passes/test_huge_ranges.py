"""Ranges of some 10^18, primes among them: passes try a bounded number of candidates."""

from __future__ import annotations

import random
from itertools import product
from math import prod

import pytest

import stripe
from stripe.passes.fusion import legality
from stripe.passes.fusion.reach import NeededRange

PRIME = 999_999_999_999_999_989
SIZES = (PRIME, 999_999_937 * 999_999_929, 897_612_484_786_617_600)
CONV = """function (A[N={size}]: i8, W[K=3]: i8) -> (B) {{
    T[i : N] = +(A[i + k - 1] * W[k]);
    B[i : N] = +(T[i + k - 1] * W[k]);
}}"""


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("passes", ["pad", "fix_strides", "fusion{max_recompute=4}", "cpu", "dsp_conv"])
def test_candidates_of_huge_ranges_are_bounded(
    size: int, passes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    work = NeededRange.work

    def counting(needed: NeededRange, count: int, whole: int) -> int:
        asked.append(count)
        return work(needed, count, whole)

    monkeypatch.setattr(NeededRange, "work", counting)
    program = stripe.parse(CONV.format(size=size))
    try:
        stripe.run_passes(program, passes)
    except stripe.StripeError as error:  # dsp_conv: no memory of the machine holds it
        assert "DRAM[0] take" in str(error)
    assert len(asked) < 5000
    assert bool(asked) == (passes == "fusion{max_recompute=4}")


def test_a_prime_is_raised() -> None:
    remarks: list[str] = []
    program = stripe.parse(CONV.format(size=PRIME))
    stripe.run_passes(program, "pad", on_remark=lambda _, remark: remarks.append(str(remark)))
    assert f"i:{PRIME} raised to {PRIME + 3}" in remarks[0]


def test_the_smallest_tiles_are_those_of_all_products() -> None:
    draw = random.Random(1)
    for _ in range(2000):
        choices: list[list[legality._HaloTiling]] = []
        for _ in range(draw.randint(1, 3)):
            extent, tilings = 1, [legality._HaloTiling(draw.randint(5, 9), 1.0, None)]
            for _ in range(draw.randint(0, 5)):
                extent += draw.randint(0, 2)
                split = legality.Split(1, 2, 1)
                shared = legality.SharedIndex("x", 2, "x", split, "y", split)
                tilings.append(legality._HaloTiling(extent, draw.choice([1.0, 1.25, 1.5, 2.0, 3.0]), shared))
            choices.append(tilings[draw.randint(0, 1) :])
        limit = draw.choice([1.0, 1.5, 2.0, 3.0])
        fitting = [
            (
                prod(tiling.extent for tiling in tilings),
                prod(tiling.work for tiling in tilings),
                number,
                tilings,
            )
            for number, tilings in enumerate(product(*choices))
            if any(tiling.shared for tiling in tilings) and prod(tiling.work for tiling in tilings) <= limit
        ]
        best = min(fitting, key=lambda found: found[:3])[3] if fitting else None
        assert legality._smallest(choices, limit) == best
