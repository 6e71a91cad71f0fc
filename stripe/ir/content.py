"""The content of a block, which equal layers of a network have in common."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeAlias

from stripe.ir.block import Block, Constant, Intrinsic, Load, LoadIndex, Special, Statement, Store

ContentKey: TypeAlias = tuple[Hashable, ...]


def content_key(block: Block, outside: Mapping[str, int] | None = None) -> ContentKey:
    """All of a block and of the blocks inside but names of blocks, refinements and scalars, comments and dependences.
    Names of indices and tags count. `outside` numbers the buffers outside, by default in the order of their views.
    """
    if outside is None:
        sources = dict.fromkeys(ref.source for ref in block.refinements if ref.source)
        outside = {source: number for number, source in enumerate(sources)}
    refs = {ref.name: number for number, ref in enumerate(block.refinements)}
    views = tuple(
        [
            (outside.get(r.source), r.dir, r.access, r.dtype, r.dims, r.agg, r.location, r.offset, r.bank_dim,
             r.tags, r.role, r.copies, r.pitch, r.layout)
            for r in block.refinements
        ]
    )  # fmt: skip
    scalars: dict[str, int] = {}
    statements = tuple([_statement_key(statement, refs, scalars) for statement in block.statements])
    return (
        block.indices, block.constraints, views, statements, block.location, block.tags, block.is_main, block.stage,
        block.pipeline_depth,
    )  # fmt: skip


def _statement_key(statement: Statement, refs: Mapping[str, int], scalars: dict[str, int]) -> ContentKey:
    """The key of one statement; the scalar that it defines gets the next number."""
    if isinstance(statement, Block):
        return content_key(statement, refs)
    key: ContentKey
    match statement:
        case Load(into, ref):
            key = (refs.get(ref),)
        case Store(ref, value):
            key, into = (refs.get(ref), scalars.get(value)), None
        case LoadIndex(into, affine):
            key = (affine,)
        case Constant(into, value, dtype):
            key = (str(value), dtype)
        case Intrinsic(into, op, inputs, dtype):
            key = (op, tuple([scalars.get(name) for name in inputs]), dtype)
        case Special(op, outputs, inputs):
            key, into = (
                (op, *(tuple([refs.get(name) for name in names]) for names in (outputs, inputs))),
                None,
            )
    if into is not None:
        scalars[into] = len(scalars)
    return (type(statement), key, statement.tags)
