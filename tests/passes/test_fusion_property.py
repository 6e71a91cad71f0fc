"""Random programs keep their meaning under `fusion`, whatever its options."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.passes.kernels import program_of
from tests.passes.programs import run_pass
from tests.passes.random_kernels import Made, programs


@pytest.mark.long
@settings(max_examples=150)
@given(
    programs(),
    st.sampled_from([1.0, 1.5, 4.0]),
    st.dictionaries(st.sampled_from(["i", "x", "m", "c", "j", "k"]), st.integers(1, 4), max_size=2),
)
def test_fusion_keeps_the_meaning(made: Made, recompute: float, tiles: dict[str, int]) -> None:
    kernels, shapes, outputs = made
    program = program_of(kernels, shapes, outputs)
    fused, _ = run_pass(program, "fusion", max_recompute=recompute, tiles=tiles)
    run_pass(fused, "localize")
