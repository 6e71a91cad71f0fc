"""Whether live ranges of overlapping buffers are disjoint: a check that shares no code with placement."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import combinations, islice, pairwise

from stripe.ir import Block, Constant, Diagnostic, Load, Nest, Path, Refinement, Store
from stripe.ir.check.diagnostic import Part
from stripe.verify.machine.order import closure, is_in
from stripe.verify.machine.units import Place, unit_of


@dataclass(frozen=True)
class Placed:
    """An allocation with an address in its nest, and the leaf statements that use it, in program order."""

    nest: Nest
    ref: Refinement
    uses: tuple[Path, ...]

    @property
    def path(self) -> Path:
        return self.nest.path

    @cached_property
    def place(self) -> Place:
        return Place.of(self.ref, self.nest)

    def wrong(self, message: str, hint: str) -> Diagnostic:
        """A finding about the allocation."""
        part: Part = ("refinement", self.nest.block.refinements.index(self.ref))
        return Diagnostic(message, self.path, self.nest.block.name, hint, part)

    @property
    def begin(self) -> int:
        return self.ref.address

    @cached_property
    def end(self) -> int:
        """The byte after the last copy, in each unit that the buffer takes."""
        return self.begin + self.distance * self.ref.copies

    @property
    def distance(self) -> int:
        """Bytes from one copy to the next."""
        return self.ref.pitch or self.size

    @property
    def size(self) -> int:
        """Bytes of a copy in each unit that the buffer takes."""
        dims = (dim for number, dim in enumerate(self.ref.dims) if number != self.ref.bank_dim)
        return (sum((dim.size - 1) * abs(dim.stride) for dim in dims) + 1) * self.ref.dtype.bytes


def in_flight(block: Block) -> int:
    """The tiles of a block that are at work at one time."""
    return min(block.pipeline_depth or 1, block.points)


def is_transfer(nest: Nest) -> bool:
    """Whether a block computes nothing, and no part of it runs on the unit of the block around: it moves data, or fills
    with constants."""
    assert nest.outer is not None
    around, parts = unit_of(nest.outer).location, working_parts(nest)
    units = [unit_of(part).location for part in parts]
    moves = (Load, Store, Constant, Block)
    return (
        bool(parts)
        and all(unit and unit != around for unit in units)
        and all(isinstance(s, moves) for part in parts for s in part.block.statements)
    )


def working_parts(nest: Nest) -> list[Nest]:
    """The blocks with statements beside blocks, of a block and all inside."""
    return [part for part in nest.walk() if any(not isinstance(s, Block) for s in part.block.statements)]


def by_address(buffers: Iterable[Placed]) -> list[Placed]:
    """The buffers in the order of their addresses."""
    return sorted(buffers, key=lambda b: (b.begin, b.path, b.ref.name))


def sharing_addresses(ordered: Sequence[Placed]) -> Iterator[tuple[Placed, Placed]]:
    """The pairs of buffers, given `by_address`, that both take some address."""
    for number, first in enumerate(ordered):
        for second in islice(ordered, number + 1, None):
            if second.begin >= first.end:
                break
            yield first, second


class Interference:
    """The order in which the statements of one program run: in main by dependences, elsewhere one after the other."""

    def __init__(self, nests: Sequence[Nest]) -> None:
        self._nests = {nest.path: nest for nest in nests}
        blocks = {nest.path: nest.block for nest in nests}
        self._orders = {path: closure(block) for path, block in blocks.items() if block.is_main}
        self._repeated = frozenset(path for path, block in blocks.items() if block.points > 1)

    def overlaps(self, members: Sequence[Placed]) -> Iterator[tuple[Placed, Placed]]:
        """All pairs of `members`, buffers of one memory, that share bytes and may be alive together."""
        ordered = by_address(members)
        if self._none_interferes(ordered):
            return
        for first, second in sharing_addresses(ordered):
            if not (self._precedes(first, second) or self._precedes(second, first)):
                yield first, second

    def overlaps_in_flight(self, members: Sequence[Placed]) -> Iterator[tuple[Placed, Placed]]:
        """The pairs of `members`, buffers of any memories, that share bytes and that tiles in flight use at one time.

        A tile loads, computes and stores in this order, so that its buffers may take turns; but while one tile computes
        the next one loads. Tiles compute one after the other: buffers that no transfer touches keep their turns.
        """
        for path, nest in self._nests.items():
            if in_flight(nest.block) == 1:
                continue
            level = len(path)
            transfers = {inner.path for _, inner in nest.children() if is_transfer(inner)}
            inside = [
                (buffer, any(use[: level + 1] in transfers for use in buffer.uses))
                for buffer in members
                if buffer.path[:level] == path
            ]
            for (first, filled), (second, emptied) in combinations(inside, 2):
                at_once = (filled or emptied) and self._in_flight(path, first, second)
                if at_once and first.place.shares_unit(second.place):
                    yield first, second

    def _in_flight(self, pipelined: Path, first: Placed, second: Placed) -> bool:
        """Whether two buffers share bytes in copies that belong to two tiles in flight."""
        if first.begin >= second.end or second.begin >= first.end:
            return False
        distance, copies = first.distance, first.ref.copies
        same = (first.path, first.size, distance, copies) == (
            second.path,
            second.size,
            second.distance,
            second.ref.copies,
        )
        if not same or first.path != pipelined:
            return True
        depth = in_flight(self._nests[pipelined].block)
        # copy n of the first shares bytes with copy n + apart of the second, where |shift - apart*distance| < size
        shift = first.begin - second.begin
        near = {-(-shift // distance), shift // distance}
        apart = [n for n in near if abs(shift - n * distance) < first.size]
        return (
            any(0 < min(n % copies, -n % copies) < depth for n in apart if abs(n) < copies) or copies < depth
        )

    def _none_interferes(self, ordered: Sequence[Placed]) -> bool:
        """Whether `overlaps` has no pairs, in one sweep over the addresses instead of for each pair.

        Going before another is transitive. So the buffers at one address, by their first uses, are alive one after
        the other when neighbours are, and a buffer that begins there has to be compared with its two neighbours
        alone. (A buffer without uses comes first, a kept buffer is alone.)
        """
        here: list[tuple[Path, int]] = []  # first use and number of the buffers across the address, in order
        ends: list[tuple[int, tuple[Path, int]]] = []
        for number, buffer in enumerate(ordered):
            while ends and ends[0][0] <= buffer.begin:
                del here[bisect(here, heappop(ends)[1]) - 1]
            entry = (buffer.uses[0] if buffer.uses else (), number)
            place = bisect(here, entry)
            row = [*here[max(place - 1, 0) : place], entry, *here[place : place + 1]]
            if not all(
                self._precedes(ordered[first], ordered[second]) for (_, first), (_, second) in pairwise(row)
            ):
                return False
            here.insert(place, entry)
            heappush(ends, (buffer.end, entry))
        return True

    def _precedes(self, first: Placed, second: Placed) -> bool:
        """Whether nothing of `second` is alive before `first` has had its last use."""
        if first.ref.is_kept or second.ref.is_kept:
            return False
        shallow = min(len(first.path), len(second.path))
        return all(self._before(a, b, shallow) for a in first.uses for b in second.uses)

    def _before(self, one: Path, other: Path, shallow: int) -> bool:
        """Whether the statement at `one` is done before the one at `other` begins, while two buffers live of which one
        belongs to a block of depth `shallow`."""
        parting = (level for level, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
        depth = next(parting, None)
        if depth is None or any(one[:level] in self._repeated for level in range(shallow + 1, depth + 1)):
            return False  # a block inside what holds the buffers repeats both, in any order of its points
        order = self._orders.get(one[:depth])
        return one[depth] < other[depth] if order is None else is_in(one[depth], order[other[depth]])
