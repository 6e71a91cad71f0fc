"""Units that locations name, as integer sets: locations that share a unit, and units that the machine lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from stripe.hw.schema import HardwareModel
from stripe.ir import (
    Affine,
    Block,
    Constant,
    Diagnostic,
    Domain,
    Interval,
    Load,
    Location,
    Nest,
    Path,
    Refinement,
    Store,
    did_you_mean,
    nest_at,
)
from stripe.ir.check.diagnostic import Part
from stripe.poly import Points, points_of


@dataclass(frozen=True, slots=True)
class Place:
    """A location at all points of a domain, over whose names its units are. It takes `banks` units of its last axis."""

    location: Location
    domain: Domain
    banks: int = 1

    @staticmethod
    def of(ref: Refinement, nest: Nest) -> Place:
        """The place of a refinement of the innermost block of `nest`."""
        location = ref.location.subs(nest.local)
        return Place(location, _about(nest.domain, location.names()), _banks(ref))

    def numbers(self, axes: Sequence[tuple[int, int]]) -> Points:
        """The numbers that the units at the given levels and axes have together, called u%0, u%1, …: no index has such
        a name."""
        names = [f"u%{place}" for place in range(len(axes))]
        units: list[Affine] = []
        bank = 0
        for level, axis in axes:
            unit = self.location.devices[level].units[axis]
            if self.banks > 1 and (level, axis) == self.last_axis:
                unit, bank = unit + Affine.var("bank%"), self.banks - 1
            units.append(unit)
        points = Points.build(
            (*self.domain.names, "bank%", *names),
            {**self.domain.ranges, "bank%": (0, bank)},
            self.domain.constraints,
            [Affine.var(name) - unit for name, unit in zip(names, units, strict=True)],
        )
        return points.onto(names)

    @property
    def last_axis(self) -> tuple[int, int]:
        """Level and axis along which banks lie."""
        level = len(self.location.devices) - 1
        return level, len(self.location.devices[level].units) - 1

    def shares_unit(self, other: Place) -> bool:
        """Whether the two are in one unit at any points, or one of them in a part of the other's unit."""
        fewer, more = sorted((self, other), key=lambda place: len(place.location.devices))
        for levels in combinations(range(len(more.location.devices)), len(fewer.location.devices)):
            axes: list[tuple[tuple[int, int], tuple[int, int]]] = []
            for mine, level in enumerate(levels):
                one, two = fewer.location.devices[mine], more.location.devices[level]
                if one.name != two.name:
                    break
                axes += [((mine, axis), (level, axis)) for axis in range(min(len(one.units), len(two.units)))]
            else:
                ours, theirs = fewer.numbers([a for a, _ in axes]), more.numbers([b for _, b in axes])
                if not ours.disjoint(theirs):
                    return True
        return False


def unit_of(nest: Nest) -> Place:
    """The unit on which the innermost block runs, over the names of the nest; nowhere where no block has a location."""
    around: Nest | None = nest
    while around is not None and not around.block.location:
        around = around.outer
    location = Location() if around is None else around.block.location.subs(around.local)
    return Place(location, nest.domain)


def _banks(ref: Refinement) -> int:
    return 1 if ref.bank_dim is None else ref.dims[ref.bank_dim].size


def _about(domain: Domain, names: frozenset[str]) -> Domain:
    """The part of a domain that says something about `names`."""
    known = set(names)
    chosen: list[Affine] = []
    rest = list(domain.constraints)
    while near := [constraint for constraint in rest if constraint.names() & known]:
        chosen += near
        rest = [constraint for constraint in rest if constraint not in near]
        known.update(*(constraint.names() for constraint in near))
    ranges = {name: domain.ranges[name] for name in domain.names if name in known}
    return Domain.of(ranges, tuple(chosen))


def check_units(entry: Block, hardware: HardwareModel) -> list[Diagnostic]:
    """Every unit that a location names is in the machine, at every point; buffers are in memories. The registers of an
    execution unit count by the name that the model gives them.

    The intervals of indices decide on nearly all locations; integer sets on the blocks where they do not.
    """
    found: list[Diagnostic] = []
    fitting: set[tuple[Location, int, bool]] = set()  # places that no index moves

    def fits(location: Location, banks: int, intervals: Mapping[str, Interval], *, memory: bool) -> bool:
        key = (location, banks, memory)
        if key in fitting:
            return True
        if any(_missing(Place(location, Domain.of(intervals), banks), hardware, memory=memory)):
            return False
        if not location.names():
            fitting.add(key)
        return True

    def visit(block: Block, path: Path, outside: dict[str, Interval], unit: str) -> None:
        intervals = block.intervals(outside)
        unit = block.location.name or unit
        sure = not block.location or fits(block.location, 1, intervals, memory=False)
        if unit in hardware.tx_units:
            found.extend(_computing(block, path, unit, hardware))
        if not sure or not all(
            fits(ref.location, _banks(ref), intervals, memory=True)
            for ref in block.refinements
            if ref.location
        ):
            found.extend(_check_nest(nest_at(entry, path), hardware))
        for number, statement in enumerate(block.statements):
            if isinstance(statement, Block):
                visit(statement, (*path, number), intervals, unit)

    visit(entry, (0,), {}, "")
    return found


def _computing(block: Block, path: Path, unit: str, hardware: HardwareModel) -> Iterator[Diagnostic]:
    """The first statement of a block on a transfer unit that computes."""
    for number, statement in enumerate(block.statements):
        if not isinstance(statement, Block | Load | Store | Constant):
            message = f"it computes on {unit}, which moves data only"
            hint = f"units that compute are {', '.join(hardware.exec_units)}"
            yield Diagnostic(message, (*path, number), block.name, hint)
            return


def _check_nest(nest: Nest, hardware: HardwareModel) -> Iterator[Diagnostic]:
    """`check_units` for the innermost block, by integer sets."""
    block = nest.block
    about: list[tuple[str, Place, Refinement | None]] = []
    if block.location:
        location = block.location.subs(nest.local)
        about.append(("the block", Place(location, _about(nest.domain, location.names())), None))
    about += [(f"'{ref.name}'", Place.of(ref, nest), ref) for ref in block.refinements if ref.location]
    for what, place, ref in about:
        for message, hint in _missing(place, hardware, memory=ref is not None):
            part: Part | None = None if ref is None else ("refinement", block.refinements.index(ref))
            yield Diagnostic(f"{what} is located in {message}", nest.path, block.name, hint, part)


def allocation(nest: Nest, ref: Refinement) -> tuple[Nest, Refinement]:
    """The allocation in which a refinement of the innermost block of `nest` lies, with the nest that holds it."""
    view, holder = nest.views[ref.name].buffer, nest
    while holder.path != view.path and holder.outer is not None:
        holder = holder.outer
    return holder, holder.block.ref(view.name)


def place_of_view(nest: Nest, ref: Refinement) -> tuple[Location, Affine, int]:
    """The location of the allocation in which a view lies, over the names of `nest`; the first bank that the view has
    of it, and how many. A view of an allocation without a location has its own."""
    holder, buffer = allocation(nest, ref)
    if not buffer.location:
        return ref.location.subs(nest.local), Affine(), _banks(ref)
    dim = buffer.bank_dim
    first, banks = (Affine(), 1) if dim is None else (nest.views[ref.name].origin[dim], ref.dims[dim].size)
    return buffer.location.subs(holder.local), first, banks


def check_views(nests: Sequence[Nest]) -> list[Diagnostic]:
    """Each view names the unit in which its allocation lies, at every point; in banks, one of its banks, as
    the elements say in which they lie. Or it names no number."""
    found: list[Diagnostic] = []
    for nest in nests:
        for number, ref in enumerate(nest.block.refinements):
            numbered = any(device.units for device in ref.location.devices)
            if not ref.is_alloc and nest.outer is not None and numbered and _lies_elsewhere(nest, ref):
                source = allocation(nest, ref)[1].location
                message = f"'{ref.name}' is located in {ref.location}, and its source in {source}"
                part: Part = ("refinement", number)
                hint = "a view lies where its source lies"
                found.append(Diagnostic(message, nest.path, nest.block.name, hint, part))
    return found


def _lies_elsewhere(nest: Nest, ref: Refinement) -> bool:
    """Whether a view names at some point a unit in which its allocation does not lie."""
    holder, buffer = allocation(nest, ref)
    mine, theirs = ref.location.subs(nest.local), buffer.location.subs(holder.local)
    for level, (here, there) in enumerate(zip(mine.devices, theirs.devices, strict=True)):
        if here.units and len(here.units) != len(there.units):
            return True
        for axis, (one, other) in enumerate(zip(here.units, there.units, strict=False)):
            in_banks = level == len(mine.devices) - 1 and axis == len(here.units) - 1
            banks = _banks(buffer) if in_banks else 1
            sides = [] if one == other else [other - one - 1, one - other - banks]
            if any(not points_of(nest.domain).where([side]).is_empty for side in sides):
                return True
    return False


def _missing(place: Place, hardware: HardwareModel, *, memory: bool) -> Iterator[tuple[str, str]]:
    """The reasons why the machine has no such place, each with a suggestion."""
    levels = place.location.devices
    for level, device in enumerate(levels):
        unit = hardware.units.get(device.name)
        if unit is None and memory and device.name in hardware.register_files:
            continue
        if unit is None:
            known = f"its units are {', '.join(hardware.unit_names)}"
            hint = did_you_mean(device.name, hardware.unit_names, known)
            yield f"{device.name}, which the machine does not have", hint
            continue
        innermost = level == len(levels) - 1
        if memory and innermost and device.name not in hardware.mem_units:
            yield f"{device.name}, which is no memory", f"memories are {', '.join(hardware.mem_units)}"
        if not memory and innermost and device.name in hardware.mem_units:
            units = (*hardware.exec_units, *hardware.tx_units)
            yield f"{device.name}, which is a memory", f"blocks run on {', '.join(units)}"
        if len(device.units) > 1:
            yield f"{device}: {len(device.units)} numbers", "units are counted by one number"
            continue
        for axis in range(len(device.units)):
            number = _outside(place, level, axis, unit.count)
            if number is not None:
                yield (
                    f"{device.name}[{number}], and the machine has {unit.count} {device.name}",
                    f"numbers are 0 to {unit.count - 1}",
                )


def _outside(place: Place, level: int, axis: int, count: int) -> int | None:
    """A number that the unit at a level and an axis has at some point, and no unit of `count`."""
    banks = place.banks if (level, axis) == place.last_axis else 1
    low, high = place.location.devices[level].units[axis].bounds(place.domain.ranges)
    if low >= 0 and high + banks <= count:
        return None
    numbers, number = place.numbers([(level, axis)]), Affine.var("u%0")
    for wrong in (number - count, -number - 1):
        sample = numbers.where([wrong]).sample()
        if sample is not None:
            return sample["u%0"]
    return None
