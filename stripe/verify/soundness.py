"""Errors of a single program, exactly: accesses out of bounds or out of a view's box, races, double
assignments, reads of elements without a write. One small check for each property; all findings are collected.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, groupby

from stripe.ir import Affine, Agg, Buffer, Load, Nest, Path, Program, Special, View, aggregations_of
from stripe.ir.content import content_key
from stripe.ir.frozen import replace
from stripe.poly import (
    Access,
    Points,
    PolyLimit,
    accesses,
    check_time,
    element_names,
    implied,
    isl_failures,
    leaf_accesses,
    operation_limit,
    points_of,
    race,
    union,
)
from stripe.verify.interface import LogicalForm, packed_names
from stripe.verify.proof.reaching import Reaching, reading
from stripe.verify.proof.witness import Instance

OPERATIONS = 1_000_000
"""isl's steps for one question: a tenth of a second as a rule, two seconds where floors are tangled."""
WHOLE_PROGRAM_FACTOR = 4
"""Factor on the limit of questions about all statements of a program, or all writes of a buffer."""
_BOUNDS = "make the buffer larger, or leave the point out by a constraint"
_ACCESSES = "the bounds of its accesses"
_READS = "the elements that it reads"
_RACES = {
    True: "aggregate with :add or another, or write each element once",
    False: "write to another buffer, or in a block behind the one that reads",
}
"""Hints for elements that two points write, and that one writes and another one reads."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A violated property, with the element and the point where it is."""

    message: str
    buffer: str
    element: tuple[int, ...] | None
    place: Instance
    unknown: bool = False
    hint: str = ""

    def of_form(self, form: LogicalForm) -> Finding:
        """The finding about the logical form of a program, with its place in the program."""
        return replace(self, place=self.place.of_form(form))

    def __str__(self) -> str:
        element = "" if self.element is None else f"[{', '.join(map(str, self.element))}]"
        kind = "unknown" if self.unknown else "error"
        return f"{kind}: {self.buffer}{element}: {self.message}\n  in {self.place}"


def check_soundness(program: Program, *, operations: int = OPERATIONS) -> list[Finding]:
    """All findings about a structurally valid program. Where isl's limit is hit, a finding says that the answer is
    unknown.
    """
    form = LogicalForm.of(program)
    return [finding.of_form(form) for finding in _check_soundness(form.program, operations)]


def _check_soundness(program: Program, operations: int) -> list[Finding]:
    findings: list[Finding] = []
    reaching = Reaching(program)
    scopes: dict[Path, list[Path]] = {}
    try:
        with isl_failures(), operation_limit(WHOLE_PROGRAM_FACTOR * operations):
            for path in reaching.by_statement:
                scopes.setdefault(reaching.repeated_together(path), []).append(path)
    except PolyLimit as limit:
        place = Instance((0,), program.name)
        return [Finding(str(limit), "the accesses of the program", None, place, unknown=True)]
    for statements in scopes.values():
        findings += check_statements(reaching, statements, operations=operations, final=False)
    findings += _decided(check_outputs(reaching), operations, "the outputs", Instance((0,), program.name))
    return findings


def check_statements(
    reaching: Reaching,
    statements: Sequence[Path],
    reads: Collection[tuple[Path, Buffer]] = (),
    *,
    operations: int = OPERATIONS,
    final: bool = True,
) -> list[Finding]:
    """The findings about the given statements of main (paths of three numbers), and about `reads` of other
    statements.

    `final` includes the outputs that are left unwritten. Where isl needs too long for one property a finding says so,
    and the others are looked at.
    """
    chosen = set(statements)
    findings: list[Finding] = []
    for path in statements:
        bounds = check_bounds(reaching, reaching.by_statement[path])
        findings += _decided(bounds, operations, _ACCESSES, _place(reaching, path))
    scopes = {reaching.repeated_together(path): path for path in reversed(statements)}
    for scope, path in reversed(scopes.items()):
        races = check_races(reaching.below(scope))
        findings += _decided(races, operations, "the order of its accesses", _place(reaching, path))
    for path, below in reaching.by_statement.items():
        touched = [access for access in below if path in chosen or (path, access.buffer) in reads]
        if touched:
            unwritten = _check_reads(reaching, touched)
            place = _place(reaching, path)
            findings += _decided(unwritten, WHOLE_PROGRAM_FACTOR * operations, _READS, place)
    if final:
        place = Instance((0,), reaching.program.name)
        findings += _decided(check_outputs(reaching), operations, "the outputs", place)
    return findings


def _decided(found: Iterable[Finding], operations: int, what: str, place: Instance) -> list[Finding]:
    """The findings of one question, of `what`; where isl takes more than `operations` steps the last one says so."""
    findings: list[Finding] = []
    try:
        with isl_failures(), operation_limit(operations):
            findings.extend(found)
    except PolyLimit as limit:
        findings.append(Finding(str(limit), what, None, place, unknown=True))
    return findings


def _place(reaching: Reaching, path: Path) -> Instance:
    """A statement of main as a whole."""
    return Instance(path, reaching.by_statement[path][0].nest.blocks[-1].name)


def _check_reads(reaching: Reaching, touched: Iterable[Access]) -> Iterator[Finding]:
    for access in touched:
        check_time()
        yield from (check_merge if access.is_write else check_read)(reaching, access)


def check_memory(program: Program, *, operations: int = OPERATIONS) -> list[Finding]:
    """The accesses of a structurally valid program that leave their buffers, as emitted code would make them: of the
    statements of main with equal contents at equal places one is asked about. Where none does, the reads of elements
    that nothing has written."""
    reaching = Reaching(program)
    findings: list[Finding] = []
    for nest, touches in _distinct_statements(reaching):
        place = Instance(nest.path, nest.block.name)
        findings += _decided(check_bounds(reaching, touches), operations, _ACCESSES, place)
    if any(not finding.unknown for finding in findings):
        return findings
    for path, below in reaching.by_statement.items():
        loads = [access for access in below if not access.is_write]
        if loads:
            unwritten = _check_reads(reaching, loads)
            findings += _decided(unwritten, WHOLE_PROGRAM_FACTOR * operations, _READS, _place(reaching, path))
    return findings


def _distinct_statements(reaching: Reaching) -> Iterator[tuple[Nest, Iterable[Access]]]:
    """The statements of the entry and of main, each with the accesses below, without those that repeat another one."""
    seen: set[Hashable] = set()
    for outer in (reaching.root, *(child for _, child in reaching.root.children())):
        for number in range(len(outer.block.statements)):
            yield outer, leaf_accesses(outer, number)
        if outer is reaching.root:
            continue
        for _, nest in outer.children():
            sources = dict.fromkeys(ref.source for ref in nest.block.refinements if ref.source)
            views = [outer.views[name] for name in sources]
            places = [
                (view.origin, view.ref.sizes, reaching.allocations[view.buffer].sizes) for view in views
            ]
            key = (outer.path, content_key(nest.block), *places)
            if key not in seen:
                seen.add(key)
                yield nest, accesses(nest)


def check_bounds(reaching: Reaching, touches: Iterable[Access]) -> Iterator[Finding]:
    """Every access stays inside the allocation and inside the box of each view that it goes through."""
    for access in touches:
        sizes = reaching.allocations[access.buffer].sizes
        found = _outside(access, access.index, sizes)
        if found is not None:
            text = f"{access.kind.value} out of bounds of {_box(sizes)}"
            yield _at(access, found, text, access.index, _BOUNDS)
            continue
        for nest, view in views_of(access):
            relative = tuple(a - b for a, b in zip(access.index, view.origin, strict=True))
            found = _outside(access, relative, view.ref.sizes)
            if found is not None:
                box = f"the box {_box(view.ref.sizes)} of the view '{view.ref.name}'"
                text = f"touched outside {box} in '{nest.block.name}'"
                yield _at(access, found, text, access.index, _BOUNDS)
                break


def views_of(access: Access) -> Iterator[tuple[Nest, View]]:
    """The views that an access goes through, from the leaf's block up to below the allocation."""
    nest, view = access.nest, access.nest.views[access.ref]
    while not view.ref.is_alloc:
        yield nest, view
        assert nest.outer is not None, "the entry has allocations alone"
        nest, view = nest.outer, nest.outer.views[view.ref.source]


def _outside(access: Access, index: Sequence[Affine], sizes: Sequence[int]) -> dict[str, int] | None:
    """A point at which `index` leaves the box; None when there is none."""
    domain = access.nest.domain
    for affine, size, extent in zip(index, sizes, access.sizes, strict=True):
        for side in (affine, size - extent - affine):
            if not implied(side, domain):
                point = points_of(domain).where([-side - 1]).sample()
                if point is not None:
                    return point
    return None


def check_races(touches: Iterable[Access]) -> Iterator[Finding]:
    """No two points of a block touch one element, one of them writing, but for merges by the same aggregation."""
    by_buffer: dict[Buffer, list[Access]] = {}
    for access in touches:
        by_buffer.setdefault(access.buffer, []).append(access)
    for group in by_buffer.values():
        for first, second in _repeated_pairs(group):
            check_time()
            found = race(first, second)
            if found is None:
                continue
            both = first.is_write and second.is_write
            what = "assigned" if both else "read and written"
            other = Instance(second.path, second.nest.block.name, _point(found[1]))
            text = f"{what} at two points without order, also by {other}"
            yield _at(first, found[0], text, first.index, _RACES[both])


def _repeated_pairs(group: Sequence[Access], depth: int = 0) -> Iterator[tuple[Access, Access]]:
    """The pairs of accesses to one buffer that lie in a block, `depth` deep or further inside, of which several points
    share the buffer: all others are ordered.
    """
    nest = group[0].nest
    if len(nest.prefix(depth)) > len(nest.prefix(max(len(group[0].buffer.path) - 1, -1))):
        yield from combinations_with_replacement(group, 2)
        return
    for _, below in groupby(group, key=lambda access: access.path[depth + 1]):
        inside = [access for access in below if access.nest.depth > depth]
        if inside:
            yield from _repeated_pairs(inside, depth + 1)


def check_read(reaching: Reaching, load: Access) -> Iterator[Finding]:
    """Every element read was written. An element of an accumulator that got no contribution may be merged on, by the
    same aggregation, and used for nothing else."""
    start = reaching.start[load.buffer]
    constants = {constant.name for constant in reaching.program.constants}
    if load.buffer in reaching.inputs or (load.buffer.path == (0,) and load.buffer.name in constants):
        return
    if isinstance(load.statement, Load) and start is not Agg.ASSIGN:
        merged_on = aggregations_of(load.nest.block, load.statement.into) <= {start}
        if merged_on:
            return
    yield from _unwritten(reaching, load, "read, but unwritten")


def check_merge(reaching: Reaching, store: Access) -> Iterator[Finding]:
    """A merge into a tensor that comes packed merges with what is there: a hole without a pad holds nothing that may be
    read."""
    if store.agg is Agg.ASSIGN or store.buffer.path != (0,):
        return
    if store.buffer.name in packed_names(reaching.program):
        yield from _unwritten(reaching, store, "merged into, but unwritten")


def _unwritten(reaching: Reaching, access: Access, message: str) -> Iterator[Finding]:
    """The finding about an element that an access reads before any write."""
    read = reaching.read(access)
    touched = reading(access, read)
    missing = touched.range - reaching.written(read)
    if not missing.is_empty:
        sample = touched.into(missing).sample()
        assert sample is not None
        hint = "write the element before, or leave the point out by a constraint"
        yield _at(access, sample[0], message, access.index, hint)


def check_outputs(reaching: Reaching) -> Iterator[Finding]:
    """Every element of every output is written."""
    for ref in reaching.program.outputs:
        buffer = Buffer((0,), ref.name)
        if buffer in reaching.inputs:
            continue
        names = element_names(ref.rank)
        box = Points.build(names, {n: (0, size - 1) for n, size in zip(names, ref.sizes, strict=True)})
        writers = reaching.writers.get(buffer, [])
        missing = (box - union([writer.relation.range for writer in writers], names)).lexmin()
        if missing is not None:
            place = Instance((0,), reaching.program.name)
            message = "this element of an output is not written"
            hint = "write all elements of it, such as 0 by a block before"
            yield Finding(message, ref.name, tuple(missing.values()), place, hint=hint)


def _at(access: Access, point: dict[str, int], message: str, index: Sequence[Affine], hint: str) -> Finding:
    element: tuple[int, ...] | None = None
    if not isinstance(access.statement, Special):
        element = tuple(int(affine.evaluate(point)) for affine in index)
    place = Instance(access.path, access.nest.block.name, _point(point))
    return Finding(message, access.buffer.name, element, place, hint=hint)


def _point(point: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple((name.removesuffix("'"), value) for name, value in point.items())


def _box(sizes: Sequence[int]) -> str:
    return f"({', '.join(map(str, sizes))})"
