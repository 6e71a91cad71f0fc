"""Access relations: which element of which allocation each load, store and special touches at each point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from stripe.ir import Affine, Agg, Block, Buffer, Load, Nest, Path, Special, Statement, Store, View
from stripe.poly.relations import Relation
from stripe.poly.sets import Points, points_of


class AccessKind(Enum):
    """Whether an access reads or writes its element."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True)
class Access:
    """One operand of one leaf statement.

    `index` is the touched element of `buffer` over the names of `nest.domain`; a special touches the box of `sizes`
    elements that begins there, a load or a store just the one (all sizes 1). `agg` says how a write merges.
    """

    nest: Nest
    number: int
    ref: str
    kind: AccessKind
    agg: Agg
    buffer: Buffer
    index: tuple[Affine, ...]
    sizes: tuple[int, ...]

    @cached_property
    def path(self) -> Path:
        """The numbers of the statements down to this one: the order of two statements is that of their paths where
        these part, for equal points of the blocks that they share.
        """
        return (*self.nest.path, self.number)

    @property
    def statement(self) -> Statement:
        return self.nest.block.statements[self.number]

    @property
    def is_write(self) -> bool:
        return self.kind is AccessKind.WRITE

    @property
    def is_whole(self) -> bool:
        """Whether the operand is a box (of a special) and no single element."""
        return isinstance(self.statement, Special)

    @cached_property
    def relation(self) -> Relation:
        """From the points of the domain to the elements of the buffer, named `element_names(rank)`."""
        names = element_names(len(self.index))
        if not self.is_whole or all(size == 1 for size in self.sizes):
            return Relation.function(points_of(self.nest.domain), dict(zip(names, self.index, strict=True)))
        domain = self.nest.domain
        inner = {f"{name}+": (0, size - 1) for name, size in zip(names, self.sizes, strict=True)}
        points = Points.build(
            (*domain.names, *names, *inner),
            {**domain.ranges, **inner},
            domain.constraints,
            [
                affine + Affine.var(f"{name}+") - Affine.var(name)
                for name, affine in zip(names, self.index, strict=True)
            ],
        )
        return Relation.from_points(points.onto((*domain.names, *names)), domain.names, names)

    @cached_property
    def footprint(self) -> Points:
        """All elements of the buffer that it ever touches."""
        return self.relation.range.coalesced()


@dataclass(frozen=True, slots=True)
class TouchedElements:
    """Accesses by all that their elements depend on: equal layers share the answers of integer sets."""

    content: tuple[object, ...]
    parts: tuple[Access, ...] = field(compare=False)

    @staticmethod
    def of(parts: Iterable[Access]) -> TouchedElements:
        """The elements that `parts` touch."""
        found = tuple(parts)
        return TouchedElements(tuple([(part.index, part.sizes, part.nest.domain) for part in found]), found)


def element_names(rank: int) -> tuple[str, ...]:
    """The names of the coordinates of a buffer's elements. No index has such a name: no word of a program has a `%`."""
    return tuple(f"e%{number}" for number in range(rank))


def accesses(root: Block | Nest) -> tuple[Access, ...]:
    """Every access below `root`, in program order; a statement's reads before its writes.

    Buffers from outside the root are distinguished by their names there: two names are two buffers.
    """
    nest = root if isinstance(root, Nest) else Nest.root(root)
    return tuple(_below(nest))


def _below(nest: Nest) -> Iterator[Access]:
    for number, statement in enumerate(nest.block.statements):
        if isinstance(statement, Block):
            yield from _below(nest.enter(number))
        else:
            yield from leaf_accesses(nest, number)


def leaf_accesses(nest: Nest, number: int) -> Iterator[Access]:
    """The accesses of one statement that is no block."""
    match nest.block.statements[number]:
        case Load(_, ref):
            yield _single(nest, number, nest.views[ref], AccessKind.READ)
        case Store(ref, _):
            yield _single(nest, number, nest.views[ref], AccessKind.WRITE)
        case Special(_, outputs, inputs):
            for name in inputs:
                yield _whole(nest, number, nest.views[name], AccessKind.READ)
            for name in outputs:
                yield _whole(nest, number, nest.views[name], AccessKind.WRITE)
        case _:
            return


def _single(nest: Nest, number: int, view: View, kind: AccessKind) -> Access:
    ones = (1,) * view.ref.rank
    return Access(nest, number, view.ref.name, kind, view.ref.agg, view.buffer, view.origin, ones)


def _whole(nest: Nest, number: int, view: View, kind: AccessKind) -> Access:
    return Access(nest, number, view.ref.name, kind, Agg.ASSIGN, view.buffer, view.origin, view.ref.sizes)
