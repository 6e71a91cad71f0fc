"""What is visible at a place in the program while it is turned into C."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from stripe.emit.c.function import View
from stripe.emit.c.names import Names
from stripe.emit.loops.affines import simplify
from stripe.ir import Affine, Block, Interval, Refinement

STACK_BYTES = 1 << 17
"""All local arrays of a function and of those that it calls: small against the stack of any thread."""


@dataclass(slots=True)
class Scope:
    """The inside of a block: its indices as affines over C variables, and its refinements as views of C buffers.

    `pending` has the buffers in arenas that still must be set to a value before their first use: until then their
    memory may be another buffer's. Inner scopes share it. `workspace` bytes of the workspace are taken outside;
    `private` says that a parallel loop is around, so that the workspace is the thread's own.
    """

    names: Names
    intervals: Mapping[str, Interval] = field(default_factory=dict[str, Interval])
    indices: dict[str, Affine] = field(default_factory=dict[str, Affine])
    views: dict[str, View] = field(default_factory=dict[str, View])
    pending: dict[str, tuple[View, bool | int | float]] = field(
        default_factory=dict[str, tuple[View, bool | int | float]]
    )
    stack_left: int = STACK_BYTES
    workspace: int = 0
    private: bool = False

    def affine(self, affine: Affine) -> Affine:
        """An affine over the block's indices as one over C variables."""
        return simplify(affine.subs(self.indices), self.intervals)

    def inside(self, block: Block) -> tuple[Scope, dict[str, str]]:
        """The scope in `block` without its refinements, and the C variable of each index that needs a loop."""
        names = self.names.child()
        indices: dict[str, Affine] = {}
        variables: dict[str, str] = {}
        for index in block.indices:
            if index.affine is not None:
                indices[index.name] = self.affine(index.affine)
            elif index.range == 1:
                indices[index.name] = Affine()
            else:
                variables[index.name] = names.take(index.name)
                indices[index.name] = Affine.var(variables[index.name])
        return replace(self, names=names, indices=indices, views={}), variables

    def view(self, ref: Refinement, outer: Scope) -> View:
        """The view `ref` of a refinement of the scope `outer`, its access over the indices of this one."""
        source = outer.views[ref.source]
        origin = source.origin
        for access, stride in zip(ref.access, source.buffer.strides, strict=True):
            origin = origin + access.subs(self.indices) * stride
        return View(source.buffer, simplify(origin, self.intervals), ref.sizes)
