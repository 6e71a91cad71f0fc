"""The pass `split_reduction`: any sizes, widths and types give the same results."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.tile import compile_tile
from tests.passes.programs import lines_of, run_pass

TEXT = "function (A[M={rows}, K={summed}]: {dtype}, B[K]: {dtype}) -> (C) {{\n" \
       "  [[dot]] C[i : M] = {agg}(A[i, k] * B[k]);\n}}\n"  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(1, 3),
    summed=st.integers(1, 70),
    vector_bytes=st.sampled_from((4, 8, 16, 32)),
    vectors=st.integers(1, 4),
    agg=st.sampled_from(("+", ">", "<")),
    dtype=st.sampled_from(("fp32", "i32", "u8")),
)
def test_results_stay(rows: int, summed: int, vector_bytes: int, vectors: int, agg: str, dtype: str) -> None:
    program = compile_tile(TEXT.format(rows=rows, summed=summed, agg=agg, dtype=dtype), "<test>", {})
    lanes = vector_bytes // (1 if dtype == "u8" else 4)
    result, _ = run_pass(program, "split_reduction", reqs=["dot"], vector_bytes=vector_bytes, vectors=vectors)
    assert bool(lines_of(result, "#total")) == (lanes > 1 and summed >= 2 * lanes)
