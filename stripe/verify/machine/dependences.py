"""Independent check of dependences: statements of main that conflict, and uses of scalars, are in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stripe.ir import (
    Agg,
    Block,
    Buffer,
    Diagnostic,
    Nest,
    Program,
    beginnings,
    scalar_defined,
    scalars_used,
)
from stripe.poly import Access, accesses
from stripe.verify.machine.order import closure, is_in


def check_dependences(program: Program) -> list[Diagnostic]:
    """Conflicts and uses of scalars between statements of main without a dependence that orders them."""
    nest = next(nest for nest in Nest.root(program.entry).walk() if nest.block.is_main)
    order = closure(nest.block)
    return [*_check_conflicts(nest, order), *_check_scalars(nest, order)]


def _check_conflicts(nest: Nest, order: Sequence[int]) -> Iterator[Diagnostic]:
    """Two statements of main that touch a common element, one writing it, are ordered; so are two merges, each of which
    reads what it writes. The first statement that uses a buffer fills it where it begins at an identity: the others
    wait for it, whichever elements they touch."""
    depth = len(nest.path)
    by_buffer: dict[Buffer, list[Access]] = {}
    for access in accesses(nest):
        by_buffer.setdefault(access.buffer, []).append(access)
    filled = set(_filled(nest))
    said: set[tuple[int, int]] = set()
    for buffer, parts in by_buffer.items():
        filling = parts[0].path[depth] if buffer in filled else None
        earlier: list[Access] = []
        writes: list[Access] = []
        for second in parts:
            fill = [parts[0]] if filling is not None and not second.is_write else []
            for first in earlier if second.is_write else [*fill, *writes]:
                one, two = pair = (first.path[depth], second.path[depth])
                if one == two or pair in said or is_in(one, order[two]) or is_in(two, order[one]):
                    continue
                if one == filling or not first.footprint.disjoint(second.footprint):
                    said.add(pair)
                    both = f"both touch '{buffer}'" if one != filling else f"which fills '{buffer}'"
                    message = f"no dependence orders it after statement {one}, {both}"
                    statement = nest.block.statements[two]
                    name = statement.name if isinstance(statement, Block) else ""
                    yield Diagnostic(message, (*nest.path, two), name, "run compute_deps or schedule")
            earlier.append(second)
            if second.is_write:
                writes.append(second)


def _filled(nest: Nest) -> Iterator[Buffer]:
    """The buffers that a statement of main fills with an identity: they belong to main or to the entry."""
    for holder in [nest] if nest.outer is None else [nest, nest.outer]:
        for name, agg in beginnings(holder.block).items():
            if agg is not Agg.ASSIGN and holder.block.ref(name).is_alloc:
                yield Buffer(holder.path, name)


def _check_scalars(nest: Nest, order: Sequence[int]) -> Iterator[Diagnostic]:
    """A statement of main that uses a scalar is ordered after the one that defines it."""
    defined: dict[str, int] = {}
    for number, statement in enumerate(nest.block.statements):
        for name in dict.fromkeys(scalars_used(statement)):
            if not is_in(defined[name], order[number]):
                message = f"no dependence orders it after statement {defined[name]}, which defines '${name}'"
                yield Diagnostic(message, (*nest.path, number), "", "run compute_deps or schedule")
        scalar = scalar_defined(statement)
        if scalar is not None:
            defined[scalar] = number
