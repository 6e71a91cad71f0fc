"""A picture of a program for Graphviz: its blocks, and the buffers between them."""

from __future__ import annotations

from collections.abc import Iterator

from stripe.ir import Block, Path, Program, path_text, reads_of, writes_of
from stripe.ir.block import Special, Statement
from stripe.ir.text.graphviz import quote

NODE_STYLE = '  node [fontname="monospace", fontsize=10];'


def block_graph(program: Program) -> str:
    """The blocks of `program` in Graphviz's language: nested boxes, buffers, and edges for reads and writes."""
    lines = [f"digraph {quote(program.name or 'program')} {{", "  compound=true;", NODE_STYLE]
    lines += _cluster(program.entry, (0,), "  ")
    return "\n".join([*lines, "}"]) + "\n"


def _cluster(block: Block, path: Path, indent: str) -> Iterator[str]:
    yield f"{indent}subgraph {quote(f'cluster_{path_text(path)}')} {{"
    yield f"{indent}  label={quote(_label(block))};"
    inside = [(number, s) for number, s in enumerate(block.statements) if isinstance(s, (Block, Special))]
    buffers = [ref.name for ref in block.refinements] if inside else []
    for name in buffers:
        ref = block.ref(name)
        place = f"\n<{ref.location}>" if ref.location else ""
        label = quote(f"{name} {ref.dtype}({', '.join(map(str, ref.sizes))}){place}")
        yield f"{indent}  {quote(f'{path_text(path)}.{name}')} [label={label}, shape=box];"
    if not inside:
        label = quote(f"{len(block.statements)} statements")
        yield f"{indent}  {quote(path_text(path))} [label={label}, shape=plaintext];"
    for number, statement in inside:
        yield from _statement(block, statement, (*path, number), indent + "  ")
    yield f"{indent}}}"


def _statement(outer: Block, statement: Statement, path: Path, indent: str) -> Iterator[str]:
    if isinstance(statement, Block):
        yield from _cluster(statement, path, indent)
        # An edge ends at the refinement inside, or at the only node of a block without blocks.
        nested = any(isinstance(inner, (Block, Special)) for inner in statement.statements)
        ends = {
            ref.source: f"{path_text(path)}.{ref.name}" if nested else path_text(path)
            for ref in statement.refinements
            if ref.source
        }
    else:
        label = statement.op if isinstance(statement, Special) else "statement"
        yield f"{indent}{quote(path_text(path))} [label={quote(label)}, shape=oval];"
        ends = dict.fromkeys((*reads_of(statement), *writes_of(statement)), path_text(path))
    known = {ref.name for ref in outer.refinements}
    for name in dict.fromkeys(reads_of(statement)):
        if name in known:
            yield f"{indent}{quote(f'{path_text(path[:-1])}.{name}')} -> {quote(ends[name])};"
    for name in dict.fromkeys(writes_of(statement)):
        if name in known:
            yield f"{indent}{quote(ends[name])} -> {quote(f'{path_text(path[:-1])}.{name}')};"


def _label(block: Block) -> str:
    ranges = ", ".join(
        f"{i.name}:{i.range}" if i.affine is None else f"{i.name} = {i.affine}" for i in block.indices
    )
    words = " ".join(f"#{word}" for word in block.words)
    location = f" <{block.location}>" if block.location else ""
    return "\n".join(
        line for line in (f"{block.name}{location}", words, f"[{ranges}]" if ranges else "") if line
    )
