"""Buffers that are written as others are: the layers of a network repeat, and one proof serves all equal ones.

A proof of a buffer is about the statements that lead to it, as functions of arrays that both programs know, and of the
numbers that fill constants. It does not depend on the names of buffers. So two pairs of buffers whose statements are
equal but for names, and read known arrays in the same places, are both equal or both not.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TypeAlias

from stripe.ir import Block, Buffer, Path, Refinement, canonical_names
from stripe.verify.proof.unchanged import Label, Unchanged

Known: TypeAlias = Mapping[Buffer, str]
_Side: TypeAlias = tuple[tuple[Block, tuple[tuple[Refinement, ...], ...]], ...]
"""Statements with the views through which they reach buffers."""
Key: TypeAlias = tuple[_Side, _Side]


def _each_element(label: Label | None) -> str:
    """The bytes that all elements of a constant have; empty for other arrays."""
    if label is None or isinstance(label, str):
        return ""
    dtype, sizes, data = label
    element = data[: dtype.bytes]
    return f"each {dtype} {element.hex()}" if data == element * prod(sizes) else ""


class Repeated:
    """The pairs of buffers that are proved equal, by the statements that lead to them."""

    def __init__(self, unchanged: Unchanged) -> None:
        self._unchanged = unchanged
        self._proved: set[Key] = set()

    def key(self, pair: tuple[Buffer, Buffer], known: tuple[Known, Known]) -> Key | None:
        """The statements that lead to both buffers, without names; None where some are compared in no such way."""
        labels: dict[object, str] = {}
        first = self._side(0, pair[0], known[0], labels)
        second = None if first is None else self._side(1, pair[1], known[1], labels)
        return None if first is None or second is None else (first, second)

    def add(self, key: Key | None) -> None:
        """Notes a pair that is proved equal."""
        if key is not None:
            self._proved.add(key)

    def holds(self, key: Key | None) -> bool:
        """Whether a pair with this key is proved equal."""
        return key is not None and key in self._proved

    def _side(self, side: int, buffer: Buffer, known: Known, labels: dict[object, str]) -> _Side | None:
        """The statements that lead to the buffer, in order, with canonical names of the buffers that they use: known
        arrays have the same in both programs.
        """
        found = self._leading(side, buffer, known)
        if found is None:
            return None
        units, known_reads = found
        names = {buffer: "result"}
        statements: list[tuple[Block, tuple[tuple[Refinement, ...], ...]]] = []
        for unit in units:
            statement = self._unchanged.unit(side, unit)
            assert isinstance(statement, Block)
            sources: dict[str, str] = {}
            views: list[tuple[Refinement, ...]] = []
            for ref in statement.refinements:
                if ref.is_alloc or ref.source in sources:
                    continue
                used, through = self._unchanged.view(side, unit, ref.source)
                if (unit, used) in known_reads:
                    label = self._unchanged.label(side, used, known)
                    # The proof computes with a number that all elements of a constant have: 0 times anything is 0.
                    name = _each_element(label) or labels.setdefault(label, f"known{len(labels)}")
                else:
                    name = names.setdefault(used, f"made{len(names)}")
                sources[ref.source] = f"{name} by view {len(sources)}"
                views.append(through)
            statements.append((canonical_names(statement, sources), tuple(views)))
        return tuple(statements)

    def _leading(
        self, side: int, buffer: Buffer, known: Known
    ) -> tuple[list[Path], set[tuple[Path, Buffer]]] | None:
        """The statements of main that lead to a buffer from known arrays, in order, and which statement reads which
        known array. None where a buffer on the way begins with contents, or is written by other than blocks.
        """
        units: set[Path] = set()
        reads: set[tuple[Path, Buffer]] = set()
        seen, wanted = {buffer}, [buffer]
        while wanted:
            made = wanted.pop()
            writers = self._unchanged.writers(side, made)
            if not writers or self._unchanged.begins_with(side, made) is not None:
                return None
            for unit in writers:
                if unit in units:
                    continue
                if not self._unchanged.is_plain_block(side, unit):
                    return None
                units.add(unit)
                for read in self._unchanged.reads(side, unit):
                    complete = all(writer < unit for writer in self._unchanged.writers(side, read))
                    if complete and self._unchanged.label(side, read, known) is not None:
                        reads.add((unit, read))
                    elif read not in seen:
                        seen.add(read)
                        wanted.append(read)
        return sorted(units), reads
