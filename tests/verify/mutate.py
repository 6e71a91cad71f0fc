"""Breaks a correct program in many small ways: each mutant differs from it in one token.

Reusable: `mutants(program)` yields them all in a stable order, each with the kind of mistake that it imitates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from stripe.ir import (
    Affine,
    Agg,
    Block,
    Constant,
    Constraint,
    Dim,
    Intrinsic,
    Mod,
    Path,
    Program,
    Refinement,
    Statement,
    Store,
    walk,
)


@dataclass(frozen=True)
class Mutant:
    """A program with one mistake: the kind, the place, and what was done there."""

    kind: str
    path: Path
    what: str
    program: Program

    def __str__(self) -> str:
        return f"{self.kind} at {'.'.join(map(str, self.path))}: {self.what}"


Item = TypeVar("Item")

Change = tuple[str, str, Block]
"""Kind, description, and the changed block."""


def mutants(program: Program) -> Iterator[Mutant]:
    """All mutants of the blocks inside `main`."""
    for path, block in walk(program.entry):
        if len(path) < 2:
            continue
        for rule in RULES if len(path) > 2 else (statement_changes,):
            for kind, what, changed in rule(block):
                yield Mutant(kind, path, what, _with_block(program, path, changed))


def surroundings(program: Program) -> Iterator[Mutant]:
    """Mutants of the entry and of `main`: the blocks inside stay as they are."""
    rules = (access_changes, range_changes, aggregation_changes, source_changes, size_changes)
    for path, block in walk(program.entry):
        for rule in rules if len(path) <= 2 else ():
            for kind, what, changed in rule(block):
                yield Mutant(kind, path, what, _with_block(program, path, changed))


def _with_block(program: Program, path: Path, changed: Block) -> Program:
    return replace(program, entry=_replaced(program.entry, path[1:], changed))


def _replaced(block: Block, path: Path, changed: Block) -> Block:
    if not path:
        return changed
    inner = block.statements[path[0]]
    assert isinstance(inner, Block)
    statements = list(block.statements)
    statements[path[0]] = _replaced(inner, path[1:], changed)
    return replace(block, statements=tuple(statements))


def access_changes(block: Block) -> Iterator[Change]:
    """Offsets by one, wrong coefficients, swapped dimensions of accesses."""
    for number, ref in enumerate(block.refinements):
        if ref.is_alloc:
            continue
        for dim, affine in enumerate(ref.access):
            for kind, other in _affine_changes(affine):
                yield kind, f"{ref.name} dimension {dim}: {affine} -> {other}", _with_ref(
                    block, number, replace(ref, access=_set(ref.access, dim, other))
                )  # fmt: skip
        for dim in range(1, ref.rank):
            if ref.access[dim] != ref.access[dim - 1]:
                access = _set(_set(ref.access, dim, ref.access[dim - 1]), dim - 1, ref.access[dim])
                changed = _with_ref(block, number, replace(ref, access=access))
                yield "swapped dimensions", f"{ref.name} dimensions {dim - 1} and {dim}", changed


def _affine_changes(affine: Affine) -> Iterator[tuple[str, Affine]]:
    yield "offset", affine + 1
    yield "offset", affine - 1
    for atom, coefficient in affine.terms:
        term = Affine(0, ((atom, coefficient),))
        yield "stride", affine + Affine(0, ((atom, 1),))
        if coefficient > 1:
            yield "stride", affine - Affine(0, ((atom, 1),))
        yield "lost term", affine - term
        if isinstance(atom, Mod):
            for modulus in (atom.modulus - 1, atom.modulus + 1):
                if modulus > 1:
                    other = Affine(0, ((Mod(atom.arg, modulus), coefficient),))
                    yield "modulus", affine - term + other


def constraint_changes(block: Block) -> Iterator[Change]:
    """Dropped, loosened and tightened constraints."""
    for number, constraint in enumerate(block.constraints):
        rest = block.constraints[:number] + block.constraints[number + 1 :]
        yield "dropped constraint", str(constraint), replace(block, constraints=rest)
        for kind, shift in (("loosened constraint", 1), ("tightened constraint", -1)):
            moved = Constraint(constraint.affine + shift)
            changed = (*block.constraints[:number], moved, *block.constraints[number + 1 :])
            yield kind, f"{constraint} -> {moved}", replace(block, constraints=changed)


def range_changes(block: Block) -> Iterator[Change]:
    """Index ranges one too long or short; passed-in indices off by one."""
    for number, index in enumerate(block.indices):
        if index.affine is not None:
            options = [replace(index, affine=index.affine + 1)]
        else:
            options = [replace(index, range=index.range + 1)]
            if index.range > 1:
                options.append(replace(index, range=index.range - 1))
        for other in options:
            indices = (*block.indices[:number], other, *block.indices[number + 1 :])
            yield "range", f"{index.name}: {index.range} -> {other.range}", replace(block, indices=indices)


def aggregation_changes(block: Block) -> Iterator[Change]:
    """Another aggregation on the refinements that stores name."""
    stored = {s.ref for s in block.statements if isinstance(s, Store)}
    for number, ref in enumerate(block.refinements):
        if ref.name in stored:
            for agg in (Agg.ASSIGN, Agg.ADD, Agg.MAX):
                if agg is not ref.agg:
                    what = f"{ref.name}: {ref.agg.value} -> {agg.value}"
                    yield "aggregation", what, _with_ref(block, number, replace(ref, agg=agg))


def source_changes(block: Block) -> Iterator[Change]:
    """Two refinements view each other's source."""
    views = [(n, r) for n, r in enumerate(block.refinements) if not r.is_alloc]
    for a, first in views:
        for b, second in views[views.index((a, first)) + 1 :]:
            alike = (first.dir, first.dtype, first.strides) == (second.dir, second.dtype, second.strides)
            if alike and first.source != second.source:
                swapped = _with_ref(block, a, replace(first, source=second.source))
                swapped = _with_ref(swapped, b, replace(second, source=first.source))
                yield "swapped sources", f"{first.name} and {second.name}", swapped


def statement_changes(block: Block) -> Iterator[Change]:
    """Statements dropped, exchanged, with swapped operands, another operation or constant."""
    statements = block.statements
    for number, statement in enumerate(statements):
        if isinstance(statement, Block | Store):
            rest = statements[:number] + statements[number + 1 :]
            kind = "missing initialisation" if "init" in statement.tags else "dropped statement"
            yield kind, f"statement {number}", replace(block, statements=rest)
        if isinstance(statement, Block) and number and isinstance(statements[number - 1], Block):
            order = (*statements[: number - 1], statement, statements[number - 1], *statements[number + 1 :])
            yield "order", f"statements {number - 1} and {number}", replace(block, statements=order)
        if isinstance(statement, Block) and statement.constraints == () and len(statement.indices) <= 2:
            twice = (*statements[: number + 1], *statements[number:])
            yield "repeated statement", f"statement {number}", replace(block, statements=twice)
        for kind, what, other in _scalar_changes(statement):
            yield kind, what, replace(block, statements=_set(statements, number, other))


def _scalar_changes(statement: Statement) -> Iterator[tuple[str, str, Statement]]:
    if isinstance(statement, Intrinsic):
        if len(statement.inputs) == 2 and statement.inputs[0] != statement.inputs[1]:
            inputs = tuple(reversed(statement.inputs))
            yield "swapped operands", statement.op, replace(statement, inputs=inputs)
            yield "wrong operand", statement.op, replace(statement, inputs=inputs[:1] * 2)
        other = {"add": "sub", "sub": "add", "mul": "add", "relu": "neg", "neg": "relu"}.get(statement.op)
        if other is not None:
            yield "operation", f"{statement.op} -> {other}", replace(statement, op=other)
    if isinstance(statement, Constant):
        yield "constant", f"{statement.value} + 1", replace(statement, value=statement.value + 1)


def size_changes(block: Block) -> Iterator[Change]:
    """The box of a view one smaller than what is touched through it, or an allocation one smaller."""
    for number, ref in enumerate(block.refinements):
        for dim, extent in enumerate(ref.dims):
            if extent.size > 1:
                dims = _set(ref.dims, dim, Dim(extent.size - 1, extent.stride))
                what = f"{ref.name} dimension {dim}: {extent.size} -> {extent.size - 1}"
                yield "box", what, _with_ref(block, number, replace(ref, dims=dims))


RULES: tuple[Callable[[Block], Iterator[Change]], ...] = (
    access_changes, constraint_changes, range_changes, aggregation_changes, source_changes, statement_changes,
    size_changes,
)  # fmt: skip


def _with_ref(block: Block, number: int, ref: Refinement) -> Block:
    return replace(block, refinements=_set(block.refinements, number, ref))


def _set(items: tuple[Item, ...], number: int, item: Item) -> tuple[Item, ...]:
    return (*items[:number], item, *items[number + 1 :])
