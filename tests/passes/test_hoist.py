"""The pass `hoist`: each box is moved once, as `--counts` counts it, in the simulator and in programs that run."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripe.cost.counts.counts import count_program
from stripe.cost.counts.traffic import rows_in_order
from stripe.cost.report.report import counts_json, simulation_json
from stripe.cost.time.simulate import simulate_program
from stripe.hw import load_hardware
from stripe.ir import Block, parse_program, print_program
from stripe.passes.base import PassContext, Remark
from stripe.passes.registry import find_pass
from stripe.pipeline.manager import PassManager
from stripe.pipeline.setup import read_setup
from stripe.tile import compile_tile
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Equal
from tests.passes.programs import run_pass
from tests.support.programs import load

MAPPINGS = Path(__file__).parents[2] / "examples" / "mappings"
HALO = "refetch"


def loaded(block: Block, times: int = 1) -> dict[str, int]:
    """How often each copy block of the nest runs."""
    found: dict[str, int] = {}
    for inner in block.blocks:
        if "cache" in inner.tags:
            found[inner.name] = found.get(inner.name, 0) + times
        else:
            for name, count in loaded(inner, times * inner.points).items():
                found[name] = found.get(name, 0) + count
    return found


@pytest.mark.parametrize("name", ["matmul", "conv3x3"])
def test_counts_and_simulation_agree_on_the_shipped_mappings(name: str) -> None:
    """Counting sees a box that did not change; the simulator, as emitted code, moves what the loops say."""
    machine = load_hardware("ref16x16")
    before = parse_program((MAPPINGS / f"{name}.stripe").read_text("utf-8"))
    after = find_pass("hoist").model_validate({"reqs": ["all"]}).run(before, PassContext())
    assert after != before
    first, second = (
        counts_json(count_program(program, HALO, machine), HALO, name, machine) for program in (before, after)
    )
    by_operand = [
        sorted(report.kernels[0].traffic, key=lambda row: (row.operand, row.source, row.sink))
        for report in (first, second)
    ]
    assert by_operand[0] == by_operand[1]
    assert first.kernels[0].energy_pJ == second.kernels[0].energy_pJ
    found = simulation_json(simulate_program(after, machine), name)
    (kernel,) = second.kernels
    for memory in ("DRAM", "SRAM"):
        read = sum(row.bytes_read for row in kernel.traffic if row.source == memory)
        written = sum(row.bytes_written for row in kernel.traffic if row.sink == memory)
        (there,) = (each for each in found.memories if each.memory == f"{memory}[0]")
        assert (there.read_bytes, there.written_bytes) == (read, written), memory


@settings(deadline=None, max_examples=20)
@given(
    st.permutations(["m", "n", "k"]),
    st.sampled_from([4, 6]),
    st.sampled_from([3, 5]),
    st.sampled_from([2, 8]),
    st.sampled_from(["+", ">"]),
)
def test_every_order_keeps_the_meaning_and_moves_each_box_once(
    order: list[str], m: int, n: int, k: int, agg: str
) -> None:
    text = f"function (A[M=12, K=8]: i32, B[K, N=15]: i32) -> (C) {{ C[m, n : M, N] = {agg}(A[m, k] * B[k, n]); }}"
    passes = (
        f"autotile{{reqs=[kernel],outer_set=[tile],fixed={{m:{m},n:{n},k:{k}}}}},"
        f"reorder_indexes{{reqs=[tile],order=[{','.join(order)}]}},cache{{reqs=[tile]}},prune_indexes"
    )
    cached = PassManager(read_setup([("passes", passes)], None, {})[0]).run(compile_tile(text))
    result, _ = run_pass(print_program(cached), "hoist", reqs=["tile"])
    assert isinstance(prove_equal(cached, result), Equal)
    tiles = {"m": 12 // m, "n": 15 // n, "k": 8 // k}
    expected: dict[str, int] = {}
    for name, moving in (("load_A", "mk"), ("load_B", "kn"), ("store_C", "mn")):
        moves = [place for place, index in enumerate(order) if index in moving and tiles[index] > 1]
        count = 1
        for index in order[: max(moves, default=-1) + 1]:
            count *= tiles[index]
        expected[name] = count
    single = all(count == 1 for count in tiles.values())
    assert single or loaded(result.main) == expected


def test_nothing_to_move_gives_the_same_program() -> None:
    program = compile_tile("function (A[N=8]) -> (O) { O = relu(A); }")
    assert find_pass("hoist").model_validate({"reqs": ["all"]}).run(program, PassContext()) is program


def test_a_maker_that_assigns_inside_of_a_summing_view_stays() -> None:
    """The aggregation of a store is that of the view that it names, not that of a view around it."""
    program = load("passes/hoist/inner_assignment")
    after = find_pass("hoist").model_validate({"reqs": ["all"]}).run(program, PassContext())
    assert isinstance(prove_equal(program, after), Equal)
    assert after == program


def test_constraints_of_the_loops_outside_hold_for_the_transfer() -> None:
    program = load("passes/hoist/constraint")
    after = find_pass("hoist").model_validate({"reqs": ["tile"]}).run(program, PassContext())
    assert isinstance(prove_equal(program, after), Equal)
    assert after != program


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([2, 4, 12]),
    st.sampled_from([3, 5, 15]),
    st.sampled_from([2, 4, 8]),
    st.sampled_from([4, 8, 64]),
)
def test_by_latency_no_program_gets_slower(m: int, n: int, k: int, width: int) -> None:
    """The decision is the simulator's: where the price is found from the stages of a loop alone, too."""
    text = "function (A[M=12, K=8]: i8, B[K, N=15]: i8) -> (C) { C[m, n : M, N] = +(A[m, k] * B[k, n]); }"
    passes = (
        f"autotile{{reqs=[kernel],outer_set=[tile],fixed={{m:{m},n:{n},k:{k}}}}},"
        "cache{reqs=[tile],mem_loc={name:SRAM},xfer_loc={name:DMA}},locate_block{reqs=[kernel],loc={name:CONV}}"
    )
    model = load_hardware("dsp_conv", {"DRAM_BYTES": width})
    cached = PassManager(read_setup([("passes", passes)], None, {})[0], model).run(compile_tile(text))
    remarks: list[Remark] = []
    after = (
        find_pass("hoist").model_validate({"reqs": ["tile"]}).run(cached, PassContext(model, remarks.append))
    )
    before, then = (simulate_program(program, model).cycles for program in (cached, after))
    assert then <= before * (1 + 1e-9)
    applied = [remark.message for remark in remarks if remark.kind.value == "applied"]
    assert not applied or f"; {then:,.0f} cycles, " in applied[-1]


def test_counts_and_simulator_move_the_same_bytes_of_a_matrix_product() -> None:
    entries, model = read_setup([("config", "dsp_conv")], None, {})
    assert model is not None
    text = (Path(__file__).resolve().parents[2] / "examples" / "matmul.tile").read_text("utf-8")
    program = PassManager(entries, model).run(compile_tile(text))
    (counted,) = count_program(program, hardware=model)
    memories = {
        memory.memory: memory for memory in simulation_json(simulate_program(program, model), "").memories
    }
    rows = list(rows_in_order(counted))
    assert memories["DRAM[0]"].read_bytes == sum(4 * row.read for row in rows if row.source == "DRAM")
    assert memories["DRAM[0]"].written_bytes == sum(4 * row.written for row in rows if row.sink == "DRAM")
