"""The mapper on the machine of ref16x16: energies that an annealer found, reached or beaten, and counted."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest

from stripe.cost.counts.counts import count_program
from stripe.cost.mapping import search as search_module
from stripe.cost.mapping.dominance import undominated
from stripe.cost.mapping.hierarchy import hierarchy_for
from stripe.cost.mapping.loop_mapping import LoopMapping
from stripe.cost.mapping.problem import Hierarchy, Level, LoopNest, Operand
from stripe.cost.mapping.search import search
from stripe.cost.mapping.skeletons import residencies
from stripe.hw import load_hardware
from stripe.hw.schema import ROLES, HardwareModel
from stripe.ir.dtypes import I8
from tests.support.mappings import Mapped, as_stripe

ALL = frozenset({"W", "I", "O"})


def matmul(m: int, n: int, k: int) -> LoopNest:
    operands = (
        Operand("W", ({"k": 1}, {"n": 1})),
        Operand("I", ({"m": 1}, {"k": 1})),
        Operand("O", ({"m": 1}, {"n": 1}), is_output=True),
    )
    return LoopNest({"m": m, "n": n, "k": k}, operands)


def conv(size: int, window: int, c: int, k: int, stride: int = 1) -> LoopNest:
    operands = (
        Operand("W", ({"fx": 1}, {"fy": 1}, {"c": 1}, {"k": 1})),
        Operand("I", ({"ox": stride, "fx": 1}, {"oy": stride, "fy": 1}, {"c": 1})),
        Operand("O", ({"ox": 1}, {"oy": 1}, {"k": 1}), is_output=True),
    )
    return LoopNest({"ox": size, "fx": window, "oy": size, "fy": window, "c": c, "k": k}, operands)


def target(nest: LoopNest, *, free: bool = False, bypass: bool = False, keep: bool = False) -> Hierarchy:
    """ref16x16 with the weights stationary."""
    hardware = load_hardware("ref16x16", {"FREE": free, "BYPASS": bypass, "KEEP_HALO": keep})
    return hierarchy_for(nest, nest.operands[0], hardware, "PE", hardware.exec_unit("PE").mac_energy_pJ(I8))


MATMUL = matmul(512, 512, 512)
CONV = conv(56, 3, 64, 64)
TABLE = [
    (MATMUL, {}, 330.737),
    (MATMUL, {"bypass": True}, 330.737),
    (MATMUL, {"keep": True}, 330.737),
    (MATMUL, {"free": True}, 321.866),
    (CONV, {}, 167.163),
    (CONV, {"bypass": True}, 164.76),
]
SLOW = [
    (CONV, {"keep": True}, 163.338),
    (CONV, {"free": True}, 155.046),
    (MATMUL, {"free": True, "bypass": True}, 321.866),
    (MATMUL, {"free": True, "bypass": True, "keep": True}, 321.866),
    (CONV, {"free": True, "bypass": True}, 152.637),
    (CONV, {"free": True, "bypass": True, "keep": True}, 148.773),
]
ROWS = [*TABLE, *(pytest.param(*row, marks=pytest.mark.slow) for row in SLOW)]


@pytest.mark.parametrize(("nest", "rules", "microjoules"), ROWS)
def test_energies_of_the_annealer_are_reached(
    nest: LoopNest, rules: dict[str, bool], microjoules: float
) -> None:
    (plan,) = search(nest, [target(nest, **rules)]).best
    assert plan.energy_pJ / 1e6 <= microjoules + 0.0005


def mapped(nest: LoopNest, plan: LoopMapping) -> Mapped:
    """The plan as loops; a loop of one round after each node keeps the boundaries of levels apart."""
    loops: list[tuple[str, int]] = []
    outside: list[tuple[str, str, int]] = []
    for node, around in zip(plan.skeleton.nodes, plan.loops(nest), strict=False):
        loops += [*around, (next(iter(nest.ranges)), 1)]
        outside.append((node.operand.name, node.level.memory, len(loops)))
    loops += plan.loops(nest)[-1]
    within: dict[str, list[tuple[str, int]]] = {operand.name: [] for operand in nest.operands}
    for operand, memory, above in outside:
        within[operand].append((memory, len(loops) - above))
    spatial = tuple(
        (name, prod(split.spatial)) for name, split in plan.splits.items() if prod(split.spatial) > 1
    )
    operands = {operand.name: operand.index for operand in nest.operands}
    return Mapped(
        "plan", operands, tuple(loops), spatial, {name: tuple(levels) for name, levels in within.items()}
    )


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("bypass", [False, True])
@pytest.mark.parametrize(
    "nest", [matmul(32, 64, 48), conv(14, 3, 16, 32), conv(7, 3, 32, 16, stride=2), conv(8, 1, 64, 64)]
)
def test_plans_cost_what_counting_says(nest: LoopNest, bypass: bool, keep: bool) -> None:
    machine = target(nest, bypass=bypass, keep=keep)
    hardware = load_hardware("ref16x16")
    for plan in search(nest, [machine], count=5).best:
        (counted,) = count_program(as_stripe(mapped(nest, plan)), "keep" if keep else "refetch", hardware)
        assert counted.energy_pJ is not None
        # A price may be too high where a step of several loops ends at the box where it began; never too low.
        assert counted.energy_pJ <= plan.energy_pJ * (1 + 1e-9)
        assert counted.energy_pJ >= plan.energy_pJ * 0.99


def test_several_plans_are_ranked_and_distinct() -> None:
    nest = matmul(16, 32, 64)
    plans = search(nest, [target(nest)], count=20).best
    assert len(plans) == 20
    assert [p.energy_pJ for p in plans] == sorted(p.energy_pJ for p in plans)
    assert len({(str(p.skeleton), tuple(p.splits.items())) for p in plans}) == 20


def test_windows_over_many_indices_take_bounded_time() -> None:
    """Four indices in one access have 50 million common splits in each of many skeletons."""
    operands = (
        Operand("W", ({"a": 1}, {"b": 1})),
        Operand("I", ({"x": 1, "a": 1, "y": 1}, {"y": 1, "b": 1})),
        Operand("O", ({"x": 1}, {"y": 1}), is_output=True),
    )
    nest = LoopNest({"a": 12, "b": 12, "x": 24, "y": 24}, operands)
    found = search(nest, [target(nest)])
    assert not found.is_complete and found.best
    assert search(matmul(16, 32, 64), [target(matmul(16, 32, 64))]).is_complete


def test_independent_indices_take_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "MOST_PRICED", 1000)
    monkeypatch.setattr(search_module, "WIDEST", 100)
    nest = conv(14, 3, 16, 32)
    found = search(nest, [target(nest)])
    assert not found.is_complete
    monkeypatch.undo()
    (best,) = search(nest, [target(nest)]).best
    assert best.energy_pJ <= found.best[0].energy_pJ <= 1.2 * best.energy_pJ


def brute(nest: LoopNest, machine: Hierarchy) -> float:
    """The cheapest mapping of one loop order a level, by counting all of them: three levels of loops, no space."""
    best = float("inf")
    hardware = load_hardware("ref16x16")
    names = list(nest.ranges)
    for inner in product(*(divisors(size) for size in nest.ranges.values())):
        for outer in product(*(divisors(n) for n in inner)):
            loops: list[tuple[str, int]] = []
            for sizes, over in ((nest.ranges.values(), inner), (inner, outer), (outer, (1,) * len(outer))):
                loops += [(name, a // b) for name, a, b in zip(names, sizes, over, strict=True)]
            shape = dict(zip(names, outer, strict=True))
            if prod(shape[name] for name in nest.operands[0].indices) > 1 or nest.output.elements(shape) > 64:
                continue
            within = {
                "W": (("SRAM", 2 * len(names)), ("Wreg", len(names))),
                "I": (("SRAM", 2 * len(names)),),
                "O": (("SRAM", 2 * len(names)), ("Orf", len(names))),
            }
            plan = Mapped("plan", {o.name: o.index for o in nest.operands}, tuple(loops), (), within)
            (counted,) = count_program(as_stripe(plan), "refetch", hardware)
            assert counted.energy_pJ is not None
            best = min(best, counted.energy_pJ)
    return best


def divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def test_nothing_that_is_enumerated_is_cheaper() -> None:
    nest = matmul(4, 6, 2)
    machine = target(nest)
    machine = Hierarchy(machine.levels, (), machine.compute_pJ)
    (plan,) = search(nest, [machine]).best
    assert plan.energy_pJ <= brute(nest, machine) * (1 + 1e-9)


def test_no_plan_where_nothing_fits() -> None:
    nest = matmul(4, 4, 4)
    levels = (Level("DRAM", ALL, None, 160, 170), Level("SRAM", ALL, 2, 5, 7))
    assert search(nest, [Hierarchy(levels)]).best == ()


def chains(machine: HardwareModel, unit: str) -> list[set[str]]:
    """For each operand of a product the memories that may hold it, one after the other."""
    nest = matmul(4, 4, 4)
    levels = hierarchy_for(nest, nest.operands[0], machine, unit, machine.exec_unit(unit).mac_energy_pJ(I8))
    found = zip(*residencies(nest, levels), strict=True)
    return [{" ".join(node.level.memory for node in chain) for chain in each} for each in found]


@pytest.mark.parametrize(
    ("machine", "unit", "expected"),
    [
        ("eyeriss", "PE", ["GLB FILTER", "GLB IFMAP", "GLB PSUM"]),
        ("ref16x16", "PE", ["SRAM Wreg", "SRAM", "SRAM Orf"]),
        ("systolic", "MXU", ["WEIGHTS FIFO", "UB", "UB ACC"]),
    ],
)
def test_operands_are_held_by_the_memories_of_their_roles(
    machine: str, unit: str, expected: list[str]
) -> None:
    assert chains(load_hardware(machine), unit) == [{each} for each in expected]


def test_operands_are_held_where_routes_lead() -> None:
    """Memories side by side are no levels of one chain; nor does an operand pass through the unit to get into one."""
    model = load_hardware("eyeriss")
    memories = {
        name: memory.model_copy(update={"operands": ROLES}) for name, memory in model.mem_units.items()
    }
    factors = {"GLB FILTER", "GLB IFMAP", "GLB PSUM"}
    assert chains(model.model_copy(update={"mem_units": memories}), "PE") == [factors, factors, {"GLB PSUM"}]


def test_rows_that_others_undercut_are_dropped() -> None:
    import numpy as np

    generator = np.random.default_rng(0)
    rows = generator.integers(0, 6, (900, 4)).astype(np.float64)
    kept = undominated(rows)
    front = rows[kept]
    for row in rows:
        assert (front <= row).all(axis=1).any()
    for number, row in enumerate(front):
        others = np.delete(front, number, axis=0)
        assert not (others <= row).all(axis=1).any()
