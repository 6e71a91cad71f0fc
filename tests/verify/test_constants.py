"""Constants in another layout are the same constants, unless an element differs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stripe.ir import DTYPES, ConstantBuffer, Program, Role
from stripe.ir.index_map import PhysicalLayout
from stripe.passes.base import PassContext
from stripe.passes.registry import find_pass
from stripe.tile import compile_tile
from stripe.verify import constants
from stripe.verify.constants import layout_between, places
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Equal

FP32 = DTYPES["fp32"]
SOURCE = """function (X[M=6, K=5]: fp32, W[N=7, K]: fp32) -> (O) {
    H[i, j : M, N] = +(X[i, k] * W[j, k]);
    R = relu(H);
    O[i : M] = +(R[i, j]);
}"""


def _constant(array: np.ndarray) -> ConstantBuffer:
    return ConstantBuffer("w", FP32, array.shape, array.astype(np.float32).tobytes())


def _with_constant(source: str) -> Program:
    """The program of `source` with its input W as a constant."""
    program = compile_tile(source, "sums", {})
    data = np.arange(35, dtype=np.float32)
    refs = tuple(
        replace(ref, role=Role.CONSTANT) if ref.name == "W" else ref for ref in program.entry.refinements
    )
    constant = ConstantBuffer("W", FP32, (7, 5), data.tobytes())
    return replace(program, entry=replace(program.entry, refinements=refs), constants=(constant,))


def test_orders_and_blocks_are_found() -> None:
    array = np.arange(2 * 3 * 10, dtype=np.float32).reshape(2, 3, 10)
    blocks = np.zeros((3, 3, 2, 4), np.float32)
    for at in np.ndindex(array.shape):
        blocks[at[2] // 4, at[1], at[0], at[2] % 4] = array[at]
    for other in (array.transpose(2, 0, 1), blocks):
        assert layout_between(_constant(array), _constant(np.ascontiguousarray(other))) is not None
        changed = np.ascontiguousarray(other).copy()
        changed[1, 1, 1] += 1
        assert layout_between(_constant(array), _constant(changed)) is None


def test_a_search_that_can_find_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant of nine dimensions of two elements has as many orders as there are permutations of nine numbers."""
    tried: list[PhysicalLayout] = []

    def counted(layout: PhysicalLayout) -> object:
        tried.append(layout)
        return places(layout)

    monkeypatch.setattr(constants, "places", counted)
    for rank in (7, 9):
        array = np.arange(2**rank, dtype=np.float32).reshape((2,) * rank)
        changed = array.copy()
        changed[(1,) * rank] = -1.0
        assert layout_between(_constant(array), _constant(changed)) is None
    assert len(tried) <= constants.FEW_MAPS
    shuffled = np.random.default_rng(1).permutation(array.ravel()).reshape((*array.shape[:7], 4))
    assert layout_between(_constant(array.reshape(shuffled.shape)), _constant(shuffled)) is None
    assert len(tried) <= constants.FEW_MAPS + constants.MOST_MAPS


@pytest.mark.parametrize("options", [{"order": [1, 0]}, {"block": {0: 4}}])
def test_sums_of_functions_of_sums_are_proved(options: dict[str, object]) -> None:
    before = _with_constant(SOURCE)
    after = find_pass("layout").model_validate({"refs": ["W"], **options}).run(before, PassContext())
    assert after.constants != before.constants
    assert isinstance(prove_equal(before, after), Equal)
    (constant,) = after.constants
    data = bytearray(constant.data)
    data[4:8] = np.float32(99).tobytes()
    wrong = replace(after, constants=(replace(constant, data=bytes(data)),))
    assert not isinstance(prove_equal(before, wrong), Equal)


def test_full_blocks_of_a_padded_constant_are_proved() -> None:
    """The kernel reads the pads, which were holes without a value in the proof."""
    before = _with_constant(
        "function (X[M=6, K=5]: fp32, W[N=7, K]: fp32) -> (O) { O[i, j : M, N] = +(X[i, k] * W[j, k]); }"
    )
    after = before
    for name in ("X", "W"):
        options = {"refs": [name], "block": {1: 4}, "pad": 0, "interface": True, "allow_nonfinite": True}
        after = find_pass("layout").model_validate(options).run(after, PassContext())
    (kernel,) = (block for block in after.main.blocks if "contraction" in block.tags)
    assert not kernel.constraints
    assert isinstance(prove_equal(before, after), Equal)
