"""The hardware model: units, buses and their abilities, as frozen pydantic models.

Units of measure stand in the names of fields or in their descriptions. Everything but `clock_mhz` may be left out and
costs nothing then (no latency, no energy), so that a model can start as small as the slides' and grow.

An *operation* is one intrinsic, or one aggregating store, for one point of a block: a multiply-accumulate is two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import Field, model_validator
from typing_extensions import override

from stripe.config.model import ConfigModel, Documented, Scalar
from stripe.hw.engines import Count, GridAxis, Stencil, SystolicArray
from stripe.hw.tables import (
    TABLE_HELP,
    EnergyTable,
    NotNegative,
    Positive,
    RateTable,
    look_up,
)
from stripe.ir.dtypes import DType
from stripe.ir.errors import ConfigError, did_you_mean
from stripe.ir.location import Location

UnitName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Unit(ConfigModel):
    """The fields of all kinds of units."""

    count: Count = Field(default=1, description="how many there are; they are called NAME[0], NAME[1], …")
    leakage_mW: NotNegative = Field(default=0.0, description="static power of one unit, mW")
    area_mm2: NotNegative = Field(default=0.0, description="silicon area of one unit, mm²")


UNITS_AXIS = "units"
"""The axis of units that make up no grid."""

Role = Literal["stationary", "moving", "output"]
"""The part of an operand in a product: an input that units hold while the other one moves past, or the result."""
ROLES: tuple[Role, ...] = ("stationary", "moving", "output")


class MemUnit(Unit):
    """A memory: explicit (programs move data into it) or a transparent cache."""

    size_KiB: Positive | None = Field(
        default=None, description="size of one unit in KiB; a whole number of bytes"
    )
    size_bytes: int | None = Field(
        default=None, gt=0, description="size of one unit in bytes, instead of size_KiB"
    )
    kind: Literal["explicit", "cache"] = Field(
        default="explicit",
        description="'explicit': programs place data and move them; 'cache': it fills by itself",
    )
    is_host: bool = Field(default=False, description="inputs and outputs of a program lie here")
    banks: Count = Field(
        default=1, description="banks that work at the same time, in one unit; addresses go round them evenly"
    )
    operands: tuple[Role, ...] = Field(
        default=ROLES, description="operands of a product that it may hold, for the pass map"
    )
    bypass: tuple[Role, ...] = Field(
        default=(), description="operands that may pass it by on their way to and from the units"
    )
    along: tuple[str, ...] = Field(
        default=(),
        description="axes of the grid of units with one such memory at each position, for the operands of the position",
    )
    keeps_halo: bool = Field(
        default=False,
        description="of a new window it gets only the elements that the window before did not hold",
    )
    ports: Count = Field(
        default=1,
        description="accesses that one bank serves in one cycle: units that use a memory at the "
        "same time share its banks * ports * port_bytes bytes of each cycle",
    )
    port_bytes: int | None = Field(
        default=None, gt=0, description="widest access of a port, bytes; absent: ports limit nothing"
    )
    line_bytes: int = Field(
        default=1, gt=0, description="bytes fetched at once: a cache's line, a DRAM's burst"
    )
    ways: int | None = Field(
        default=None, gt=0, description="ways of a set-associative cache; absent: fully associative"
    )
    allocates_on_write: bool = Field(
        default=False, description="a line of a cache that is written is read from below first"
    )
    alignment: int = Field(
        default=1, gt=0, le=1 << 40, description="bytes that addresses of buffers are multiples of"
    )
    read_latency_cycles: NotNegative = Field(
        default=0.0, description="cycles from a request to its first byte"
    )
    write_latency_cycles: NotNegative = Field(default=0.0, description="cycles until a write is done")
    read_pJ_per_byte: NotNegative = Field(default=0.0, description="energy of reading a byte, pJ")
    write_pJ_per_byte: NotNegative = Field(default=0.0, description="energy of writing a byte, pJ")

    @model_validator(mode="after")
    def _one_size(self) -> MemUnit:
        if (self.size_KiB is None) == (self.size_bytes is None):
            raise ValueError("a memory needs its size: 'size_KiB' or 'size_bytes', one of the two")
        if self.size_KiB is not None and not (self.size_KiB * 1024).is_integer():
            raise ValueError(f"size_KiB {self.size_KiB} is no whole number of bytes")
        for name, value in (("alignment", self.alignment), ("line_bytes", self.line_bytes)):
            if value > self.size:
                raise ValueError(f"{name} {value} is more than the memory's size of {self.size} bytes")
        if self.size % self.banks:
            raise ValueError(f"its size of {self.size} bytes does not divide into {self.banks} banks")
        return self

    @property
    def size(self) -> int:
        """Size of one unit in bytes."""
        return self.size_bytes if self.size_bytes is not None else round((self.size_KiB or 0.0) * 1024)

    @property
    def port_bytes_per_cycle(self) -> int | None:
        """Bytes that all ports of one unit read and write in a cycle; None: no limit."""
        return None if self.port_bytes is None else self.banks * self.ports * self.port_bytes

    @property
    def is_cache(self) -> bool:
        """Whether the memory fills by itself, so that routes pass through it."""
        return self.kind == "cache"


class ExecUnit(Unit):
    """A unit that computes."""

    ops_per_cycle: RateTable = Field(
        description="operations in one cycle, a multiply-accumulate is two at the rate of its 'mul'; "
        f"{TABLE_HELP}. An operation without a number is an error on this unit: rates by operation keep bias and "
        "activation off a matrix engine"
    )
    pipeline_depth: Count = Field(
        default=1,
        description="blocks in flight at once, so that transfers overlap with computing (2: double buffering)",
    )
    latency_cycles: NotNegative = Field(
        default=0.0, description="cycles from a block's start to its first result"
    )
    stencils: tuple[Stencil, ...] = Field(default=(), description="blocks of work that are one instruction")
    array: SystolicArray | None = Field(default=None, description="the systolic array, where the unit is one")
    grid: tuple[GridAxis, ...] = Field(
        default=(), description="axes of the grid that all units of this name make up, for the pass map"
    )
    shares_diagonals: bool = Field(
        default=False,
        description="elements that positions along a diagonal need of a window are read once; without, only one "
        "index of a window runs along the grid",
    )
    vector_bytes: int | None = Field(default=None, gt=0, description="width of a vector, bytes")
    registers: int | None = Field(
        default=None, gt=0, description="vector registers (of a thread, where there are threads)"
    )
    accumulate_latency_cycles: NotNegative = Field(
        default=0.0,
        description="cycles from an addition to a sum to the next one to it: fewer sums at once leave a unit waiting",
    )
    loads_per_cycle: Positive | None = Field(
        default=None,
        description="loads that a core begins in a cycle, of one element or of a vector; given, vectorized code is "
        "priced by its loads, sums and registers",
    )
    register_file: UnitName = Field(
        default="REGS", description="name that locates data in the registers, for a unit that has some"
    )
    register_bytes: int | None = Field(
        default=None, gt=0, description="size of a register; absent: vector_bytes"
    )
    threads: Count = Field(
        default=1, description="threads that a unit runs at once (a workgroup's limit on GPUs)"
    )
    subgroup: Count = Field(default=1, description="threads that run in lockstep")
    energy_pJ_per_op: EnergyTable = Field(
        default_factory=dict,
        description=f"energy of one operation, pJ; 'mac' is a multiply and its add; {TABLE_HELP}",
    )

    @property
    def register_file_bytes(self) -> int | None:
        """Bytes of all registers (of a thread, where there are threads); None where the model has none."""
        width = self.register_bytes or self.vector_bytes
        return self.registers * width if self.registers and width else None

    def rate(self, operation: str, dtype: DType) -> float | None:
        """Operations in one cycle, None when the unit does not compute this."""
        return look_up(self.ops_per_cycle, operation, dtype)

    @property
    def axes(self) -> tuple[GridAxis, ...]:
        """The axes along which units work at the same time: those of the grid, else the units, each on results of its
        own."""
        if self.grid or self.count == 1:
            return self.grid
        return (GridAxis(name=UNITS_AXIS, size=self.count, carries="outputs"),)

    @property
    def is_array_position(self) -> bool:
        """Whether all units of the name together make up the array, a position each."""
        return self.array is not None and self.array.rows * self.array.columns == self.count

    @property
    def is_matrix_engine(self) -> bool:
        """Whether its rates are those of a systolic array or of stencils."""
        return self.array is not None or bool(self.stencils)

    def names_rate(self, operation: str, dtype: DType) -> bool:
        """Whether the model gives a rate for this very operation, not for all operations of a dtype or of the unit."""
        return operation in self.ops_per_cycle or f"{operation}:{dtype.name}" in self.ops_per_cycle

    def op_energy_pJ(self, operation: str, dtype: DType) -> float:
        """Energy of one operation, pJ; 0 where the model says nothing."""
        return look_up(self.energy_pJ_per_op, operation, dtype) or 0.0

    def mac_energy_pJ(self, dtype: DType) -> float:
        """Energy of a multiply-accumulate, pJ: that of `mac`, else of `mul` and `add` together."""
        for key in (f"mac:{dtype.name}", "mac"):
            if key in self.energy_pJ_per_op:
                return self.energy_pJ_per_op[key]
        return self.op_energy_pJ("mul", dtype) + self.op_energy_pJ("add", dtype)


Feature: TypeAlias = Literal["vectors", "registers", "subgroups"]
FEATURES: dict[Feature, Callable[[ExecUnit], bool]] = {
    "vectors": lambda unit: unit.vector_bytes is not None,
    "registers": lambda unit: unit.register_file_bytes is not None,
    "subgroups": lambda unit: unit.subgroup > 1,
}
"""Parts of an execution unit that not every one has, with the test for them."""


class TxUnit(Unit):
    """A unit that moves data: a DMA engine, a network on chip, a queue."""

    latency_cycles: NotNegative = Field(default=0.0, description="cycles to set up one transfer")
    channels: Count = Field(default=1, description="transfers in flight at once")
    burst_bytes: int = Field(
        default=1, gt=0, description="bytes moved at once; a transfer is rounded up to them"
    )
    pJ_per_byte: NotNegative = Field(default=0.0, description="energy of moving a byte through it, pJ")


class Bus(ConfigModel):
    """Wires from any of the sources to any of the sinks. In each cycle they carry `bytes_per_cycle` bytes, of one
    transfer or of several whose bursts interleave: transfers at the same time share these bytes evenly, and none waits
    for the end of another. A source or sink is `NAME[number]`, or `NAME` for all units of that name."""

    sources: tuple[str, ...] = Field(description="units that put data on it")
    sinks: tuple[str, ...] = Field(description="units that take data from it")
    bytes_per_cycle: Positive = Field(
        description="bytes in one cycle, shared by all that use it at that time"
    )
    name: str | None = Field(default=None, description="for reports")
    latency_cycles: NotNegative = Field(
        default=0.0, description="cycles from first byte in to first byte out"
    )
    pJ_per_byte: NotNegative = Field(default=0.0, description="energy of moving a byte over it, pJ")
    multicast: bool = Field(default=False, description="one transfer reaches several sinks at once")


_Kind = TypeVar("_Kind", bound=Unit)


class HardwareModel(ConfigModel):
    """A whole machine."""

    name: str = Field(default="", description="name of the machine; absent: that of its file")
    description: str = Field(default="", description="the machine in one line, for people")
    clock_mhz: Positive = Field(description="clock that all cycles are counted in, MHz")
    mem_units: dict[UnitName, MemUnit] = Field(default_factory=dict, description="memories by name")
    exec_units: dict[UnitName, ExecUnit] = Field(
        default_factory=dict, description="units that compute, by name"
    )
    tx_units: dict[UnitName, TxUnit] = Field(
        default_factory=dict, description="units that move data, by name"
    )
    buses: tuple[Bus, ...] = Field(default=(), description="wires between units")
    leakage_mW: NotNegative = Field(default=0.0, description="static power outside of the units, mW")
    area_mm2: NotNegative = Field(default=0.0, description="silicon area outside of the units, mm²")
    technology_nm: Positive | None = Field(default=None, description="process node, nm")
    parameters: dict[str, Scalar] = Field(
        default_factory=dict, description="parameters that it was rendered with"
    )
    sources: tuple[Documented, ...] = Field(default=(), description="where its numbers come from")

    @override
    def __repr__(self) -> str:
        """The machine by its units; the fields have the rest."""
        units = ", ".join(f"{unit.count} {name}" for name, unit in self.units.items())
        return f"<HardwareModel {self.name}: {units}>"

    @property
    def units(self) -> dict[str, MemUnit | ExecUnit | TxUnit]:
        """All units by name: memories, then execution units, then transfer units."""
        return {**self.mem_units, **self.exec_units, **self.tx_units}

    @property
    def register_files(self) -> frozenset[str]:
        """Names that locate data in registers of units."""
        return frozenset(
            unit.register_file for unit in self.exec_units.values() if unit.registers is not None
        )

    @property
    def unit_names(self) -> tuple[str, ...]:
        """The names of all units: memories, then execution units, then transfer units."""
        return tuple(self.units)

    def unit(self, name: str) -> MemUnit | ExecUnit | TxUnit:
        """The unit called `name`. Raises ConfigError that names the nearest one."""
        return self._find("unit", name, self.units)

    def memory(self, name: str) -> MemUnit:
        """The memory called `name`. Raises ConfigError that names the nearest one."""
        return self._find("memory", name, self.mem_units)

    def exec_unit(self, name: str) -> ExecUnit:
        """The execution unit called `name`. Raises ConfigError that names the nearest one."""
        return self._find("execution unit", name, self.exec_units)

    def exec_unit_with(self, feature: Feature, location: Location = Location()) -> ExecUnit:
        """The execution unit of `location` if it has `feature`, else the first that has it. Raises ConfigError."""
        near = self.exec_units.get(location.name)
        units = [*([near] if near else []), *self.exec_units.values()]
        found = next((unit for unit in units if FEATURES[feature](unit)), None)
        if found is None:
            raise ConfigError(f"the hardware model has no unit with {feature}")
        return found

    def tx_unit(self, name: str) -> TxUnit:
        """The transfer unit called `name`. Raises ConfigError that names the nearest one."""
        return self._find("transfer unit", name, self.tx_units)

    def _find(self, kind: str, name: str, known: Mapping[str, _Kind]) -> _Kind:
        if name in known:
            return known[name]
        where = f"the machine '{self.name}'" if self.name else "the machine"
        if name in self.units:
            raise ConfigError(
                f"'{name}' of {where} is no {kind}", hint=f"there are {', '.join(known) or 'none'}"
            )
        hint = did_you_mean(name, known, f"there are {', '.join(known) or 'none'}")
        raise ConfigError(f"{where} has no {kind} '{name}'", hint=hint)

    @property
    def main_memory(self) -> str | None:
        """Name of the memory of inputs and outputs: the first marked `is_host`, else the largest explicit one."""
        marked = next((name for name, memory in self.mem_units.items() if memory.is_host), None)
        if marked is not None:
            return marked
        explicit = [name for name, memory in self.mem_units.items() if not memory.is_cache]
        return max(
            explicit, key=lambda name: self.mem_units[name].size * self.mem_units[name].count, default=None
        )

    def require_location(self, location: Location) -> None:
        """Raises ConfigError when a device of `location` does not exist in the machine."""
        for device in location.devices:
            unit = self.unit(device.name)
            if len(device.units) > 1:
                raise ConfigError(f"'{device}' has {len(device.units)} numbers; units are counted by one")
            for number in device.units:
                # Unit 0 always exists, so that it does not ask how many there are.
                if number.is_constant and number.offset and not 0 <= number.offset < (count := unit.count):
                    raise ConfigError(
                        f"there is no '{device}': {device.name} has {count} unit{'s' * (count > 1)}"
                    )

    @property
    def total_area_mm2(self) -> float:
        """Area of all units and of the rest of the machine, without the rounding errors of the sum."""
        return round(self.area_mm2 + sum(unit.count * unit.area_mm2 for unit in self.units.values()), 9)

    @property
    def leakage_pJ_per_cycle(self) -> float:
        """The static energy of the whole machine (1 mW for 1 us is 1000 pJ)."""
        # Counts and the clock are looked at only where they matter: results that depend on neither are used again.
        leaking = [unit for unit in self.units.values() if unit.leakage_mW]
        power = self.leakage_mW + sum(unit.leakage_mW * unit.count for unit in leaking)
        return power * self.microseconds(1.0) * 1000.0 if power else 0.0

    def microseconds(self, cycles: float) -> float:
        """The time that `cycles` take."""
        return cycles / self.clock_mhz

    def unverified(self) -> Iterator[Documented]:
        """The numbers without a source, or other than those of their sources; reports print them."""
        return (entry for entry in self.sources if not entry.is_verified)
