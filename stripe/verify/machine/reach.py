"""Whether each unit reaches the memories of its operands: a check that shares no code with the passes that locate them.

A block runs on the unit of the nearest block around it that has a location: one unit at each point of that block, for
all operands together. An operand lies where its allocation lies. A location without a number is any unit: one that has
the buses will do. An allocation in any memory is in one of them at each point of its block, for all blocks that use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from stripe.hw.graph import UnitGraph
from stripe.hw.schema import HardwareModel
from stripe.ir import Affine, Block, Diagnostic, Location, Nest, Path, Refinement, reads_of, writes_of
from stripe.ir.check.diagnostic import Part
from stripe.poly import Points
from stripe.poly.sets import union
from stripe.verify.machine.units import allocation, place_of_view

_UNIT, _MEMORY, _BANK = "unit%", "memory%", "bank%"  # no index has such a name


@dataclass(frozen=True, eq=False)
class _UnitOperand:
    """A refinement that leaf statements of a block load from or store to, and the transfers that no bus carries: by the
    numbers of unit and memory."""

    nest: Nest
    ref: Refinement
    missing: dict[tuple[int, int], str]

    @property
    def in_any(self) -> bool:
        """Whether any memory of the name may hold it."""
        return not place_of_view(self.nest, self.ref)[0].devices[-1].units

    def numbers(self, unit: Location, names: Sequence[str]) -> Points:
        """The numbers of unit and memory, free where a location has none, with the coordinates `names` of the point."""
        memory, first, banks = place_of_view(self.nest, self.ref)
        equal = [Affine.var(_UNIT) - number for number in unit.devices[-1].units[-1:]]
        lies = [number + first + Affine.var(_BANK) for number in memory.devices[-1].units[-1:]]
        equal += [Affine.var(_MEMORY) - number for number in lies]
        domain = self.nest.domain
        bounds = {**domain.ranges, _BANK: (0, banks - 1)}
        points = Points.build((*domain.names, _BANK, _UNIT, _MEMORY), bounds, domain.constraints, equal)
        return points.onto([*names, _UNIT, _MEMORY])

    def at(self, unit: Location, one: int, other: int, names: Sequence[str]) -> Points:
        """The points over `names` at which it is in memory `other` while unit `one` runs the block."""
        points = self.numbers(unit, names)
        return points.where(zero=[Affine.var(_UNIT) - one, Affine.var(_MEMORY) - other]).onto(names)

    def wrong(self, transfer: str) -> Diagnostic:
        part: Part = ("refinement", self.nest.block.refinements.index(self.ref))
        message, hint = (
            f"'{self.ref.name}': no bus leads {transfer}",
            "transfer it to a memory that the unit reaches",
        )
        return Diagnostic(message, self.nest.path, self.nest.block.name, hint, part)


def check_reach(nests: Sequence[Nest], hardware: HardwareModel) -> Iterator[Diagnostic]:
    """Each block that computes or transfers reaches the memories that it loads from and stores to, at every point."""
    graph = UnitGraph(hardware)
    operands: dict[Path, tuple[Nest, list[_UnitOperand]]] = {}
    for nest in nests:
        around: Nest | None = nest
        while around is not None and not around.block.location:
            around = around.outer
        if around is None or around.block.location.name not in hardware.units:
            continue
        used = _operands(graph, nest, around.block.location.name)
        operands.setdefault(around.path, (around, []))[1].extend(used)
    found: list[Diagnostic] = []
    for around, group in operands.values():
        if any(operand.missing for operand in group):
            group = _one_memory_each(group)
            check = _check_any_unit if _is_any(around) else _check_unit
            found += check(graph, around, group)
    yield from found or _check_any_memory(graph, operands.values())


def _is_any(nest: Nest) -> bool:
    """Whether any unit of its name may run the innermost block."""
    return not nest.block.location.devices[-1].units


def _operands(graph: UnitGraph, nest: Nest, unit: str) -> Iterator[_UnitOperand]:
    """The operands of the leaf statements of the innermost block of `nest`."""
    leaves = [statement for statement in nest.block.statements if not isinstance(statement, Block)]
    loaded = {name for leaf in leaves for name in reads_of(leaf)}
    stored = {name for leaf in leaves for name in writes_of(leaf)}
    for ref in nest.block.refinements:
        if ref.location.name in graph.model.mem_units and ref.name in loaded | stored:
            missing: dict[tuple[int, int], str] = {}
            ends = product(enumerate(graph.instances(unit)), enumerate(graph.instances(ref.location.name)))
            for (one, runs), (other, memory) in ends:
                if ref.name in loaded and graph.find_route(memory, runs) is None:
                    missing[one, other] = f"from {memory} to {runs}"
                elif ref.name in stored and graph.find_route(runs, memory) is None:
                    missing[one, other] = f"from {runs} to {memory}"
            yield _UnitOperand(nest, ref, missing)


def _one_memory_each(operands: Sequence[_UnitOperand]) -> list[_UnitOperand]:
    """The operands, where those of one allocation in any memory need one memory for all of them."""
    shared: dict[tuple[Path, str], dict[tuple[int, int], str]] = {}
    found: list[_UnitOperand] = []
    for operand in operands:
        if operand.in_any:
            holder, buffer = allocation(operand.nest, operand.ref)
            missing = shared.setdefault((holder.path, buffer.name), {})
            missing.update(operand.missing)
            operand = _UnitOperand(operand.nest, operand.ref, missing)
        found.append(operand)
    return found


def _check_unit(graph: UnitGraph, around: Nest, operands: Sequence[_UnitOperand]) -> Iterator[Diagnostic]:
    """`check_reach` for the unit of a number, where each operand counts for itself."""
    unit = around.block.location.subs(around.local)
    for operand in operands:
        pairs = operand.numbers(unit, ()) if operand.missing else None
        others = range(len(graph.instances(operand.ref.location.name)))
        for (one, other), transfer in operand.missing.items():
            if operand.in_any and not operand.missing.keys() >= {(one, each) for each in others}:
                continue
            if pairs is not None and pairs.contains({_UNIT: one, _MEMORY: other}):
                yield operand.wrong(transfer)
                break


def _check_any_unit(graph: UnitGraph, around: Nest, operands: Sequence[_UnitOperand]) -> Iterator[Diagnostic]:
    """`check_reach` for any unit of a name: at each point one of them reaches all operands."""
    name, names = around.block.location.name, around.prefix(around.depth)
    units = range(len(graph.instances(name)))
    blamed = [_unreached(graph, around, operands, unit) for unit in units]
    common: Points | None = None
    for parts in blamed:
        points = union(parts.values(), names)
        common = points if common is None else common & points
        if common.is_empty:
            return
    point = common.sample() if common is not None else None
    if point is None:
        return
    by_unit = [[operand for operand, points in parts.items() if points.contains(point)] for parts in blamed]
    alone = next((operand for operand in by_unit[0] if all(operand in each for each in by_unit)), None)
    if alone is not None:
        numbers = alone.numbers(around.block.location, names)
        ends = (
            (one, other)
            for one, other in alone.missing
            if numbers.contains({**point, _UNIT: one, _MEMORY: other})
        )
        yield alone.wrong(alone.missing[next(ends)])
        return
    lacking = dict.fromkeys(f"'{each[0].ref.name}'" for each in by_unit)
    message = f"no {name} reaches {', '.join([*lacking][:-1])} and {[*lacking][-1]}"
    hint = "transfer them to memories that one unit reaches"
    yield Diagnostic(message, around.path, around.block.name, hint)


def _unreached(
    graph: UnitGraph, around: Nest, operands: Sequence[_UnitOperand], unit: int
) -> Mapping[_UnitOperand, Points]:
    """The points of `around` at which a unit of its name does not reach an operand."""
    names = around.prefix(around.depth)
    found: dict[_UnitOperand, Points] = {}
    for operand in operands:
        lacking = [other for one, other in operand.missing if one == unit]
        every = len(lacking) == len(graph.instances(operand.ref.location.name))
        if not lacking or (operand.in_any and not every):
            continue
        points = operand.numbers(around.block.location, names)
        parts = [points.where(zero=[Affine.var(_MEMORY) - other]) for other in lacking]
        found[operand] = union(parts, points.names).onto(names)
    return found


@dataclass(frozen=True, eq=False)
class _PlacedUse:
    """The use of an allocation in any memory by a located block: the operands that lie in it, and the others."""

    around: Nest
    own: Sequence[_UnitOperand]
    others: Sequence[_UnitOperand]

    def unserved(self, graph: UnitGraph, memory: int, names: Sequence[str]) -> Iterator[tuple[Points, str]]:
        """The points over `names`, those of the allocation, at which a memory does not serve the block, and why."""
        if _is_any(self.around):
            yield self._unserved_by_all(graph, memory, names), self._reason(graph, memory)
            return
        unit = self.around.block.location.subs(self.around.local)
        for operand in self.own:
            for (one, other), transfer in operand.missing.items():
                if other == memory:
                    yield operand.at(unit, one, other, names), f"no bus leads {transfer}"

    def _unserved_by_all(self, graph: UnitGraph, memory: int, names: Sequence[str]) -> Points:
        """The points at which each unit of the name lacks the memory or another operand. Where the allocation lies
        inside of the block, units are chosen for it alone."""
        location, depth = self.around.block.location, self.around.depth
        around = self.around.prefix(depth)
        is_inside = len(names) > len(around)
        known = names if is_inside else around
        common: Points | None = None
        for unit in range(len(graph.instances(location.name))):
            lacking = [
                each.at(location, unit, memory, known) for each in self.own if (unit, memory) in each.missing
            ]
            if not is_inside:
                lacking += _unreached(graph, self.around, self.others, unit).values()
            points = union(lacking, known)
            common = points if common is None else common & points
        return union([] if common is None else [common.onto(names)], names)

    def _reason(self, graph: UnitGraph, memory: int) -> str:
        block, name = self.around.block, self.own[0].ref.location.name
        both = f"{graph.instances(name)[memory]} and the other operands of {block.name}"
        return f"no {block.location.name} reaches {both}"


def _check_any_memory(
    graph: UnitGraph, groups: Iterable[tuple[Nest, Sequence[_UnitOperand]]]
) -> Iterator[Diagnostic]:
    """`check_reach` for allocations in any memory of a name: at each point of the block that holds one, one memory
    serves all located blocks that use it."""
    uses: dict[tuple[Path, str, str], list[_PlacedUse]] = {}
    for around, group in groups:
        own: dict[tuple[Path, str, str], list[_UnitOperand]] = {}
        for operand in group:
            if operand.in_any:
                holder, buffer = allocation(operand.nest, operand.ref)
                own.setdefault((holder.path, buffer.name, operand.ref.location.name), []).append(operand)
        for key, parts in own.items():
            if not any(operand.missing for operand in parts):
                continue
            others = _one_memory_each([operand for operand in group if operand not in parts])
            uses.setdefault(key, []).append(_PlacedUse(around, parts, others))
    for (_, _, name), parts in uses.items():
        holder, buffer = allocation(parts[0].own[0].nest, parts[0].own[0].ref)
        names = holder.prefix(holder.depth)
        unserved: list[list[tuple[Points, str]]] = []
        common: Points | None = None
        for memory in range(len(graph.instances(name))):
            unserved.append([fault for use in parts for fault in use.unserved(graph, memory, names)])
            points = union((each for each, _ in unserved[-1]), names)
            common = points if common is None else common & points
            if common.is_empty:
                break
        point = common.sample() if common is not None else None
        if point is not None:
            reasons = [next(why for points, why in each if points.contains(point)) for each in unserved]
            part: Part = ("refinement", holder.block.refinements.index(buffer))
            message = f"no {name} holds '{buffer.name}' for all that use it: {'; '.join(reasons)}"
            hint = f"copy it from one {name} to another by a transfer"
            yield Diagnostic(message, holder.path, holder.block.name, hint, part)
