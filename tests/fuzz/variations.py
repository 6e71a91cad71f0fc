"""Programs that lowering does not make, but passes and people do: some inputs are constants, some results unused."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from stripe.exec.data import random_inputs
from stripe.ir import (
    Affine,
    Block,
    ConstantBuffer,
    Direction,
    Program,
    Refinement,
    Role,
    Special,
    refs_used,
    row_major,
)
from stripe.ir.index_map import IndexMap, PhysicalLayout
from stripe.poly.index_maps import physical_sizes


@st.composite
def varied(draw: st.DrawFn, program: Program) -> Program:
    """The program with some of its inputs as constants, some of its outputs as temporaries (at least one stays),
    some views that nothing uses, and some buffers with two names in main.
    """
    plain = [ref for ref in program.entry.refinements if ref.layout is None]
    inputs = [ref.name for ref in program.inputs if ref in plain and ref not in program.outputs]
    outputs = [ref.name for ref in program.outputs if ref in plain and ref not in program.inputs]
    known = (
        draw(st.sets(st.sampled_from(inputs), min_size=1)) if inputs and draw(st.booleans()) else set[str]()
    )
    kept = draw(st.sampled_from(outputs)) if outputs else ""
    unused = {name for name in outputs if name != kept and draw(st.booleans())}
    program = without_outputs(with_constants(program, known, draw(st.integers(0, 99))), unused)
    program = with_idle_views(program) if draw(st.booleans()) else program
    program = draw(with_layouts(program)) if draw(st.booleans()) else program
    return draw(with_twin_views(program)) if draw(st.booleans()) else program


@st.composite
def with_layouts(draw: st.DrawFn, program: Program) -> Program:
    """Some tensors of the user have a physical layout: dimensions in another order and in blocks, with holes where a
    block is not full. Accesses follow the layout, and those of what is no input leave the holes alone."""
    for ref in dict.fromkeys((*program.inputs, *program.outputs)):
        if (
            ref.rank
            and ref.layout is None
            and draw(st.booleans())
            and _accessed_by_element(program, ref.name)
        ):
            order = draw(st.permutations(range(ref.rank)))
            blocks = draw(st.dictionaries(st.sampled_from(order), st.integers(2, 5), max_size=2))
            pad = draw(st.sampled_from((None, ref.dtype.numpy().type(3).item())))
            given = pad if ref not in program.outputs or ref in program.inputs else None
            layout = PhysicalLayout(IndexMap.blocked(order, blocks), ref.sizes, given)
            program = relaid(program, ref, layout)
    return program


def _accessed_by_element(program: Program, name: str) -> bool:
    """Whether all accesses to a tensor are those of blocks of main, one element at each point."""
    main = program.main
    seen = [view for view in main.refinements if view.source == name]
    sizes = program.entry.ref(name).sizes
    if main.points > 1 or any(view.sizes != sizes for view in seen):
        return False
    views = {view.name for view in seen}
    users = [s for s in main.statements if views.intersection(refs_used(s))]
    return all(
        isinstance(block, Block)
        and not any(isinstance(inner, Special | Block) for inner in block.statements)
        and all(set(ref.sizes) == {1} for ref in block.refinements if ref.source in views)
        for block in users
    )


def relaid(program: Program, ref: Refinement, layout: PhysicalLayout) -> Program:
    """The program with a tensor of the user in another layout."""
    sizes = physical_sizes(layout.map, ref.sizes)
    dims = row_major(sizes)
    main = program.main
    views = {view.name for view in main.refinements if view.source == ref.name}

    def through(block: Block) -> Block:
        refs = (
            replace(
                inner,
                access=layout.map.at(inner.access),
                dims=tuple(replace(dim, size=1) for dim in dims),
            )
            if inner.source in views
            else inner
            for inner in block.refinements
        )
        return replace(block, refinements=tuple(refs))

    refs = tuple(
        replace(view, dims=dims, access=(Affine(),) * len(dims)) if view.name in views else view
        for view in main.refinements
    )
    statements = tuple(through(s) if isinstance(s, Block) else s for s in main.statements)
    program = with_main(program, replace(main, refinements=refs, statements=statements))
    allocs = (
        replace(each, dims=dims, access=(Affine(),) * len(dims), layout=layout) if each is ref else each
        for each in program.entry.refinements
    )
    return replace(program, entry=replace(program.entry, refinements=tuple(allocs)))


@st.composite
def with_twin_views(draw: st.DrawFn, program: Program) -> Program:
    """Some views of main have a twin, which some of the kernels use instead: two names of one buffer."""
    main = program.main
    chosen = [ref for ref in main.refinements if not ref.is_alloc and draw(st.booleans())]
    twins = {ref.name: f"{ref.name}_twin" for ref in chosen}

    def through_twins(block: Block) -> Block:
        refs = (
            replace(ref, source=twins[ref.source]) if ref.source in twins and draw(st.booleans()) else ref
            for ref in block.refinements
        )
        return replace(block, refinements=tuple(refs))

    refs = (*main.refinements, *(replace(ref, name=twins[ref.name]) for ref in chosen))
    statements = tuple(through_twins(s) if isinstance(s, Block) else s for s in main.statements)
    return with_main(program, replace(main, refinements=refs, statements=statements))


def with_idle_views(program: Program) -> Program:
    """Each statement of main that is a block has one more view of what it reads."""

    def more(block: Block) -> Block:
        read = next((ref for ref in block.refinements if ref.dir is Direction.IN), None)
        if read is None:
            return block
        idle = replace(read, name=f"{read.name}_idle")
        return replace(block, refinements=(*block.refinements, idle))

    statements = tuple(more(s) if isinstance(s, Block) else s for s in program.main.statements)
    return with_main(program, replace(program.main, statements=statements))


def with_constants(program: Program, names: set[str], seed: int) -> Program:
    """The inputs `names` hold numbers that are known. (Of a tensor of indices they are valid ones.)"""
    data = random_inputs(program, seed)
    constants = tuple(
        ConstantBuffer(ref.name, ref.dtype, ref.sizes, data[ref.name].tobytes())
        for ref in program.inputs
        if ref.name in names
    )
    return replace(_with_role(program, names, Role.CONSTANT), constants=(*program.constants, *constants))


def without_outputs(program: Program, names: set[str]) -> Program:
    """The outputs `names` are temporaries, which some statements may still read."""
    main = program.main

    def view(ref: Refinement) -> Refinement:
        return replace(ref, dir=Direction.INOUT) if ref.source in names and not ref.is_alloc else ref

    changed = replace(main, refinements=tuple(map(view, main.refinements)))
    return _with_role(with_main(program, changed), names, Role.TEMPORARY)


def with_main(program: Program, changed: Block) -> Program:
    main = program.main
    statements = tuple(changed if each is main else each for each in program.entry.statements)
    return replace(program, entry=replace(program.entry, statements=statements))


def _with_role(program: Program, names: set[str], role: Role) -> Program:
    refs = (replace(ref, role=role) if ref.name in names else ref for ref in program.entry.refinements)
    return replace(program, entry=replace(program.entry, refinements=tuple(refs)))
