"""Cycles of vectorized code on a core, computed by hand."""

from __future__ import annotations

import pytest

from stripe.cost.time.simulate import simulate_program
from stripe.hw import load_hardware
from stripe.ir import parse_program, vectors_along

SPEEDS = {
    "CORES": 1, "FMA_PER_CYCLE": 1.0, "FMA_LATENCY": 4, "LOADS_PER_CYCLE": 1.0, "ELEMENT_LOADS_PER_CYCLE": 2.0,
    "REGISTERS": 32, "L1_KIB": 1024, "L2_KIB": 65536, "L2_GB_PER_S": 4000, "L3_GB_PER_S": 2000, "DRAM_GB_PER_S": 2000,
}  # fmt: skip


def cycles(rows: int, vectors: int, sums: int = 1024, **speeds: float) -> float:
    """A tile of rows x vectors of results that registers hold over a sum; the stores beside it are left out."""
    text = f"""
    0: #program block [] ( // tile
        none A[0, 0] fp32({rows}:{sums}, {sums}:1)
        none B[0, 0] fp32({sums}:{16 * vectors}, {16 * vectors}:1)
        none C[0, 0] fp32({rows}:{16 * vectors}, {16 * vectors}:1)
    ) {{
      0: #main block [] ( // main
          in A[0, 0] fp32({rows}:{sums}, {sums}:1)
          in B[0, 0] fp32({sums}:{16 * vectors}, {16 * vectors}:1)
          out C[0, 0]:assign fp32({rows}:{16 * vectors}, {16 * vectors}:1)
      ) {{
        0: #kernel #vector=16 block [k:{sums}, m:{rows}, n:{16 * vectors}] ( // tile
            in A[m, k] fp32(1:{sums}, 1:1)
            in B[k, n] fp32(1:{16 * vectors}, 1:1)
            out C[m, n]:add fp32(1:{16 * vectors}, 1:1)
        ) {{
          0: $A = load(A)
          1: $B = load(B)
          2: $C = mul($A, $B)
          3: C = store($C)
        }}
      }}
    }}
    """
    model = load_hardware("x86_avx512", {**SPEEDS, **speeds})
    (cost,) = simulate_program(parse_program(text), model).costs
    return cost.cycles / sums


@pytest.mark.parametrize(
    ("rows", "vectors", "expected"),
    [
        (12, 2, 24),  # a multiply-add for each vector of results
        (1, 1, 4),  # the only sum waits for its last addition
        (2, 1, 4),
        (4, 1, 4),
        (1, 16, 16 + 2.3),  # 16 vectors are loaded, and come into the first cache between the loads
    ],
)
def test_a_step_takes_its_longest_part(rows: int, vectors: int, expected: int) -> None:
    assert cycles(rows, vectors) == pytest.approx(expected, rel=0.1)


def test_loads_of_elements_have_ports_of_their_own() -> None:
    """11 rows of one vector load 11 elements and a vector for 11 multiply-adds."""
    assert cycles(11, 1) == pytest.approx(11, rel=0.1)
    assert cycles(11, 1, ELEMENT_LOADS_PER_CYCLE=1.0) == pytest.approx(12, rel=0.1)


def test_results_beyond_the_registers_are_stored_and_loaded_in_each_step() -> None:
    """14 x 2 results, 2 vectors and an element fill 31 registers; where a core has 16, 15 values are spilled."""
    assert cycles(14, 2, FMA_PER_CYCLE=2.0) == pytest.approx(14, rel=0.1)
    loaded = 2 + 14 * 4 / 64 + 15
    assert cycles(14, 2, FMA_PER_CYCLE=2.0, REGISTERS=16) == pytest.approx(loaded, rel=0.1)


def test_a_rest_is_one_vector_more_or_two() -> None:
    assert [vectors_along(count, 16) for count in (16, 32, 24, 21, 13, 7, 1)] == [1, 2, 2, 2, 2, 2, 1]
