"""The structural verifier: a list of small checks, one property each; all errors are collected.

Properties of integer sets (accesses in bounds, injectivity, races) are proved by `stripe.verify`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from stripe.ir.block import (
    Block,
    Constraint,
    Index,
    LoadIndex,
)
from stripe.ir.check.diagnostic import Check, CheckedBlock, Diagnostic, Part, nearest
from stripe.ir.check.layouts import layout_fault
from stripe.ir.check.stages import STAGE_CHECKS
from stripe.ir.check.statements import (
    check_aggregations,
    check_deps,
    check_directions,
    check_scalars,
    check_specials,
)
from stripe.ir.check.unchanged import KnownBlocks
from stripe.ir.program import Program
from stripe.ir.refinement import Direction, Refinement, Role
from stripe.ir.stage import Stage
from stripe.ir.tags import FIELD_WORDS, Tags
from stripe.ir.text.names import is_line, is_name, is_tag
from stripe.ir.text.printer import print_refinement
from stripe.ir.uses import scalar_defined
from stripe.ir.walk import Path


def verify_structural(
    program: Program, stage: Stage = Stage.TILED, valid: Program | None = None
) -> list[Diagnostic]:
    """All violations of the structure that `stage` demands, in program order; empty for a valid program.

    `valid` is a program without violations of that stage: its blocks that `program` still has are not checked again.
    """
    found = list(check_program(program))
    checks: list[Check] = [*CHECKS, *(check for level, check in STAGE_CHECKS if level <= stage)]
    known = None if valid is None else KnownBlocks(valid)
    for scope in _scopes(program.entry, (0,), None, {}, known):
        for check in checks:
            found.extend(check(scope))
    return found


def unmet_demands(program: Program, stage: Stage) -> list[Diagnostic]:
    """All demands of `stage` beyond the structure of every program that `program` does not meet, in program order."""
    checks = [check for level, check in STAGE_CHECKS if level <= stage]
    scopes = _scopes(program.entry, (0,), None, {}, None)
    return [found for scope in scopes for check in checks for found in check(scope)]


def _scopes(
    block: Block, path: Path, parent: Block | None, outer: Mapping[str, Refinement], known: KnownBlocks | None
) -> Iterator[CheckedBlock]:
    if known is not None and known.holds(block, parent, outer):
        return
    refs = {ref.name: ref for ref in reversed(block.refinements)}  # of two with one name the first counts
    yield CheckedBlock(block, path, parent, refs, outer)
    for number, statement in enumerate(block.statements):
        if isinstance(statement, Block):
            yield from _scopes(statement, (*path, number), block, refs, known)


def check_program(program: Program) -> Iterator[Diagnostic]:
    """The entry holds allocations and one main block; constants belong to allocations with the role of a constant."""
    entry = program.entry
    whole = CheckedBlock(entry, (0,), None, {}, {})
    mains = [block for block in entry.blocks if block.is_main]
    if len(mains) != 1:
        yield whole.say(f"the entry has {len(mains)} blocks tagged main", "it needs exactly one")
    if len(entry.statements) > len(mains):
        yield whole.say("the entry has statements beside main", "move them into main")
    for part in (*entry.indices, *entry.constraints):
        yield whole.say(
            "the entry runs once", "indices and constraints belong to main or to blocks inside", about=part
        )
    for ref in entry.refinements:
        if not ref.is_alloc:
            yield whole.say(f"'{ref.name}' of the entry is no allocation", "use 'none new'", about=ref)
    buffers = {buffer.name: buffer for buffer in program.constants}
    if len(buffers) != len(program.constants):
        yield whole.say("two constants have one name")
    for number, buffer in enumerate(program.constants):
        here: Part = ("constant", number)
        ref = entry.find_ref(buffer.name)
        if ref is None or ref.role is not Role.CONSTANT:
            hint = "allocate it in the entry, tagged #const"
            yield Diagnostic(f"constant '{buffer.name}' has no allocation", (), entry.name, hint, here)
        elif (ref.dtype, ref.sizes) != (buffer.dtype, buffer.sizes) or len(
            buffer.data
        ) != ref.elements * ref.dtype.bytes:
            reason = f"constant '{buffer.name}' differs from its allocation in shape"
            yield Diagnostic(reason, (), entry.name, "", here)
        elif buffer.dtype.kind == "bool" and buffer.data.translate(None, b"\0\1"):
            reason = f"constant '{buffer.name}' holds bytes that are neither false nor true"
            yield Diagnostic(reason, (), entry.name, "write 00 or 01 for each", here)
    for ref in entry.refinements:
        if ref.role is Role.CONSTANT and ref.name not in buffers:
            yield whole.say(f"'{ref.name}' is tagged #const and has no data", about=ref)


def check_names(scope: CheckedBlock) -> Iterator[Diagnostic]:
    """Names are words that the text can hold; one name, one thing."""
    block = scope.block
    defined = [(number, scalar_defined(statement)) for number, statement in enumerate(block.statements)]
    yield from _check_each(scope, "index", [(i.name, None, i) for i in block.indices])
    yield from _check_each(scope, "refinement", [(r.name, None, r) for r in block.refinements])
    scalars = [(name, number, None) for number, name in defined if name is not None]
    yield from _check_each(scope, "scalar", scalars)
    if not (is_line(block.name) and all(map(is_line, block.comments))):
        yield scope.say("the name or a comment spans lines, has blanks at an end, or control characters")


def _check_each(
    scope: CheckedBlock, what: str, named: Sequence[tuple[str, int | None, Index | Refinement | None]]
) -> Iterator[Diagnostic]:
    """The names of one kind, each with the statement or the part of the block that has it: told is of the last."""
    names = [name for name, _, _ in named]
    if len(set(names)) == len(named) and all(map(is_name, names)):
        return
    counts = Counter(names)
    for name, number, about in {name: (name, number, about) for name, number, about in named}.values():
        if counts[name] > 1:
            yield scope.say(
                f"{what} '{name}' is defined {counts[name]} times", "rename all but one", number, about
            )
        if not is_name(name) and not (what == "scalar" and name):
            article = "an" if what == "index" else "a"
            hint = "names are letters, digits, _, ., ^ and ', with no digit first"
            yield scope.say(f"'{name}' cannot name {article} {what}", hint, number, about)


def check_tags(scope: CheckedBlock) -> Iterator[Diagnostic]:
    """Tags are words, and none spells a field."""
    block = scope.block
    holders: list[tuple[Tags, int | None, Index | Refinement | None]] = [(block.tags, None, None)]
    holders += [(index.tags, None, index) for index in block.indices]
    holders += [(ref.tags, None, ref) for ref in block.refinements]
    holders += [(s.tags, n, None) for n, s in enumerate(block.statements) if not isinstance(s, Block)]
    for tags, number, about in holders:
        for word, _ in tags.entries:
            if not is_tag(word):
                hint = "tags are letters, digits, _, . and -, with no digit first"
                yield scope.say(f"'{word}' cannot be a tag", hint, number, about)
            elif word in FIELD_WORDS:
                hint = f"'{word}' says something of other statements or refinements; take another word"
                yield scope.say(f"'#{word}' cannot be a tag here", hint, number, about)


def check_indices(scope: CheckedBlock) -> Iterator[Diagnostic]:
    """Ranges are positive; a passed index is an affine over the indices outside."""
    outside = frozenset(index.name for index in scope.parent.indices) if scope.parent else frozenset[str]()
    for index in scope.block.indices:
        if index.range < 1:
            yield scope.say(
                f"index '{index.name}' has range {index.range}", "a range is at least 1", about=index
            )
        if index.affine is None:
            continue
        if index.range != 1:
            yield scope.say(f"index '{index.name}' is passed in and has range {index.range}", about=index)
        for name in sorted(index.affine.names() - outside):
            yield scope.say(
                f"index '{index.name}' is passed '{name}', which the block outside does not have",
                nearest(name, outside),
                about=index,
            )


def check_index_uses(scope: CheckedBlock) -> Iterator[Diagnostic]:
    """Constraints, accesses, locations and load_index use the block's own indices."""
    block = scope.block
    known = frozenset(index.name for index in block.indices)
    for what, names, number, about in _index_uses(block):
        if names <= known:
            continue
        for name in sorted(names - known):
            thing = about.name if isinstance(about, Refinement) else about
            reason = f"{what.format(thing)} uses the unknown index '{name}'"
            yield scope.say(reason, nearest(name, known), number, about)


def _index_uses(
    block: Block,
) -> Iterator[tuple[str, frozenset[str], int | None, Constraint | Refinement | None]]:
    """The uses of indices: each as a text with a place for its name (few are ever shown), the indices, and the
    statement or part of the block.
    """
    for constraint in block.constraints:
        yield "constraint '{}'", constraint.affine.names(), None, constraint
    for ref in block.refinements:
        if names := [affine.names() for affine in ref.access if affine.terms]:
            yield "the access of '{}'", frozenset().union(*names), None, ref
    for ref in block.refinements:
        if ref.location.devices:
            yield "the location of '{}'", ref.location.names(), None, ref
    yield "the location of the block", block.location.names(), None, None
    for number, statement in enumerate(block.statements):
        if isinstance(statement, LoadIndex):
            yield "load_index", statement.affine.names(), number, None


def check_refinements(scope: CheckedBlock) -> Iterator[Diagnostic]:
    """Ranks, sizes, strides, dtypes and directions agree with the source outside."""
    for ref in scope.block.refinements:
        say = partial(scope.say, about=ref)
        if len(ref.access) != ref.rank:
            yield say(
                f"'{ref.name}' has {len(ref.access)} accesses for {ref.rank} dimensions", "write one for each"
            )
        if any(dim.size < 1 for dim in ref.dims):
            yield say(
                f"'{ref.name}' has a size below 1: {print_refinement(ref)}", "give it an element at least"
            )
        if ref.bank_dim is not None and not 0 <= ref.bank_dim < ref.rank:
            yield say(
                f"'{ref.name}' has no dimension {ref.bank_dim} to run over banks",
                f"its dimensions are 0 to {ref.rank - 1}" if ref.rank else "leave the banks out",
            )
        yield from _check_alloc(scope, ref) if ref.is_alloc else _check_view(scope, ref)


def check_layouts(scope: CheckedBlock) -> Iterator[Diagnostic]:
    """Physical layouts belong to tensors of the user and put each logical element into the allocation, on its own."""
    for ref in scope.block.refinements:
        if ref.layout is None:
            continue
        if ref.role is not Role.USER:
            hint = "a layout is for callers, who know logical elements"
            yield scope.say(f"'{ref.name}' has a layout and is no tensor of the user", hint, about=ref)
        elif (reason := layout_fault(ref.layout, ref.sizes, ref.dtype)) is not None:
            yield scope.say(f"the layout of '{ref.name}': {reason}", about=ref)


def _check_alloc(scope: CheckedBlock, ref: Refinement) -> Iterator[Diagnostic]:
    say = partial(scope.say, about=ref)
    if ref.source:
        yield say(
            f"'{ref.name}' is an allocation and has the source '{ref.source}'",
            "leave the source out, or make it a view: in, out or inout",
        )
    if any(affine.terms or affine.offset for affine in ref.access):
        yield say(f"the allocation '{ref.name}' has an access other than 0", "write 0 for each dimension")
    if ref.offset is not None and (ref.offset < 0 or ref.offset % ref.dtype.bytes):
        yield say(f"'{ref.name}' lies at byte {ref.offset}", f"align it to {ref.dtype.bytes}")
    if ref.pitch is not None and (ref.pitch < ref.unit_bytes or ref.pitch % ref.dtype.bytes):
        yield say(
            f"the copies of '{ref.name}' begin {ref.pitch} bytes apart, and each takes {ref.unit_bytes}",
            f"#pitch is a multiple of {ref.dtype.bytes} that a copy fits into",
        )
    extent = 1
    for dim in sorted((d for d in ref.dims if d.size > 1), key=lambda d: d.stride):
        if dim.stride < extent:
            yield say(f"elements of '{ref.name}' share memory: {print_refinement(ref)}", "widen the strides")
            return
        extent += dim.stride * (dim.size - 1)


def _check_view(scope: CheckedBlock, ref: Refinement) -> Iterator[Diagnostic]:
    say = partial(scope.say, about=ref)
    if ref.role is not None or ref.offset is not None or ref.copies != 1 or ref.pitch is not None:
        words = ", ".join(f"#{word}" for word in ref.words if word not in ref.tags)
        yield say(
            f"the view '{ref.name}' has {words}",
            "allocations alone have a role, an address, copies and a pitch",
        )
    source = scope.outer.get(ref.source)
    if source is None:
        yield say(
            f"'{ref.name}' views '{ref.source}', which the block outside does not have",
            nearest(ref.source, scope.outer),
        )
        return
    if source.rank != ref.rank:
        yield say(
            f"'{ref.name}' has {ref.rank} dimensions, its source {source.rank}",
            "give it as many as its source",
        )
    elif ref.strides != source.strides:
        strides = ", ".join(str(dim.stride) for dim in source.dims)
        yield say(
            f"the strides of '{ref.name}' differ from those of its source",
            f"those of its source are {strides}",
        )
    if source.dtype != ref.dtype:
        yield say(
            f"'{ref.name}' is {ref.dtype}, its source {source.dtype}", "cast in a statement, not in a view"
        )
    if ref.location is not source.location and (
        [device.name for device in ref.location.devices]
        != [device.name for device in source.location.devices]
    ):
        hint = "a view lies where its source lies"
        yield say(
            f"'{ref.name}' is located in {ref.location or 'nowhere'}, its source in {source.location or 'nowhere'}",
            hint,
        )
    if ref.dir.writes and source.dir is Direction.IN:
        yield say(
            f"'{ref.name}' writes '{source.name}', which the block outside only reads", "make that inout"
        )
    if ref.dir.writes and source.role is Role.CONSTANT:
        yield say(f"'{ref.name}' writes '{source.name}', which is a constant", "copy it to a temporary first")
    if ref.dir.reads and source.dir is Direction.OUT:
        yield say(
            f"'{ref.name}' reads '{source.name}', which the block outside only writes", "make that inout"
        )


CHECKS: tuple[Check, ...] = (
    check_names, check_tags, check_indices, check_index_uses, check_refinements, check_layouts, check_directions,
    check_scalars, check_specials, check_deps, check_aggregations,
)  # fmt: skip
