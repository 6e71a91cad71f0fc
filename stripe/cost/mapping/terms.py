"""The price of a mapping as a polynomial: a sum of products with one factor for each group of indices.

A mapping puts the nodes (a level that holds an operand) into one order, from outermost to innermost, and splits each
index into a part that runs in space and loops between the nodes. All loops above a node count as its fills. Loops right
above a node on which its operand does not depend would be no new fills; but a node may as well stand above such
loops, where its box is the same, and that order is among those searched. So the order of loops between two nodes never
matters, and an operand moves

    product over groups of (loops of the group above the node) * (elements of the box, as far as the group tells)

elements into a node. For an index on which the operand does not depend the second factor is 1, so that the node is best
placed right below the nearest node above it that does depend on the index: only dependent nodes split an index.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from stripe.cost.mapping.problem import Hierarchy, Level, Link, LoopNest, Node, Numbers, Operand, touched

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Cycles: TypeAlias = defaultdict[int, float]
"""By term, the cycles for which each of its elements needs something."""
Extents: TypeAlias = dict[str, Integers]
"""For each index of a group its extent (how many values it takes inside of a node), one row a choice."""


@dataclass(frozen=True)
class Slide:
    """A window of a level that keeps halos: the loop right above `node` is over `index` and moves it."""

    node: Node
    index: str


@dataclass(frozen=True)
class Skeleton:
    """The decisions before the sizes: the nodes in order, outermost first, and the slides."""

    nodes: tuple[Node, ...]
    slides: tuple[Slide, ...] = ()

    def chain(self, operand: Operand) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.operand is operand)

    def __str__(self) -> str:
        text = " > ".join(map(str, self.nodes))
        return text + "".join(f", {slide.node} slides along {slide.index}" for slide in self.slides)


@dataclass(frozen=True)
class Limit:
    """A sum of terms that is at most `most`; each counts `copies` times where its term among `fills` is over 1."""

    terms: list[int]
    most: float
    fills: list[int] = field(default_factory=list[int])
    copies: int = 1

    def holds(self, rows: Floats, factors: Floats) -> npt.NDArray[np.bool_]:
        """Whether each row keeps it, multiplied by the factors in the same place."""
        sums = rows[:, self.terms] * factors[:, self.terms]
        if self.fills:
            again = rows[:, self.fills] * factors[:, self.fills] > 1
            sums = np.where(again, self.copies * sums, sums)
        return sums.sum(axis=1) <= self.most


class PriceTerms:
    """The terms of a skeleton, and their factors for the choices of a group."""

    def __init__(self, nest: LoopNest, target: Hierarchy, skeleton: Skeleton) -> None:
        self.nest = nest
        self.target = target
        self.skeleton = skeleton
        self.names: list[str] = []
        self.pJ: list[float] = []
        self.constant_pJ = nest.points * target.compute_pJ
        self.cycles: defaultdict[str, Cycles] = defaultdict(lambda: defaultdict(float))
        """By resource, the cycles for which each of some terms needs it."""
        self.serial: Cycles = defaultdict(float)
        """The cycles of some terms where nothing overlaps: on the slowest link of each way, and on the array."""
        self._timed = bool(target.links)
        self._holds: list[Node] = []
        self._fills: dict[str, int] = {}
        self.limits: list[Limit] = []
        for operand in nest.operands:
            self._add_operand(operand)
        for level in target.levels[1:]:
            held = [node for node in skeleton.nodes if node.level is level]
            if level.capacity is not None and held:
                numbers = [self._add(f"{node} bytes held", 0.0) for node in held]
                self._holds += held
                fills = [self._fills[str(node)] for node in held] if level.copies > 1 else []
                self.limits.append(Limit(numbers, float(level.capacity), fills, level.copies))
        for axis in target.axes:
            self.limits.append(Limit([self._add(f"positions along {axis.name}", 0.0)], float(axis.size)))
        if self._timed:
            steps = self._add("steps", 0.0)
            self.cycles["array"][steps] = self.serial[steps] = target.step_cycles

    @property
    def busiest(self) -> list[Cycles]:
        """`cycles` without resources that another needs longer whatever the factors."""
        found: list[Cycles] = []
        for mine in sorted(self.cycles.values(), key=lambda terms: -sum(terms.values())):
            if not any(all(other.get(term, 0.0) >= each for term, each in mine.items()) for other in found):
                found.append(mine)
        return found

    def _add_moved(
        self, name: str, pJ: float, ways: Sequence[tuple[str, str]], size: int, fills: int | None = None
    ) -> None:
        """The elements that go on the `ways` between two memories, in as many transfers as the term `fills` says, and
        where time counts the elements of one position alone."""
        number = self._add(name, pJ)
        alone = self._add(f"{name}, one position", 0.0) if self._timed else number
        for link, tables in self._links(ways):
            for cycles in tables:
                cycles[alone if link.apart else number] += link.cycles * size
            if fills is not None and link.latency:
                self.cycles[link.resource][fills] += link.latency
                self.serial[fills] += link.latency

    def _links(self, ways: Sequence[tuple[str, str]]) -> Iterator[tuple[Link, list[Cycles]]]:
        """The links of ways, with the cycles to which they add: of their resource, and the slowest of a way of work one
        after the other."""
        for way in ways:
            links = self.target.links.get(way, ())
            slowest = max(links, key=lambda link: link.cycles, default=None)
            for link in links:
                yield link, [self.cycles[link.resource], *([self.serial] if link is slowest else [])]

    def _counts_fills(self, level: Level) -> bool:
        return self._timed or level.copies > 1

    def _add(self, name: str, pJ: float) -> int:
        self.names.append(name)
        self.pJ.append(pJ)
        return len(self.names) - 1

    def _add_operand(self, operand: Operand) -> None:
        parent = self.target.levels[0]
        size = operand.element_bytes
        total = operand.elements(self.nest.ranges) * size
        for node in self.skeleton.chain(operand):
            level = node.level
            inwards, outwards = parent.read_pJ * size, parent.write_pJ * size
            own_in, own_out = level.write_pJ * size, level.read_pJ * size
            if operand.is_output:
                # An element goes up each time its box leaves; the first time that it enters, nothing is read.
                inwards, own_in = inwards + outwards, own_in + own_out
                self.constant_pJ -= total * (parent.read_pJ + level.write_pJ)
            far, near = parent.memory, level.memory
            fills = self._add(f"{node} fills", 0.0) if self._counts_fills(level) else None
            if fills is not None:
                self._fills[str(node)] = fills
            self._add_moved(f"{node} elements moved", inwards, [], size)
            both = [(far, near), (near, far)] if operand.is_output else [(far, near)]
            self._add_moved(f"{node} elements moved, instances", own_in, both, size, fills)
            parent = level
        pJ = parent.read_pJ * size
        both = [(parent.memory, "")]
        if operand.is_output:
            # Each step writes a result, and reads it before but for the first time.
            pJ += parent.write_pJ * size
            self.constant_pJ -= total * parent.read_pJ
            both = [(parent.memory, ""), ("", parent.memory)]
        self._add_moved(f"{operand.name} array", pJ, both, size)

    def factors(
        self, group: Sequence[str], within: Mapping[str, Integers], spatial: Mapping[str, Integers]
    ) -> tuple[Floats, Integers]:
        """The factor of each term for each combination of splits of the indices of a group, one row a choice, and the
        numbers of these splits. Splits have a row in `within` and `spatial`: the extent inside each node, and the
        positions along each axis."""
        picks = np.indices([len(within[name]) for name in group]).reshape(len(group), -1)
        if not self.target.shares_diagonals:
            across = [spatial[name].prod(axis=1)[picks[n]] > 1 for n, name in enumerate(group)]
            picks = picks[:, np.sum(across, axis=0) <= 1]
        inside = {name: within[name][picks[n]] for n, name in enumerate(group)}
        parts = {name: spatial[name][picks[n]] for n, name in enumerate(group)}
        return np.stack(list(self._columns(group, inside, parts)), axis=1), picks.T

    def _columns(self, group: Sequence[str], within: Extents, spatial: Extents) -> Iterator[Floats]:
        """The factors in the order of the terms."""
        ranges = self.nest.ranges
        boxes = _Boxes(self, group, within, spatial)
        positions = boxes.positions
        for operand in self.nest.operands:
            chain = self.skeleton.chain(operand)
            parent = self.target.levels[0]
            for node in chain:
                inside = boxes.inside(node)
                fills = _product(ranges[name] / inside[name] for name in group)
                if self._counts_fills(node.level):
                    yield fills
                for level in (parent, node.level):
                    moved = self._moved(node, group, within, boxes, boxes.axes(level), fills)
                    yield moved * boxes.instances(boxes.axes(level))
                    if self._timed:
                        yield moved
                parent = node.level
            if self.target.hold_operands:
                instances = _product(positions.values())
                # the extents inside the last memory that holds an operand: all, where none does
                last = len(self.skeleton.nodes) - 1
                whole = {name: np.full(len(within[name]), ranges[name]) for name in group}
                inner = whole if last < 0 else {name: within[name][:, last] for name in group}
                together = {name: inner[name] // positions[name] for name in group}
                steps = _product(ranges[name] / inner[name] for name in group)
            else:
                # The positions of one instance share what they need; each instance is read on its own.
                apart = boxes.along(boxes.axes(parent))
                instances = boxes.instances(boxes.axes(parent))
                together = {name: positions[name] // apart[name] for name in group}
                steps = _product(ranges[name] / positions[name] for name in group)
            used = steps * _sizes(operand, group, together)[1]
            yield used * instances
            if self._timed:
                yield used
        for node in self._holds:
            # the size of an element is a factor of the first group
            size = node.operand.element_bytes if group[0] == self.nest.groups[0][0] else 1
            yield boxes.room(node, boxes.axes(node.level)) * size
        for axis in range(len(self.target.axes)):
            yield _product(spatial[name][:, axis] for name in group)
        if self._timed:
            yield _product(ranges[name] / positions[name] for name in group)

    def _moved(
        self,
        node: Node,
        group: Sequence[str],
        within: Extents,
        boxes: _Boxes,
        axes: tuple[int, ...],
        fills: Floats,
    ) -> Floats:
        """Elements that one of the instances along `axes` gets: a box for each fill; where a window slides, the first
        box, then the new elements of each step."""
        slide = next((s for s in self.skeleton.slides if s.node is node and s.index in group), None)
        if slide is None:
            return fills * boxes.elements(node, axes)
        inside, held = boxes.inside(node), boxes.held(node, axes)
        place = self.skeleton.nodes.index(node)
        above = (
            within[slide.index][:, place - 1] if place else np.full(len(fills), self.nest.ranges[slide.index])
        )
        steps = above / inside[slide.index]
        total = fills / steps
        for form in node.operand.index:
            names = {name for name, c in form.items() if c} & set(group)
            if not names:
                continue
            box: dict[str, Numbers] = {name: held[name] for name in names}
            if slide.index in names:
                box[slide.index] = held[slide.index] + (steps - 1) * inside[slide.index]
            total = total * touched(form, box)[1]
        return total


class _Boxes:
    """Boxes of the choices of a group: the extents inside of each node and of the instances along some axes, of which
    several terms ask for the same."""

    def __init__(self, terms: PriceTerms, group: Sequence[str], within: Extents, spatial: Extents) -> None:
        self.positions = {name: spatial[name].prod(axis=1) for name in group}
        self._target = terms.target
        self._nodes = terms.skeleton.nodes
        self._group = group
        self._within = within
        self._spatial = spatial
        self._inside: dict[int, Extents] = {}
        self._along: dict[tuple[int, ...], Extents] = {}
        self._instances: dict[tuple[int, ...], Floats] = {}
        self._held: dict[tuple[int, tuple[int, ...]], Extents] = {}
        self._touched: dict[tuple[int, tuple[int, ...]], tuple[Floats, Floats]] = {}

    def axes(self, level: Level) -> tuple[int, ...]:
        """The axes along which the level has an instance at each position."""
        return tuple([n for n, axis in enumerate(self._target.axes) if axis.name in level.along])

    def inside(self, node: Node) -> Extents:
        """The extents inside of a node."""
        if id(node) not in self._inside:
            place = self._nodes.index(node)
            self._inside[id(node)] = {name: self._within[name][:, place] for name in self._group}
        return self._inside[id(node)]

    def along(self, axes: tuple[int, ...]) -> Extents:
        """For each index the positions along some axes."""
        if axes not in self._along:
            numbers = list(axes)
            self._along[axes] = {
                name: values[:, numbers].prod(axis=1) for name, values in self._spatial.items()
            }
        return self._along[axes]

    def instances(self, axes: tuple[int, ...]) -> Floats:
        """The positions along some axes."""
        if axes not in self._instances:
            self._instances[axes] = _product(self.along(axes).values())
        return self._instances[axes]

    def held(self, node: Node, axes: tuple[int, ...]) -> Extents:
        """The extents of the box of a node in one of the instances along some axes."""
        key = (id(node), axes)
        if key not in self._held:
            self._held[key] = _apart(node.operand, self.inside(node), self.positions, self.along(axes))
        return self._held[key]

    def room(self, node: Node, axes: tuple[int, ...]) -> Floats:
        """The elements that the box has room for, as far as the indices of the group tell."""
        return self._sizes(node, axes)[0]

    def elements(self, node: Node, axes: tuple[int, ...]) -> Floats:
        """The elements of the box that are touched, as far as the indices of the group tell."""
        return self._sizes(node, axes)[1]

    def _sizes(self, node: Node, axes: tuple[int, ...]) -> tuple[Floats, Floats]:
        key = (id(node), axes)
        if key not in self._touched:
            self._touched[key] = _sizes(node.operand, self._group, self.held(node, axes))
        return self._touched[key]


def _apart(operand: Operand, inside: Extents, positions: Extents, apart: Extents) -> Extents:
    """Extents of the box of one instance, of which there are `apart` for each index. Neighbouring positions take
    neighbouring values, so an instance holds every `positions`-th of an index: gaps that windows fill."""
    windows = {name for form in operand.index if sum(map(bool, form.values())) > 1 for name in form}
    return {
        name: extent - positions[name] + positions[name] // apart[name]
        if name in windows
        else extent // apart[name]
        for name, extent in inside.items()
    }


_ONE: Floats = np.ones(())


def _product(factors: Iterable[Integers | Floats]) -> Floats:
    """The product of columns; 1.0 of none."""
    total = _ONE
    for factor in factors:
        total = total * factor
    return total


def _sizes(operand: Operand, group: Sequence[str], extents: Extents) -> tuple[Floats, Floats]:
    """The room of the box of an operand and its elements that are touched, as far as the indices of a group tell."""
    room: Floats = np.ones(len(next(iter(extents.values()))))
    elements = room
    for form in operand.index:
        names = {name: extents[name] for name in group if form.get(name)}
        if names:
            size, count = touched(form, names)
            room, elements = room * size, elements * count
    return room, elements
