"""Gather, scatter and the random generator against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.ir import DTYPES, Program
from tests.support.programs import build, load


def gather(index: str = "i32") -> Program:
    return build(f"in D fp32(4 2); in I {index}(2 3); out O fp32(2 3 2)", "0: O = gather(D, I)")


@pytest.mark.parametrize("dtype", ["i32", "i64", "u64"])
def test_gather_clamps(dtype: str) -> None:
    data = np.arange(8, dtype=np.float32).reshape(4, 2)
    index = np.array([[0, 3, 1], [-5, 9, 2]]).astype(DTYPES[dtype].numpy())
    want = [[data[min(max(int(i), 0), 3)].tolist() for i in row] for row in index]
    assert interpret(gather(dtype), {"D": data, "I": index})["O"].tolist() == want


@pytest.mark.parametrize("dtype", ["fp32", "i8", "bf16", "u64"])
def test_scatter_adds_from_zero_and_drops_what_lies_outside(dtype: str) -> None:
    built = build(
        f"in E {dtype}(5 2); in I i32(5); in V i32(3); out O {dtype}(3 2)", "0: O = scatter(E, I, V)"
    )
    updates = np.arange(1, 11).reshape(5, 2)
    index = np.array([2, 0, 2, -1, 3], np.int32)
    got = interpret(
        built,
        {
            "E": updates.astype(built.inputs[0].dtype.numpy()),
            "I": index,
            "V": np.zeros(3, np.int32),
        },
    )["O"]
    assert got.astype(np.int64).tolist() == [[3, 4], [0, 0], [1 + 5, 2 + 6]]


def step(s: list[int]) -> int:
    """One step of taus88 on Python's numbers; gives the 32 bits."""
    mask = 0xFFFFFFFF
    s[0] = (((s[0] & 4294967294) << 12) & mask) ^ ((((s[0] << 13) & mask) ^ s[0]) >> 19)
    s[1] = (((s[1] & 4294967288) << 4) & mask) ^ ((((s[1] << 2) & mask) ^ s[1]) >> 25)
    s[2] = (((s[2] & 4294967280) << 17) & mask) ^ ((((s[2] << 3) & mask) ^ s[2]) >> 11)
    return s[0] ^ s[1] ^ s[2]


@pytest.mark.parametrize("shape", [(3, 5), (4,), (2, 4, 2), (1,)])
def test_generator(shape: tuple[int, ...]) -> None:
    """Four columns make the elements in turn; columns without an element keep their state."""
    built = build(
        f"in S u32(3 4); out T u32(3 4); out U fp32({' '.join(map(str, shape))})", "0: (T, U) = prng_step(S)"
    )
    state = np.random.default_rng(3).integers(16, 1 << 32, (3, 4)).astype(np.uint32)
    got = interpret(built, {"S": state})
    columns = [[int(n) for n in column] for column in state.T]
    values = [
        float(np.float32(step(columns[k % 4])) * np.float32(2.0**-32)) for k in range(int(np.prod(shape)))
    ]
    assert got["U"].ravel().tolist() == values
    assert got["T"].T.tolist() == columns


def test_specials_in_every_lane() -> None:
    """A gather per point from its own row, through views and into local memory."""
    built = load("exec/specials/specials_in_every_lane")
    data = np.arange(12, dtype=np.int32).reshape(3, 4)
    with pytest.raises(
        ExecutionError, match=r"rows.*gather: gather of \(1, 4\) at \(1, 2\) gives \(1, 2, 4\)"
    ):
        bad = load("exec/specials/specials_in_every_lane_2")
        interpret(bad, {"D": data, "I": np.zeros((3, 2), np.int32)})
    for budget in (1 << 30, 1):
        got = interpret(built, {"D": data, "I": np.zeros((3, 2), np.int32)}, memory_budget=budget)["O"]
        assert got.tolist() == [[*row, *row] for row in data.tolist()]


def test_specials_are_checked() -> None:
    built = load("exec/specials/specials_are_checked")
    with pytest.raises(ExecutionError, match="special reads elements of 'T', which is unwritten"):
        interpret(built, {"A": np.arange(4, dtype=np.int32)})


def test_a_special_over_the_edge() -> None:
    built = load("exec/specials/a_special_over_the_edge")
    with pytest.raises(ExecutionError, match="special reads 'D', which reaches out of 'D', at the point t=1"):
        interpret(built, {"D": np.arange(4, dtype=np.int32), "I": np.zeros(2, np.int32)})
