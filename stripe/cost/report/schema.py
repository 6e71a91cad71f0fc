"""The reports of `stripe-sim --json`, as pydantic models, which make the JSON and its schema (see docs/sim.md)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from stripe.config.model import Scalar
from stripe.cost.counts.loops import Halo
from stripe.ir.frozen import frozen


class SourceJson(BaseModel):
    """A number of the hardware model without a source, or another one than its source has."""

    path: str = Field(description="its place in the rendered model, or `parameters.NAME`")
    value: Scalar | None = Field(default=None, description="the number, where the entry tells it")
    unit: str = ""
    note: str = ""
    source: str = Field(description="'unverified', or empty where the model has no entry for the number")
    stated: Scalar | None = Field(
        default=None, description="the number that its source has, where the model has another one"
    )


@frozen  # no pydantic model: a report has tens of thousands
class SliceJson:
    """One step of one tile of a kernel that loops over transfers; `step` is its place in the `steps` of the kernel."""

    unit: str
    name: str
    tile: int
    kind: Literal["kernel", "transfer"]
    start_cycle: float
    end_cycle: float
    step: int = 0


class StepJson(BaseModel):
    """A step of the tiles of a kernel that loops over transfers."""

    name: str
    kind: Literal["kernel", "transfer"]
    cycles: float = Field(description="of all tiles together")
    busy: dict[str, float] = Field(
        description="of which it keeps each unit, and needs each bus, transfer unit and memory port"
    )


class StatementJson(BaseModel):
    """One statement of `main`: a kernel, or a transfer between memories."""

    number: int = Field(description="its number in main")
    name: str
    kind: Literal["kernel", "transfer"]
    units: tuple[str, ...] = Field(description="the units that it occupied")
    waits_for: tuple[int, ...] = Field(description="numbers of the statements that it depends on")
    ready_cycle: float = Field(description="when all that it waits for had ended")
    start_cycle: float
    end_cycle: float
    cycles: float = Field(description="from start to end")
    microseconds: float
    alone_cycles: float = Field(description="what it takes with the machine for itself")
    compute_cycles: float = Field(description="of which its units compute")
    utilisation: float = Field(description="share of the units' lanes that do useful work while they compute")
    rule: str = Field(
        description="how compute_cycles follows: by rates, a stencil, vectors, a systolic array"
    )
    tiles: int = Field(description="points of its outermost loop over transfers; 1 without one")
    operations: dict[str, int] = Field(description="number of operations by 'intrinsic:dtype'")
    macs: int = Field(description="multiply-accumulates; their two operations are in `operations` as well")
    bytes: dict[str, float] = Field(description="bytes read and written, by name of the memory")
    transfers: tuple[int, ...] = Field(
        description="of a kernel: those that brought what it is the first to use or took what it was the last to make"
    )
    intensity: float | None = Field(
        description="operations per byte that it and its transfers move at the main memory; null without any byte"
    )
    ops_per_cycle: float = Field(description="operations by cycles")
    sustained_ops_per_cycle: float = Field(
        description="operations by the cycles that it or its transfers take, whichever is longer"
    )
    peak_ops_per_cycle: float = Field(description="the most that its units do of these operations")
    main_bytes_per_cycle: float | None = Field(
        description="what the buses at the main memory allow for its mix of reads and writes; null without any byte"
    )
    roof_ops_per_cycle: float = Field(description="what compute and main memory's buses allow: the roofline")
    bound: str = Field(description="'compute', or the bus, transfer unit or memory port that takes longest")
    stalls: dict[str, float] = Field(description="cycles by cause, of those that it took but did not compute")
    busy: dict[str, float] = Field(
        default={},
        description="cycles for which it keeps each unit, and needs each bus, transfer unit and memory port",
    )
    energy_pJ: float
    steps: tuple[StepJson, ...] = Field(
        default=(), description="the steps of each tile; empty where `slices` is"
    )
    slices: tuple[SliceJson, ...] = Field(
        description="what happens inside; empty for what has no tiles, or too many"
    )


class UnitJson(BaseModel):
    """One unit that computes or transfers."""

    unit: str
    kind: str
    busy_cycles: float = Field(description="cycles in which it was occupied")
    useful_cycles: float = Field(description="cycles of work at its full rate")
    utilisation: float = Field(description="useful cycles by latency")
    stalls: dict[str, float] = Field(
        description="cycles by cause in which it could not go on, or had nothing to do"
    )


class BusJson(BaseModel):
    """One bus that carried anything."""

    name: str
    bytes: float
    busy_cycles: float
    utilisation: float


class MemoryJson(BaseModel):
    """One memory."""

    memory: str
    capacity_bytes: int
    peak_bytes: int = Field(description="the most bytes of buffers alive at one time")
    placed_bytes: int | None = Field(description="where the last placed buffer ends; null before placement")
    read_bytes: float
    written_bytes: float


class SimulationJson(BaseModel):
    """The report that `stripe-sim --json` writes."""

    input: str
    machine: str
    parameters: dict[str, Scalar]
    clock_mhz: float
    scheduled: bool = Field(
        description="whether the program says what waits for what; else one after the other"
    )
    latency_cycles: float
    latency_us: float
    operations: int
    macs: int
    energy_pJ: float
    energy: dict[str, float] = Field(
        description="pJ by component: compute, memories' reads and writes, buses, leakage"
    )
    area_mm2: float | None = Field(description="area of all units, mm2; null where the model gives none")
    statements: tuple[StatementJson, ...]
    units: tuple[UnitJson, ...]
    buses: tuple[BusJson, ...]
    memories: tuple[MemoryJson, ...]
    idle_memories: dict[str, int] = Field(
        default={},
        description="by name, the memories that hold nothing, and that nothing is read from or written to",
    )
    notes: tuple[str, ...]
    unverified: tuple[SourceJson, ...] = Field(
        description="numbers of the model whose source is 'unverified' or missing, or has another number"
    )


class TrafficJson(BaseModel):
    """Elements of one operand from one memory level to the next; `array` stands for the execution units."""

    operand: str
    source: str
    sink: str
    elements_read: int = Field(description="read at the source")
    elements_written: int = Field(description="written at the sink")
    bytes_read: int
    bytes_written: int


class HeldBufferJson(BaseModel):
    """A buffer inside a kernel."""

    name: str
    memory: str
    elements: int
    bytes: int = Field(description="of all its copies")
    address: int | None = Field(description="null before placement")


class KernelCountsJson(BaseModel):
    """The counts of one kernel."""

    name: str
    macs: int
    operations: dict[str, int]
    steps: int = Field(description="points in time, all parallel units busy: ideal cycles")
    held_bytes: dict[str, int] = Field(description="bytes of the copies in each memory")
    buffers: tuple[HeldBufferJson, ...]
    traffic: tuple[TrafficJson, ...]
    compute_pJ: float | None
    memory_pJ: dict[str, float] = Field(description="energy of the accesses of each memory")
    energy_pJ: float | None


class CountsJson(BaseModel):
    """The report that `stripe-sim --counts --json` writes."""

    input: str
    halo: Halo
    machine: str | None
    kernels: tuple[KernelCountsJson, ...]
    unverified: tuple[SourceJson, ...]
