"""Buffers with a dimension that runs over banks (or lanes), and views of them.

With contiguous parts, element e of the cut dimension lies in bank floor(e / part) at e mod part; interleaved, in bank
e mod banks at floor(e / banks). A view of one element takes these as its access. A view of more elements stays a box
only if it lies within one bank, or is one row of all banks, for every point; otherwise the buffer is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from stripe.ir import Affine, Block, Dim, IndexMap, Refinement, Special, Statement, row_major
from stripe.ir.frozen import replace


class _BankSpan(Enum):
    """The part of the cut dimension in a view."""

    ALL = "all of it, from the first element on"
    PART = "elements of one bank"
    ROW = "one element of each bank"


@dataclass(frozen=True, slots=True)
class Cut:
    """Dimension `dim` of a buffer over `banks` banks of `part` elements each."""

    dim: int
    part: int
    banks: int
    interleave: bool = False

    def map(self, rank: int) -> IndexMap:
        """`(d0, d1) -> (floor(d1/part) | d0, d1 mod part)`: the place of an element, its bank on an axis of its own."""
        whole = IndexMap.identity([f"d{dim}" for dim in range(rank)])
        along = whole.results[self.dim]
        bank, element = (
            (along.mod(self.banks), along.floordiv(self.banks))
            if self.interleave
            else (along.floordiv(self.part), along.mod(self.part))
        )
        inside = whole.with_result(self.dim, lambda _: element)
        return replace(inside, results=(bank, *inside.results), axes=(1, rank))

    def place(self, along: Affine, size: int, inside: _BankSpan) -> tuple[Affine, Affine, _BankSpan] | None:
        """Bank, element within it, and span of a view of `size` elements at `along` in a view that spans `inside`; None
        when it is no box."""
        zero = Affine()
        if inside is _BankSpan.PART:
            return zero, along, inside
        if inside is _BankSpan.ROW:
            return along, zero, inside
        if along == zero and size > (self.banks if self.interleave else self.part):
            return zero, zero, inside
        step = self.banks if self.interleave else self.part
        whole = all(s % step == 0 for s in (along.offset, *(factor for _, factor in along.terms)))
        if whole and not self.interleave and size <= step:
            return along.floordiv(step), zero, _BankSpan.PART
        if whole and self.interleave and size == step:
            return zero, along.floordiv(step), _BankSpan.ROW
        if size != 1:
            return None
        bank, element = replace(self, dim=0).map(1).at([along])
        return bank, element, _BankSpan.PART

    def sizes(self, sizes: Sequence[int], span: _BankSpan) -> tuple[int, ...]:
        """The sizes of a view, the banks first."""
        along = sizes[self.dim]
        banks, part = {
            _BankSpan.ALL: (self.banks, self.part),
            _BankSpan.PART: (1, along),
            _BankSpan.ROW: (along, 1),
        }[span]
        return (banks, *(part if dim == self.dim else size for dim, size in enumerate(sizes)))


def rebanked(block: Block, name: str, cut: Cut) -> Block | None:
    """`block` with its allocation `name` cut, the banks as dimension 0 and `bank_dim`, compact; None when a view of it
    spans banks otherwise than as a box."""
    old = block.ref(name)
    dims = row_major(cut.sizes(old.sizes, _BankSpan.ALL))
    new = replace(old, access=(Affine(),) * len(dims), dims=dims, bank_dim=0)
    return _followed(block, {name: (new, _BankSpan.ALL)}, cut, new.strides)


def _followed(
    block: Block, cuts: Mapping[str, tuple[Refinement, _BankSpan]], cut: Cut, strides: Sequence[int]
) -> Block | None:
    """`block` with the refinements `cuts`, by their names, and the views of them inside adapted to their spans; None
    when a view spans banks otherwise than as a box, or a special uses it whole."""
    statements: list[Statement] = []
    for statement in block.statements:
        if isinstance(statement, Special) and {*statement.inputs, *statement.outputs} & cuts.keys():
            return None
        views: dict[str, tuple[Refinement, _BankSpan]] = {}
        for ref in statement.refinements if isinstance(statement, Block) else ():
            if ref.source in cuts:
                found = cut.place(ref.access[cut.dim], ref.sizes[cut.dim], cuts[ref.source][1])
                if found is None:
                    return None
                bank, element, span = found
                access = (bank, *(element if dim == cut.dim else a for dim, a in enumerate(ref.access)))
                dims = tuple(map(Dim, cut.sizes(ref.sizes, span), strides))
                views[ref.name] = replace(ref, access=access, dims=dims), span
        inner = (
            _followed(statement, views, cut, strides) if isinstance(statement, Block) and views else statement
        )
        if inner is None:
            return None
        statements.append(inner)
    refs = tuple(cuts[ref.name][0] if ref.name in cuts else ref for ref in block.refinements)
    return replace(block, refinements=refs, statements=tuple(statements))
