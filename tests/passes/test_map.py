"""The pass `map`: its programs cost what it says, on all rules of the machine."""

from __future__ import annotations

import re

import pytest

import stripe
from stripe.cost.counts.counts import count_program
from stripe.hw import load_hardware

MATMUL = "function (I[M=32, K=64]: i8, W[K, N=48]: i8) -> (O) { O[m, n : M, N] = +(I[m, k] * W[k, n]); }"
QUANTISED = MATMUL.replace("[m, n : M, N] =", "[m, n : M, N]: i32 =")
"""Products of bytes, summed in 32 bits: a unit reads the bytes as they are."""
CONV = """function (I[X=8, Y=8, C=16]: i8, W[FX=3, FY=3, C, K=16]: i8) -> (O) {
    O[x, y, k : 6, 6, K] = +(I[x + i, y + j, c] * W[i, j, c, k]);
}"""


def strided(stride: int, window: int, channels: int = 16) -> str:
    """A convolution whose stride is longer than its window: elements between are neither moved nor read."""
    size = 7 * stride + window
    return f"""function (I[X={size}, Y={size}, C={channels}]: i8, W[FX={window}, FY={window}, C, K=32]: i8) -> (O) {{
    O[x, y, k : 8, 8, K] = +(I[{stride}*x + i, {stride}*y + j, c] * W[i, j, c, k]);
}}"""


GAPS = [strided(2, 1), strided(3, 2), strided(4, 1, channels=3)]


@pytest.mark.parametrize(
    "source",
    [MATMUL, QUANTISED, CONV, *GAPS],
    ids=["matmul", "quantised", "conv", "1 of 2", "2 of 3", "1 of 4"],
)
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


ODD = """function (I[M=37, K=32]: i8, W[K, N=32]: i8, J[M, K]: i8, V[K, N]: i8) -> (O, P) {
    O[m, n : M, N] = +(I[m, k] * W[k, n]);
    P[a, b : M, N] = +(J[a, c] * V[c, b]);
}"""


def mapped(source: str, options: str) -> tuple[stripe.Program, list[str]]:
    remarks: list[str] = []
    program = stripe.run_passes(
        stripe.parse(source),
        f"map{{reqs=[kernel]{options}}}",
        hardware=load_hardware("ref16x16"),
        verify="exact",
        on_remark=lambda _, remark: remarks.append(str(remark)),
    )
    return program, remarks


def test_an_index_that_fits_badly_is_cut_and_equal_kernels_are_searched_once() -> None:
    program, remarks = mapped(ODD, ",space={columns=[m,a]}")
    assert "m below 32: " in remarks[0] and "in space k:16 m:16" in remarks[0]
    assert "a below 32: " in remarks[1] and "; as the equal block before, " in remarks[1]
    first, second = count_program(program, hardware=load_hardware("ref16x16"))
    assert first.energy_pJ is not None and f"{first.energy_pJ / 1e6:.3f} uJ; m below" in remarks[0]
    assert first.energy_pJ == second.energy_pJ
    _, whole = mapped(ODD, ",space={columns=[m,a]},peel=false")
    assert "below" not in whole[0]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (",fixed={SRAM={n=12}}", "n:4 <W@SRAM>"),
        (",keep={SRAM=[O]}", "<I@SRAM> <W@SRAM> <O@SRAM> m:2 <O@Orf>"),
        (",stationary=W", "W@Wreg"),
        (",space={columns=[m]}", "m:16"),
    ],
)
def test_rules_are_kept(options: str, found: str) -> None:
    _, remarks = mapped(MATMUL, options)
    assert found in remarks[-1], remarks


def test_a_name_that_no_block_has_is_told() -> None:
    _, remarks = mapped(MATMUL, ",fixed={SRAM={q=4}}")
    assert remarks[0].startswith("warning: fixed: no block that the tags fit has the index 'q'")
    with pytest.raises(stripe.ConfigError, match="no axis 'row'"):
        mapped(MATMUL, ",space={row=[k]}")


@pytest.mark.parametrize("source", [MATMUL, QUANTISED, CONV], ids=["matmul", "quantised", "conv"])
@pytest.mark.parametrize(
    ("machine", "unit"),
    [
        ("ref16x16", ""),
        ("dsp_conv", "CONV"),
        ("systolic", "MXU"),
        ("hexagon", ""),
        pytest.param("eyeriss", "", marks=pytest.mark.long),
    ],
)
def test_the_latency_is_near_the_simulated_one(machine: str, unit: str, source: str) -> None:
    """Each transfer takes its latency besides its bytes; a plan by energy is no quicker."""
    model, option = load_hardware(machine), f",unit={unit}" if unit else ""
    cycles: dict[str, float] = {}
    remarks: list[str] = []
    for objective in ("energy", "latency"):
        program = stripe.run_passes(
            stripe.parse(source),
            f"map{{reqs=[kernel],objective={objective}{option}}}",
            hardware=model,
            on_remark=lambda _, remark: remarks.append(str(remark)),
        )
        cycles[objective] = stripe.simulate(program, model).latency_cycles
    said = re.search(r"([0-9,]+) cycles: .* ([0-9,]+) simulated", remarks[-1])
    assert said, remarks[-1]
    priced, simulated = (int(number.replace(",", "")) for number in said.groups())
    assert 0.5 < priced / simulated < 1.5
    assert cycles["latency"] <= 1.001 * cycles["energy"]


@pytest.mark.parametrize("rule", ["keep={Wreg=[I]}", "fixed={Wreg={x=4,i=3}}"])
def test_orders_without_a_combination_of_a_window_are_left_out(rule: str) -> None:
    """The positions of ref16x16 share no diagonals: one index of a window runs in space."""
    window = "function (I[X=6]: i8, K[A=3]: i8) -> (O) { O[x : 4] = +(I[x + i] * K[i]); }"
    _, remarks = mapped(window, f",{rule}")
    assert "in space i:3" in remarks[-1]


def test_plans_are_ranked_by_simulation() -> None:
    _, remarks = mapped(MATMUL, ",objective=latency,buffers={SRAM=2}")
    _, ranked = mapped(MATMUL, ",objective=latency,buffers={SRAM=2},plans=6")
    times = [re.search(r"([0-9]+) simulated", said[-1]) for said in (ranked, remarks)]
    assert times[0] and times[1] and int(times[0][1]) <= int(times[1][1])
    _, product = mapped(MATMUL, ",objective=edp,limit=1,plans=3")
    assert "above the bound" in product[-1] and product[-2].startswith("analysis: kernel_0: plan 3:")


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("keep={Wreg:[O]}", "keep: Wreg holds no results"),
        ("keep={DRAM:[I]}", "keep: DRAM is the main memory"),
        ("buffers={DRAM:2}", "buffers: DRAM is the main memory"),
    ],
)
def test_rules_that_no_mapping_can_keep_are_named(rule: str, reason: str) -> None:
    _, remarks = mapped(MATMUL, f",{rule}")
    assert any(reason in text for text in remarks)


def test_a_limit_ends_the_exact_search() -> None:
    whole, limited = (
        int(found[1])
        for rule in ("", ",limit=1")
        if (found := re.search(r"([0-9]+) mappings priced", mapped(CONV, rule)[1][-1]))
    )
    assert limited < whole


SHARED = """function (I[X=18, Y=18, C=32]: i8, W[FX=3, FY=3, C, K=64]: i8) -> (O) {
    O[x, y, k : 16, 16, K] = +(I[x + i, y + j, c] * W[i, j, c, k]);
}"""


@pytest.mark.parametrize(
    "source",
    [
        MATMUL.replace("M=32, K=64", "M=512, K=256").replace("N=48", "N=96"),
        pytest.param(SHARED, marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize(("unit", "count"), [("CONV", 2), ("CONV", 4), ("DSP", 8)])
def test_units_without_a_grid_share_the_work(source: str, unit: str, count: int) -> None:
    """The simulator counts all of them busy, with the time and the energy of the price."""
    cycles: list[float] = []
    for number in (1, count):
        machine = load_hardware("dsp_conv", {f"NUM_{unit}": number, "DRAM_BYTES": 512})
        options = f"map{{reqs=[kernel],unit={unit},objective=latency,buffers={{SRAM=2}}}}"
        remarks: list[stripe.Remark] = []

        def listen(_: str, remark: stripe.Remark, said: list[stripe.Remark] = remarks) -> None:
            said.append(remark)

        mapped = stripe.run_passes(
            stripe.parse(source), options, hardware=machine, verify="exact", on_remark=listen
        )
        found = stripe.simulate(mapped, machine)
        busy = [use for use in found.units if use.unit.startswith(unit)]
        assert len(busy) == number and all(use.utilisation > 0.9 for use in busy)
        words = re.match(r"([0-9.]+) uJ, ([0-9,]+) cycles.* ([0-9,]+) simulated", remarks[-1].message)
        assert words is not None
        energy, price, simulated = (float(word.replace(",", "")) for word in words.groups())
        assert simulated == round(found.latency_cycles)
        assert price == pytest.approx(simulated, rel=0.1)
        assert energy * 1e6 == pytest.approx(found.energy_pJ, rel=0.02)
        cycles.append(found.latency_cycles)
    assert cycles[1] < 1.1 * cycles[0] / count


@pytest.mark.parametrize("unit", ["MAT", "VEC"])
def test_many_small_transfers_take_their_latency(unit: str) -> None:
    """Each transfer of edge_npu takes 150 cycles besides its bytes: the quickest mapping makes few of them."""
    machine = load_hardware("edge_npu")
    located = "locate_memory{reqs=[program],loc={name:DDR}},locate_memory{reqs=[main],loc={name:DDR}}"
    cycles: dict[str, float] = {}
    for objective in ("energy", "latency", "edp"):
        options = f"reqs=[kernel],unit={unit},objective={objective}"
        program = stripe.run_passes(stripe.parse(GAPS[0]), f"{located},map{{{options}}}", hardware=machine)
        cycles[objective] = stripe.simulate(program, machine).latency_cycles
    assert cycles["latency"] <= min(cycles["energy"], cycles["edp"]) * 1.001


def test_an_axis_of_units_has_rules_too() -> None:
    machine = load_hardware("dsp_conv", {"NUM_CONV": 4})
    for rule, place in (("space={units=[m]}", "CONV[m.o]"), ("space={units=[n]}", "CONV[n.o]")):
        options = f"reqs=[kernel],unit=CONV,objective=latency,{rule}"
        text = stripe.run_passes(stripe.parse(MATMUL), f"map{{{options}}}", hardware=machine)
        assert f"block<{place}>" in str(text)


@pytest.mark.parametrize(
    "machine", ["portable", "mobile_gpu", "aarch64_neon", "x86_avx2", "eyeriss", "hexagon"]
)
def test_units_that_hold_no_operand_themselves(machine: str) -> None:
    """A machine of one unit without a grid, and of memories that operands may pass by, has mappings or a reason."""
    remarks: list[str] = []
    program = stripe.parse(
        "function (A[M=8, K=4], B[K, N=16]) -> (C) { C[m, n : M, N] = +(A[m, k] * B[k, n]); }"
    )
    stripe.run_passes(
        program,
        "map{reqs=[kernel]}",
        hardware=load_hardware(machine),
        verify="exact",
        on_remark=lambda _, remark: remarks.append(str(remark)),
    )
    assert any("mappings priced" in text or "not mapped: no mapping fits" in text for text in remarks)
    has_caches = any(memory.is_cache for memory in load_hardware(machine).mem_units.values())
    assert any("the search counts no caches" in text for text in remarks) == has_caches


def test_a_machine_that_leaks_is_mapped_for_little_time() -> None:
    """Accesses cost nothing there, and static energy as much as the mapping takes time."""
    machine = load_hardware("systolic")
    remarks: list[str] = []
    program = stripe.run_passes(
        stripe.parse(MATMUL),
        "map{reqs=[kernel],unit=MXU}",
        hardware=machine,
        verify="exact",
        on_remark=lambda _, remark: remarks.append(str(remark)),
    )
    assert any("mappings priced, 0.0 % above the bound" in text for text in remarks)
    assert stripe.simulate(program, machine).latency_cycles < 2000


@pytest.mark.long
@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ("I[M=3, K=15]: i8, W[K, N=1]: i8", "objective=latency"),
        ("I[M=17, K=17]: i8, W[K, N=17]: i8", "objective=latency"),
        ("I[M=3, K=15]: i8, W[K, N=1]: i8", "fixed={SRAM:{m:1,k:15}},objective=edp"),
    ],
)
def test_a_part_of_a_cut_index_may_have_one_value(sizes: str, options: str) -> None:
    text = f"function ({sizes}) -> (O) {{ O[m, n : M, N] = +(I[m, k] * W[k, n]); }}"
    machine = load_hardware("ref16x16", {"ROWS": 4, "COLUMNS": 2})
    passes = f"map{{reqs=[kernel],{options}}}"
    mapped = stripe.run_passes(stripe.parse(text), passes, hardware=machine, verify="exact")
    assert "block<PE[" in str(mapped)


@pytest.mark.parametrize(("machine", "unit"), [("systolic", "MXU"), ("dsp_conv", "CONV")])
def test_tiles_in_flight_fit_into_the_memories(machine: str, unit: str) -> None:
    """Units with two tiles in flight hold each tile twice, and what stays in a memory once."""
    source = """function (A[Q=4, M=512, K=512]: i8, B[Q, K, N=512]: i8) -> (C) {
      C[q, m, n : Q, M, N] = +(A[q, m, k] * B[q, k, n]);
    }"""
    model = load_hardware(machine)
    mapped = stripe.run_passes(stripe.parse(source), f"map{{reqs=[kernel],unit={unit}}}", hardware=model)
    report = stripe.simulate(mapped, model)
    assert all(memory.peak_bytes <= memory.capacity_bytes for memory in report.memories)


def test_what_an_array_needs_to_fill_is_seen_where_energy_leaks() -> None:
    """The estimate has no time for it; the simulation of the best plans does."""
    model = load_hardware("systolic", {"ROWS": 16, "COLUMNS": 16})
    source = """function (I[X=11, C=12]: i8, W[F=2, C]: i8) -> (R) {
      R[x, c : 10, C] = +(I[x + f, c] * W[f, c]);
    }"""
    energies: dict[str, float] = {}
    for option in ("objective=energy", "objective=latency,plans=8"):
        mapped = stripe.run_passes(
            stripe.parse(source), f"map{{reqs=[kernel],unit=MXU,{option}}}", hardware=model
        )
        energies[option] = stripe.simulate(mapped, model).energy_pJ
    assert min(energies.values()) == energies["objective=energy"]
