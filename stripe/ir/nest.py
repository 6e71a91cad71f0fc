"""Nests: a block with the blocks around it, its iteration domain and its views as places in allocations.

In a nest the index `x` of the block at depth 2 (the root has depth 0) is called `x@2`, since blocks may use a name
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from types import MappingProxyType

from typing_extensions import override

from stripe.ir.affine import Affine, Interval
from stripe.ir.block import Block
from stripe.ir.frozen import HashedOnce, frozen
from stripe.ir.refinement import Refinement
from stripe.ir.walk import Path

UNKNOWN: Interval = (-(1 << 62), 1 << 62)
"""The interval of an index of which nothing is known."""


@dataclass(frozen=True)
class Domain:
    """Integer points: each of `names` in its inclusive interval, all of `constraints` >= 0."""

    names: tuple[str, ...] = ()
    intervals: tuple[Interval, ...] = ()
    constraints: tuple[Affine, ...] = ()

    @staticmethod
    def of(ranges: Mapping[str, Interval], constraints: tuple[Affine, ...] = ()) -> Domain:
        return Domain(tuple(ranges), tuple(ranges.values()), constraints)

    @cached_property
    def ranges(self) -> Mapping[str, Interval]:
        return MappingProxyType(dict(zip(self.names, self.intervals, strict=True)))

    def volume(self, names: Iterable[str]) -> int:
        """The points of the box over `names`, constraints left out."""
        return prod(high - low + 1 for low, high in (self.ranges[name] for name in names))

    def with_constraints(self, constraints: tuple[Affine, ...]) -> Domain:
        return Domain(self.names, self.intervals, self.constraints + constraints)

    def reach(self, affine: Affine) -> Interval:
        """An interval that contains the value at every point: that over the ranges, or a narrower one where a
        constraint bounds a part of the affine.
        """
        low, high = affine.bounds(self.ranges)
        for constraint in self.constraints:
            for atom, part in constraint.terms:
                factor, rest = divmod(affine.coeff(atom), part) if isinstance(atom, str) else (0, 0)
                if rest or not factor:
                    continue
                # affine = factor * constraint + others, and the constraint is 0 or more
                others = (affine - constraint * factor).bounds(self.ranges)
                low, high = (max(low, others[0]), high) if factor > 0 else (low, min(high, others[1]))
        return low, high


@frozen
class Buffer(HashedOnce):
    """An allocation: the path of the block that holds it and its name there. A buffer that the root of the analysis
    gets from outside has the empty path and the name that it has there.
    """

    path: Path
    name: str

    def __str__(self) -> str:
        return self.name


@frozen
class View:
    """A refinement as a place in its allocation: element e of it is element origin + e of `buffer`; origins over the
    nest's indices."""

    ref: Refinement
    buffer: Buffer
    origin: tuple[Affine, ...]


class Views(Mapping[str, View]):
    """The views of a nest's innermost block by name, each made when it is asked for: a `main` has thousands."""

    def __init__(self, block: Block, path: Path, outer: Nest | None, local: Mapping[str, Affine]) -> None:
        self._refs = {ref.name: ref for ref in block.refinements}
        self._path = path
        self._outer = outer
        self._local = local
        self._made: dict[str, View] = {}

    @override
    def __getitem__(self, name: str) -> View:
        if name not in self._made:
            self._made[name] = _view(self._refs[name], self._path, self._outer, self._local)
        return self._made[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._refs)

    @override
    def __len__(self) -> int:
        return len(self._refs)


@frozen
class Nest:
    """A block inside the blocks around it, from the root of the analysis down.

    `local` gives each index of the innermost block over the names of `domain`, `views` each of its refinements;
    `widths[d]` is the number of names of the domain from outside depth d: `widths[0]` counts the values passed into the
    root.
    """

    blocks: tuple[Block, ...]
    path: Path
    domain: Domain
    local: Mapping[str, Affine]
    views: Mapping[str, View]
    widths: tuple[int, ...]
    outer: Nest | None = None

    @staticmethod
    def root(block: Block, path: Path = (0,), outside: Mapping[str, Interval] | None = None) -> Nest:
        """`block` seen alone. Of the indices outside that it gets passed in, which are called `x@out` in the domain,
        nothing is known but the interval that `outside` gives.
        """
        known = outside or {}
        used = sorted({name for index in block.passed if index.affine for name in index.affine.names()})
        base = Domain(tuple(f"{name}@out" for name in used), tuple(known.get(name, UNKNOWN) for name in used))
        return _nest(block, path, None, base, {name: Affine.var(f"{name}@out") for name in used})

    @property
    def block(self) -> Block:
        return self.blocks[-1]

    @property
    def depth(self) -> int:
        return len(self.blocks) - 1

    def enter(self, number: int) -> Nest:
        """The block that is statement `number` of the innermost one."""
        block = self.block.statements[number]
        if not isinstance(block, Block):
            raise TypeError(f"statement {number} of {self.block.name} is no block")
        return _nest(block, (*self.path, number), self, self.domain, self.local)

    def with_block(self, block: Block) -> Nest:
        """The nest with another block in the place of the innermost one."""
        if block is self.block:
            return self
        if self.depth == 0:
            return Nest.root(block, self.path)
        outer = self.outer
        assert outer is not None
        return _nest(block, self.path, outer, outer.domain, outer.local)

    def children(self) -> Iterator[tuple[int, Nest]]:
        """The blocks among the statements of the innermost one, with their numbers."""
        for number, statement in enumerate(self.block.statements):
            if isinstance(statement, Block):
                yield number, self.enter(number)

    def walk(self) -> Iterator[Nest]:
        """This and all blocks inside, outer before inner, in program order."""
        yield self
        for _, child in self.children():
            yield from child.walk()

    def prefix(self, depth: int) -> tuple[str, ...]:
        """The names of the indices of the blocks down to `depth`, and of all that comes from outside the root."""
        return self.domain.names[: self.widths[depth + 1]]

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """The interval of each index of the innermost block."""
        return {name: affine.bounds(self.domain.ranges) for name, affine in self.local.items()}

    @property
    def own(self) -> tuple[str, ...]:
        """The names in the domain of the innermost block's iterated indices."""
        return self.domain.names[len(self.prefix(self.depth - 1)) :]


def nest_at(root: Block, path: Path) -> Nest:
    """The nest of the block at `path`, which starts with the root's own number."""
    nest = Nest.root(root, path[:1])
    for number in path[1:]:
        nest = nest.enter(number)
    return nest


def _nest(block: Block, path: Path, outer: Nest | None, base: Domain, outside: Mapping[str, Affine]) -> Nest:
    depth = 0 if outer is None else outer.depth + 1
    local: dict[str, Affine] = {}
    names: list[str] = []
    intervals: list[Interval] = []
    for index in block.indices:
        if index.affine is not None:
            local[index.name] = index.affine.subs(outside)
        else:
            name = f"{index.name}@{depth}"
            local[index.name] = Affine.var(name)
            names.append(name)
            intervals.append((0, index.range - 1))
    constraints = tuple(constraint.affine.subs(local) for constraint in block.constraints)
    domain = Domain(
        base.names + tuple(names), base.intervals + tuple(intervals), base.constraints + constraints
    )
    views = Views(block, path, outer, local)
    blocks = (block,) if outer is None else (*outer.blocks, block)
    widths = (*(outer.widths if outer is not None else (len(base.names),)), len(domain.names))
    return Nest(blocks, path, domain, local, views, widths, outer)


def _view(ref: Refinement, path: Path, outer: Nest | None, local: Mapping[str, Affine]) -> View:
    origin = tuple([affine.subs(local) for affine in ref.access])
    if ref.is_alloc:
        return View(ref, Buffer(path, ref.name), origin)
    if outer is None:
        return View(ref, Buffer((), ref.source), origin)
    source = outer.views[ref.source]
    return View(ref, source.buffer, tuple([a + b for a, b in zip(source.origin, origin, strict=True)]))
