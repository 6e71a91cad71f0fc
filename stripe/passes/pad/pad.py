"""The pass `pad`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from pydantic import Field

from stripe.ir import (
    Affine,
    Around,
    Block,
    Constraint,
    Direction,
    Index,
    Program,
    Refinement,
    Tags,
    surround,
    value_key,
    with_entry,
    with_main,
)
from stripe.ir.frozen import replace
from stripe.passes.base import Pass, PassContext, PassExample, PassGroup, Reqs
from stripe.passes.pad.plan import Growth, Judge, Margins, border, raised_ranges
from stripe.poly import Points, accesses, untouched
from stripe.poly.definitions import DefinedElements
from stripe.poly.index_maps import holes
from stripe.rewrite.contribution import fill_of, output_of
from stripe.rewrite.copy import (
    Element,
    beside,
    copy_block,
    fill_block,
    main_view,
    names_in,
    temporary,
    with_temporaries,
)
from stripe.rewrite.refusal import Refusal


class Pad(Pass):
    """Pads the tensors that a kernel reads, so that it needs no constraints for the edges and its ranges divide well.

    `{ "reqs": ["kernel"] }`:

        #user none new I[0] i8(100:1)                     #tmp none new I_pad[0] i8(102:1) …
        #kernel block [k:3, x:100] (                      0: #kernel #padding block [d0:1] ( out I_pad[d0] …
            -1 + k + x >= 0                               1: #kernel #padding block [d0:1] ( out I_pad[101 + d0] …
            100 - k - x >= 0                       =>     2: #kernel #padding block [d0:100] (
            in I[-1 + k + x] i8(1:1)                          in I[d0] … out I_pad[1 + d0] …
            in K[k] i8(1:1)                               3: #kernel block [k:3, x:100] (
            out O[x]:add i8(1:1)                              in I = I_pad[k + x] i8(1:1)
        ) { … }                                               in K[k] i8(1:1)
                                                              out O[x]:add i8(1:1)

    A constraint falls only where that is proved sound: at each point that the kernel gets in addition, inputs
    that read padding make the contribution the identity of the aggregation (0 of sums, the lowest value of maxima).
    0 times an infinity is NaN: for floats a product counts as 0 only when the other factor reads padding too, is
    an integer or a constant without infinities, or with `allow_nonfinite`. Index ranges that are primes above
    `prime_threshold` rise to a multiple of `multiple_of`; results beyond the output go into a temporary that is
    trimmed. The blocks that fill, copy and trim are tagged `padding` and run where the kernel does.
    """

    pass_name: ClassVar[str] = "pad"
    group: ClassVar[PassGroup] = PassGroup.DATA
    example: ClassVar[PassExample] = PassExample("multiple_of=4")

    reqs: Reqs = ("contraction",)
    prime_threshold: int = Field(
        default=32, ge=0, description="raise index ranges that are primes above this; 0: none"
    )
    multiple_of: int = Field(default=8, ge=2, description="number of which raised ranges are multiples")
    allow_nonfinite: bool = Field(
        default=False, description="take 0 times any float as 0, although infinities and NaN make it NaN"
    )
    max_growth: float = Field(
        default=4.0,
        ge=1.0,
        description="leave a kernel alone if a buffer would grow by more than this factor",
    )
    min_points: float = Field(
        default=0.0,
        ge=0.0,
        description="leave a kernel alone with fewer points than this for each element that is copied into padding",
    )

    def run(self, program: Program, context: PassContext) -> Program:
        entry = program.entry
        around: dict[int, Around] = {}
        kernels: dict[int, Block] = {}
        added: list[Refinement] = []
        taken = names_in(entry)
        definitions = DefinedElements.of(program)
        for number, kernel in enumerate(program.main.statements):
            if not isinstance(kernel, Block) or not kernel.words.has_all(self.reqs):
                continue
            refusal, growth, padder = _refusal(program, kernel), None, None
            if refusal is None and (growth := self._grown(program, kernel, context)) is not None:
                padder = _Padder(program, number, growth, self.max_growth, self.min_points)
                refusal = padder.refusal(definitions)
            if refusal is not None:
                context.missed(kernel, f"not padded: {refusal}")
            elif padder is not None:
                kernels[number], around[number], new = padder.padded(taken)
                added += new
                context.applied(kernel, padder.summary())
        if not kernels:
            return program

        def rewritten(main: Block) -> Block:
            statements = tuple(kernels.get(n, s) for n, s in enumerate(main.statements))
            return surround(replace(main, statements=statements), around)

        return with_entry(program, with_main(with_temporaries(entry, added), rewritten))

    def _grown(self, program: Program, kernel: Block, context: PassContext) -> Growth | None:
        """The most that the kernel may grow; None, with remarks, when that is nothing."""
        main = program.main
        buffers = {ref.name: program.entry.ref(main.ref(ref.source).source) for ref in kernel.refinements}
        finite = frozenset(
            name
            for name, buffer in buffers.items()
            if self.allow_nonfinite or _is_finite_constant(program, buffer.name)
        )
        writes = [access for access in accesses(kernel) if access.is_write]
        (output,) = kernel.outputs
        whole = untouched(buffers[output.name].sizes, writes).is_empty
        sizes = {name: buffer.sizes for name, buffer in buffers.items()}
        judge = Judge(kernel, sizes, finite, whole, _holes_with_a_sign(buffers[output.name]))
        start = growth = Growth.start(kernel)
        for name, size in raised_ranges(start, self.prime_threshold, self.multiple_of):
            larger = growth.raised(name, size)
            refusal = judge.refusal(larger)
            if refusal is not None:
                context.missed(kernel, f"{name}:{growth.ranges[name]} is not raised to {size}: {refusal}")
            else:
                growth = larger
        for constraint in start.kept:
            larger = growth.without(constraint)
            refusal = judge.refusal(larger)
            if refusal is not None:
                context.missed(kernel, f"{constraint} >= 0 stays: {refusal}")
            else:
                growth = larger
        return None if growth == start else growth


def _holes_with_a_sign(buffer: Refinement) -> Points | None:
    """The holes of a layout that promises -0.0 in them."""
    layout = buffer.layout
    if layout is None or layout.pad is None or value_key(layout.pad) != value_key(-0.0):
        return None
    return holes(layout.map, layout.sizes, buffer.sizes)


def _refusal(program: Program, kernel: Block) -> Refusal | None:
    """The reason why a block is no kernel that could be padded."""
    output = output_of(kernel)
    if isinstance(output, Refusal):
        return output
    if len(kernel.outputs) > 1:
        return Refusal("it has several views for results")
    if kernel.passed or kernel.allocs:
        return Refusal("it allocates, or takes indices from outside")
    if program.main.points > 1:
        return Refusal("main runs it several times")
    for ref in kernel.refinements:
        view = program.main.ref(ref.source)
        moved = view.is_alloc or any(affine != Affine() for affine in view.access)
        if moved or program.entry.ref(view.source).sizes != view.sizes:
            return Refusal(f"main does not see all of {view.name}")
        if ref.source == output.source and (ref is not output or ref.dir.reads):
            return Refusal(f"it reads {output.name} as well")
    return None


def _is_finite_constant(program: Program, name: str) -> bool:
    """Whether a buffer is a constant without infinities and NaN."""
    for buffer in program.constants:
        if buffer.name == name:
            import numpy as np

            array = np.frombuffer(buffer.data, buffer.dtype.numpy())
            return bool(np.isfinite(array).all())
    return False


_TAGS = Tags.of("kernel", "padding")
"""Of the blocks that fill, copy and trim."""


@dataclass(frozen=True, slots=True)
class _Padder:
    """Builds a grown kernel with the blocks around it."""

    program: Program
    number: int
    growth: Growth
    max_growth: float
    min_points: float

    @property
    def kernel(self) -> Block:
        return self.growth.block

    @property
    def output(self) -> Refinement:
        output = output_of(self.kernel)
        assert isinstance(output, Refinement)
        return output

    def margins(self) -> Mapping[str, Margins]:
        """The margins of each buffer of main that needs any, by the name of main's view."""
        found: dict[str, Margins] = {}
        for ref in self.kernel.refinements:
            margins = self.growth.margins(ref, self.program.main.ref(ref.source).sizes)
            known = found.get(ref.source)
            found[ref.source] = margins if known is None else known.union(margins)
        return {name: margins for name, margins in found.items() if margins.any}

    def refusal(self, definitions: DefinedElements) -> Refusal | None:
        """The reason why the padding costs too much or would read undefined elements."""
        # Points that the kernel did not have also read elements inside of a buffer: holes of a packed layout, say.
        for ref in self.kernel.inputs:
            buffer = self.program.entry.ref(self.program.main.ref(ref.source).source)
            if definitions.has_gaps(buffer, self.number):
                return Refusal(f"some elements of {ref.source} are not written before")
        for name, margins in self.margins().items():
            view = self.program.main.ref(name)
            before, after = max(view.elements, 1), prod(margins.sizes(view.sizes))
            if after > self.max_growth * before:
                return Refusal(f"{name} would grow from {before} to {after} elements")
            if self.kernel.points < self.min_points * before:
                points = self.kernel.points / before
                return Refusal(f"{points:.3g} points for each element of {name} are too few for a copy")
        return None

    def padded(self, taken: set[str]) -> tuple[Block, Around, list[Refinement]]:
        """The new kernel, the blocks around it, and the temporaries that these need; `taken` names are not used."""
        ranges = self.growth.ranges
        kernel = replace(
            self.kernel,
            indices=tuple(replace(index, range=ranges[index.name]) for index in self.kernel.indices),
            constraints=tuple(map(Constraint, self.growth.kept)),
        )
        before: list[Block] = []
        after: list[Block] = []
        added: list[Refinement] = []
        for name, margins in self.margins().items():
            view = self.program.main.ref(name)
            buffer = self.program.entry.ref(view.source)
            local = temporary(buffer, "pad", margins.sizes(buffer.sizes), taken)
            added.append(local)
            refs = tuple(
                replace(ref.with_strides(local.strides).moved(margins.low), source=local.name)
                if ref.source == name and ref.dir is not Direction.NONE
                else ref
                for ref in kernel.refinements
            )
            kernel = replace(kernel, refinements=refs)
            # The elements of the tensor, in it and in the middle of the padded buffer.
            indices = [Index(f"d{dim}", size) for dim, size in enumerate(view.sizes)]
            origin = tuple(Affine.var(index.name) for index in indices)
            far = Element(view, origin)
            near = Element(
                main_view(local), tuple(a + low for a, low in zip(origin, margins.low, strict=True))
            )
            where = beside(self.kernel)
            if name == self.output.source:
                agg = self.output.agg
                after.append(copy_block(f"trim_{name}", indices, near, far, _TAGS, agg=agg, location=where))
                continue
            for box in border(view.sizes, margins):
                fill = fill_of(self.output.agg, buffer.dtype)
                edge = fill_block(f"fill_{local.name}", main_view(local), box, fill, _TAGS, location=where)
                before.append(edge)
            before.append(copy_block(f"pad_{name}", indices, far, near, _TAGS, location=where))
        return kernel, Around(tuple(before), tuple(after)), added

    def summary(self) -> str:
        """The raised ranges, dropped constraints and padded tensors."""
        start = Growth.start(self.kernel)
        parts = [
            f"{name}:{start.ranges[name]} raised to {size}"
            for name, size in self.growth.ranges.items()
            if size != start.ranges[name]
        ]
        dropped = len(start.kept) - len(self.growth.kept)
        if dropped:
            parts.append(f"{dropped} of {len(start.kept)} constraints dropped")
        for name, margins in self.margins().items():
            sizes = self.program.main.ref(name).sizes
            old, new = ("x".join(map(str, s)) for s in (sizes, margins.sizes(sizes)))
            parts.append(f"{name} {old} padded to {new}")
        return "; ".join(parts)
