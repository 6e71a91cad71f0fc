"""A small sweep, and its parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from stripe.sweeps.plan import SweepPlan, read_plan

MATMUL = """function (A[M=16, K=16], B[K, N=16]) -> (C) {
    [[pid(product)]] C[m, n : M, N] = +(A[m, k] * B[k, n]);
}
"""

SweepWriter = Callable[..., Path]


@pytest.fixture
def sweep_file(tmp_path: Path) -> SweepWriter:
    """Writes a sweep over a matrix product on `dsp_conv`; arguments replace keys of the file."""
    (tmp_path / "mm.tile").write_text(MATMUL, "utf-8")

    def write(**keys: object) -> Path:
        content = {
            "passes": ["dsp_conv"],
            "workloads": ["mm.tile"],
            "axes": {"NUM_CONV": {"log2": [1, 4]}, "CLOCK_MHZ": {"values": [400, 500]}},
            **keys,
        }
        path = tmp_path / "sweep.json"
        path.write_text(json.dumps(content), "utf-8")
        return path

    return write


@pytest.fixture
def plan_of(sweep_file: SweepWriter) -> Callable[..., SweepPlan]:
    """The plan of a sweep file with these keys."""
    return lambda **keys: read_plan(sweep_file(**keys), {})
