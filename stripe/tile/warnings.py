"""Warnings about Tile that is right and yet seldom meant.

Nested conditions without brackets mean something else in PlaidML, and a failed assertion that no output needs stops
nothing.

The range of an index is the intersection over all its accesses, so that `W[d, f]` in place of `W[f, d]` is no error: it
sums over less. An index alone in dimensions of different sizes is therefore reported, unless the text says that the
smaller range is meant: by a constraint (`f < 16`), or by the size of the result (`O[i : 16] = =(A[i])`). Sums of
indices (`I[x + k]`), strides and offsets are how convolutions and slices are written, and cause no warning.
"""

from __future__ import annotations

from collections.abc import Iterator

from stripe.ir.errors import StripeWarning
from stripe.ir.frozen import frozen
from stripe.ir.span import Span
from stripe.tile import ast
from stripe.tile.typed import Const, ContractionOp, TypedFunction


@frozen
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
    found += _nested_conditions(function)
    found += [
        StripeWarning(
            f"{failure.reason}; no output needs it", path=failure.path, line=failure.line, col=failure.col,
            hint=failure.hint, source=failure.source, length=failure.length,
        )
        for failure in function.ignored
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda warning: (warning.line or 0, warning.col or 0)))


def _nested_conditions(function: TypedFunction) -> Iterator[StripeWarning]:
    """`a ? b : c ? d : e` is `a ? b : (c ? d : e)` here as in C; PlaidML reads `(a ? b : c) ? d : e`."""
    for statement in function.syntax.statements:
        if isinstance(statement, ast.Assignment):
            for node in ast.walk(statement.value):
                if (
                    isinstance(node, ast.Cond)
                    and isinstance(node.other, ast.Cond)
                    and not node.other.is_bracketed
                ):
                    yield function.source.warning(
                        "nested '?:' groups to the right here, and to the left in PlaidML", node.span,
                        "write the brackets: a ? b : (c ? d : e)",
                    )  # fmt: skip


def _narrowed(op: ContractionOp, function: TypedFunction) -> Iterator[StripeWarning]:
    for name in op.indices:
        walks = [
            _Walk(access.operand.name, dimension, size, access.span)
            for access in op.inputs
            if not isinstance(access.operand, Const)
            for dimension, (polynomial, size) in enumerate(
                zip(access.polynomials, access.operand.sizes, strict=True)
            )
            if polynomial.single_name == name
        ]
        least = min(walks, key=lambda walk: walk.size, default=None)
        most = max(walks, key=lambda walk: walk.size, default=None)
        if least is None or most is None or least.size == most.size:
            continue
        # a constraint, or a size of the result, says that the smaller range is meant
        limits = [bound.size for bound in op.bounds if bound.polynomial.single_name == name]
        limits += [size for p, size in zip(op.output, op.out.sizes, strict=True) if p.single_name == name]
        if any(limit is not None and limit <= least.size for limit in limits):
            continue
        first, second = sorted((least, most), key=walks.index)
        yield function.source.warning(
            f"the index '{name}' has {first} and {second}: it runs over {least.size}",
            second.span or op.origin.span,
            f"check the order of the indices; if it is right, say so with the constraint '{name} < {least.size}'",
        )
