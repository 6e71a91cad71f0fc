"""The hierarchy of a hardware model for the mapper: memories from the outermost, and the axes of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations, permutations

from stripe.cost.mapping.problem import Axis, Hierarchy, Level, Link, LoopNest, Operand
from stripe.cost.time.machine import Machine
from stripe.cost.time.workload import CostModel
from stripe.hw.graph import parse_unit
from stripe.hw.schema import HardwareModel, Role
from stripe.ir import ConfigError


@dataclass(frozen=True)
class MappingRules:
    """Restrictions of a mapping beside those of the machine, by names of memories and axes: extents of indices inside
    a memory, operands that a memory holds as a whole, indices along an axis, and the number of buffers in a memory."""

    sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    whole: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    space: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    buffers: Mapping[str, int] = field(default_factory=dict[str, int])


def hierarchy_for(
    nest: LoopNest,
    stationary: Operand,
    hardware: HardwareModel,
    unit: str,
    compute_pJ: float,
    rules: MappingRules = MappingRules(),
    *,
    step_cycles: float | None = None,
) -> Hierarchy:
    """The machine for a product of two operands, of which `stationary` takes that role: the memories between the main
    memory and the unit, the farthest first, and the axes of its grid. `compute_pJ` and `step_cycles` are those of one
    point on one unit, to which the cycles of the grid and of the buses come; None where time does not count.

    Raises ConfigError for a machine without a main memory.
    """
    machine = Machine.of(hardware)
    main = hardware.main_memory
    if main is None:
        raise ConfigError("the machine has no main memory", hint="mark a memory with is_host")
    engine = hardware.exec_unit(unit)
    roles: dict[Role, Operand] = {"stationary": stationary, "output": nest.output}
    roles["moving"] = next(o for o in nest.operands if o not in roles.values())
    levels = _memory_levels(main, roles, machine, rules, engine.pipeline_depth)
    results = nest.output.indices
    carried = {  # the indices that may run along an axis
        "any": frozenset(nest.ranges),
        "reduced": frozenset(nest.ranges) - results,
        "outputs": results,
        "multicast": results - roles["moving"].indices,
    }
    axes = tuple(
        Axis(axis.name, axis.size, carried[axis.carries] & rules.space.get(axis.name, carried[axis.carries]))
        for axis in engine.axes
    )
    links = _links(machine, [level.memory for level in levels], unit) if step_cycles is not None else {}
    return Hierarchy(
        tuple(levels),
        axes,
        compute_pJ=compute_pJ,
        shares_diagonals=engine.shares_diagonals,
        step_cycles=step_cycles or 0.0,
        leakage_pJ=hardware.leakage_pJ_per_cycle if step_cycles is not None else 0.0,
        hold_operands=not engine.grid,
        links=links,
        routes={operand.name: _routes(machine, levels, unit, operand) for operand in nest.operands},
    )


def _memory_levels(
    main: str,
    roles: Mapping[Role, Operand],
    machine: Machine,
    rules: MappingRules,
    in_flight: int,
) -> list[Level]:
    """The main memory, and the memories that it reaches, the nearest to it first, with so many tiles in flight."""
    hardware, distances = machine.model, machine.graph.distances
    everything = frozenset(operand.name for operand in roles.values())
    reached = {
        name: memory for name, memory in hardware.mem_units.items() if name in distances and name != main
    }
    explicit = [name for name, memory in reached.items() if not memory.is_cache]
    host = hardware.memory(main)
    levels = [Level(main, everything, None, host.read_pJ_per_byte, host.write_pJ_per_byte)]
    for name in sorted(explicit, key=lambda name: (distances[name], name)):
        memory = hardware.memory(name)
        whole = rules.whole.get(name, frozenset[str]())
        levels.append(
            Level(
                name,
                frozenset(roles[role].name for role in memory.operands),
                capacity=memory.size // rules.buffers.get(name, 1),
                read_pJ=memory.read_pJ_per_byte,
                write_pJ=memory.write_pJ_per_byte,
                along=frozenset(memory.along),
                optional=frozenset(roles[role].name for role in memory.bypass) - whole,
                keeps_halo=memory.keeps_halo,
                whole=whole,
                copies=1 if name in rules.buffers else in_flight,
                sizes=rules.sizes.get(name, {}),
            )
        )
    return levels


def _routes(machine: Machine, levels: list[Level], unit: str, operand: Operand) -> frozenset[tuple[str, str]]:
    """The pairs of memories, the farther first, and of a memory and the unit (""), between which an operand moves:
    directly or through memories that it may bypass; results in both directions, through other units if need be."""
    names = [*(level.memory for level in levels), unit]
    holding = {level.memory for level in levels if operand.name not in level.optional}

    def connects(source: str, sink: str) -> bool:
        try:
            stages = machine.graph.connection(f"{source}[0]", f"{sink}[0]").stages
        except ConfigError:
            return False
        passed = {parse_unit(stage)[0] for stage in stages}
        return not passed & holding and (operand.is_output or passed <= {*names[:-1]})

    return frozenset(
        (far, "" if near == unit else near)
        for far, near in combinations(names, 2)
        if connects(far, near) and (not operand.is_output or connects(near, far))
    )


def _links(machine: Machine, memories: list[str], unit: str) -> dict[tuple[str, str], tuple[Link, ...]]:
    """Demand of a byte on buses and ports between two memories, and between a memory and the unit, and of transfers on
    the unit that makes them. A resource is apart where the last instances have another one than the first."""
    model = CostModel(machine)
    found: dict[tuple[str, str], tuple[Link, ...]] = {}
    for source, sink in permutations([*memories, unit], 2):
        count, others = machine.model.unit(source).count, machine.model.unit(sink).count
        first = f"{source}[0]", f"{sink}[0]"
        last = f"{source}[{count - 1}]", f"{sink}[{others - 1}]"
        try:
            route, other = machine.graph.connection(*first), machine.graph.connection(*last)
        except ConfigError:
            continue  # no operand goes from here to there
        shared = {resource for resource, _ in model.byte_rates(*last, other).cycles}
        links = [
            Link(str(resource), cycles, first != last and resource not in shared)
            for resource, cycles in model.byte_rates(*first, route).cycles
        ]
        if unit not in (source, sink):
            resource, latency, cycles = model.transfer_demand(*first, route)
            links.append(Link(f"transfers of {resource}", cycles, latency=latency))
        found["" if source == unit else source, "" if sink == unit else sink] = tuple(links)
    return found
