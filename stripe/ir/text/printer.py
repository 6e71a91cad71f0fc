"""The textual form of Stripe; `stripe.ir.text.parser` is its exact inverse."""

from __future__ import annotations

import json
from collections.abc import Iterator

from stripe.ir.block import Block, Constant, Index, Intrinsic, Load, LoadIndex, Special, Statement, Store
from stripe.ir.printable import text_of
from stripe.ir.program import Program
from stripe.ir.refinement import Agg, Refinement
from stripe.ir.tags import Tags, TagValue


@text_of.register(Program)
def print_program(program: Program) -> str:
    """The whole program as text, ending with a newline."""
    lines = list(_statement_lines(0, program.entry, ""))
    for buffer in program.constants:
        sizes = ", ".join(map(str, buffer.sizes))
        lines.append(f'const {buffer.name} {buffer.dtype}({sizes}) = "{buffer.data.hex()}"')
    return "\n".join(lines) + "\n"


@text_of.register(Block)
def print_block(block: Block, number: int = 0) -> str:
    """One block as text, numbered `number`, ending with a newline."""
    return "\n".join(_statement_lines(number, block, "")) + "\n"


def print_statement(statement: Statement) -> str:
    """A statement without number, dependences and tags; of a block its first line."""
    if isinstance(statement, Block):
        return _block_head(statement)
    return _scalar_text(statement)


@text_of.register(Refinement)
def print_refinement(ref: Refinement) -> str:
    """A refinement on one line, as in the head of its block."""
    words = [f"{_tags_text(ref.words)}{ref.dir.value}"]
    if ref.is_alloc:
        words.append(f" new@0x{ref.offset or 0:08x}")
    words.append(f"<{ref.location if ref.location else '[0]'}> {ref.name}")
    if ref.source and ref.source != ref.name:
        words.append(f" = {ref.source}")
    words.append(f"[{', '.join(map(str, ref.access))}]")
    if ref.dir.writes or ref.agg is not Agg.ASSIGN:
        words.append(f":{ref.agg.value}")
    dims = (
        f"{{{dim.size}:{dim.stride}}}" if place == ref.bank_dim else f"{dim.size}:{dim.stride}"
        for place, dim in enumerate(ref.dims)
    )
    words.append(f" {ref.dtype}({', '.join(dims)})")
    if ref.layout is not None:
        words.append(f" = {ref.layout}")
        words += [] if ref.layout.pad is None else [f" else {_value_text(ref.layout.pad)}"]
    return "".join(words)


def _statement_lines(number: int, statement: Statement, indent: str) -> Iterator[str]:
    deps = f"[{', '.join(map(str, statement.deps))}]" if statement.deps else ""
    words = statement.words if isinstance(statement, Block) else statement.tags
    prefix = f"{indent}{number}{deps}: {_tags_text(words)}"
    if not isinstance(statement, Block):
        yield prefix + _scalar_text(statement)
        return
    yield prefix + _block_head(statement)
    yield from _block_body(statement, indent)


def _block_head(block: Block) -> str:
    location = f"<{block.location}>" if block.location else ""
    indices = ", ".join(map(_index_text, block.indices))
    name = f" // {block.name}" if block.name else ""
    return f"block{location} [{indices}] ({name}"


def _block_body(block: Block, indent: str) -> Iterator[str]:
    inner = indent + "    "
    for comment in block.comments:
        yield f"{inner}// {comment}".rstrip()
    for constraint in block.constraints:
        yield f"{inner}{constraint}"
    for ref in block.refinements:
        yield inner + print_refinement(ref)
    yield f"{indent}) {{"
    for number, statement in enumerate(block.statements):
        yield from _statement_lines(number, statement, indent + "  ")
    yield f"{indent}}}"


def _index_text(index: Index) -> str:
    tags = _tags_text(index.words)
    return (
        f"{tags}{index.name}:{index.range}"
        if index.affine is None
        else f"{tags}{index.name} = {index.affine}"
    )


@text_of.register(Load)
@text_of.register(Store)
@text_of.register(LoadIndex)
@text_of.register(Constant)
@text_of.register(Intrinsic)
@text_of.register(Special)
def _scalar_text(statement: Load | Store | LoadIndex | Constant | Intrinsic | Special) -> str:
    match statement:
        case Load(into, ref):
            return f"${into} = load({ref})"
        case Store(ref, value):
            return f"{ref} = store(${value})"
        case LoadIndex(into, affine):
            return f"${into} = load_index({affine})"
        case Constant(into, value, dtype):
            return f"${into} = ({dtype}){_value_text(value)}"
        case Intrinsic(into, op, inputs, dtype):
            operands = [f"${name}" for name in inputs] + ([dtype.name] if dtype is not None else [])
            return f"${into} = {op}({', '.join(operands)})"
        case Special(op, outputs, inputs):
            targets = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
            return f"{targets} = {op}({', '.join(inputs)})"


def _tags_text(tags: Tags) -> str:
    return "".join(
        f"#{word} " if value is None else f"#{word}={_value_text(value)} " for word, value in tags.entries
    )


def _value_text(value: TagValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, str) else repr(value)
