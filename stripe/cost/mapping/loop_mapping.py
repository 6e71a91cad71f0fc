"""A mapping as the loops of a nest."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from stripe.cost.mapping.problem import LoopNest
from stripe.cost.mapping.skeletons import Node, Skeleton, Slide
from stripe.cost.mapping.splits import IndexSplit
from stripe.ir.frozen import replace


@dataclass(frozen=True)
class LoopMapping:
    """A mapping: the nodes in order, and for each index its extent inside each of them and along each axis."""

    skeleton: Skeleton
    splits: dict[str, IndexSplit]
    energy_pJ: float
    cycles: float = 0.0
    """An estimate, see `stripe.cost.mapping.price`; 0 where time does not count."""

    def of(self, nest: LoopNest) -> LoopMapping:
        """The mapping of a canonical nest, for a nest of which it is the canonical form."""
        old = self.skeleton.nodes
        nodes = tuple(Node(node.level, nest.operands[int(node.operand.name)]) for node in old)
        names = list(nest.numbers)
        slides = tuple(
            Slide(nodes[old.index(slide.node)], names[int(slide.index)]) for slide in self.skeleton.slides
        )
        splits = {names[int(index)]: split for index, split in self.splits.items()}
        ordered = {name: splits[name] for name in nest.ranges}
        return replace(self, skeleton=Skeleton(nodes, slides), splits=ordered)

    def loops(self, nest: LoopNest) -> list[list[tuple[str, int]]]:
        """The loops in time as (index, rounds), outermost first: for each node the loops between it and the one
        outside, then the loops inside of the last node. A loop that a window slides along is the last of its list.
        """
        found: list[list[tuple[str, int]]] = []
        last = dict(nest.ranges)
        for n, node in enumerate(self.skeleton.nodes):
            sliding = next((slide.index for slide in self.skeleton.slides if slide.node is node), None)
            order = sorted(nest.ranges, key=lambda name: name == sliding)
            inside = {name: self.splits[name].within[n] for name in order}
            found.append([(name, last[name] // inside[name]) for name in order if inside[name] < last[name]])
            last = inside
        found.append([
            (name, rounds)
            for name, extent in last.items()
            if (rounds := extent // prod(self.splits[name].spatial)) > 1
        ])  # fmt: skip
        return found
