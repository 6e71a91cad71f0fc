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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from stripe.cost.mapping.problem import (
    Floats,
    Hierarchy,
    Integers,
    Level,
    Link,
    LoopNest,
    Numbers,
    Operand,
    touched,
)
from stripe.cost.mapping.skeletons import Node, Skeleton, Slide
from stripe.cost.mapping.splits import Table

Cycles: TypeAlias = defaultdict[int, float]
"""By term, the cycles for which each of its elements needs something."""
Extents: TypeAlias = dict[str, Integers]
"""For each index of a group its extent (how many values it takes inside of a node), one row a choice."""


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


@dataclass(frozen=True)
class Term:
    """A product of factors, one for each group of indices: what an element of it costs, and its factor for each of some
    choices for a group."""

    name: str
    pJ: float
    factor: Factor


class PriceTerms:
    """The terms of a skeleton, and their factors for the choices of a group."""

    def __init__(self, nest: LoopNest, hierarchy: Hierarchy, skeleton: Skeleton) -> None:
        self.nest = nest
        self.hierarchy = hierarchy
        self.skeleton = skeleton
        self.terms: list[Term] = []
        self.constant_pJ = nest.points * hierarchy.compute_pJ
        self.cycles: defaultdict[str, Cycles] = defaultdict(lambda: defaultdict(float))
        """By resource, the cycles for which each of some terms needs it."""
        self.serial: Cycles = defaultdict(float)
        """The cycles of some terms where nothing overlaps: on the slowest link of each way, and on the grid."""
        self.limits: list[Limit] = []
        self._timed = bool(hierarchy.links)
        fills: dict[str, int] = {}
        for operand in nest.operands:
            self._add_operand(operand, fills)
        for level in hierarchy.levels[1:]:
            held = [node for node in skeleton.nodes if node.level is level]
            if level.capacity is not None and held:
                numbers = [
                    self._add(f"{node} bytes held", 0.0, partial(Boxes.room, node=node)) for node in held
                ]
                again = [fills[str(node)] for node in held] if level.copies > 1 else []
                self.limits.append(Limit(numbers, float(level.capacity), again, level.copies))
        for number, axis in enumerate(hierarchy.axes):
            places = self._add(f"positions along {axis.name}", 0.0, partial(Boxes.places, axis=number))
            self.limits.append(Limit([places], float(axis.size)))
        if self._timed:
            steps = self._add("steps", 0.0, Boxes.steps)
            self.cycles["grid"][steps] = self.serial[steps] = hierarchy.step_cycles

    @property
    def busiest(self) -> list[Cycles]:
        """`cycles` without resources that another needs longer whatever the factors."""
        found: list[Cycles] = []
        for mine in sorted(self.cycles.values(), key=lambda terms: -sum(terms.values())):
            if not any(all(other.get(term, 0.0) >= each for term, each in mine.items()) for other in found):
                found.append(mine)
        return found

    def factors(self, splits: Mapping[str, Table]) -> tuple[Floats, Integers]:
        """The factor of each term for each combination of splits of the indices of a group, one row a choice, and the
        numbers of these splits. No combinations where the grid runs none of a window in space."""
        picks = np.indices([len(within) for within, _ in splits.values()]).reshape(len(splits), -1)
        if not self.hierarchy.shares_diagonals:
            across = [
                spatial.prod(axis=1)[pick] > 1
                for (_, spatial), pick in zip(splits.values(), picks, strict=True)
            ]
            picks = picks[:, np.sum(across, axis=0) <= 1]
        within = {name: table[pick] for (name, (table, _)), pick in zip(splits.items(), picks, strict=True)}
        spatial = {name: table[pick] for (name, (_, table)), pick in zip(splits.items(), picks, strict=True)}
        boxes = Boxes(self.nest, self.hierarchy, self.skeleton, within, spatial)
        return np.stack([term.factor(boxes) for term in self.terms], axis=1), picks.T

    def _add_operand(self, operand: Operand, fills: dict[str, int]) -> None:
        parent = self.hierarchy.levels[0]
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
            if self._timed or level.copies > 1:
                fills[str(node)] = self._add(f"{node} fills", 0.0, partial(Boxes.fills, node=node))
            name = f"{node} elements moved"
            self._add_moved(name, inwards, _Moved(node, parent), [], size)
            both = [(far, near), (near, far)] if operand.is_output else [(far, near)]
            self._add_moved(
                f"{name}, instances", own_in, _Moved(node, level), both, size, fills.get(str(node))
            )
            parent = level
        pJ = parent.read_pJ * size
        both = [(parent.memory, "")]
        if operand.is_output:
            # Each step writes a result, and reads it before but for the first time.
            pJ += parent.write_pJ * size
            self.constant_pJ -= total * parent.read_pJ
            both = [(parent.memory, ""), ("", parent.memory)]
        self._add_moved(f"{operand.name} grid", pJ, _Used(operand, parent), both, size)

    def _add_moved(
        self,
        name: str,
        pJ: float,
        moved: _Moved | _Used,
        ways: Sequence[tuple[str, str]],
        size: int,
        fills: int | None = None,
    ) -> None:
        """The elements that go on the `ways` between two memories, in as many transfers as the term `fills` says, and
        where time counts the elements of one position alone."""
        number = self._add(name, pJ, moved.by_all)
        alone = self._add(f"{name}, one position", 0.0, moved.by_one) if self._timed else number
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
            links = self.hierarchy.links.get(way, ())
            slowest = max(links, key=lambda link: link.cycles, default=None)
            for link in links:
                yield link, [self.cycles[link.resource], *([self.serial] if link is slowest else [])]

    def _add(self, name: str, pJ: float, factor: Factor) -> int:
        self.terms.append(Term(name, pJ, factor))
        return len(self.terms) - 1


@dataclass(frozen=True)
class _Moved:
    """The elements of a node that instances of a level, of the node or of its parent, read or write."""

    node: Node
    level: Level

    def by_one(self, boxes: Boxes) -> Floats:
        return boxes.moved(self.node, self.level)

    def by_all(self, boxes: Boxes) -> Floats:
        return self.by_one(boxes) * boxes.instances(self.level)


@dataclass(frozen=True)
class _Used:
    """The elements of an operand that the grid reads from, or writes to, the level that holds them next to it."""

    operand: Operand
    level: Level

    def by_one(self, boxes: Boxes) -> Floats:
        return boxes.used(self.operand, self.level)

    def by_all(self, boxes: Boxes) -> Floats:
        return self.by_one(boxes) * boxes.readers(self.level)


class Boxes:
    """Boxes of the choices of a group: the extents inside of each node and of the instances of a level, of which
    several terms ask for the same."""

    def __init__(
        self,
        nest: LoopNest,
        hierarchy: Hierarchy,
        skeleton: Skeleton,
        within: Extents,
        spatial: Extents,
    ) -> None:
        self._nest = nest
        self._hierarchy = hierarchy
        self._skeleton = skeleton
        self._group = tuple(within)
        self._within = within
        self._spatial = spatial
        self._positions = {name: places.prod(axis=1) for name, places in spatial.items()}
        self._along: dict[tuple[int, ...], Extents] = {}
        self._instances: dict[tuple[int, ...], Floats] = {}
        self._fills: dict[int, Floats] = {}
        self._held: dict[tuple[int, tuple[int, ...]], Extents] = {}
        self._touched: dict[tuple[int, tuple[int, ...]], tuple[Floats, Floats]] = {}
        self._moved: dict[tuple[int, tuple[int, ...]], Floats] = {}

    def steps(self) -> Floats:
        """The steps of the grid."""
        return self._rounds(self._positions)

    def places(self, axis: int) -> Floats:
        """The positions along an axis."""
        return _product(self._spatial[name][:, axis] for name in self._group)

    def instances(self, level: Level) -> Floats:
        """The instances of a level that hold something."""
        axes = self._axes(level)
        if axes not in self._instances:
            self._instances[axes] = _product(self._apart(axes).values())
        return self._instances[axes]

    def fills(self, node: Node) -> Floats:
        """The boxes that a node holds, one after the other."""
        if id(node) not in self._fills:
            self._fills[id(node)] = self._rounds(self._inside(node))
        return self._fills[id(node)]

    def room(self, node: Node) -> Floats:
        """The bytes of the box of a node in one instance of its level. (The size of an element is a factor of the first
        group.)"""
        size = node.operand.element_bytes if self._group[0] == self._nest.groups[0][0] else 1
        return self._box(node, self._axes(node.level))[0] * size

    def moved(self, node: Node, level: Level) -> Floats:
        """Elements that one instance of a level gives to a node, or gets: a box for each fill; where a window slides,
        the first box, then the new elements of each step."""
        axes = self._axes(level)
        key = (id(node), axes)
        if key not in self._moved:
            slide = next(
                (s for s in self._skeleton.slides if s.node is node and s.index in self._group), None
            )
            self._moved[key] = (
                self._slid(slide, axes) if slide else self.fills(node) * self._box(node, axes)[1]
            )
        return self._moved[key]

    def used(self, operand: Operand, level: Level) -> Floats:
        """Elements of an operand that the grid reads from one instance of a level, or that one unit reads, which holds
        operands."""
        if self._hierarchy.hold_operands:
            # the extents inside the last memory that holds an operand: all, where none does
            nodes = self._skeleton.nodes
            inner = self._inside(nodes[-1]) if nodes else self._whole()
            together = {name: inner[name] // self._positions[name] for name in self._group}
            steps = self._rounds(inner)
        else:
            # The positions of one instance share what they need; each instance is read on its own.
            apart = self._apart(self._axes(level))
            together = {name: self._positions[name] // apart[name] for name in self._group}
            steps = self.steps()
        return steps * room_and_elements(operand, self._group, together)[1]

    def readers(self, level: Level) -> Floats:
        """The instances of a level that the grid reads, or the units that read for themselves."""
        return _product(self._positions.values()) if self._hierarchy.hold_operands else self.instances(level)

    def _slid(self, slide: Slide, axes: tuple[int, ...]) -> Floats:
        node = slide.node
        inside, held, fills = self._inside(node), self._extents(node, axes), self.fills(node)
        place = self._skeleton.nodes.index(node)
        above = self._within[slide.index][:, place - 1] if place else self._whole()[slide.index]
        steps = above / inside[slide.index]
        total = fills / steps
        for form in node.operand.index:
            names = {name for name, c in form.items() if c} & set(self._group)
            if not names:
                continue
            box: dict[str, Numbers] = {name: held[name] for name in names}
            if slide.index in names:
                box[slide.index] = held[slide.index] + (steps - 1) * inside[slide.index]
            total = total * touched(form, box)[1]
        return total

    def _rounds(self, extents: Extents) -> Floats:
        """The loops around boxes of these extents."""
        return _product(self._nest.ranges[name] / extents[name] for name in self._group)

    def _whole(self) -> Extents:
        return {name: np.full(len(self._within[name]), self._nest.ranges[name]) for name in self._group}

    def _inside(self, node: Node) -> Extents:
        """The extents inside of a node."""
        place = self._skeleton.nodes.index(node)
        return {name: self._within[name][:, place] for name in self._group}

    def _axes(self, level: Level) -> tuple[int, ...]:
        """The axes along which the level has an instance at each position."""
        return tuple([n for n, axis in enumerate(self._hierarchy.axes) if axis.name in level.along])

    def _apart(self, axes: tuple[int, ...]) -> Extents:
        """For each index the positions along some axes."""
        if axes not in self._along:
            numbers = list(axes)
            self._along[axes] = {
                name: values[:, numbers].prod(axis=1) for name, values in self._spatial.items()
            }
        return self._along[axes]

    def _extents(self, node: Node, axes: tuple[int, ...]) -> Extents:
        """The extents of the box of a node in one of the instances along some axes."""
        key = (id(node), axes)
        if key not in self._held:
            self._held[key] = _apart(node.operand, self._inside(node), self._positions, self._apart(axes))
        return self._held[key]

    def _box(self, node: Node, axes: tuple[int, ...]) -> tuple[Floats, Floats]:
        """The room and the elements of that box, as far as the indices of the group tell."""
        key = (id(node), axes)
        if key not in self._touched:
            self._touched[key] = room_and_elements(node.operand, self._group, self._extents(node, axes))
        return self._touched[key]


Factor: TypeAlias = Callable[[Boxes], Floats]
"""The factor of a term, one number a choice."""


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


def room_and_elements(operand: Operand, group: Sequence[str], extents: Extents) -> tuple[Floats, Floats]:
    """The room of the box of an operand and its elements that are touched, as far as the indices of a group tell."""
    room: Floats = np.ones(len(next(iter(extents.values()))))
    elements = room
    for form in operand.index:
        names = {name: extents[name] for name in group if form.get(name)}
        if names:
            size, count = touched(form, names)
            room, elements = room * size, elements * count
    return room, elements
