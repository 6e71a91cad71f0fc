"""Programs of a few kernels for the tests of `fusion` and `autotile`, each kernel written in one line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from stripe.ir import (
    DTYPES,
    Affine,
    Agg,
    Block,
    Constraint,
    Dim,
    Direction,
    Index,
    Intrinsic,
    Load,
    Program,
    Refinement,
    Role,
    Statement,
    Store,
    Tags,
    parse_affine,
    row_major,
)

Sizes = tuple[int, ...]
_ACCESS = re.compile(r"(\w+)\[(.*?)\]")


def kernel(
    text: str,
    indices: Mapping[str, int],
    shapes: Mapping[str, Sizes],
    *,
    name: str = "",
    tags: Sequence[str] = (),
    where: Sequence[str] = (),
    dtype: str = "fp32",
) -> Block:
    """A kernel such as `O[x] = add relu(A[x + k])`: aggregation and intrinsic of the inputs (`ident` copies)."""
    left, right = text.split("=")
    agg, call = right.split(maxsplit=1)
    op, _, arguments = call.partition("(")
    inputs = [_view(found, shapes, Direction.IN, Agg.ASSIGN, dtype) for found in _ACCESS.finditer(arguments)]
    outputs = [_view(found, shapes, Direction.OUT, Agg(agg), dtype) for found in _ACCESS.finditer(left)]
    names: list[Refinement] = []
    for ref in inputs:
        number = sum(other.source == ref.source for other in names)
        names.append(ref if not number else _named(ref, f"{ref.name}_{number}"))
    statements: list[Statement] = [Load(ref.name, ref.name) for ref in names]
    if op.strip() == "ident":
        result = names[0].name
    else:
        result = "r"
        statements.append(Intrinsic("r", op.strip(), tuple(ref.name for ref in names)))
    statements += [Store(ref.name, result) for ref in outputs]
    return Block(
        name or f"make_{outputs[0].name}",
        tuple(Index(index, size) for index, size in indices.items()),
        tuple(Constraint(parse_affine(c)) for c in where),
        (*names, *outputs),
        tuple(statements),
        tags=Tags.of("kernel", *tags),
        comments=(text,),
    )


def _named(ref: Refinement, name: str) -> Refinement:
    return Refinement(name, ref.dir, ref.source, ref.access, ref.dtype, ref.dims, ref.agg)


def _view(
    found: re.Match[str], shapes: Mapping[str, Sizes], direction: Direction, agg: Agg, dtype: str
) -> Refinement:
    source = found[1]
    dims = tuple(Dim(1, dim.stride) for dim in row_major(shapes[source]))
    access = tuple(parse_affine(part) for part in found[2].split(","))
    return Refinement(source, direction, source, access, DTYPES[dtype], dims, agg)


def program_of(
    kernels: Sequence[Block], shapes: Mapping[str, Sizes], outputs: Sequence[str], dtype: str = "fp32"
) -> Program:
    """The kernels as main; what no kernel writes is an input, what is written and no output a temporary."""
    written = {ref.source for block in kernels for ref in block.outputs}
    used = {ref.source for block in kernels for ref in block.refinements}
    entry: list[Refinement] = []
    views: list[Refinement] = []
    for name in sorted(used):
        temporary = name in written and name not in outputs
        role = Role.TEMPORARY if temporary else Role.USER
        allocation = Refinement.alloc(name, DTYPES[dtype], shapes[name], role=role)
        read = any(ref.source == name and ref.dir.reads for block in kernels for ref in block.refinements)
        direction = Direction.IN if name not in written else Direction.INOUT if read else Direction.OUT
        zeros = (Affine(),) * allocation.rank
        entry.append(allocation)
        views.append(Refinement(name, direction, name, zeros, allocation.dtype, allocation.dims))
    main = Block("main", refinements=tuple(views), statements=tuple(kernels), is_main=True)
    return Program(Block("test", refinements=tuple(entry), statements=(main,), tags=Tags.of("program")))
