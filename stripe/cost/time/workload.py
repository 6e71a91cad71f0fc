"""The cost of one statement of `main` that has the machine for itself: time, bytes, energy, and bounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import ceil, prod

from stripe.cost.counts.energy import operations_energy, route_energy
from stripe.cost.counts.operations import Operations
from stripe.cost.time.machine import Machine
from stripe.cost.time.operands import Operands
from stripe.cost.time.pieces import (
    Compute,
    Loop,
    Move,
    Piece,
    content_of,
    merging_views,
    piece_of,
    piece_of_content,
    pieces_below,
)
from stripe.cost.time.pipeline import PipelineStage, pipeline_cycles
from stripe.cost.time.rates import Effort, effort, missing_rates, unnamed_rates
from stripe.cost.time.statement import (
    Flow,
    Resource,
    StatementCost,
    TileLoop,
    TileStep,
    UnitSet,
    Work,
    WorkByUnit,
)
from stripe.cost.time.tally import Busy, ByteRates, ComputePart, Tally, joint_units, main_parts, work_by_unit
from stripe.cost.time.turns import memory_waits
from stripe.cost.time.uneven import tile_cycles
from stripe.hw.graph import Route, parse_unit
from stripe.hw.schema import ExecUnit
from stripe.ir import Affine, Block, ConfigError, Nest, names_in_turn, unfolded_nest
from stripe.ir.frozen import replace

MOST_KEPT = 2000
"""Statements whose costs a machine keeps."""


class CostModel:
    """Costs of statements on one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._tx = tuple(machine.model.tx_units)
        self._operands = Operands(machine)
        self._rates: dict[tuple[str, str, Route], ByteRates] = {}
        self._merging: tuple[Block | None, frozenset[str]] = (None, frozenset())

    def statement(self, nest: Nest, number: int) -> StatementCost:
        """The cost of the innermost block of `nest`, which is statement `number` of `main`.

        Costs are kept by content: a schedule and the simulation after it ask for the same statements.

        Raises ConfigError when the machine cannot run it: a unit without the operation, a memory out of reach.
        """
        main = nest.outer.block if nest.outer is not None else None
        if main is not None and main is not self._merging[0]:
            self._merging = main, merging_views(main)
        content = content_of(nest, self._merging[1])
        if content is None:
            return self._priced(piece_of(unfolded_nest(nest), self._tx), number)
        costs = self.machine.costs
        found = costs.get(content)
        if found is None:
            if len(costs) == MOST_KEPT:
                costs.clear()
            found = costs[content] = self._priced(piece_of_content(content, self._tx), number)
        return replace(found, number=number)

    def point_cycles(self, nest: Nest, name: str) -> float:
        """The cycles of a point of the innermost block of `nest`, a kernel, on one unit of the name; on a grid, at one
        of its positions. Raises ConfigError for an operation without a rate."""
        piece = piece_of(unfolded_nest(nest), self._tx)
        assert isinstance(piece, Compute)
        unit = self.machine.model.exec_unit(name)
        return effort(piece, name, unit, as_position=bool(unit.grid)).cycles / sum(piece.points)

    def _priced(self, piece: Piece, number: int) -> StatementCost:
        try:
            return self._cost(piece, number)
        except ConfigError as error:
            where = f"statement {number} ({piece.name})" + (f": {error.where}" if error.where else "")
            raise ConfigError(error.reason, where=where, hint=error.hint) from None

    def _cost(self, piece: Piece, number: int) -> StatementCost:
        tally = Tally()
        if isinstance(piece, Move):
            route, resource = self._transfer_route(piece)
            latency, cycles = self._move(piece, route, resource, tally)
            cycles += latency * piece.runs
            return self._result(piece, number, tally, _occupied(resource), latency, cycles)
        busy = self._run(piece, tally)
        cycles = busy.cycles
        if isinstance(piece, Loop):
            cycles = max(cycles, *tally.demand.values()) if tally.demand else cycles
            own = sum(part.busy for part in main_parts(tally.parts))
            tally.stalls["tile transfers"] = max(0.0, cycles - own)
        if not tally.parts:  # a loop over transfers alone
            return self._result(piece, number, tally, _occupied(busy.resource), 0.0, cycles)
        units = joint_units(main_parts(tally.parts))
        latency = min(cycles, self.machine.model.exec_unit(units.name).latency_cycles)
        return self._result(piece, number, tally, units, latency, cycles)

    def _result(
        self, piece: Piece, number: int, tally: Tally, units: UnitSet, latency: float, cycles: float
    ) -> StatementCost:
        parts = main_parts(tally.parts)
        computing = [inner for inner in pieces_below(piece) if isinstance(inner, Compute)]
        share = sum(part.effort.cycles * part.effort.utilisation for part in parts)
        total = sum(part.effort.cycles for part in parts)
        tally.stalls["operands"] = sum(part.operands for part in parts)
        tally.stalls["fill"] = sum(part.fill for part in parts)
        own, inside = work_by_unit(tally.parts, units)
        for name, cycles_there in inside.unnumbered.items():
            tally.demand[Resource.unit(name)] += cycles_there
        work = Work(
            operations=Operations.sum(inner.operations for inner in computing),
            cycles=max(own.compute.values(), default=0.0),
            utilisation=share / total if total else 1.0,
            rule=", ".join(dict.fromkeys(part.effort.rule for part in parts if part.effort.cycles)),
            ops_per_cycle=tally.peak,
        )
        return StatementCost(
            name=piece.name,
            number=number,
            transfer=not parts,
            units=units,
            work=work,
            latency=latency,
            cycles=cycles,
            flows=tuple(tally.flows),
            demand=dict(tally.demand),
            stalls={cause: value for cause, value in tally.stalls.items() if value > 0},
            energy=dict(tally.energy),
            notes=tuple(dict.fromkeys(tally.notes)),
            tiles=piece.trips if isinstance(piece, Loop) else 1,
            loop=tally.loop,
            own=own if units.numbers is not None else WorkByUnit(),
            inside=inside,
        )

    def _run(self, piece: Piece, tally: Tally) -> Busy:
        """The time of all runs of a piece. Adds its bytes and energy to the tally."""
        if isinstance(piece, Move):
            route, resource = self._transfer_route(piece)
            latency, cycles = self._move(piece, route, resource, tally)
            return Busy(latency * piece.runs + cycles, latency, resource)
        if isinstance(piece, Compute):
            return self._compute(piece, tally)
        stages: list[PipelineStage] = []
        steps: list[TileStep] = []
        resources: list[Resource] = []
        depth = 1
        moves = 0
        mean = False
        for inner, deps in zip(piece.pieces, piece.deps, strict=True):
            before = tally.mark()
            busy = self._run(inner, tally)
            steps.append(TileStep(inner.name, isinstance(inner, Move), *tally.since(before)))
            resources.append(resource := busy.resource)
            name = resource.name
            if name in self.machine.model.tx_units:
                moves += 1
                channel = moves % self.machine.model.tx_units[name].channels
                resource = resource._replace(channel=channel)
            elif name in self.machine.model.exec_units:
                depth = max(depth, self.machine.model.exec_unit(name).pipeline_depth)
            each = tile_cycles(piece, inner, busy.cycles, busy.latency)
            mean = mean or each is None
            stages.append(PipelineStage(resource, busy.cycles / max(1, piece.trips), deps, each=each or ()))
        depth = piece.nest.block.pipeline_depth or depth  # the tiles that the buffers have copies for
        stages = [
            replace(
                stage,
                deps=tuple({**dict.fromkeys(stage.deps), **dict.fromkeys(deps)}),
                shares=shares,
                turns=turns,
            )
            for stage, (deps, shares, turns) in zip(stages, memory_waits(piece, depth), strict=True)
        ]
        trips = max(1, piece.trips // max(1, piece.runs))
        found = pipeline_cycles(stages, trips, depth)
        if piece.runs == 1:
            tally.loop = TileLoop(tuple(stages), tuple(steps), trips, depth)
        if not found.exact or mean:
            cause = "tiles of unequal size" if found.exact else "a rhythm that does not settle"
            tally.notes.append(f"{cause}: the pipeline runs with the mean")
        # the loop occupies its first unit that computes, else the resource of its first piece
        computing = [each for each in resources if each.name in self.machine.model.exec_units]
        resource = next(iter(computing + resources), Resource("unit", ""))
        return Busy(found.cycles * piece.runs, 0.0, resource)

    def _transfer_route(self, move: Move, *, back: bool = False) -> tuple[Route, Resource]:
        """The route of a transfer, or of partial results back, and the transfer unit (or bus) that it occupies."""
        machine = self.machine
        source, sink = machine.memory(move.transfer.source), machine.memory(move.transfer.sink)
        source, sink = (sink, source) if back else (source, sink)
        if move.location and move.location.name in machine.model.tx_units:
            unit = machine.unit(move.location)
            return machine.route_through(source, unit, sink), Resource.unit(unit)
        route = machine.graph.connection(source, sink)
        return route, self._transfers(source, route)

    def _transfers(self, source: str, route: Route) -> Resource:
        """The unit, or the bus, that a transfer on a route from `source` occupies."""
        unit = next((u for u in route.units if parse_unit(u)[0] in self.machine.model.tx_units), None)
        return Resource.unit(unit or source) if unit or not route.hops else self._bus(route.hops[0].index)

    def transfer_demand(self, source: str, sink: str, route: Route) -> tuple[Resource, float, float]:
        """The resource that a transfer occupies, and the cycles for each transfer and for each byte of one."""
        resource = self._transfers(source, route)
        unit = self.machine.model.tx_units.get(resource.name)
        channels = unit.channels if unit is not None else 1
        slowest = self.byte_rates(source, sink, route).slowest
        return resource, self._latency(source, sink, route) / channels, slowest / channels

    def _latency(self, source: str, sink: str, route: Route) -> float:
        """The cycles before the first byte of a transfer is written."""
        machine = self.machine
        reading, writing = (
            machine.memory_of(source).read_latency_cycles,
            machine.memory_of(sink).write_latency_cycles,
        )
        return route.latency_cycles + (reading + writing)

    def _move(self, move: Move, route: Route, resource: Resource, tally: Tally) -> tuple[float, float]:
        """Latency of each run, and cycles of all bytes together."""
        machine = self.machine
        source, sink = machine.memory(move.transfer.source), machine.memory(move.transfer.sink)
        name = resource.name
        burst = machine.model.tx_units[name].burst_bytes if name in machine.model.tx_units else 1
        per_run = ceil(move.bytes / max(1, move.runs) / burst) * burst
        padded = per_run * move.runs if burst > 1 else move.bytes
        flow = Flow(
            move.transfer.far.buffer.name, source, sink, move.bytes, route, transfer=True, bound=move.bound
        )
        slowest = self._add(flow, padded, tally)
        if move.back:
            returning = self._transfer_route(move, back=True)[0]
            slowest += self._add(
                replace(flow, source=sink, sink=source, bytes=move.back, route=returning), move.back, tally
            )
        if name in machine.model.tx_units:
            tally.demand[resource] += slowest / machine.model.tx_units[name].channels
        return self._latency(source, sink, route), slowest

    def _compute(self, piece: Compute, tally: Tally) -> Busy:
        units = self._units_of(piece)
        unit = self.machine.model.exec_unit(units.name)
        as_position = unit.is_array_position and units.numbers is not None
        work = effort(piece, units.name, unit, as_position=as_position)
        latency = unit.latency_cycles
        for flow, way in self._operands.near(work.streams or piece.streams, units):
            memory = self.machine.model.mem_units.get(
                parse_unit(way.hops[0].source if way.hops else flow.source)[0]
            )
            first_byte = way.latency_cycles + (memory.read_latency_cycles if memory else 0.0)
            latency = max(latency, unit.latency_cycles + first_byte)
            if way.stages:
                via = ", ".join(dict.fromkeys(parse_unit(unit)[0] for unit in way.stages))
                ends = " to ".join(parse_unit(unit)[0] for unit in (flow.source, flow.sink))
                tally.notes.append(f"what goes from {ends} passes through {via}")
        flows, compute, operands = self._operand_flows(piece, work, units)
        for flow in flows:
            self._add(flow, flow.bytes, tally)
        tally.energy[f"compute {units.name}"] += operations_energy(piece.operations, unit)
        fill = latency * piece.runs
        tally.parts.append(ComputePart(units, compute, work, max(0.0, operands - compute), fill))
        if units.numbers is not None:
            for name in units.units:
                tally.demand[Resource.unit(name)] += compute * units.share
        useful = work.cycles * work.utilisation
        if useful:
            tally.peak = max(tally.peak, piece.operations.total / useful * units.parallel)
        unnamed = unnamed_rates(piece.operations, unit)
        if unnamed:
            tally.notes.append(
                f"the matrix engine {units.name} does {', '.join(unnamed)} at its rate for other operations; "
                "give it rates by operation if it cannot"
            )
        if any(stream.bound for stream in piece.streams):
            tally.notes.append("some bytes are upper bounds, because counting them took too long")
        return Busy(
            max(compute, operands) + fill, latency, Resource("unit", units.name, (units.numbers or (0,))[0])
        )

    def _operand_flows(self, piece: Compute, work: Effort, units: UnitSet) -> tuple[list[Flow], float, float]:
        """The flows of operands, the cycles in which units compute, and the cycles of the busiest bus.

        Phases of a core follow one another. In each it computes and loads at the same time, and its first cache takes
        lines in between the loads.
        """
        streams, at_once = work.streams or piece.streams, units.at_once
        below = list(self._operands.below(piece, units, split_leaves=bool(work.phases)))
        lines = [flow for flow, _ in below]
        flows = [flow for flow, _ in self._operands.near(streams, units)] + lines
        if not work.phases:
            busy = flows
            if at_once is not units:
                busy = [flow for flow, _ in self._operands.near(streams, at_once)] + lines
            return flows, work.cycles / units.parallel, self._busiest(busy)
        compute = operands = 0.0
        for leaf, phase in zip(piece.leaves, work.phases, strict=True):
            busiest = self._busiest(flow for flow, _ in self._operands.near(phase.streams, at_once))
            loading = max(phase.loading / units.parallel, busiest)
            own = max(phase.cycles / units.parallel, loading)
            missed = self._busiest(flow for flow, path in below if path == leaf.path)
            compute += own
            operands += max(own, loading + missed)
        return flows, compute, operands

    def _busiest(self, flows: Iterable[Flow]) -> float:
        needs: defaultdict[Resource, float] = defaultdict(float)
        for flow in flows:
            for resource, cycles in self.byte_rates(flow.source, flow.sink, flow.route).cycles:
                needs[resource] += flow.bytes * cycles
        return max(needs.values(), default=0.0)

    def _add(self, flow: Flow, size: float, tally: Tally) -> float:
        """Adds a flow's bytes and energy; gives the cycles of its slowest part."""
        tally.flows.append(flow)
        key = (flow.source, flow.sink, flow.route)
        rates = self.byte_rates(*key)
        for resource, cycles in rates.cycles:
            tally.demand[resource] += size * cycles
        for component, energy in rates.energy:
            tally.energy[component] += flow.bytes * energy
        return size * rates.slowest

    def byte_rates(self, source: str, sink: str, route: Route) -> ByteRates:
        """The demand of a byte on the buses and memory ports of a route, and its energy."""
        key = (source, sink, route)
        if key not in self._rates:
            self._rates[key] = self._counted_rates(*key)
        return self._rates[key]

    def _counted_rates(self, source: str, sink: str, route: Route) -> ByteRates:
        model = self.machine.model
        cycles = [(self._bus(hop.index), 1.0 / hop.bus.bytes_per_cycle) for hop in route.hops]
        energy = list(route_energy(route, model))
        for unit, word in ((source, "read"), (sink, "write")):
            name = parse_unit(unit)[0]
            memory = model.mem_units.get(name)
            if memory is not None:
                picojoules = memory.read_pJ_per_byte if word == "read" else memory.write_pJ_per_byte
                energy.append((f"{name} {word}", picojoules))
        # a memory on the route gives out all bytes that it takes in
        for unit, accesses in ((source, 1), *((unit, 2) for unit in route.units), (sink, 1)):
            memory = model.mem_units.get(parse_unit(unit)[0])
            if memory is not None and memory.port_bytes_per_cycle is not None:
                ports = Resource.unit(unit)._replace(kind="ports")
                cycles.append((ports, accesses / memory.port_bytes_per_cycle))
        slowest = max((each for _, each in cycles), default=0.0)
        return ByteRates(tuple(cycles), tuple(energy), slowest)

    def _bus(self, index: int) -> Resource:
        return Resource("bus", self.machine.model.buses[index].name or str(index))

    def _units_of(self, piece: Compute) -> UnitSet:
        """The units on which a piece runs: its location's, or else the fastest ones."""
        if piece.location:
            location = piece.location
            if location.name not in self.machine.model.exec_units:
                known = ", ".join(self.machine.model.exec_units)
                raise ConfigError(f"'{location}' does not compute", hint=f"execution units are {known}")
            leaf = piece.leaves[-1] if piece.leaves else piece.nest
            numbers = self.machine.numbers(location, leaf.domain.ranges)
            unit = self.machine.model.exec_unit(location.name)
            # The one number of a location without indices stands for all units, but for a position of an array.
            is_default = numbers is not None and len(numbers) == 1 and not unit.is_array_position
            if numbers is None or (is_default and _spread(piece, unit) > 1):
                return UnitSet(location.name, None, _spread(piece, unit))
            tile = location.subs(dict.fromkeys(names_in_turn(leaf), Affine()))
            return UnitSet(
                location.name, numbers, len(self.machine.numbers(tile, leaf.domain.ranges) or numbers)
            )
        best: tuple[float, UnitSet] | None = None
        able = {
            name: unit
            for name, unit in self.machine.model.exec_units.items()
            if not missing_rates(piece.operations, unit)
        }
        for name, unit in able.items():
            units = UnitSet(name, None, _spread(piece, unit), defaulted=True)
            if len(able) == len(self.machine.model.exec_units) == 1:
                return units
            work = effort(piece, name, unit)
            try:
                _, compute, slowest = self._operand_flows(piece, work, units)
            except ConfigError:
                continue  # some memory is out of its reach
            cycles = max(compute, slowest)
            if best is None or cycles < best[0]:
                best = (cycles, units)
        if best is None:
            ops = ", ".join(sorted({f"{op}:{dtype}" for op, dtype in piece.operations.counts}))
            raise ConfigError(f"no execution unit computes {ops or 'no operation'} on data that it reaches")
        return best[1]


def _spread(piece: Compute, unit: ExecUnit) -> int:
    """The units of one name that share the work: a grid as a whole, else as many as indices tagged `spatial` or
    `thread` have points."""
    if unit.is_array_position:
        return unit.count
    points = 1
    for leaf in piece.leaves[:1]:
        for block in leaf.blocks[piece.nest.depth :]:
            points *= prod(i.range for i in block.iterated if i.is_spatial)
    return min(points, unit.count)


def _occupied(resource: Resource) -> UnitSet:
    """The unit, or the bus, that a transfer occupies."""
    return UnitSet(resource.name if resource.kind == "unit" else str(resource), (resource.number,))
