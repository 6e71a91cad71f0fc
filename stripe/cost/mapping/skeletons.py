"""Skeletons of mappings: the decisions before the sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise, product

from stripe.cost.mapping.problem import Hierarchy, Level, LoopNest, Operand


@dataclass(frozen=True)
class Node:
    """A level that holds an operand, and the place of the two in the hierarchy and the nest."""

    level: Level
    operand: Operand

    def __str__(self) -> str:
        return f"{self.operand.name}@{self.level.memory}"


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


def skeletons(nest: LoopNest, hierarchy: Hierarchy) -> Iterator[Skeleton]:
    """All orders of the nodes for each choice of bypasses and slides."""
    for chains in residencies(nest, hierarchy):
        for nodes in interleavings(chains):
            slides = [_slides(node) if node.level.keeps_halo else [None] for node in nodes]
            for chosen in product(*slides):
                yield Skeleton(nodes, tuple(slide for slide in chosen if slide is not None))


def _slides(node: Node) -> list[Slide | None]:
    """A window slides along one of its indices, over one value at least."""
    shared = [name for form in node.operand.index if sum(map(bool, form.values())) > 1 for name in form]
    return [Slide(node, name) for name in dict.fromkeys(shared)] or [None]


def residencies(nest: LoopNest, hierarchy: Hierarchy) -> Iterator[tuple[tuple[Node, ...], ...]]:
    """For each choice of bypasses, and of memories side by side, the chain of nodes of every operand, below the
    outermost level."""
    for choice in product(*(list(_residencies(operand, hierarchy)) for operand in nest.operands)):
        yield tuple(
            tuple(Node(level, operand) for level in chain)
            for chain, operand in zip(choice, nest.operands, strict=True)
        )


def _residencies(operand: Operand, hierarchy: Hierarchy) -> Iterator[tuple[Level, ...]]:
    """The levels that hold an operand, which routes connect. One that it may not bypass is left out only where no
    routes lead through it and the others."""
    eligible = [level for level in hierarchy.levels[1:] if operand.name in level.operands]
    routes = hierarchy.routes.get(operand.name)
    needed = {level.memory for level in eligible if operand.name not in level.optional}
    whole = {level.memory for level in eligible if operand.name in level.whole}
    chains: dict[frozenset[str], tuple[Level, ...]] = {}
    for size in range(len(eligible) + 1):
        for chain in combinations(eligible, size):
            names = [level.memory for level in chain]
            if routes is None or routes.issuperset(pairwise([hierarchy.levels[0].memory, *names, ""])):
                chains[frozenset(names)] = chain
    for held, chain in chains.items():
        if whole <= held and not any(held < other and needed & (other - held) for other in chains):
            yield chain


def interleavings(chains: tuple[tuple[Node, ...], ...]) -> Iterator[tuple[Node, ...]]:
    """All orders of the nodes, outermost first, that keep the order of each chain."""
    if not any(chains):
        yield ()
        return
    for n, chain in enumerate(chains):
        if chain:
            for rest in interleavings((*chains[:n], chain[1:], *chains[n + 1 :])):
                yield (chain[0], *rest)
