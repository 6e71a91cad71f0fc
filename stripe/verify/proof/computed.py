"""Constant buffers: as terms, and compared with buffers that the other program computes without inputs.

A computation without inputs has one result, so that running it is a proof.
"""

from __future__ import annotations

import hashlib

import numpy as np

from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.exec.layout import constant_array
from stripe.ir import (
    Affine,
    Block,
    Buffer,
    Constant,
    DType,
    Index,
    Intrinsic,
    Program,
    Refinement,
    Role,
    fresh,
    keep_statements,
    reads_of,
    scalar_defined,
    scalars_used,
    walk,
    with_directions,
    with_statements,
    writes_of,
)
from stripe.ir.frozen import replace
from stripe.verify.interface import copied_elements
from stripe.verify.proof.terms import Leaf, Number, number

MOST_POINTS = 1 << 24
"""A buffer that takes more points to compute, or other buffers of more elements, is not computed here."""


def same_constant(before: Program, after: Program, name: str) -> bool:
    """Whether the buffer `name`, computed in `before` and a constant in `after`, holds the same bits."""
    held = next((buffer for buffer in after.constants if buffer.name == name), None)
    if held is None or any(buffer.name == name for buffer in before.constants):
        return False
    part = _part(before, name)
    if part is None or _runs(part.main) > MOST_POINTS:
        return False
    if sum(ref.elements for _, block in walk(part.entry) for ref in block.allocs) > MOST_POINTS:
        return False
    try:
        (found,) = interpret(part, {}).values()
    except ExecutionError:
        return False  # the proof of the rest names the error
    expected = constant_array(held)
    same_type = (before.entry.ref(name).dtype, found.shape) == (held.dtype, expected.shape)
    return same_type and found.tobytes() == expected.tobytes()


def computed_in_floats(program: Program, name: str) -> bool:
    """Whether the statements that the buffer `name` needs compute with floats, be its own elements integers."""
    part = _part(program, name)
    assert part is not None
    blocks = [block for _, block in walk(part.entry)]
    dtypes = [ref.dtype for block in blocks for ref in block.refinements]
    dtypes += [
        s.dtype
        for block in blocks
        for s in block.statements
        if isinstance(s, Constant | Intrinsic) and s.dtype
    ]
    return any(dtype.is_float for dtype in dtypes)


def _runs(block: Block) -> int:
    """Upper bound on the runs of the innermost statements of a nest."""
    return block.points * max(1, sum(map(_runs, block.blocks)))


def _part(program: Program, name: str) -> Program | None:
    """The statements of main that `name` needs, as a program without inputs whose one output is a copy of `name`,
    which the statements may read."""
    main = program.main
    if len(program.entry.statements) > 1 or program.entry.find_ref(name) is None:
        return None  # other statements of the entry may write it too
    sources = {ref.name: ref.source for ref in main.refinements}
    wanted, scalars, kept = {name}, set[str](), list[int]()
    for position in reversed(range(len(main.statements))):
        statement = main.statements[position]
        if wanted & {sources[view] for view in writes_of(statement)} or scalar_defined(statement) in scalars:
            kept.insert(0, position)
            wanted |= {sources[view] for view in reads_of(statement)}
            scalars.update(scalars_used(statement))
    if not kept or any(program.entry.ref(buffer).role is Role.USER for buffer in wanted if buffer):
        return None
    main = keep_statements(main, kept)
    used = {view for s in main.statements for view in (*reads_of(s), *writes_of(s))}
    main = with_directions(replace(main, refinements=tuple(r for r in main.refinements if r.name in used)))
    seen = {ref.source for ref in main.refinements}  # a statement may write others beside `name`
    refs = tuple(
        replace(ref, role=Role.TEMPORARY) if ref.role is Role.USER else ref
        for ref in program.entry.refinements
        if ref.name in seen
    )
    made = program.entry.ref(name)
    given = Refinement.alloc(fresh(f"{name}.given", seen), made.dtype, made.sizes, role=Role.USER)
    whole = [Index(f"d{dim}", size) for dim, size in enumerate(made.sizes)]
    place = [Affine.var(index.name) for index in whole]
    copy = copied_elements(f"give_{name}", whole, made, place, given, place)
    entry = with_statements(replace(program.entry, refinements=(*refs, given)), [main, copy])
    return Program(entry, tuple(buffer for buffer in program.constants if buffer.name in wanted))


def constant_terms(program: Program, buffer: Buffer, dtype: DType) -> Leaf | Number | None:
    """The term of an element of a constant buffer; None when the buffer is none."""
    if buffer.path != (0,):
        return None
    found = next((constant for constant in program.constants if constant.name == buffer.name), None)
    if found is None:
        return None
    values = np.frombuffer(found.data, dtype=dtype.numpy())
    if len(values) and found.data == found.data[: dtype.bytes] * len(values):
        return number(values[0].item(), dtype)
    # The digest gives operands one order in both programs; the content decides.
    digest = hashlib.sha256(found.data).hexdigest()[:12]
    return Leaf(f"const:{digest}", len(found.sizes), dtype, (found.sizes, found.data))
