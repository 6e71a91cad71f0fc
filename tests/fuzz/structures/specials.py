"""Specials in loops, on parts of buffers and in place, of several dtypes, between kernels."""

from __future__ import annotations

from dataclasses import replace

from stripe.ir import DTYPES, Affine, Block, Direction, DType, Index, Refinement, Role, Special, Tags
from tests.fuzz.structures.draft import KINDS, Draft, Group, Scope, Seen, few_points
from tests.fuzz.structures.kernels import kernel

_INDICES = ("i32", "i32", "i64", "i8", "u8", "i16", "u32", "u64")
_DATA = (*KINDS, "bf16", "i64", "u32", "fp64")


def special(draft: Draft, scope: Scope) -> Group:
    """A gather, a scatter or a step of the generator, with its operands; later statements see the results."""
    return draft.random.choice((_gather, _gather, _scatter, _scatter, _prng_step))(draft, scope)


def _gather(draft: Draft, scope: Scope) -> Group:
    random = draft.random
    made = _Operands(draft, scope)
    dtype, columns = _random_dtype(draft), random.choice(((), (random.randint(1, 3),)))
    rows, count = random.randint(1, 4), random.randint(1, 3)
    by_columns = bool(columns) and random.random() < 0.4
    if not by_columns and random.random() < 0.25:  # in place
        index = made.read("GI", DTYPES[random.choice(_INDICES)], (rows,), along=0)
        data = made.read("GD", dtype, (rows, *columns), along=0, computed=True)
        return made.run("gather", [data], [data, index])
    along = 1 if by_columns else 0
    data = made.read("GD", dtype, (rows, *columns), along=1 if by_columns else random.choice((None, 0)))
    index = made.read("GI", DTYPES[random.choice(_INDICES)], (count,), along=None if by_columns else 0)
    out = made.written("G", dtype, (count, *columns), along)
    return made.run("gather", [out], [data, index])


def _scatter(draft: Draft, scope: Scope) -> Group:
    random = draft.random
    made = _Operands(draft, scope)
    dtype, columns = _random_dtype(draft), random.choice(((), (random.randint(1, 3),)))
    rows, count = random.randint(1, 4), random.randint(1, 4)
    by_columns = bool(columns) and random.random() < 0.4
    index = made.read("GI", DTYPES[random.choice(_INDICES)], (count,), along=None if by_columns else 0)
    updates = made.read("GD", dtype, (count, *columns), along=1 if by_columns else 0)
    out = updates  # in place
    if rows != count or random.random() < 0.6:
        out = made.written("G", dtype, (rows, *columns), 1 if by_columns else 0)
    return made.run("scatter", [out], [updates, index, random.choice((updates, index))])


def _prng_step(draft: Draft, scope: Scope) -> Group:
    random = draft.random
    made = _Operands(draft, scope)
    sizes = (3, random.randint(1, 3))
    state = made.read("GS", DTYPES["u32"], sizes, along=1, computed=False)
    after = state
    if draft.schedulable or random.random() < 0.6:
        after = made.written("GN", DTYPES["u32"], sizes, 1)
    value = made.written("G", DTYPES["fp32"], (random.randint(1, 5), *random.choice(((), (2,)))), 0)
    return made.run("prng_step", [after, value], [state])


def _random_dtype(draft: Draft) -> DType:
    return DTYPES[draft.random.choice(_DATA)]


class _Operands:
    """The operands of one special in a loop: buffers, and views of the part that one run of it takes."""

    def __init__(self, draft: Draft, scope: Scope) -> None:
        self.draft, self.scope, self.group = draft, scope, Group(draft)
        self.loop = Index("r", draft.random.choice((1, 1, 2, 3)))
        self.views: list[Refinement] = []

    def read(
        self,
        name: str,
        dtype: DType,
        sizes: tuple[int, ...],
        *,
        along: int | None,
        computed: bool | None = None,
    ) -> Refinement:
        """An input of the program, or what a kernel computes; the loop runs along one dimension."""
        random = self.draft.random
        computed = random.random() < 0.4 if computed is None else computed
        role = Role.TEMPORARY if computed else Role.USER
        seen = self._buffer(name, dtype, sizes, along, role, random.choice((0, 0, 1, 2)))
        if computed and (made := kernel(self.draft, self.scope | {name: seen}, seen)) is not None:
            self.group.statements.append(made)
        return self._view(seen, sizes, along)

    def written(self, name: str, dtype: DType, sizes: tuple[int, ...], along: int) -> Refinement:
        """A temporary, of which main may see a part, or an output."""
        random = self.draft.random
        role = random.choice((Role.TEMPORARY, Role.TEMPORARY, Role.USER))
        margin = 0 if role is Role.USER else random.choice((0, 0, 1, 2))
        seen = self._buffer(name, dtype, sizes, along, role, margin)
        self.group.seen[name] = replace(seen, reads=not (self.draft.schedulable and role is Role.USER))
        return self._view(seen, sizes, along)

    def _buffer(
        self, name: str, dtype: DType, sizes: tuple[int, ...], along: int | None, role: Role, margin: int
    ) -> Seen:
        whole = list(sizes)
        if along is not None:
            whole[along] *= self.loop.range
        return self.group.buffer(name, dtype, tuple(whole), role=role, along=along or 0, margin=margin)

    def _view(self, seen: Seen, sizes: tuple[int, ...], along: int | None) -> Refinement:
        access = [Affine()] * len(sizes)
        if along is not None and self.loop.range > 1:
            access[along] = Affine.var("r") * sizes[along]
        dims = tuple(replace(dim, size=size) for dim, size in zip(seen.dims, sizes, strict=True))
        view = Refinement(seen.name, Direction.IN, seen.name, tuple(access), seen.dtype, dims)
        self.views.append(view)
        return view

    def run(self, op: str, outputs: list[Refinement], inputs: list[Refinement]) -> Group:
        """The loop around the special, or the special in main."""
        draft, group = self.draft, self.group
        statement = Special(op, tuple(ref.name for ref in outputs), tuple(ref.name for ref in inputs))
        indices = (self.loop,) if self.loop.range > 1 else ()
        if not indices and draft.random.random() < 0.3:
            group.statements.append(statement)
            draft.defined.update(statement.outputs)
            return group
        constraints = few_points(draft, indices) if draft.random.random() < 0.1 else ()
        views = tuple(
            replace(ref, dir=Direction.INOUT if ref in inputs else Direction.OUT) if ref in outputs else ref
            for ref in self.views
        )
        name = f"{op}_{next(draft.numbers)}"
        group.statements.append(
            Block(name, indices, constraints, views, (statement,), tags=Tags.of("kernel"))
        )
        if not constraints:
            draft.defined.update(statement.outputs)
        return group
