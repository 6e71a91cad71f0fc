"""What one statement of `main` costs when it has the machine for itself: time, bytes, energy, and what bounds it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import ceil, prod

from stripe.cost.counts.energy import operations_energy, route_energy
from stripe.cost.counts.operations import Operations
from stripe.cost.time.machine import Machine
from stripe.cost.time.pieces import Compute, Loop, Move, Piece, Stream, piece_of, pieces_below
from stripe.cost.time.pipeline import Stage, pipeline_cycles, pipeline_slices
from stripe.cost.time.rates import effort, missing_rates, unnamed_rates
from stripe.cost.time.statement import Flow, StatementCost, TileSlice
from stripe.cost.time.tally import Busy, ByteRates, Part, Seat, Tally, WorkByUnit, joint_seat, main_parts
from stripe.cost.time.uneven import tile_cycles
from stripe.hw.graph import Route, parse_unit
from stripe.hw.schema import ExecUnit
from stripe.ir import Block, ConfigError, Nest

MOST_SLICES = 4096
"""A loop with more stages than this is shown as one bar."""


class CostModel:
    """Costs of statements on one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._tx = tuple(machine.model.tx_units)
        self._rates: dict[tuple[str, str, Route], ByteRates] = {}

    def statement(self, nest: Nest, number: int) -> StatementCost:
        """The cost of the innermost block of `nest`, which is statement `number` of `main`.

        Raises ConfigError when the machine cannot run it: a unit without the operation, a memory out of reach.
        """
        piece = piece_of(nest, self._tx)
        try:
            return self._cost(piece, number)
        except ConfigError as error:
            where = f"statement {number} ({nest.block.name})" + (f": {error.where}" if error.where else "")
            raise ConfigError(error.reason, where=where, hint=error.hint) from None

    def _cost(self, piece: Piece, number: int) -> StatementCost:
        tally = Tally()
        if isinstance(piece, Move):
            route, unit = self._transfer_route(piece)
            latency, cycles = self._move(piece, route, unit, tally)
            name, index = _unit_and_number(unit)
            return self._result(piece, number, tally, name, (index,), latency, latency + cycles, True)
        busy = self._run(piece, tally)
        cycles = busy.cycles
        if isinstance(piece, Loop):
            cycles = max(cycles, *tally.demand.values()) if tally.demand else cycles
            own = sum(part.busy for part in main_parts(tally.parts))
            tally.stalls["tile transfers"] = max(0.0, cycles - own)
        if not tally.parts:  # a loop over nothing but transfers
            name, index = _unit_and_number(busy.resource)
            return self._result(piece, number, tally, name, (index,), 0.0, cycles, True)
        seat = joint_seat(main_parts(tally.parts))
        latency = min(cycles, self.machine.model.exec_unit(seat.name).latency_cycles)
        return self._result(piece, number, tally, seat.name, seat.numbers, latency, cycles, False)

    def _result(
        self, piece: Piece, number: int, tally: Tally, unit: str, numbers: tuple[int, ...] | None,
        latency: float, cycles: float, transfer: bool,
    ) -> StatementCost:  # fmt: skip
        parts = main_parts(tally.parts)
        seat = joint_seat(parts) if parts else Seat(unit, numbers, 1, defaulted=False)
        computing = [inner for inner in pieces_below(piece) if isinstance(inner, Compute)]
        share = sum(part.effort.cycles * part.effort.utilisation for part in parts)
        total = sum(part.effort.cycles for part in parts)
        tally.stalls["operands"] = sum(part.operands for part in parts)
        tally.stalls["fill"] = sum(part.fill for part in parts)
        own, inside = WorkByUnit.of(tally.parts, seat)
        for name, cycles_there in inside.unnumbered.items():
            tally.demand[name] += cycles_there
        return StatementCost(
            name=piece.name,
            number=number,
            transfer=transfer,
            unit=unit,
            instances=numbers,
            parallel=seat.parallel,
            defaulted=seat.defaulted,
            operations=Operations.sum(inner.operations for inner in computing),
            compute_cycles=max(own.compute.values(), default=0.0),
            utilisation=share / total if total else 1.0,
            rule=", ".join(dict.fromkeys(part.effort.rule for part in parts if part.effort.cycles)),
            latency=latency,
            cycles=cycles,
            flows=tuple(tally.flows),
            demand=dict(tally.demand),
            stalls={cause: value for cause, value in tally.stalls.items() if value > 0},
            energy=dict(tally.energy),
            ops_per_cycle=tally.peak,
            notes=tuple(dict.fromkeys(tally.notes)),
            tiles=piece.trips if isinstance(piece, Loop) else 1,
            slices=tally.slices,
            inside=inside.compute,
            useful=own.useful if seat.numbers is not None else {},
            useful_inside=inside.useful,
        )

    def _run(self, piece: Piece, tally: Tally) -> Busy:
        """The time of all runs of a piece. Adds its bytes and energy to the tally."""
        if isinstance(piece, Move):
            route, unit = self._transfer_route(piece)
            latency, cycles = self._move(piece, route, unit, tally)
            return Busy(latency * piece.runs + cycles, latency, unit)
        if isinstance(piece, Compute):
            return self._compute(piece, tally)
        stages: list[Stage] = []
        depth = 1
        moves = 0
        mean = False
        for inner, deps in zip(piece.pieces, piece.deps, strict=True):
            busy = self._run(inner, tally)
            resource = busy.resource
            name = _unit_and_number(resource)[0]
            if name in self.machine.model.tx_units:
                moves += 1
                resource = f"{resource}#{moves % self.machine.model.tx_units[name].channels}"  # a channel
            elif name in self.machine.model.exec_units:
                depth = max(depth, self.machine.model.exec_unit(name).pipeline_depth)
            each = tile_cycles(piece, inner, busy.cycles, busy.latency)
            mean = mean or each is None
            shares = _shares(piece, len(stages))
            stages.append(Stage(resource, busy.cycles / max(1, piece.trips), deps, shares, each or ()))
        depth = piece.nest.block.pipeline_depth or depth  # the tiles that the buffers have copies for
        trips = max(1, piece.trips // max(1, piece.runs))
        found = pipeline_cycles(stages, trips, depth)
        if piece.runs == 1:
            tally.slices = _tile_slices(piece, stages, trips, depth)
        if not found.exact or mean:
            what = "tiles of unequal size" if found.exact else "a rhythm that does not settle"
            tally.notes.append(f"{what}: the pipeline runs with the mean")
        resource = next(
            (s.resource for s in stages if _unit_and_number(s.resource)[0] in self.machine.model.exec_units),
            stages[0].resource if stages else "",
        )  # fmt: skip
        return Busy(found.cycles * piece.runs, 0.0, resource.split("#")[0])

    def _transfer_route(self, move: Move) -> tuple[Route, str]:
        """The route of a transfer and the transfer unit (or bus) that it occupies."""
        machine = self.machine
        source, sink = machine.memory(move.transfer.source), machine.memory(move.transfer.sink)
        if move.location and move.location.name in machine.model.tx_units:
            unit = machine.unit(move.location)
            return machine.route_through(source, unit, sink), unit
        route = machine.graph.connection(source, sink)
        unit = next((u for u in route.units if parse_unit(u)[0] in machine.model.tx_units), None)
        if unit is None:
            unit = self._bus(route.hops[0].index) if route.hops else source
        return route, unit

    def _move(self, move: Move, route: Route, unit: str, tally: Tally) -> tuple[float, float]:
        """Latency of each run, and cycles of all bytes together."""
        machine = self.machine
        source, sink = machine.memory(move.transfer.source), machine.memory(move.transfer.sink)
        name = _unit_and_number(unit)[0]
        burst = machine.model.tx_units[name].burst_bytes if name in machine.model.tx_units else 1
        per_run = ceil(move.bytes / max(1, move.runs) / burst) * burst
        padded = per_run * move.runs if burst > 1 else move.bytes
        flow = Flow(
            move.transfer.far.buffer.name, source, sink, move.bytes, route, transfer=True, bound=move.bound
        )
        slowest = self._add(flow, padded, tally)
        latency = route.latency_cycles
        latency += (
            machine.memory_of(source).read_latency_cycles + machine.memory_of(sink).write_latency_cycles
        )
        if name in machine.model.tx_units:
            channels = machine.model.tx_units[name].channels
            tally.demand[unit] += slowest / channels
        return latency, slowest

    def _compute(self, piece: Compute, tally: Tally) -> Busy:
        seat = self._seat(piece)
        unit = self.machine.model.exec_unit(seat.name)
        work = effort(piece, seat.name, unit)
        compute = work.cycles / seat.parallel
        streaming: defaultdict[str, float] = defaultdict(float)
        latency = unit.latency_cycles
        for flow in self._stream_flows(piece.streams, seat):
            latency = max(latency, unit.latency_cycles + self._first_byte(flow))
            self._add(flow, flow.bytes, tally)
            for resource, cycles in self._rates[flow.source, flow.sink, flow.route].cycles:
                streaming[resource] += flow.bytes * cycles
            if flow.route.stages:
                via = ", ".join(dict.fromkeys(parse_unit(unit)[0] for unit in flow.route.stages))
                ends = " to ".join(parse_unit(unit)[0] for unit in (flow.source, flow.sink))
                tally.notes.append(f"what goes from {ends} passes through {via}")
        operands = max(streaming.values(), default=0.0)
        for component, value in [(f"compute {seat.name}", operations_energy(piece.operations, unit))]:
            tally.energy[component] += value
        fill = latency * piece.runs
        tally.parts.append(Part(seat, compute, work, max(0.0, operands - compute), fill))
        if seat.numbers is not None:
            for name in seat.units:
                tally.demand[name] += compute
        useful = work.cycles * work.utilisation
        if useful:
            tally.peak = max(tally.peak, piece.operations.total / useful * seat.parallel)
        unnamed = unnamed_rates(piece.operations, unit)
        if unnamed:
            tally.notes.append(
                f"the matrix engine {seat.name} does {', '.join(unnamed)} at its rate for other operations; "
                "give it rates by operation if it cannot"
            )
        if any(stream.bound for stream in piece.streams):
            tally.notes.append("some bytes are upper bounds, because counting them took too long")
        return Busy(max(compute, operands) + fill, latency, f"{seat.name}[{(seat.numbers or (0,))[0]}]")

    def _first_byte(self, flow: Flow) -> float:
        name = parse_unit(flow.source)[0]
        memory = self.machine.model.mem_units.get(name)
        return flow.route.latency_cycles + (memory.read_latency_cycles if memory else 0.0)

    def _stream_flows(self, streams: Iterable[Stream], seat: Seat) -> Iterator[Flow]:
        units = seat.units
        for stream in streams:
            for unit in units:
                memory = self.machine.memory_near(stream.location, unit, writes=stream.writes)
                ends = (unit, memory) if stream.writes else (memory, unit)
                route = self.machine.graph.connection(*ends)
                yield Flow(
                    stream.buffer, *ends, stream.bytes / len(units), route, transfer=False, bound=stream.bound
                )

    def _add(self, flow: Flow, size: float, tally: Tally) -> float:
        """Adds a flow's bytes and energy; gives the cycles of its slowest part."""
        tally.flows.append(flow)
        key = (flow.source, flow.sink, flow.route)
        if key not in self._rates:
            self._rates[key] = self._byte_rates(flow)
        rates = self._rates[key]
        for resource, cycles in rates.cycles:
            tally.demand[resource] += size * cycles
        for component, energy in rates.energy:
            tally.energy[component] += flow.bytes * energy
        return size * rates.slowest

    def _byte_rates(self, flow: Flow) -> ByteRates:
        """What a byte of a flow needs of buses and memory ports, and its energy."""
        model = self.machine.model
        cycles = [(self._bus(hop.index), 1.0 / hop.bus.bytes_per_cycle) for hop in flow.route.hops]
        energy = list(route_energy(flow.route, model))
        for unit, word in ((flow.source, "read"), (flow.sink, "write")):
            name = parse_unit(unit)[0]
            memory = model.mem_units.get(name)
            if memory is not None:
                picojoules = memory.read_pJ_per_byte if word == "read" else memory.write_pJ_per_byte
                energy.append((f"{name} {word}", picojoules))
        # what a memory on the route takes in, it gives out again
        for unit, accesses in ((flow.source, 1), *((unit, 2) for unit in flow.route.units), (flow.sink, 1)):
            memory = model.mem_units.get(parse_unit(unit)[0])
            if memory is not None and memory.port_bytes_per_cycle is not None:
                cycles.append((f"ports of {unit}", accesses / memory.port_bytes_per_cycle))
        slowest = max((each for _, each in cycles), default=0.0)
        return ByteRates(tuple(cycles), tuple(energy), slowest)

    def _bus(self, index: int) -> str:
        return f"bus {self.machine.model.buses[index].name or index}"

    def _seat(self, piece: Compute) -> Seat:
        """The units on which a piece runs: those of its location, or else those that take least time."""
        if piece.location:
            location = piece.location
            if location.name not in self.machine.model.exec_units:
                known = ", ".join(self.machine.model.exec_units)
                raise ConfigError(f"'{location}' does not compute", hint=f"execution units are {known}")
            leaf = piece.leaves[-1] if piece.leaves else piece.nest
            numbers = self.machine.numbers(location, leaf.domain.ranges)
            unit = self.machine.model.exec_unit(location.name)
            if numbers is None or (len(numbers) == 1 and _spread(piece, unit) > 1):
                return Seat(location.name, None, _spread(piece, unit), defaulted=False)
            return Seat(location.name, numbers, len(numbers), defaulted=False)
        return self._default_seat(piece)

    def _default_seat(self, piece: Compute) -> Seat:
        best: tuple[float, Seat] | None = None
        for name, unit in self.machine.model.exec_units.items():
            if missing_rates(piece.operations, unit):
                continue
            seat = Seat(name, None, _spread(piece, unit), defaulted=True)
            try:
                slowest = self._streaming(piece, seat)
            except ConfigError:
                continue  # some memory is out of its reach
            cycles = max(effort(piece, name, unit).cycles / seat.parallel, slowest)
            if best is None or cycles < best[0]:
                best = (cycles, seat)
        if best is None:
            ops = (
                ", ".join(sorted({f"{op}:{dtype}" for op, dtype in piece.operations.counts}))
                or "no operation"
            )
            raise ConfigError(f"no execution unit computes {ops} on data that it reaches")
        return best[1]

    def _streaming(self, piece: Compute, seat: Seat) -> float:
        tally = Tally()
        for flow in self._stream_flows(piece.streams, seat):
            self._add(flow, flow.bytes, tally)
        return max(tally.demand.values(), default=0.0)


def _shares(loop: Loop, number: int) -> tuple[int, ...]:
    """The pieces of a loop that use a buffer which it allocates and piece `number` uses as well."""
    own = {ref.name for ref in loop.nest.block.allocs}
    used = [_outside_names(piece) & own for piece in loop.pieces]
    return tuple(n for n, names in enumerate(used) if names & used[number])


def _outside_names(piece: Piece) -> set[str]:
    return {ref.source for ref in piece.nest.block.refinements if ref.source}


def _tile_slices(loop: Loop, stages: Sequence[Stage], trips: int, depth: int) -> tuple[TileSlice, ...]:
    if trips * len(stages) > MOST_SLICES:
        return ()
    return tuple(
        TileSlice(
            stages[s.stage].resource.split("#")[0], loop.pieces[s.stage].name, s.tile,
            isinstance(loop.pieces[s.stage], Move), s.start, s.end,
        )
        for s in pipeline_slices(stages, trips, depth)
    )  # fmt: skip


def _spread(piece: Compute, unit: ExecUnit) -> int:
    """How many units of one name share the work: a grid as a whole, else as many as indices tagged `spatial` or
    `thread` have points."""
    if unit.array is not None and unit.array.rows * unit.array.columns == unit.count:
        return unit.count
    points = 1
    for leaf in piece.leaves[:1]:
        for block in _blocks(leaf, piece):
            points *= prod(i.range for i in block.iterated if i.tags.has_any(("spatial", "thread")))
    return min(points, unit.count)


def _blocks(leaf: Nest, piece: Compute) -> Sequence[Block]:
    return leaf.blocks[piece.nest.depth :]


def _unit_and_number(unit: str) -> tuple[str, int]:
    if "[" not in unit:
        return unit, 0
    name, number = parse_unit(unit.split("#")[0])
    return name, number or 0
