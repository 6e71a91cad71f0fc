"""The logical form of a program: tensors of the user by their logical elements, packed and unpacked by blocks.

A program with physical layouts means this form, so that two programs of different layouts compare by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from stripe.ir import (
    Affine,
    Agg,
    Block,
    Constant,
    Dim,
    Direction,
    Index,
    Load,
    Program,
    Refinement,
    Role,
    Store,
    fresh,
    retarget,
    with_entry,
)
from stripe.ir.frozen import replace
from stripe.ir.index_map import IndexMap, PhysicalLayout


@dataclass(frozen=True, slots=True)
class LogicalForm:
    """A program by logical elements, and the number of blocks before those that the program has itself."""

    program: Program
    added: int

    @staticmethod
    def of(
        program: Program, owed: Mapping[str, Refinement] | None = None, *, promised: bool = False
    ) -> LogicalForm:
        """The form of `program`, with one more output for each output in `owed` of the same logical sizes: its elements
        in the layout there, under the name there, holes included. Where `promised`, the holes hold the pad in any case.
        """
        sizes = {ref.name: ref.logical_sizes for ref in program.outputs}
        outputs = sizes.keys()
        owed = {name: ref for name, ref in (owed or {}).items() if sizes.get(name) == ref.logical_sizes}
        packed = [
            ref
            for ref in program.entry.allocs
            if ref.layout is not None or (ref.name in owed and ref.name in outputs)
        ]
        if not packed:
            return LogicalForm(program, 0)
        taken = {ref.name for ref in (*program.entry.refinements, *owed.values())}
        refs: list[Refinement] = []
        before: list[Block] = []
        after: list[Block] = []
        names: dict[str, str] = {}
        for ref in program.entry.refinements:
            if ref not in packed:
                refs.append(ref)
                continue
            layout = ref.layout or PhysicalLayout(
                IndexMap.identity([f"d{dim}" for dim in range(ref.rank)]), ref.sizes
            )
            user = Refinement.alloc(ref.name, ref.dtype, layout.sizes, role=Role.USER)
            names[ref.name] = fresh(f"{ref.name}.physical", taken)
            physical = replace(
                ref, name=names[ref.name], role=Role.TEMPORARY, offset=None, copies=1, pitch=None, layout=None
            )
            refs += [user, physical]
            element = [Affine.var(name) for name in layout.map.names]
            indices = [Index(name, size) for name, size in zip(layout.map.names, layout.sizes, strict=True)]
            if ref in program.inputs:
                before += [] if layout.pad is None else [filled(physical, layout.pad)]
                before.append(
                    copied_elements(f"pack_{ref.name}", indices, user, element, physical, layout.map.results)
                )
            if ref not in program.outputs:
                continue
            after.append(
                copied_elements(f"unpack_{ref.name}", indices, physical, layout.map.results, user, element)
            )
            if ref.name in owed:
                wanted = owed[ref.name]
                padded = replace(wanted, offset=None, copies=1, pitch=None, layout=None)
                refs.append(padded)
                after += _padded(replace(ref, layout=layout), physical, wanted, padded, promised=promised)
        statements = [retarget(statement, names) for statement in program.entry.statements]
        entry = replace(program.entry, refinements=tuple(refs), statements=(*before, *statements, *after))
        return LogicalForm(with_entry(program, entry), len(before))


def packed_names(program: Program) -> frozenset[str]:
    """The buffers of the entry that statements before main fill: the physical forms of inputs and constants. Elements
    that these leave out hold anything, whatever main does with them."""
    blocks = takewhile(lambda block: not block.is_main, program.entry.blocks)
    return frozenset(ref.source for block in blocks for ref in block.refinements if ref.dir.writes)


def _padded(
    ref: Refinement, physical: Refinement, wanted: Refinement, padded: Refinement, *, promised: bool
) -> list[Block]:
    """The blocks that write all elements of an output in the layout of `wanted` into `padded`, holes included."""
    own, layout = ref.layout, wanted.layout
    assert own is not None and layout is not None and layout.pad is not None
    name = f"padded_{ref.name}"
    if own == layout and ref.sizes == wanted.sizes and not promised:
        whole = [Index(f"d{dim}", size) for dim, size in enumerate(ref.sizes)]
        place = [Affine.var(index.name) for index in whole]
        return [copied_elements(name, whole, physical, place, padded, place)]
    indices = [Index(name, size) for name, size in zip(own.map.names, own.sizes, strict=True)]
    there = layout.map.at([Affine.var(index.name) for index in indices])
    return [
        filled(padded, layout.pad),
        copied_elements(name, indices, physical, own.map.results, padded, there),
    ]


def owed_pads(program: Program, other: Program | None = None) -> dict[str, Refinement]:
    """The outputs of `program` whose holes hold a value, each under a name that neither program has."""
    taken = {ref.name for each in (program, other or program) for ref in each.entry.refinements}
    return {
        ref.name: replace(ref, name=fresh(f"{ref.name}.padded", taken))
        for ref in program.outputs
        if ref.layout is not None and ref.layout.pad is not None
    }


def moved_tensor(before: Program, after: Program) -> str | None:
    """The first tensor of the user that lies in its memory in another way, which callers of emitted C see."""
    return next(
        (
            ref.name
            for ref in (*before.inputs, *before.outputs)
            if (twin := after.entry.find_ref(ref.name)) is not None
            and (twin.dims, twin.layout) != (ref.dims, ref.layout)
        ),
        None,
    )


def _view(ref: Refinement, direction: Direction, access: Sequence[Affine]) -> Refinement:
    dims = tuple(Dim(1, dim.stride) for dim in ref.dims)
    return Refinement(ref.name, direction, ref.name, tuple(access), ref.dtype, dims, Agg.ASSIGN, ref.location)


def copied_elements(
    name: str,
    indices: Sequence[Index],
    source: Refinement,
    at: Sequence[Affine],
    target: Refinement,
    to: Sequence[Affine],
) -> Block:
    """The block that copies the elements of `source` at some places to places of `target`."""
    refs = (_view(source, Direction.IN, at), _view(target, Direction.OUT, to))
    return Block(name, tuple(indices), (), refs, (Load("x", source.name), Store(target.name, "x")))


def filled(ref: Refinement, value: bool | int | float) -> Block:
    """The block that stores a value in all elements of `ref`."""
    indices = tuple(Index(f"d{dim}", size) for dim, size in enumerate(ref.sizes))
    view = _view(ref, Direction.OUT, [Affine.var(index.name) for index in indices])
    return Block(
        f"pad_{ref.name}", indices, (), (view,), (Constant("x", value, ref.dtype), Store(ref.name, "x"))
    )


@dataclass(frozen=True, slots=True)
class InterfaceChange:
    """A tensor of the user that two programs do not have alike, in words."""

    what: str
    tensor: str
    before: str
    after: str


def interface_change(before: Program, after: Program) -> InterfaceChange | None:
    """The first difference between the tensors that two programs in their logical forms take and give: the parameters
    of emitted C."""
    for what, first, second in (
        ("input", before.inputs, after.inputs),
        ("output", before.outputs, after.outputs),
    ):
        old, new = (
            {ref.name: f"{ref.dtype}({', '.join(f'{d.size}:{d.stride}' for d in ref.dims)})" for ref in side}
            for side in (first, second)
        )
        for name in [*old, *(name for name in new if name not in old)]:
            if old.get(name) != new.get(name):
                one, two = (side.get(name, "it does not exist") for side in (old, new))
                return InterfaceChange(f"the {what} changed", name, one, two)
        if list(old) != list(new):
            moved = next(first for first, second in zip(old, new, strict=True) if first != second)
            one, two = (f"{what}s {', '.join(side)}" for side in (old, new))
            return InterfaceChange(f"the order of the {what}s changed", moved, one, two)
    return None
