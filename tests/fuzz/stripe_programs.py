"""Random Stripe programs of structures that lowering never makes, but people and passes do.

Several kernels assign one buffer and merge into it, in turns, with reads between; a main of several points; allocations
in nested blocks; several names of one buffer, and names of names; updates in place, also of tensors that are input and
output; kernels with several stores; narrow dtypes; ranges of 10^9 and more, of which constraints leave a few points.
Programs that do what their meaning forbids are drawn again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random

from hypothesis import strategies as st

from stripe.exec.data import random_inputs
from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.ir import (
    DTYPES,
    Affine,
    Agg,
    Block,
    Constant,
    Constraint,
    Dim,
    Direction,
    DType,
    Index,
    Intrinsic,
    Load,
    LoadIndex,
    Program,
    Refinement,
    Role,
    Statement,
    Store,
    Tags,
    fresh,
    map_statements,
    refs_used,
    verify_structural,
    with_directions,
)
from stripe.verify.program import check_program

KINDS = ("i32", "i32", "i32", "i8", "u8", "i16", "fp32", "fp16")
MERGES = (Agg.ADD, Agg.ADD, Agg.MAX, Agg.MIN, Agg.MUL)
OPERATIONS = ("add", "add", "sub", "mul", "max", "min")
ATTEMPTS = 40
VAST = (10**9, 3 * 10**9, 2**32, 10**12, 10**18)


@dataclass(frozen=True, slots=True)
class Seen:
    """A buffer as a block sees it. Where the points of a block outside share elements, they all read, or all merge."""

    name: str
    dims: tuple[Dim, ...]
    dtype: DType
    agg: Agg
    reads: bool = True
    writes: bool = True
    merges: bool = True

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(dim.size for dim in self.dims)


Scope = dict[str, Seen]


@st.composite
def stripe_programs(draw: st.DrawFn, *, schedulable: bool = False) -> Program:
    """A valid program. One number decides about all of it, as hypothesis keeps few choices of one example. Schedules
    refuse a main of several points, two names in main of what is written, and inputs that are outputs: `schedulable`
    has none of them.
    """
    random = Random(draw(st.integers(0, 2**63)))
    for _ in range(ATTEMPTS):
        program = _Draft(random, schedulable).program()
        if program is not None and is_valid(program):
            return program
    raise AssertionError("no valid program")


def is_valid(program: Program) -> bool:
    """Whether the program has a meaning: no race, nothing undefined is read, no element assigned twice."""
    if not program.outputs or verify_structural(program):
        return False
    try:
        interpret(program, random_inputs(program, 0))
    except ExecutionError:
        return False
    return not check_program(program)


@dataclass
class _Draft:
    """One program on its way; `defined` has the buffers of which every element in sight was written."""

    random: Random
    schedulable: bool = False
    numbers: Iterator[int] = field(default_factory=count)
    defined: set[str] = field(default_factory=set[str])

    def program(self) -> Program | None:
        random = self.random
        kind = DTYPES[random.choice(KINDS)]
        points = 1 if self.schedulable else random.choice((1, 1, 1, 2, 3))
        rank = {name: random.choice((1, 1, 2)) for name in "XYTUVOP"}
        size = random.choice((2, 3, 4, 5))
        sizes = {
            name: tuple(random.choice((size, size, size, 1, 3, 6)) for _ in range(n))
            for name, n in rank.items()
        }
        allocs: list[Refinement] = []
        scope: Scope = {}
        views: list[Refinement] = []
        for name in "XYTUVOP":
            split = points > 1 and random.random() < 0.75
            whole = (points, *sizes[name]) if split else sizes[name]
            dtype = DTYPES[random.choice(KINDS)] if random.random() < 0.1 else kind
            role = Role.TEMPORARY if name in "TUV" else Role.USER
            ref = Refinement.alloc(name, dtype, whole, role=role)
            dims = (replace(ref.dims[0], size=1), *ref.dims[1:]) if split else ref.dims
            access = (Affine.var("t"), *ref.access[1:]) if split else ref.access
            writes = name not in "XY"
            merges = writes and (split or points == 1 or random.random() < 0.6)
            free = split or points == 1
            reads = (free or not merges) and not (self.schedulable and role is Role.USER and writes)
            seen = Seen(name, dims, dtype, random.choice(MERGES), reads, writes and free, merges)
            scope[name] = seen
            allocs.append(ref)
            views.append(
                Refinement(
                    name, Direction.INOUT if writes else Direction.IN, name, access, dtype, dims, seen.agg
                )
            )
            if not writes or (name in "OP" and not self.schedulable and random.random() < 0.3):
                self.defined.add(name)
        local, more = self.locals(scope)
        scope |= local
        statements = (*self.statements(scope, random.randint(3, 6), 0), *self.results(scope))
        indices = (Index("t", points),) if points > 1 else ()
        main = Block("main", indices, (), (*views, *more), statements, is_main=True)
        main = self.varied(main)
        main = map_statements(main, _as_kernel)
        main = with_directions(_without_idle(main))
        used = {ref.source for ref in main.refinements}
        entry = tuple(ref for ref in allocs if ref.name in used)
        return Program(Block("fuzz", (), (), entry, (main,), tags=Tags.of("program")))

    def results(self, scope: Scope) -> Iterator[Block]:
        """Outputs of what the temporaries hold in the end, as nothing else tells of them."""
        written = {name: seen for name, seen in scope.items() if name not in "XYOP" and name in self.defined}
        for name in "OP":
            if written and self.random.random() < 0.7:
                block = self.kernel(written | {name: replace(scope[name], reads=False)}, scope[name])
                if block is not None:
                    yield block

    def locals(self, scope: Scope) -> tuple[Scope, list[Refinement]]:
        """Some allocations of a block."""
        random = self.random
        found: Scope = {}
        refs: list[Refinement] = []
        for _ in range(random.choice((0, 0, 1, 1, 2))):
            name = fresh("L", {*scope, *found})
            dtype = random.choice(list(scope.values())).dtype
            sizes = tuple(random.choice((1, 2, 3, 4)) for _ in range(random.choice((1, 1, 2))))
            ref = Refinement.alloc(name, dtype, sizes)
            found[name] = Seen(name, ref.dims, dtype, random.choice(MERGES))
            refs.append(ref)
            self.defined.discard(name)
        return found, refs

    def statements(self, scope: Scope, wanted: int, depth: int) -> tuple[Statement, ...]:
        random = self.random
        found: list[Statement] = []
        for _ in range(wanted):
            nested = depth < 2 and random.random() < 0.4
            block = self.nest(scope, depth) if nested else self.kernel(scope)
            if block is not None:
                found.append(block)
        return tuple(found)

    def nest(self, scope: Scope, depth: int) -> Block | None:
        """A block around others: it sees some buffers in parts by its indices, and the others whole."""
        random = self.random
        indices = tuple(
            Index(name, random.choice((2, 3, 4, 5))) for name in ("x", "y")[: random.choice((0, 1, 1, 2))]
        )
        inner: Scope = {}
        refs: list[Refinement] = []
        for seen in random.sample(list(scope.values()), min(len(scope), random.randint(2, 4))):
            access = [Affine()] * len(seen.dims)
            sizes = list(seen.sizes)
            left = {index.name: index.range for index in indices}
            for dim in random.sample(range(len(sizes)), len(sizes)):
                fitting = [name for name, size in left.items() if size <= sizes[dim]]
                if fitting and random.random() < 0.8:
                    name = random.choice(fitting)
                    part = sizes[dim] // left.pop(name)
                    access[dim] = Affine.var(name) * part
                    sizes[dim] = part
            free = not left
            merges = seen.merges and (free or random.random() < 0.6)
            dims = tuple(replace(dim, size=size) for dim, size in zip(seen.dims, sizes, strict=True))
            inner[seen.name] = replace(
                seen,
                dims=dims,
                writes=seen.writes and free,
                merges=merges,
                reads=seen.reads and (free or not merges),
            )
            direction = Direction.INOUT if seen.writes or seen.merges else Direction.IN
            refs.append(
                Refinement(seen.name, direction, seen.name, tuple(access), seen.dtype, dims, seen.agg)
            )
        local, more = self.locals(inner)
        if not any(seen.merges or seen.writes for seen in inner.values()):
            return None
        statements = self.statements(inner | local, random.randint(1, 4), depth + 1)
        if not statements:
            return None
        constraints = self.constraints(indices) if random.random() < 0.15 else ()
        tags = Tags.of(*random.choice((("outer",), ("kernel",), ("tile", "outer"), ())))
        return Block(
            f"nest_{next(self.numbers)}", indices, constraints, (*refs, *more), statements, tags=tags
        )

    def constraints(self, indices: tuple[Index, ...]) -> tuple[Constraint, ...]:
        if not indices:
            return ()
        index = self.random.choice(indices)
        last = -1 if self.random.random() < 0.1 else self.random.randint(1, max(1, index.range - 1))
        bound = Affine(last) - Affine.var(index.name)
        return (Constraint(bound),)

    def kernel(self, scope: Scope, target: Seen | None = None) -> Block | None:
        """A kernel that assigns, merges, updates in place, or stores several times."""
        random = self.random
        any_target = target is None
        targets = list(scope.values()) if target is None else [target]
        targets = [seen for seen in targets if seen.writes or seen.merges]
        if not targets:
            return None
        target = random.choice(targets)
        assigns = target.writes and (target.name not in self.defined or random.random() < 0.5)
        if target.merges and not target.writes:
            assigns = False
        indices = [Index(f"i{dim}", size) for dim, size in enumerate(target.sizes) if size > 1]
        if not assigns and random.random() < 0.6:
            indices.append(Index("k", random.choice((2, 3, 4))))
        body = _Body(random, tuple(indices), scope, self.defined)
        access = [Affine.var(f"i{dim}") if size > 1 else Affine() for dim, size in enumerate(target.sizes)]
        constraints: tuple[Constraint, ...] = ()
        if random.random() < 0.2:
            constraints = self.constraints(tuple(indices))
        complete = not constraints
        if assigns and target.reads and target.name in self.defined and random.random() < 0.4:
            body.read(target, access)  # in place
        for _ in range(random.choice((0, 1, 1, 2)) if any_target else 2):
            body.read_some(not_of=target.name)
        agg = Agg.ASSIGN if assigns else target.agg
        even = assigns and complete and len(target.sizes) == 1 and target.sizes[0] % 2 == 0 and not body.code
        if even and random.random() < 0.3:
            body.indices = (Index("i0", target.sizes[0] // 2),)
            body.store(target, [access[0] * 2], agg)
            body.store(target, [access[0] * 2 + 1], agg)
        else:
            body.store(target, access, agg)
            if random.random() < 0.25:
                self.second_store(body, target, access, assigns)
        if complete:
            self.defined.add(target.name)
        tags = random.choice((("kernel",), ("kernel",), ("kernel", "init"), ("kernel", "eltwise"), ()))
        if not assigns:
            tags = (*tags, "contraction", f"agg_op_{agg.value}")
        return body.block(f"kernel_{next(self.numbers)}", constraints, Tags.of(*tags))

    def second_store(self, body: _Body, target: Seen, access: list[Affine], assigns: bool) -> None:
        """The same element again, by another name and its aggregation, or an element of another buffer."""
        if target.merges and self.random.random() < 0.5:
            body.store(target, access, target.agg)
            return
        others = [seen for seen in body.scope.values() if seen.sizes == target.sizes and seen is not target]
        if not others:
            return
        other = self.random.choice(others)
        if other.name in {ref.source for ref in body.refs}:
            return
        if other.writes and assigns:
            body.store(other, access, Agg.ASSIGN)
        elif other.merges:
            body.store(other, access, other.agg)

    def varied(self, main: Block) -> Block:
        """The same with more names, in blocks around blocks, with points under vast ranges."""
        random = self.random
        changes: list[tuple[float, Callable[[Block], Block]]] = [
            (0.25, self.around), (0.25, self.in_another_frame), (0.03, self.vast),
        ]  # fmt: skip

        def change(statement: Statement) -> Statement:
            if isinstance(statement, Block):
                for chance, rewrite in changes:
                    if random.random() < chance:
                        statement = rewrite(statement)
            return statement

        def through(block: Block) -> Block:
            block = map_statements(block, lambda s: through(s) if isinstance(s, Block) else s)
            return map_statements(block, change)

        main = through(main)
        return main if self.schedulable or random.random() < 0.5 else self.twins(main)

    def around(self, block: Block) -> Block:
        """A block around this one: it has each view under a name of its own, and runs over an index of it."""
        random = self.random
        moved = random.choice((*block.iterated, None))
        over = () if moved is None else (Index("w", moved.range),)
        indices = tuple(
            replace(i, range=1, affine=Affine.var("w")) if i is moved else i for i in block.indices
        )
        outer: list[Refinement] = []
        inner: list[Refinement] = []
        for ref in block.refinements:
            if ref.is_alloc:
                inner.append(ref)
                continue
            name = fresh(f"{ref.source}_w" if random.random() < 0.7 else ref.source, {r.name for r in outer})
            if moved is not None and random.random() < 0.5:  # what the index adds is in the view outside
                access = tuple(Affine.var("w") * a.coeff(moved.name) for a in ref.access)
                rest = tuple(a - Affine.var(moved.name) * a.coeff(moved.name) for a in ref.access)
            else:
                access, rest = (Affine(),) * ref.rank, ref.access
            boxes = [a.bounds(block.intervals({"w": (0, moved.range - 1 if moved else 0)})) for a in rest]
            dims = tuple(
                Dim(high + dim.size, dim.stride) for (_, high), dim in zip(boxes, ref.dims, strict=True)
            )
            if any(low < 0 for low, _ in boxes):
                return block
            outer.append(replace(ref, name=name, access=access, dims=dims))
            inner.append(replace(ref, source=name, access=rest))
        bare = replace(block, indices=indices, refinements=tuple(inner), tags=block.tags.add("inner"))
        return Block(f"{block.name}_w", over, (), tuple(outer), (bare,), tags=block.tags.add("outer"))

    def in_another_frame(self, block: Block) -> Block:
        """An index counts backwards or from another number: its values are others, its points the same."""
        if not block.iterated:
            return block
        index = self.random.choice(block.iterated)
        if self.random.random() < 0.5:
            return _with_values(block, index, index.range, Affine(index.range - 1) - Affine.var(index.name))
        shift = self.random.randint(1, 3)
        block = _with_values(block, index, index.range + shift, Affine.var(index.name) - shift)
        more = Constraint(Affine.var(index.name) - shift)
        return replace(block, constraints=(*block.constraints, more))

    def vast(self, block: Block) -> Block:
        """An index has a range of 10^9 and more; its values are the first ones, or lie far out."""
        if not block.iterated:
            return block
        index = self.random.choice(block.iterated)
        size = self.random.choice(VAST)
        first = self.random.choice((0, size // 2, size - index.range))
        block = _with_values(block, index, size, Affine.var(index.name) - first)
        low = [Constraint(Affine.var(index.name) - first)] if first else []
        high = Constraint(Affine(first + index.range - 1) - Affine.var(index.name))
        return replace(block, constraints=(*block.constraints, *low, high))

    def twins(self, main: Block) -> Block:
        """Main has further names of some buffers, of all or of a part of them, and blocks use one or the other."""
        random = self.random
        more: list[Refinement] = []
        known = {ref.name: ref for ref in main.refinements}

        def through(block: Block) -> Block:
            refs: list[Refinement] = []
            for ref in block.refinements:
                outside = known.get(ref.source)
                if outside is None or outside.is_alloc or random.random() < 0.5:
                    refs.append(ref)
                    continue
                low = [a.bounds(block.intervals())[0] for a in ref.access]
                first = [random.choice((0, max(0, n))) for n in low]
                if any(n < 0 for n in low):
                    refs.append(ref)
                    continue
                name = fresh(f"{ref.source}_t", {*known, *(r.name for r in more)})
                twin = replace(
                    outside, name=name, access=tuple(a + n for a, n in zip(outside.access, first, strict=True)),
                    dims=tuple(replace(d, size=d.size - n) for d, n in zip(outside.dims, first, strict=True)),
                )  # fmt: skip
                more.append(twin)
                access = tuple(a - n for a, n in zip(ref.access, first, strict=True))
                refs.append(replace(ref, source=name, access=access))
            return replace(block, refinements=tuple(refs))

        main = map_statements(main, lambda s: through(s) if isinstance(s, Block) else s)
        return replace(main, refinements=(*main.refinements, *more))


@dataclass
class _Body:
    """A kernel on its way: its views and its scalars."""

    random: Random
    indices: tuple[Index, ...]
    scope: Mapping[str, Seen]
    defined: set[str]
    refs: list[Refinement] = field(default_factory=list[Refinement])
    code: list[Statement] = field(default_factory=list[Statement])
    values: list[tuple[str, DType]] = field(default_factory=list[tuple[str, DType]])

    def view(
        self, seen: Seen, direction: Direction, access: list[Affine], agg: Agg = Agg.ASSIGN
    ) -> Refinement:
        name = fresh(seen.name, {ref.name for ref in self.refs})
        dims = tuple(replace(dim, size=1) for dim in seen.dims)
        ref = Refinement(name, direction, seen.name, tuple(access), seen.dtype, dims, agg)
        self.refs.append(ref)
        return ref

    def scalar(self, dtype: DType) -> str:
        self.values.append((f"s{len(self.values)}", dtype))
        return self.values[-1][0]

    def read(self, seen: Seen, access: list[Affine]) -> None:
        ref = self.view(seen, Direction.IN, access)
        self.code.append(Load(self.scalar(seen.dtype), ref.name))

    def read_some(self, *, not_of: str) -> None:
        """Loads a buffer that was written, at any element."""
        fitting = [
            seen for seen in self.scope.values()
            if seen.reads and seen.name in self.defined and (seen.name != not_of or self.random.random() < 0.05)
        ]  # fmt: skip
        if fitting:
            seen = self.random.choice(fitting)
            self.read(seen, [self.place(size) for size in seen.sizes])

    def place(self, size: int) -> Affine:
        """A coordinate below `size` over the indices."""
        random = self.random
        intervals = {index.name: (0, index.range - 1) for index in self.indices}
        names = list(intervals)
        forms: list[Affine] = [Affine(random.randrange(size))]
        for name in names:
            var = Affine.var(name)
            forms += [
                var,
                var,
                var,
                var + random.randint(0, 2),
                Affine(size - 1) - var,
                var.mod(size),
                var * 2,
            ]
            forms += [var.floordiv(2), var + Affine.var(random.choice(names))]
        fitting = [
            form for form in forms if form.bounds(intervals)[0] >= 0 and form.bounds(intervals)[1] < size
        ]
        return random.choice(fitting)

    def store(self, seen: Seen, access: list[Affine], agg: Agg) -> None:
        value = self.value(seen.dtype)
        ref = self.view(seen, Direction.OUT, access, agg)
        self.code.append(Store(ref.name, value))

    def value(self, dtype: DType) -> str:
        """A scalar of `dtype` made of what was loaded, constants and values of indices."""
        random = self.random
        operands: list[str] = []
        for name, found in list(self.values):
            if not operands or random.random() < 0.8:
                operands.append(name if found is dtype else self.cast(name, dtype))
        if self.indices and random.random() < 0.25:
            at = Affine.var(random.choice(self.indices).name)
            name = self.scalar(DTYPES["i32"])
            self.code.append(LoadIndex(name, at + random.randint(-1, 2)))
            operands.append(self.cast(name, dtype))
        if not operands or random.random() < 0.4:
            name = self.scalar(dtype)
            number = random.randint(0, 4)
            self.code.append(Constant(name, float(number) if dtype.is_float else number, dtype))
            operands.append(name)
        result, *others = operands
        for other in others:
            made = self.scalar(dtype)
            self.code.append(Intrinsic(made, random.choice(OPERATIONS), (result, other)))
            result = made
        return result

    def cast(self, name: str, dtype: DType) -> str:
        made = self.scalar(dtype)
        self.code.append(Intrinsic(made, "cast", (name,), dtype))
        return made

    def block(self, name: str, constraints: tuple[Constraint, ...], tags: Tags) -> Block:
        return Block(name, self.indices, constraints, tuple(self.refs), tuple(self.code), tags=tags)


def _with_values(block: Block, index: Index, size: int, value: Affine) -> Block:
    """The block with another range of an index, whose former values are `value`."""
    change = {index.name: value}
    indices = (
        replace(i, range=size) if i is index else replace(i, affine=None if i.affine is None else i.affine)
        for i in block.indices
    )
    refs = (replace(ref, access=tuple(a.subs(change) for a in ref.access)) for ref in block.refinements)

    def inside(statement: Statement) -> Statement:
        if isinstance(statement, LoadIndex):
            return replace(statement, affine=statement.affine.subs(change))
        if isinstance(statement, Block):
            passed = (
                replace(i, affine=i.affine.subs(change)) if i.affine is not None else i
                for i in statement.indices
            )
            return replace(statement, indices=tuple(passed))
        return statement

    return replace(
        block,
        indices=tuple(indices),
        constraints=tuple(Constraint(c.affine.subs(change)) for c in block.constraints),
        refinements=tuple(refs),
        statements=tuple(map(inside, block.statements)),
    )


def _as_kernel(statement: Statement) -> Statement:
    return (
        replace(statement, tags=statement.tags.add("kernel")) if isinstance(statement, Block) else statement
    )


def _without_idle(block: Block) -> Block:
    """The block without the views that nothing in it uses."""
    block = map_statements(block, lambda s: _without_idle(s) if isinstance(s, Block) else s)
    used = {name for statement in block.statements for name in refs_used(statement)}
    return replace(block, refinements=tuple(ref for ref in block.refinements if ref.name in used))
