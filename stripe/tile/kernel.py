"""Builds one kernel block: views of tensors, the scalars of its body, and fresh names for both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stripe.ir import (
    FIELD_WORDS,
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
    Refinement,
    Special,
    Statement,
    Store,
    Tags,
    fresh,
    is_tag,
    row_major,
)
from stripe.ir.frozen import frozen
from stripe.tile import fold
from stripe.tile.typed import Const, Operand, Origin, Tensor


@frozen
class Scalar:
    """A scalar of the body and its dtype."""

    name: str
    dtype: DType


@dataclass(slots=True)
class Kernel:
    """A block under construction; `tensor_names` maps a tensor to its name in `main`."""

    tensor_names: dict[str, str]
    refinements: list[Refinement] = field(default_factory=list[Refinement])
    statements: list[Statement] = field(default_factory=list[Statement])
    scalars: set[str] = field(default_factory=set[str])

    def view(
        self,
        tensor: Tensor,
        direction: Direction,
        access: Sequence[Affine],
        *,
        agg: Agg = Agg.ASSIGN,
        whole: bool = False,
    ) -> str:
        """The local name of a view of one element (or of all of it); equal views for reading are one."""
        source = self.tensor_names[tensor.name]
        dims = row_major(tensor.sizes)
        if not whole:
            dims = tuple(Dim(1, dim.stride) for dim in dims)
        for ref in self.refinements:
            if ref.dir is direction is Direction.IN and (ref.source, ref.access) == (source, tuple(access)):
                return ref.name
        name = fresh(source, {ref.name for ref in self.refinements})
        self.refinements.append(
            Refinement(name, direction, source, tuple(access), tensor.dtype, dims, agg=agg)
        )
        return name

    def scalar(self, base: str, dtype: DType) -> Scalar:
        """A scalar with a fresh name."""
        name = fresh(base, self.scalars)
        self.scalars.add(name)
        return Scalar(name, dtype)

    def load(self, operand: Operand, access: Sequence[Affine], dtype: DType) -> Scalar:
        """The element of a tensor, or a constant, as `dtype`."""
        if isinstance(operand, Const):
            return self.constant(fold.convert(operand.value, dtype))
        before = len(self.refinements)
        name = self.view(operand, Direction.IN, access)
        if len(self.refinements) > before:
            loaded = self.scalar(name, operand.dtype)
            self.statements.append(Load(loaded.name, name))
        else:
            into = next(s.into for s in self.statements if isinstance(s, Load) and s.ref == name)
            loaded = Scalar(into, operand.dtype)
        return self.cast(loaded, dtype)

    def constant(self, const: Const) -> Scalar:
        """A constant as a scalar."""
        into = self.scalar("c", const.dtype)
        self.statements.append(Constant(into.name, const.value, const.dtype))
        return into

    def cast(self, value: Scalar, dtype: DType) -> Scalar:
        """The scalar as `dtype`; itself when it has that already."""
        if value.dtype == dtype:
            return value
        into = self.scalar(value.name, dtype)
        self.statements.append(Intrinsic(into.name, "cast", (value.name,), dtype))
        return into

    def intrinsic(self, base: str, op: str, inputs: Sequence[Scalar], dtype: DType) -> Scalar:
        """The result of `op`, of dtype `dtype`, as a scalar called like `base`."""
        into = self.scalar(base, dtype)
        self.statements.append(Intrinsic(into.name, op, tuple(value.name for value in inputs)))
        return into

    def load_index(self, base: str, affine: Affine, dtype: DType) -> Scalar:
        """The value of an affine over the indices as a scalar of dtype `dtype`."""
        into = self.scalar(base, dtype)
        self.statements.append(LoadIndex(into.name, affine))
        return into

    def store(self, tensor: Tensor, access: Sequence[Affine], value: Scalar, agg: Agg = Agg.ASSIGN) -> None:
        """Stores a scalar to an element of a tensor, merged by `agg`."""
        name = self.view(tensor, Direction.OUT, access, agg=agg)
        self.statements.append(Store(name, value.name))

    def special(self, op: str, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        """An operation on whole tensors."""
        zeros = {tensor.name: (Affine(),) * len(tensor.sizes) for tensor in (*outputs, *inputs)}
        reads = tuple(self.view(tensor, Direction.IN, zeros[tensor.name], whole=True) for tensor in inputs)
        writes = tuple(self.view(tensor, Direction.OUT, zeros[tensor.name], whole=True) for tensor in outputs)
        self.statements.append(Special(op, writes, reads))

    def block(
        self,
        name: str,
        indices: Iterable[tuple[str, int]],
        constraints: Iterable[Affine],
        words: Iterable[str],
        origin: Origin,
    ) -> Block:
        """The finished block with the user's attributes among its tags."""
        return Block(
            kernel_name(name, origin),
            tuple(Index(index, size) for index, size in indices),
            tuple(map(Constraint, constraints)),
            tuple(self.refinements),
            tuple(self.statements),
            comments=(origin.text,),
            tags=Tags.of("kernel", *words) | attribute_tags(origin),
        )


def kernel_name(name: str, origin: Origin) -> str:
    """The name that `[[pid(…)]]` gives, else `name`."""
    pids = [item.parameters[0] for item in origin.attributes if item.name == "pid" and item.parameters]
    return pids[-1] if pids else name


def attribute_tags(origin: Origin) -> Tags:
    """`[[conv]]` is the tag conv, `[[name(a, b)]]` the tag name with the value "a,b", `[[main]]` the tag main_."""
    tags = Tags()
    for item in origin.attributes:
        word = item.name.replace("'", "_")
        word = f"{word}_" if word in FIELD_WORDS else word
        assert is_tag(word)
        tags = tags.set(word, ",".join(item.parameters)) if item.parameters else tags.add(word)
    return tags


def tile_index_names(names: Iterable[str]) -> dict[str, str]:
    """Names for indices in a block: their own, but for words that the text of Stripe reserves."""
    taken: set[str] = set()
    result: dict[str, str] = {}
    for name in names:
        result[name] = fresh(name, taken)
        taken.add(result[name])
    return result
