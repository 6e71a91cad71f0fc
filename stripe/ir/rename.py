"""Other names for indices, refinements and scalars, and affines in the place of indices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stripe.ir.affine import Affine
from stripe.ir.block import (
    Block,
    Constant,
    Constraint,
    Intrinsic,
    Load,
    LoadIndex,
    Special,
    Statement,
    Store,
)
from stripe.ir.frozen import replace
from stripe.ir.refinement import Refinement
from stripe.ir.uses import scalar_defined


def substitute(block: Block, mapping: Mapping[str, Affine]) -> Block:
    """Replaces indices of `block` wherever its inside uses them: constraints, accesses, locations, `load_index` and
    the affines that pass indices to the blocks inside. The list of indices itself stays as it is.
    """
    used = {name: affine for name, affine in mapping.items() if affine.single_name != name}
    if not used:
        return block
    return replace(
        block,
        constraints=tuple(Constraint(c.affine.subs(used)) for c in block.constraints),
        refinements=tuple(substitute_ref(ref, used) for ref in block.refinements),
        location=block.location.subs(used),
        statements=tuple(_substitute_statement(statement, used) for statement in block.statements),
    )


def substitute_ref(ref: Refinement, mapping: Mapping[str, Affine]) -> Refinement:
    """Replaces indices in the access and the location of a refinement."""
    access = tuple(affine.subs(mapping) for affine in ref.access)
    location = ref.location.subs(mapping)
    if location is ref.location and all(a is b for a, b in zip(access, ref.access, strict=True)):
        return ref
    return replace(ref, access=access, location=location)


def _substitute_statement(statement: Statement, mapping: Mapping[str, Affine]) -> Statement:
    if isinstance(statement, LoadIndex):
        return replace(statement, affine=statement.affine.subs(mapping))
    if isinstance(statement, Block) and any(index.is_passed for index in statement.indices):
        return replace(
            statement,
            indices=tuple(
                index if index.affine is None else replace(index, affine=index.affine.subs(mapping))
                for index in statement.indices
            ),
        )
    return statement


def rename_indices(block: Block, names: Mapping[str, str]) -> Block:
    """Renames indices of `block` in its list and in all uses."""
    if not any(index.name in names for index in block.indices):
        return block
    renamed = substitute(block, {old: Affine.var(new) for old, new in names.items()})
    return replace(
        renamed, indices=tuple(replace(i, name=names.get(i.name, i.name)) for i in renamed.indices)
    )


def rename_refinements(block: Block, names: Mapping[str, str]) -> Block:
    """Renames refinements of `block` and their uses by its statements (`source` names in the blocks inside)."""
    if not any(ref.name in names for ref in block.refinements):
        return block
    refs = tuple(
        replace(ref, name=names[ref.name]) if ref.name in names else ref for ref in block.refinements
    )
    return replace(block, refinements=refs, statements=tuple(retarget(s, names) for s in block.statements))


def retarget(statement: Statement, names: Mapping[str, str]) -> Statement:
    """Renames the refinements of the block outside that a statement uses."""
    match statement:
        case Load(_, ref) if ref in names:
            return replace(statement, ref=names[ref])
        case Store(ref, _) if ref in names:
            return replace(statement, ref=names[ref])
        case Special(_, outputs, inputs):
            return replace(
                statement,
                outputs=tuple(names.get(n, n) for n in outputs),
                inputs=tuple(names.get(n, n) for n in inputs),
            )
        case Block():
            refs = tuple(
                replace(r, source=names[r.source]) if r.source in names else r for r in statement.refinements
            )
            return replace(statement, refinements=refs) if refs != statement.refinements else statement
        case _:
            return statement


def rename_scalars(statements: Iterable[Statement], names: Mapping[str, str]) -> tuple[Statement, ...]:
    """Renames scalars in their definitions and uses."""
    return tuple(_rename_scalar(statement, names) for statement in statements)


def _rename_scalar(statement: Statement, names: Mapping[str, str]) -> Statement:
    match statement:
        case Store(_, value):
            return replace(statement, value=names.get(value, value))
        case Intrinsic(into, _, inputs):
            return replace(
                statement, into=names.get(into, into), inputs=tuple(names.get(n, n) for n in inputs)
            )
        case Load(into) | LoadIndex(into) | Constant(into):
            return replace(statement, into=names.get(into, into))
        case _:
            return statement


def canonical_names(block: Block, sources: Mapping[str, str]) -> Block:
    """The block with canonical names of refinements and scalars, in it and inside, so that blocks that differ in these
    names alone are equal. `sources` are the names of the refinements outside. Blocks lose their names, comments and
    dependences; names of indices stay.
    """
    refs = {ref.name: f"r{number}" for number, ref in enumerate(block.refinements)}
    scalars = (scalar_defined(statement) for statement in block.statements)
    defined = dict.fromkeys(name for name in scalars if name is not None)
    found = rename_refinements(block, refs)
    statements = rename_scalars(found.statements, {name: f"v{n}" for n, name in enumerate(defined)})
    return replace(
        found, name="", comments=(), deps=(),
        refinements=tuple(
            replace(ref, source=sources.get(ref.source, ref.source)) for ref in found.refinements
        ),
        statements=tuple(
            canonical_names(inner, {}) if isinstance(inner, Block) else inner for inner in statements
        ),
    )  # fmt: skip
