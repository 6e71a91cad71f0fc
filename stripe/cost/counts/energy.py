"""Energy: of operations, of the accesses that counts tell, and of bytes on their routes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from stripe.cost.counts.operations import Operations
from stripe.cost.counts.traffic import ARRAY, KernelCounts
from stripe.hw.graph import Route, parse_unit
from stripe.hw.schema import ExecUnit, HardwareModel


def operations_energy(operations: Operations, unit: ExecUnit) -> float:
    """Energy of operations, pJ; a multiply and the add of its result count as one multiply-accumulate."""
    total = 0.0
    for (product, result), number in operations.macs.items():
        key = f"mac:{product.name}"
        if key in unit.energy_pJ_per_op or "mac" in unit.energy_pJ_per_op:
            total += number * unit.mac_energy_pJ(product)
        else:
            total += number * (unit.op_energy_pJ("mul", product) + unit.op_energy_pJ("add", result))
    others = operations.beside_macs.items()
    return total + sum(number * unit.op_energy_pJ(op, dtype) for (op, dtype), number in others)


def count_energy(counts: KernelCounts, model: HardwareModel) -> tuple[float, dict[str, float]]:
    """Energy of the operations, and of the accesses of each memory, pJ."""
    unit = next(iter(model.exec_units.values()))
    if not any(name in unit.energy_pJ_per_op for name in ("mac", "all")):
        unit = max(model.exec_units.values(), key=lambda unit: operations_energy(counts.operations, unit))
    memories: dict[str, float] = defaultdict(float)
    for row in counts.traffic:
        if row.source != ARRAY:
            picojoules = model.memory(row.source).read_pJ_per_byte
            memories[row.source] += row.read * row.element_bytes * picojoules
        if row.sink != ARRAY:
            picojoules = model.memory(row.sink).write_pJ_per_byte
            memories[row.sink] += row.written * row.element_bytes * picojoules
    return operations_energy(counts.operations, unit), dict(memories)


def route_energy(route: Route, model: HardwareModel) -> Iterator[tuple[str, float]]:
    """The energy of a byte on a route, pJ, by component: buses, and the units between them."""
    for hop in route.hops:
        if hop.bus.pJ_per_byte:
            yield f"bus {bus_name(model, hop.index)}", hop.bus.pJ_per_byte
    for unit in route.units:
        name = parse_unit(unit)[0]
        if name in model.tx_units:
            energy = model.tx_units[name].pJ_per_byte
            if energy:
                yield name, energy
        elif name in model.mem_units:
            memory = model.mem_units[name]
            yield f"{name} write", memory.write_pJ_per_byte
            yield f"{name} read", memory.read_pJ_per_byte


def bus_name(model: HardwareModel, index: int) -> str:
    """The name of a bus in reports: its own, or its number."""
    return model.buses[index].name or str(index)
