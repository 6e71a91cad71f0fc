"""Transfers: blocks that copy a box between two memories, and which elements of a tensor a copy holds.

A transfer is a block with one load, one store of the loaded value, and nothing else, that runs on a transfer unit,
moves between two memories, or moves each element once between a buffer and an allocation further inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from stripe.ir import Affine, Agg, Block, Buffer, ConfigError, Load, Location, Nest, Store
from stripe.ir.access import determined
from stripe.ir.frozen import replace
from stripe.ir.index_map import IndexMap
from stripe.ir.nest import UNKNOWN
from stripe.poly import Access, PolyLimit, element_names, leaf_accesses
from stripe.poly.index_maps import inverse


@dataclass(frozen=True)
class Transfer:
    """A block that copies, with its two accesses."""

    nest: Nest
    read: Access
    written: Access

    @property
    def block(self) -> Block:
        return self.nest.block

    @property
    def fills(self) -> bool:
        """Whether the transfer fills a copy that lives further inside than the source of its elements."""
        return len(self.written.buffer.path) >= len(self.read.buffer.path)

    @property
    def far(self) -> Access:
        """The access to the buffer further outside."""
        return self.read if self.fills else self.written

    @property
    def near(self) -> Access:
        """The access to the copy, further inside."""
        return self.written if self.fills else self.read

    @property
    def source(self) -> Location:
        """The memory that is read."""
        return location_of(self.read)

    @property
    def sink(self) -> Location:
        """The memory that is written."""
        return location_of(self.written)

    @property
    def aggregates(self) -> bool:
        """Whether the transfer merges into the elements of the sink instead of replacing them."""
        return self.written.agg is not Agg.ASSIGN


def as_transfer(nest: Nest, transfer_units: Iterable[str] = ()) -> Transfer | None:
    """The innermost block of `nest` as a transfer, None when it is none."""
    block = nest.block
    match block.statements:
        case (Load(into, source), Store(target, value)) if into == value and source != target:
            pass
        case _:
            return None
    moves = block.ref(source).location.name != block.ref(target).location.name
    nested = len(nest.views[source].buffer.path) != len(nest.views[target].buffer.path)
    nested = nested and _moves_once(block, source) and _moves_once(block, target)
    if not (moves or nested or block.location.name in set(transfer_units)):
        return None
    (read,), (written,) = leaf_accesses(nest, 0), leaf_accesses(nest, 1)
    return Transfer(nest, read, written)


def _moves_once(block: Block, name: str) -> bool:
    """Whether the points of a block touch different elements of the view `name`: a copy does, a reduction does not."""
    ref = block.ref(name)
    known = {index.name for index in block.passed}
    ranges = {index.name: UNKNOWN if index.is_passed else (0, index.range - 1) for index in block.indices}
    found = determined(zip(ref.access, ref.sizes, strict=True), ranges, known)
    return found.issuperset(index.name for index in block.iterated)


def own_accesses(nest: Nest) -> Iterator[Access]:
    """The accesses of the innermost block's own statements; accesses of blocks inside are left out."""
    for number in range(len(nest.block.statements)):
        yield from leaf_accesses(nest, number)


def location_of(access: Access) -> Location:
    """The location of the buffer of an access, over the names of the domain where its block tells the unit."""
    nest = access.nest
    return nest.block.ref(access.ref).location.subs(nest.local)


@dataclass(frozen=True)
class Held:
    """A copy: its element is the element `forms` of the tensor `root`. They go over its coordinates
    (`element_names`) and the names of the domain of the block that holds the copy."""

    root: Buffer
    forms: tuple[Affine, ...]

    @property
    def keeps_boxes(self) -> bool:
        """Whether a box of elements of the copy is a box of the tensor: its coordinates move by offsets."""
        places = element_names(len(self.forms))
        return all(
            form.coeff(place) == 1 and not form.names() & {*places} - {place}
            for place, form in zip(places, self.forms, strict=True)
        )

    def at(self, access: Access) -> tuple[Affine, ...]:
        """The element of the tensor that an access to the copy touches."""
        place = dict(zip(element_names(len(access.index)), access.index, strict=True))
        return tuple(form.subs(place).simplified(access.nest.domain.ranges) for form in self.forms)


class Copies:
    """The copies of a program: which buffers are copies of which tensors."""

    def __init__(self, transfers: Iterable[Transfer]) -> None:
        self._by_near: dict[Buffer, Transfer] = {}
        for transfer in transfers:
            if transfer.near.buffer != transfer.far.buffer:
                self._by_near.setdefault(transfer.near.buffer, transfer)

    @cached_property
    def _held(self) -> Mapping[Buffer, Held]:
        found: dict[Buffer, Held] = {}
        for buffer in sorted(self._by_near, key=lambda b: (len(b.path), b.path, b.name)):
            transfer = self._by_near[buffer]
            held = _moved(transfer, found.get(transfer.far.buffer))
            if held is not None:
                found[buffer] = held
        return found

    def is_copy(self, buffer: Buffer) -> bool:
        """Whether the buffer holds elements of another one, which transfers bring."""
        return buffer in self._held

    def root(self, buffer: Buffer) -> Buffer:
        """The tensor whose elements the buffer holds: itself when it is no copy."""
        held = self._held.get(buffer)
        return held.root if held is not None else buffer

    def rooted(self, access: Access) -> Access:
        """The access to the elements of the tensor, instead of the elements of the copy."""
        held = self._held.get(access.buffer)
        if held is None or (access.is_whole and not held.keeps_boxes):
            return access
        sizes = access.sizes if access.is_whole else (1,) * len(held.forms)
        return replace(access, buffer=held.root, index=held.at(access), sizes=sizes)


def _moved(transfer: Transfer, outer: Held | None) -> Held | None:
    """The elements that a transfer moves; None where the place in the copy does not tell which one it is."""
    near = transfer.near.index
    # the indices inside of the block that holds the copy
    own = transfer.nest.domain.names[len(transfer.nest.prefix(len(transfer.near.buffer.path) - 1)) :]
    far = transfer.far if outer is None else replace(transfer.far, index=outer.at(transfer.far))
    root = outer.root if outer is not None else far.buffer
    places = tuple(map(Affine.var, element_names(len(near))))
    if len(near) == len(far.index):
        offsets = [f - n for f, n in zip(far.index, near, strict=True)]
        if not any(offset.names() & set(own) for offset in offsets):
            return Held(root, tuple(place + offset for place, offset in zip(places, offsets, strict=True)))
    # The transfer rearranges: its own indices follow from the place in the copy.
    ranges = transfer.nest.domain.ranges
    try:
        back = inverse(IndexMap.of(own, near), [ranges[name][1] + 1 for name in own])
    except (ConfigError, PolyLimit):
        return None
    values = dict(zip(own, back.results, strict=True))
    return Held(root, tuple(form.subs(values) for form in far.index))
