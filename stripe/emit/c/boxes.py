"""Loops over the elements of a box, for copies, fills and specials."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager

from stripe.emit.c.function import Function, View
from stripe.emit.c.helpers import Helpers
from stripe.emit.c.scope import Scope
from stripe.emit.loops.affines import c_affine
from stripe.ir import Affine


@contextmanager
def box_loops(
    sizes: Sequence[int], scope: Scope, function: Function, wanted: Sequence[str] | None = None
) -> Generator[tuple[Affine, ...]]:
    """Opens a loop per dimension whose size is not 1; gives the coordinates, 0 for the others."""
    names = scope.names.child()
    coordinates: list[Affine] = []
    with ExitStack() as stack:
        for place, size in enumerate(sizes):
            if size == 1:
                coordinates.append(Affine())
                continue
            name = names.take(wanted[place] if wanted else f"i{place}")
            function.declare(name)
            stack.enter_context(function.braces(f"for (int64_t {name} = 0; {name} < {size}; ++{name})"))
            coordinates.append(Affine.var(name))
        yield tuple(coordinates)


def flat(view: View, coordinates: Sequence[Affine]) -> Affine:
    """The element of a view's buffer at `coordinates` of the view."""
    place = view.origin
    for coordinate, stride in zip(coordinates, view.buffer.strides, strict=True):
        place = place + coordinate * stride
    return place


def box_element(
    view: View,
    coordinates: Sequence[Affine],
    scope: Scope,
    function: Function,
    helpers: Helpers,
    *,
    write: bool = False,
) -> str:
    """`A[…]` for the element of a view at `coordinates`, which are affines over C variables."""
    place = flat(view, coordinates)
    function.use_affine(place)
    wide = dict.fromkeys(place.names() - scope.intervals.keys(), (0, 1 << 62))
    return (
        f"{function.use(view.buffer, write=write)}[{c_affine(place, {**scope.intervals, **wide}, helpers)}]"
    )
