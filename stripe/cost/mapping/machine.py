"""The levels and axes of a hardware model, as the mapper sees them."""

from __future__ import annotations

from stripe.cost.mapping.problem import Axis, Hierarchy, Level, LoopNest, Operand
from stripe.hw.schema import ExecUnit, HardwareModel, Role
from stripe.hw.trace import unit_graph
from stripe.ir import ConfigError, DType


def target_for(
    nest: LoopNest, stationary: Operand, hardware: HardwareModel, unit: ExecUnit, dtype: DType
) -> Hierarchy:
    """The machine for a product of two operands, of which `stationary` takes that role: the memories between the main
    memory and the unit, the farthest first, and the axes of its grid. `dtype` is that of the factors.

    Raises ConfigError for a machine without a main memory.
    """
    main = hardware.main_memory
    if main is None:
        raise ConfigError("the machine has no main memory", hint="mark a memory with is_host")
    roles: dict[Role, Operand] = {"stationary": stationary, "output": nest.output}
    roles["moving"] = next(o for o in nest.operands if o not in roles.values())
    distances = unit_graph(hardware).distances
    nearer = sorted(
        (name for name, memory in hardware.mem_units.items() if name != main and not memory.is_cache),
        key=lambda name: (distances.get(name, len(distances)), name),
    )
    host = hardware.memory(main)
    everything = frozenset(operand.name for operand in nest.operands)
    levels = [Level(main, everything, None, host.read_pJ_per_byte, host.write_pJ_per_byte)]
    for name in nearer:
        memory = hardware.memory(name)
        if name not in distances:
            continue
        levels.append(
            Level(
                name,
                frozenset(roles[role].name for role in memory.operands),
                memory.size,
                memory.read_pJ_per_byte,
                memory.write_pJ_per_byte,
                frozenset(memory.along),
                frozenset(roles[role].name for role in memory.bypass),
                memory.keeps_halo,
            )
        )
    results = nest.output.indices
    carried = {  # the indices that may run along an axis
        "any": frozenset(nest.ranges),
        "reduced": frozenset(nest.ranges) - results,
        "outputs": results,
        "multicast": results - roles["moving"].indices,
    }
    axes = tuple(Axis(axis.name, axis.size, carried[axis.carries]) for axis in unit.grid)
    return Hierarchy(tuple(levels), axes, unit.mac_energy_pJ(dtype), unit.shares_diagonals)
