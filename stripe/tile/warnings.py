"""What is right Tile and yet seldom meant.

The range of an index is what all accesses allow together, so that `W[d, f]` in place of `W[f, d]` is no error: it sums
over less. An index that stands alone in dimensions of different sizes is therefore told, unless the text says that the
smaller range is meant: by a constraint (`f < 16`), or by the size of the result (`O[i : 16] = =(A[i])`). Sums of
indices (`I[x + k]`), strides and offsets are how convolutions and slices are written, and nothing is said about them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stripe.ir.errors import StripeWarning
from stripe.ir.span import Span
from stripe.tile.typed import Const, ContractionOp, TypedFunction


@dataclass(frozen=True, slots=True)
class _Walk:
    """An index alone in a dimension of a tensor."""

    tensor: str
    dimension: int
    size: int
    span: Span | None

    def __str__(self) -> str:
        return f"{self.size} value{'' if self.size == 1 else 's'} in dimension {self.dimension} of '{self.tensor}'"


def find_warnings(function: TypedFunction) -> tuple[StripeWarning, ...]:
    """All of them, in the order of the text."""
    found = [
        warning for op in function.ops if isinstance(op, ContractionOp) for warning in _narrowed(op, function)
    ]
    return tuple(sorted(found, key=lambda warning: (warning.line or 0, warning.col or 0)))


def _narrowed(op: ContractionOp, function: TypedFunction) -> Iterator[StripeWarning]:
    for name in op.indices:
        walks = _walks(op, name)
        least = min(walks, key=lambda walk: walk.size, default=None)
        most = max(walks, key=lambda walk: walk.size, default=None)
        if least is None or most is None or least.size == most.size or _says(op, name, least.size):
            continue
        first, second = sorted((least, most), key=walks.index)
        yield function.source.warning(
            f"the index '{name}' has {first} and {second}: it runs over {least.size}",
            second.span or op.origin.span,
            f"check the order of the indices; if it is right, say so with the constraint '{name} < {least.size}'",
        )


def _walks(op: ContractionOp, name: str) -> list[_Walk]:
    """Where the index stands alone in what is read."""
    return [
        _Walk(access.operand.name, dimension, size, access.span)
        for access in op.inputs
        if not isinstance(access.operand, Const)
        for dimension, (polynomial, size) in enumerate(
            zip(access.polynomials, access.operand.sizes, strict=True)
        )
        if polynomial.single_name == name
    ]


def _says(op: ContractionOp, name: str, size: int) -> bool:
    """Whether a constraint, or a size of the result, keeps the index below `size`."""
    limits = [bound.size for bound in op.bounds if bound.polynomial.single_name == name]
    limits += [
        extent
        for polynomial, extent in zip(op.output, op.out.sizes, strict=True)
        if polynomial.single_name == name
    ]
    return any(limit is not None and limit <= size for limit in limits)
