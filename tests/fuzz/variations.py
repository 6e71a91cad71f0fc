"""Programs that lowering does not make, but passes and people do: some inputs are constants, some results unused."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from stripe.exec.data import random_inputs
from stripe.ir import Block, ConstantBuffer, Direction, Program, Refinement, Role


@st.composite
def varied(draw: st.DrawFn, program: Program) -> Program:
    """The program with some of its inputs as constants, some of its outputs as temporaries (at least one stays),
    some views that nothing uses, and some buffers with two names in main.
    """
    inputs = [ref.name for ref in program.inputs if ref not in program.outputs]
    outputs = [ref.name for ref in program.outputs if ref not in program.inputs]
    known = (
        draw(st.sets(st.sampled_from(inputs), min_size=1)) if inputs and draw(st.booleans()) else set[str]()
    )
    kept = draw(st.sampled_from(outputs)) if outputs else ""
    unused = {name for name in outputs if name != kept and draw(st.booleans())}
    program = without_outputs(with_constants(program, known, draw(st.integers(0, 99))), unused)
    program = with_idle_views(program) if draw(st.booleans()) else program
    return draw(with_twin_views(program)) if draw(st.booleans()) else program


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
