"""The bytes of tiles: transfers into a memory and back, and operands between the memory and a unit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stripe.cost.counts.tiles import TileFootprint
from stripe.cost.time.machine import Machine
from stripe.cost.time.statement import Resource
from stripe.cost.time.workload import CostModel
from stripe.ir import Agg, ConfigError, Direction, Location


@dataclass(frozen=True, slots=True)
class TileTransfer:
    """One view on its route into a memory or back: its bytes per cycle, the cycles before the first byte, the channels
    that transfers share, and the cycles that a byte takes of each resource."""

    footprint: TileFootprint
    reads: bool
    bytes_per_cycle: float
    latency_cycles: float
    needs: tuple[tuple[Resource, float], ...] = ()

    @property
    def is_back(self) -> bool:
        """Whether the transfer brings partial results back."""
        return self.reads and not self.footprint.ref.dir.reads


def find_transfers(
    machine: Machine, footprints: Iterable[TileFootprint], memory: str
) -> Iterator[TileTransfer]:
    """The transfers of the views into `memory` and back. A view without a location lies in the machine's main memory.

    Raises ConfigError for a view that no route leads to.
    """
    near = f"{memory}[0]"
    model = CostModel(machine)
    for footprint in footprints:
        far = machine.memory(footprint.ref.location)
        way = footprint.ref.dir
        # partial results come back when the reduction is split
        returns = way is Direction.OUT and footprint.ref.agg is not Agg.ASSIGN
        for reads in (True,) * (way.reads or returns) + (False,) * way.writes:
            ends = (far, near) if reads else (near, far)
            route = machine.graph.route(*ends)
            needs = model.byte_rates(*ends, route).cycles
            yield TileTransfer(footprint, reads, route.bytes_per_cycle, route.latency_cycles, needs)


@dataclass(frozen=True, slots=True)
class TileOperand:
    """A view between the memory and the unit, with the cycles that a byte takes of each resource."""

    footprint: TileFootprint
    back: bool
    """Whether it is partial results that the unit reads again."""
    needs: tuple[tuple[Resource, float], ...]


def find_operands(
    machine: Machine, footprints: Iterable[TileFootprint], memory: str, unit: str
) -> list[TileOperand]:
    """The views between `memory` and a unit; none where no route leads from one to the other."""
    model = CostModel(machine)
    found: list[TileOperand] = []
    seat = f"{unit}[0]"
    for footprint in footprints:
        way = footprint.ref.dir
        merges = way.writes and footprint.ref.agg is not Agg.ASSIGN
        for writes, back in ((False, merges),) * (way.reads or merges) + ((True, False),) * way.writes:
            near = machine.memory_near(Location.of(memory), seat, writes=writes)
            ends = (seat, near) if writes else (near, seat)
            try:
                route = machine.graph.connection(*ends)
            except ConfigError:
                return []
            found.append(TileOperand(footprint, back, model.byte_rates(*ends, route).cycles))
    return found
