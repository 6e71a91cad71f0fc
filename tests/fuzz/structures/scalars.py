"""Bodies of kernels: views of single elements, and scalars of loads, constants and indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

from stripe.ir import (
    DTYPES,
    Affine,
    Agg,
    Block,
    Constant,
    Constraint,
    Direction,
    DType,
    Index,
    Intrinsic,
    Load,
    LoadIndex,
    Refinement,
    Statement,
    Store,
    Tags,
    fresh,
)
from tests.fuzz.structures.draft import Seen

OPERATIONS = ("add", "add", "sub", "mul", "max", "min")


@dataclass
class Body:
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
            operands.append(self.constant(random.randint(0, 4), dtype))
        result, *others = operands
        for other in others:
            made = self.scalar(dtype)
            self.code.append(Intrinsic(made, random.choice(OPERATIONS), (result, other)))
            result = made
        return result

    def constant(self, number: bool | int | float, dtype: DType) -> str:
        made = self.scalar(dtype)
        self.code.append(Constant(made, float(number) if dtype.is_float else number, dtype))
        return made

    def cast(self, name: str, dtype: DType) -> str:
        made = self.scalar(dtype)
        self.code.append(Intrinsic(made, "cast", (name,), dtype))
        return made

    def block(self, name: str, constraints: tuple[Constraint, ...], tags: Tags) -> Block:
        return Block(name, self.indices, constraints, tuple(self.refs), tuple(self.code), tags=tags)
