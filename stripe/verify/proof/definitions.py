"""Definitions of the elements of a buffer, as terms over arrays that both programs know.

A definition has values (elements that one write defines) and merges (elements of several
contributions by one aggregation). Copies vanish, element-wise operations are inlined, and a merge of partial merges
of the same aggregation becomes one merge: these are the rewrites that keep the meaning without a look at the other
program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from stripe.ir import (
    Agg,
    Buffer,
    Constant,
    DType,
    Intrinsic,
    Load,
    LoadIndex,
    Nest,
    Path,
    Special,
    Store,
)
from stripe.ir.frozen import replace
from stripe.poly import Access, Points, Relation, check_time, points_of, union
from stripe.verify.assumptions import Assumption
from stripe.verify.proof.computed import constant_terms
from stripe.verify.proof.contributions import (
    FROM_IDENTITY,
    Contribution,
    Definition,
    Merge,
    Value,
    applied,
    composed,
    first_only,
    one_each_or_merged,
    split_by_number,
)
from stripe.verify.proof.reaching import Reaching, key_names, operand_names, reading
from stripe.verify.proof.rules import PLAIN, Rules, Unprovable, remembered
from stripe.verify.proof.terms import (
    Called,
    IndexValue,
    Leaf,
    Made,
    Read,
    Reduced,
    Term,
    Undefined,
    chain_agg,
    number,
)
from stripe.verify.proof.vanishing import NonFiniteTerms, vanishes


class Definitions:
    """The definitions of one program. `known` labels the buffers of the entry whose final contents count as known
    arrays.
    """

    def __init__(self, reaching: Reaching, known: dict[Buffer, str], rules: Rules = PLAIN) -> None:
        self.reaching = reaching
        self.known = known
        self.rules = rules
        self.relied: set[Assumption] = set()
        """The assumptions behind the definitions made so far."""
        self._definitions: dict[Read, Definition | Unprovable] = {}
        self._chains: dict[Buffer, DType] = {}
        self._nonfinite = NonFiniteTerms(self._merged_terms)
        self._scalars: dict[tuple[Path, str], list[Value]] = {}

    def definition(self, read: Read) -> Definition:
        """The definition of the elements that a load reads: the last assignments before it, and the merges after these.
        Raises Unprovable for an element assigned twice, and for several aggregations of one buffer."""
        return remembered(self._definitions, read, lambda: self._defined_by_writes(read))

    def _merged_terms(self, leaf: Made) -> Iterator[tuple[Agg, list[Term]]]:
        """The terms of which a reduction or the output of a special is made, by how they come together."""
        if isinstance(leaf, Called):
            yield from ((Agg.ASSIGN, [v.term for v in values]) for _, values in self.operands(leaf.path))
            return
        for merge in self.definition(leaf.read).merges:
            yield merge.agg, [contribution.term for contribution in merge.contributions]

    def _defined_by_writes(self, read: Read) -> Definition:
        check_time()
        keys = key_names(read)
        assigned = Points.empty(keys)
        values: list[Contribution] = []
        merged: list[tuple[Access, Relation]] = []
        visible = set(read.writers)
        for writer in reversed([w for w in self.reaching.writers.get(read.buffer, []) if w.path in visible]):
            points = self.reaching.writing(writer, read).outside(assigned)
            if points.is_empty:
                continue
            if writer.agg is not Agg.ASSIGN:
                merged.append((writer, points))
                continue
            if not points.single_valued:
                raise Unprovable(f"an element of '{read.buffer}' is assigned at two points")
            assigned = (assigned | points.domain).coalesced()
            values += self._stored(writer, points)
        merges: list[Merge] = []
        if merged:
            aggs = {writer.agg for writer, _ in merged}
            if len(aggs) > 1:
                raise Unprovable(f"'{read.buffer}' is written with several aggregations")
            values += self._initial_values(read, assigned, merged)
            singles, merges, values = self._merge(keys, merged, values)
            values += singles
        covered = union([c.points.domain for c in values] + [g.keys for g in merges], keys).coalesced()
        if not read.prefix and read.buffer in self.reaching.inputs:
            # an input keeps the elements that no statement writes: as an output it returns them
            sizes = self.reaching.allocations[read.buffer].sizes
            box = Points.build(keys, {name: (0, size - 1) for name, size in zip(keys, sizes, strict=True)})
            rest = Relation.identity(box - covered, "'")
            if not rest.is_empty:
                kept = self._initial(read, rest.reversed())
                values += [Contribution(value.term, rest, value.at, None) for value in kept]
                covered = covered | rest.domain
        return Definition(keys, tuple(values), tuple(merges), covered)

    def _stored(self, writer: Access, points: Relation) -> list[Contribution]:
        """The contributions of a write, at `points`, to the keys from which these lead."""
        found: list[Contribution] = []
        for value in self.stored(writer):
            here = points.into(value.at.domain)
            if not here.is_empty:
                found.append(Contribution(value.term, here, value.at, writer))
        return found

    def _initial_values(
        self, read: Read, assigned: Points, merged: list[tuple[Access, Relation]]
    ) -> list[Contribution]:
        """The contents of inputs, of constants and of packed tensors before the first merge: a base, as an assigned
        value is."""
        buffer = read.buffer
        given = buffer in self.reaching.inputs or self.reaching.start[buffer] is Agg.ASSIGN
        if not given and constant_terms(self.reaching.program, buffer, self.dtype(buffer)) is None:
            return []
        found: list[Contribution] = []
        for writer, points in merged:
            base = points.outside(assigned).first()
            assigned = assigned | base.domain
            if not base.is_empty:
                found += [
                    Contribution(p.term, base, p.at, writer) for p in self._initial(read, base.reversed())
                ]
        return found

    def _merge(
        self, keys: tuple[str, ...], merged: list[tuple[Access, Relation]], assigned: list[Contribution]
    ) -> tuple[list[Contribution], list[Merge], list[Contribution]]:
        """(elements with one contribution, the merge of the others, assigned elements without merged contributions)."""
        agg, dtype = merged[0][0].agg, self.dtype(merged[0][0].buffer)
        # Stored values are contributions; a stored merge by the same aggregation hands on its own.
        stored = [contribution for writer, points in merged for contribution in self._stored(writer, points)]
        contributions: list[Contribution] = []
        for contribution in stored:
            contributions += self._flattened(contribution, agg, dtype)
        # Merges start from the value assigned before, which is a contribution there; elsewhere it is the definition.
        touched = union((points.domain for _, points in merged), keys).coalesced()
        left: list[Contribution] = []
        based = Points.empty(keys)
        for contribution in assigned:
            base = contribution.points.within(touched)
            if base.is_empty:
                left.append(contribution)
                continue
            contributions.append(replace(contribution, points=base))
            based = based | base.domain
            rest = contribution.points.outside(touched)
            if not rest.is_empty:
                left.append(replace(contribution, points=rest))
        starts = FROM_IDENTITY
        if agg is Agg.ADD and dtype.is_float and not based.is_empty:
            starts = self._starts(touched, based, stored, agg, dtype)
        singles, merges = self._merged(keys, contributions, agg, dtype, starts)
        return singles, merges, left

    def _starts(
        self, keys: Points, based: Points, contributions: Sequence[Contribution], agg: Agg, dtype: DType
    ) -> frozenset[bool]:
        """Whether the merges of `keys` begin at the identity. Those of `based` begin at a value, but where a merge that
        begins at the identity is among their contributions.
        """
        some = False  # whether a contribution has merges of both kinds
        for contribution in contributions:
            if isinstance(contribution.term, Reduced):
                for merge in self.definition(contribution.term.read).merges:
                    if (merge.agg, merge.dtype) == (agg, dtype) and True in merge.starts:
                        some = some or False in merge.starts
                        here = contribution.at.into(merge.keys)
                        found = contribution.points.into(here.domain).domain
                        based = based if False in merge.starts else based - found
        if based.is_empty:
            return FROM_IDENTITY
        return frozenset({False, some or not (keys - based).is_empty})

    def _merged(
        self,
        keys: tuple[str, ...],
        contributions: list[Contribution],
        agg: Agg,
        dtype: DType,
        starts: frozenset[bool],
    ) -> tuple[list[Contribution], list[Merge]]:
        """(elements with one contribution, the merge of the others)."""
        zero = number(agg.identity(dtype), dtype)
        sum_of_floats = agg is Agg.ADD and dtype.is_float
        if sum_of_floats and self.rules.finite:
            vanishing = [c.term != zero and vanishes(c.term, self._nonfinite.of) for c in contributions]
            self.relied |= {Assumption.FINITE, Assumption.ZERO_SIGN} if any(vanishing) else set()
            contributions = [
                replace(c, term=zero, at=c.at.keep(())) if is_zero else c
                for c, is_zero in zip(contributions, vanishing, strict=True)
            ]
        # The identity is no contribution, but where an element has no other.
        kept = [c for c in contributions if c.term != zero]
        bare: list[Contribution] = []
        if len(kept) < len(contributions):
            self.relied |= {Assumption.ZERO_SIGN} if sum_of_floats and kept else set()
            full = union((c.points.domain for c in kept), keys)
            bare = first_only([p for p in contributions if p.term == zero], full)
        alone, several = (
            split_by_number(kept, keys, counted=agg.counts(dtype))
            if self.rules.thorough
            else one_each_or_merged(kept, keys)
        )
        self.relied |= {Assumption.ZERO_SIGN} if sum_of_floats and alone else set()
        if several.is_empty:
            return bare + alone, []
        if alone:
            rest = (Contribution(p.term, p.points.within(several), p.at, p.origin) for p in kept)
            kept = [c for c in rest if not c.points.is_empty]
        return bare + alone, [Merge(agg, dtype, tuple(kept), several, starts)]

    def _flattened(self, contribution: Contribution, agg: Agg, dtype: DType) -> list[Contribution]:
        """A contribution that is itself a merge by the same aggregation, as that merge's contributions."""
        term = contribution.term
        if not isinstance(term, Reduced):
            return [contribution]
        inner = self.definition(term.read)
        result: list[Contribution] = []
        for merge in inner.merges:
            here = contribution.at.into(merge.keys)
            if here.is_empty:
                continue
            narrowed = contribution.points.into(here.domain)
            if (merge.agg, merge.dtype) == (agg, dtype):
                result += [composed(narrowed, here, sub) for sub in merge.contributions]
            else:
                result.append(replace(contribution, points=narrowed, at=here))
        return [p for p in result if not p.points.is_empty]

    def _chain(self, nest: Nest, number_: int, agg: Agg, operands: Sequence[Sequence[Value]]) -> list[Value]:
        """The operation at a place of a block as a merge of its operands: an accumulator of its own, which has a value
        at each point of the block."""
        buffer = Buffer(nest.path, f"${number_}")
        keys = nest.domain.names
        read = Read(buffer, ((*nest.path, number_),), nest.path, keys, 0)
        dtype = self._chains[buffer] = operands[0][0].term.dtype
        stored = [
            Contribution(value.term, Relation.identity(value.at.domain, ""), value.at, None)
            for values in operands
            for value in values
        ]
        contributions = [
            flat for contribution in stored for flat in self._flattened(contribution, agg, dtype)
        ]
        every = points_of(nest.domain)
        starts = self._starts(every, every, stored, agg, dtype)
        values, merges = self._merged(keys, contributions, agg, dtype, starts)
        self._definitions[read] = Definition(keys, tuple(values), tuple(merges), every)
        return self.values_of(read, Relation.identity(every, ""))

    def dtype(self, buffer: Buffer) -> DType:
        return self._chains.get(buffer) or self.reaching.allocations[buffer].dtype

    def stored(self, writer: Access) -> list[Value]:
        """The values that a store, or a special, writes at each of its points."""
        statement = writer.statement
        if isinstance(statement, Special):
            names = operand_names(writer)
            output = statement.outputs.index(writer.ref)
            term = Called(writer.path, statement.op, output, self.dtype(writer.buffer), len(names))
            points = reading(writer, Read(writer.buffer, (), (0,), (), len(writer.index))).domain
            return [Value(term, Relation.identity(points, "'"))]
        assert isinstance(statement, Store)
        return self.scalar(writer.nest, statement.value)

    def operands(self, path: Path) -> list[tuple[Access, list[Value]]]:
        """The operands of a special: for each input the elements at each of its points and places in the operand."""
        found: list[tuple[Access, list[Value]]] = []
        for access in self.reaching.by_path[path]:
            if not access.is_write:
                read = self.reaching.read(access)
                found.append((access, self.values_of(read, reading(access, read))))
        return found

    def scalar(self, nest: Nest, name: str) -> list[Value]:
        """The value of a scalar at the points of its block."""
        key = (nest.path, name)
        if key in self._scalars:
            return self._scalars[key]
        # in order: long chains need no deep recursion
        for scalar, number_ in self.reaching.scalars_behind(nest, name).items():
            if (nest.path, scalar) not in self._scalars:
                self._scalars[nest.path, scalar] = list(self._scalar(nest, number_))
        return self._scalars[key]

    def _scalar(self, nest: Nest, number_: int) -> Iterator[Value]:
        points = points_of(nest.domain)
        match nest.block.statements[number_]:
            case Load():
                (load,) = self.reaching.by_path[(*nest.path, number_)]
                yield from self.loaded(load)
            case LoadIndex(_, affine):
                value = affine.subs(nest.local)
                yield Value(IndexValue(_I32), Relation.function(points, {"value": value}))
            case Constant(_, value, dtype):
                yield Value(number(value, dtype), Relation.function(points, {}))
            case Intrinsic(_, op, inputs, dtype):
                operands = [self.scalar(nest, operand) for operand in inputs]
                if prod(map(len, operands)) > _MOST_PIECES:
                    raise Unprovable(f"'{op}' has operands from too many places")
                agg = chain_agg(op, operands[0][0].term.dtype) if self.rules.chains else None
                if (
                    agg is not None
                    and len({value.term.dtype for values in operands for value in values}) == 1
                ):
                    yield from self._chain(nest, number_, agg, operands)
                    return
                for combination in product(*operands):
                    value = applied(op, combination, dtype)
                    if len(inputs) == 1 or not value.at.is_empty:
                        yield value
            case _:
                raise AssertionError("no scalar is defined here")

    def loaded(self, load: Access) -> list[Value]:
        """The element that a load reads at each of its points."""
        read = self.reaching.read(load)
        return self.values_of(read, reading(load, read))

    def values_of(self, read: Read, at: Relation) -> list[Value]:
        """The values of the elements of a read that `at` leads to."""
        dtype = self.dtype(read.buffer)
        if read.buffer in self.known and self.reaching.is_final(read):
            return [Value(Leaf(self.known[read.buffer], read.rank, dtype), at)]
        definition = self.definition(read)
        found: list[Value] = []
        keys = at.range
        for contribution in definition.values_at(keys):
            reached = at.then(contribution.image)
            if not reached.is_empty:
                found.append(Value(contribution.term, reached.explicit()))
        for merge in definition.merges:
            reached = at.into(merge.keys)
            if not reached.is_empty:
                found.append(Value(Reduced(read, dtype), reached.explicit()))
        rest = at.into(keys - definition.covered)
        if not rest.is_empty:
            found += self._initial(read, rest)
        return found

    def _initial(self, read: Read, at: Relation) -> list[Value]:
        """The contents of a buffer before the first write."""
        buffer, dtype = read.buffer, self.dtype(read.buffer)
        constant = constant_terms(self.reaching.program, buffer, dtype)
        if constant is not None:
            names = at.outs[len(read.prefix) :]
            return [Value(constant, at.keep(names) if constant.width else at.keep(()))]
        if buffer in self.reaching.inputs:
            return [Value(Leaf(f"in:{buffer.name}", read.rank, dtype), at.keep(at.outs[len(read.prefix) :]))]
        agg = self.reaching.start[buffer]
        if agg is Agg.ASSIGN:
            return [Value(Undefined(f"element of '{buffer}', which is unwritten", dtype), at.keep(()))]
        return [Value(number(agg.identity(dtype), dtype), at.keep(()))]


_I32 = DType.parse("i32")
_MOST_PIECES = 200
