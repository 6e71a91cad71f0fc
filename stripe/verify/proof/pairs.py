"""The buffers of two programs that are compared with each other, and those that are known to be equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stripe.ir import Buffer, Path, Refinement
from stripe.verify.assumptions import Assumption
from stripe.verify.proof.computed import same_constant
from stripe.verify.proof.definitions import Definitions
from stripe.verify.proof.numbering import Numbering
from stripe.verify.proof.reaching import Reaching


@dataclass(frozen=True)
class Sides:
    """The definitions of both programs, which take the same buffers as known, and their value numbering."""

    both: tuple[Definitions, Definitions]
    numbering: Numbering

    @property
    def relied(self) -> frozenset[Assumption]:
        """The assumptions behind all that was defined and found equal here."""
        first, second = self.both
        return frozenset(self.numbering.relied | first.relied | second.relied)


@dataclass(frozen=True)
class BufferPair:
    """A buffer that both programs have, and the name by which it is known once it is proved equal."""

    name: str
    buffers: tuple[Buffer, Buffer]

    @property
    def label(self) -> str:
        return f"buf:{self.name}"

    @property
    def is_same(self) -> bool:
        """Whether both programs use the same name (not a versioned copy such as `T^0`)."""
        return self.buffers[0].name == self.buffers[1].name


class KnownBuffers:
    """The buffers proved equal so far, by label, and the definitions that take them as known."""

    def __init__(self, reachings: tuple[Reaching, Reaching], pairs: Sequence[BufferPair]) -> None:
        self._reachings = reachings
        self.labels: tuple[dict[Buffer, str], dict[Buffer, str]] = ({}, {})
        self._sides: dict[frozenset[str], Sides] = {}
        self._written: tuple[dict[Path, set[str]], dict[Path, set[str]]] = ({}, {})
        """The labels of the pairs that each statement of main writes."""
        for pair in pairs:
            for written, paths in zip(self._written, self._writing(pair), strict=True):
                for path in paths:
                    written.setdefault(path, set()).add(pair.label)

    def _writing(self, pair: BufferPair) -> list[list[Path]]:
        return [
            [writer.path[:3] for writer in reaching.writers.get(buffer, ())]
            for reaching, buffer in zip(self._reachings, pair.buffers, strict=True)
        ]

    def add(self, pair: BufferPair) -> None:
        """Makes the buffers of a pair known arrays, for comparisons that do not hide its label too."""
        for number, buffer in enumerate(pair.buffers):
            self.labels[number][buffer] = pair.label
            for hidden, sides in self._sides.items():
                known = sides.both[number].known
                if pair.label in hidden:
                    known.pop(buffer, None)
                else:
                    known[buffer] = pair.label

    def sides(self, pair: BufferPair) -> Sides:
        """The definitions for the comparison of one pair: buffers written by the same statement of main as the pair
        are not known there, since the statement reads them while it makes them."""
        together = {pair.label}
        for written, paths in zip(self._written, self._writing(pair), strict=True):
            together.update(*(written[path] for path in paths))
        # a buffer known through another pair must not be its own definition
        known = pair.buffers[0] in self.labels[0]
        hidden = frozenset(together) if known or len(together) > 1 else frozenset[str]()
        if hidden not in self._sides:
            first, second = (
                Definitions(reaching, {b: label for b, label in labels.items() if label not in hidden})
                for reaching, labels in zip(self._reachings, self.labels, strict=True)
            )
            self._sides[hidden] = Sides((first, second), Numbering())
        return self._sides[hidden]


def pairs_of(reachings: tuple[Reaching, Reaching]) -> list[BufferPair]:
    """Buffers that both programs have and one of them writes, in the order of their last write in the first, then in
    the second.

    A buffer `T^0` (a schedule makes such, for one stay of `T` in a memory) may hold what `T` holds: what names suggest
    is worth a comparison, and nothing more follows from it.
    """
    twins: dict[str, list[tuple[Buffer, Refinement]]] = {}
    for name, twin in reachings[1].tops.items():
        for base in dict.fromkeys((name, name.partition("^")[0])):
            twins.setdefault(base, []).append(twin)
    found: list[tuple[tuple[Path, Path], BufferPair]] = []
    for name, (buffer, ref) in reachings[0].tops.items():
        for twin, other in twins.get(name, ()):
            first, second = (
                writers[-1].path if (writers := reaching.writers.get(each)) else ()
                for reaching, each in zip(reachings, (buffer, twin), strict=True)
            )
            pair = BufferPair(name, (buffer, twin))
            written = first or (second and pair.is_same)
            if written and (ref.dtype, ref.sizes) == (other.dtype, other.sizes):
                found.append(((first, second), pair))
    return [pair for _, pair in sorted(found, key=lambda item: item[0])]


def folded_pairs(reachings: tuple[Reaching, Reaching]) -> Iterator[BufferPair]:
    """The buffers that the first program computes without inputs and the second has as equal constants."""
    for name, (buffer, _) in reachings[0].tops.items():
        twin, _ = reachings[1].tops.get(name, (None, None))
        if twin is None or reachings[1].writers.get(twin):
            continue
        if same_constant(reachings[0].program, reachings[1].program, name):
            yield BufferPair(name, (buffer, twin))
