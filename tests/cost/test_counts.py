"""Counts: the two layers on which three tools agree, and random mappings against walking through every step."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.cost.counts.counts import count_program
from stripe.cost.counts.loops import HALOS, Halo, entering, entering_by_sets
from stripe.cost.counts.transfers import as_transfer
from stripe.exec.interp import interpret
from stripe.hw import load_hardware
from stripe.ir import Nest as NestOf
from stripe.ir import StripeError, parse_affine, parse_program, print_program, verify_structural
from stripe.poly import accesses
from tests.support.enumerated import transferred
from tests.support.mappings import CONV3X3, MATMUL, Loop, Mapped, as_stripe, walk_steps
from tests.support.programs import source
from tests.support.tiled import tiled_convolution

MAPPINGS = Path(__file__).resolve().parents[2] / "examples" / "mappings"

AGREED: dict[str, dict[tuple[str, str, str], int]] = {
    "conv3x3": {
        ("W", "Wreg", "array"): 115_605_504, ("W", "SRAM", "Wreg"): 2_064_384, ("W", "DRAM", "SRAM"): 36_864,
        ("I", "SRAM", "array"): 7_225_344, ("O", "array", "Orf"): 7_225_344, ("O", "Orf", "array"): 7_024_640,
        ("O", "Orf", "SRAM"): 200_704, ("O", "SRAM", "Orf"): 0, ("O", "SRAM", "DRAM"): 200_704,
        ("O", "DRAM", "SRAM"): 0,
    },
    "matmul": {
        ("W", "Wreg", "array"): 134_217_728, ("W", "SRAM", "Wreg"): 2_097_152, ("W", "DRAM", "SRAM"): 262_144,
        ("I", "SRAM", "array"): 8_388_608, ("O", "array", "Orf"): 8_388_608, ("O", "Orf", "array"): 8_126_464,
        ("O", "Orf", "SRAM"): 2_097_152, ("O", "SRAM", "Orf"): 1_835_008, ("O", "SRAM", "DRAM"): 524_288,
        ("O", "DRAM", "SRAM"): 262_144,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "halo", "macs", "steps", "held", "inputs", "energy"),
    [
        ("conv3x3", "refetch", 115_605_504, 451_584, 102_912, 475_136, 208_034_365.44),
        ("conv3x3", "keep", 115_605_504, 451_584, 102_912, 430_592, 200_595_517.44),
        ("matmul", "refetch", 134_217_728, 524_288, 57_344, 2_097_152, 652_051_742.72),
        ("matmul", "keep", 134_217_728, 524_288, 57_344, 2_097_152, 652_051_742.72),
    ],
)
def test_the_layers_on_which_three_tools_agree(
    name: str, halo: Halo, macs: int, steps: int, held: int, inputs: int, energy: float
) -> None:
    program = parse_program((MAPPINGS / f"{name}.stripe").read_text("utf-8"), name)
    assert verify_structural(program) == []
    (kernel,) = count_program(program, halo, load_hardware("ref16x16"))
    assert (kernel.macs, kernel.steps, dict(kernel.held)["SRAM"]) == (macs, steps, held)
    found = {(row.operand, row.source, row.sink): row for row in kernel.traffic}
    expected = {**AGREED[name], ("I", "DRAM", "SRAM"): inputs}
    assert {key: row.read if key[1] != "array" else row.written for key, row in found.items()} == expected
    for (_, origin, sink), row in found.items():
        assert "array" in (origin, sink) or row.read == row.written
    assert kernel.energy_pJ == pytest.approx(energy, abs=0.005)


@pytest.mark.parametrize("mapping", [CONV3X3, MATMUL], ids=lambda m: m.name)
def test_the_shipped_mappings_are_what_the_builder_makes(mapping: Mapped) -> None:
    text = (MAPPINGS / f"{mapping.name}.stripe").read_text("utf-8")
    assert text == print_program(as_stripe(mapping))


@st.composite
def mappings(draw: st.DrawFn) -> Mapped:
    """Small layers with strides, windows and shuffled loops, levels anywhere."""
    stride, spread = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    operands = {
        "I": ({"x": stride, "f": spread}, {"c": 1}),
        "W": ({"f": 1}, {"c": 1}, {"k": 1}),
        "O": ({"x": 1}, {"k": 1}),
    }
    sizes = st.integers(1, 3)
    dims = draw(st.permutations(["x", "f", "c", "k", "x", draw(st.sampled_from("xfck"))]))
    loops: tuple[Loop, ...] = tuple((dim, draw(sizes)) for dim in dims)
    spatial: tuple[Loop, ...] = tuple(
        (dim, draw(sizes)) for dim in draw(st.permutations(["k", "c", "x"]))[:2]
    )
    within: dict[str, tuple[tuple[str, int], ...]] = {}
    for operand in operands:
        near = draw(st.integers(1, 4))
        levels = [("SRAM", draw(st.integers(near, 5))), ("Reg", near)]
        within[operand] = tuple(levels[: draw(st.integers(0, 2))])
        if len(within[operand]) == 2 and within[operand][0][1] == near:
            within[operand] = within[operand][:1]
    return Mapped("random", operands, loops, spatial, within)


@settings(max_examples=150)
@given(mappings(), st.sampled_from(HALOS))
def test_counts_agree_with_walking_through_every_step(mapping: Mapped, halo: Halo) -> None:
    program = as_stripe(mapping)
    assert verify_structural(program) == []
    (kernel,) = count_program(program, halo)
    found = {(row.operand, row.source, row.sink): row for row in kernel.traffic}
    expected = walk_steps(mapping, halo)
    assert {k: r.written if k[1] == "array" else r.read for k, r in found.items()} == expected


@settings(max_examples=60)
@given(mappings(), st.sampled_from(HALOS))
def test_closed_forms_agree_with_integer_sets(mapping: Mapped, halo: Halo) -> None:
    for nest in NestOf.root(as_stripe(mapping).entry).walk():
        transfer = as_transfer(nest)
        if transfer is not None:
            loops = nest.prefix(nest.depth - 1)
            running = tuple(name for name in loops if nest.domain.ranges[name][1])
            assert entering(transfer.far, loops, halo) == entering_by_sets(transfer.far, running, (), halo)


@settings(max_examples=30)
@given(st.integers(3, 9), st.integers(1, 4), st.integers(1, 4), st.sampled_from(HALOS))
def test_boxes_that_hang_over_an_edge(x: int, tile_x: int, tile_o: int, halo: Halo) -> None:
    """A padded convolution as the pass `cache` leaves it: every tile by hand, in order."""
    program = tiled_convolution(x, min(tile_x, x), tile_o)
    (kernel,) = count_program(program, halo)
    for operand, (start, sink), block in (
        ("I", ("DRAM", "SRAM"), "load_I"),
        ("K", ("DRAM", "SRAM"), "load_K"),
    ):
        expected = 0
        held: tuple[object, frozenset[tuple[int, ...]]] = ((), frozenset())
        for origin, elements in transferred(program.main.statements[0], block):
            if (origin, elements) != held:
                expected += len(elements - held[1] if halo == "keep" else elements)
                held = (origin, elements)
        assert kernel.find(operand, start, sink).read == expected


@pytest.mark.parametrize("halo", HALOS)
@pytest.mark.parametrize("constraint", ["0", "i - k + 1", "k - i", "2 - i - j"])
@pytest.mark.parametrize(
    "index", ["k", "i + k", "2*i + j", "floor((i + k)/2)", "4*j + ((i + 3*k) mod 4)", "floor(k/3)"]
)
@pytest.mark.parametrize("loops", ["i", "ij", "ji"])
def test_boxes_that_constraints_and_floors_change(
    index: str, constraint: str, loops: str, halo: Halo
) -> None:
    """Where the box is another one than before, though its origin may stay: every step by hand, in order."""
    text = source("cost/counts/box").replace("INDEX", index).replace("CONSTRAINT", constraint)
    (access,) = (a for a in accesses(parse_program(text, "box").entry) if a.buffer.name == "A")
    names = dict(zip("ijk", access.nest.domain.names, strict=True))
    ranges = {"i": 4, "j": 3, "k": 5}
    inner = [name for name in "ijk" if name not in loops]
    expected, held = 0, frozenset[int]()
    for outside in product(*(range(ranges[name]) for name in loops)):
        box = frozenset[int]()
        for inside in product(*(range(ranges[name]) for name in inner)):
            at = dict(zip([*loops, *inner], (*outside, *inside), strict=True))
            if parse_affine(constraint).evaluate(at) >= 0:
                box |= {parse_affine(index).evaluate(at)}
        if box != held:
            expected += len(box - held if halo == "keep" else box)
        held = box
    assert entering(access, [names[name] for name in loops], halo) == expected


PRIVATE = source("cost/counts/private")


def test_copies_of_parallel_units_are_filled_by_one_read() -> None:
    program = parse_program(PRIVATE, "private")
    assert verify_structural(program) == []
    (kernel,) = count_program(program)
    assert (kernel.macs, kernel.steps) == (24, 12)
    rows = {(row.operand, row.source, row.sink): (row.read, row.written) for row in kernel.traffic}
    assert rows == {
        ("A", "DRAM", "Areg"): (12, 24),
        ("A", "Areg", "array"): (24, 24),
        ("B", "DRAM", "array"): (24, 24),
        ("C", "array", "Acc"): (24, 24),
        ("C", "Acc", "array"): (18, 0),
        ("C", "Acc", "DRAM"): (6, 6),
        ("C", "DRAM", "Acc"): (0, 0),
    }


def test_a_mapping_is_a_program_that_runs() -> None:
    loops: tuple[Loop, ...] = (("k", 2), ("n", 2), ("m", 3), ("k", 2))
    within = {"I": (("SRAM", 2),), "W": (("SRAM", 3), ("Reg", 1)), "O": (("SRAM", 3), ("Orf", 1))}
    program = as_stripe(replace(MATMUL, loops=loops, spatial=(("n", 2), ("k", 2)), within=within))
    rng = np.random.default_rng(0)
    i, w = (rng.integers(-3, 4, shape).astype(np.int8) for shape in ((3, 8), (8, 4)))
    np.testing.assert_array_equal(interpret(program, {"I": i, "W": w})["O"], i @ w)


def test_copies_below_constrained_loops_have_no_order() -> None:
    text = source("cost/counts/copies_below_constrained_loops_have_no_order")
    with pytest.raises(StripeError, match="constraints cut its loops"):
        count_program(parse_program(text, "cut"))


def test_energy_is_told_for_each_memory() -> None:
    hardware = load_hardware("ref16x16")
    (counted,) = count_program(as_stripe(CONV3X3), "refetch", hardware)
    assert counted.energy_pJ is not None and counted.compute_pJ is not None
    parts = dict(counted.memory_pJ)
    assert set(parts) == {"DRAM", "SRAM", "Orf", "Wreg"}
    assert parts["DRAM"] == 160 * (36_864 + 475_136) + 170 * 200_704
    assert counted.energy_pJ == pytest.approx(counted.compute_pJ + sum(parts.values()))


def test_a_mapping_that_does_not_fit_is_refused() -> None:
    hardware = load_hardware("ref16x16")
    small = hardware.memory("SRAM").model_copy(update={"size_bytes": 102_911})
    model = hardware.model_copy(update={"mem_units": {**hardware.mem_units, "SRAM": small}})
    with pytest.raises(StripeError, match="its copies take 102,912 bytes of SRAM, which has 102,911"):
        count_program(as_stripe(CONV3X3), "refetch", model)
