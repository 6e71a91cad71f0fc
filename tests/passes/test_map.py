"""The pass `map`: its programs cost what it says, on all rules of the machine."""

from __future__ import annotations

import pytest

import stripe
from stripe.cost.counts.counts import count_program
from stripe.hw import load_hardware

MATMUL = "function (I[M=32, K=64]: i8, W[K, N=48]: i8) -> (O) { O[m, n : M, N] = +(I[m, k] * W[k, n]); }"
CONV = """function (I[X=8, Y=8, C=16]: i8, W[FX=3, FY=3, C, K=16]: i8) -> (O) {
    O[x, y, k : 6, 6, K] = +(I[x + i, y + j, c] * W[i, j, c, k]);
}"""


@pytest.mark.parametrize("source", [MATMUL, CONV], ids=["matmul", "conv"])
@pytest.mark.parametrize("rules", [{}, {"FREE": True}, {"BYPASS": True}, {"KEEP_HALO": True}], ids=str)
def test_counts_of_the_program_are_the_price(source: str, rules: dict[str, bool]) -> None:
    """Windows are copied to each unit of the grid whose position needs them; sums too, along all axes."""
    machine = load_hardware("ref16x16", rules)
    remarks: list[str] = []
    mapped = stripe.run_passes(
        stripe.parse(source),
        "map{reqs=[kernel]}",
        hardware=machine,
        on_remark=lambda _, remark: remarks.append(remark.message),
    )
    (counted,) = count_program(mapped, "keep" if rules.get("KEEP_HALO") else "refetch", machine)
    assert counted.energy_pJ is not None
    assert f"{counted.energy_pJ / 1e6:.3f} uJ" in remarks[-1]
