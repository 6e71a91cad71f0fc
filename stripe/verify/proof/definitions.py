"""What each element of a buffer is, as terms over arrays that both programs know.

A definition has values (elements that one write defines) and groups (elements that are merged from several
contributions by one aggregation). Copies vanish, element-wise operations are inlined, and a merge of partial merges of
the same aggregation becomes one group: these are the steps that keep meaning without looking at the other program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from stripe.ir import (
    Agg,
    Block,
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
    scalar_defined,
    scalars_used,
)
from stripe.poly import Access, Points, Relation, points_of, union
from stripe.verify.proof.constants import constant_terms
from stripe.verify.proof.contributions import (
    Definition,
    Group,
    Part,
    Piece,
    all_alike,
    composed,
    first_only,
    is_counted,
    told_apart,
)
from stripe.verify.proof.reaching import Flow, key_names, operand_names, reading
from stripe.verify.proof.terms import (
    Called,
    IndexValue,
    Leaf,
    Node,
    Reduced,
    Undefined,
    number,
    operand_order,
    operation,
)


@dataclass(frozen=True, slots=True)
class Rules:
    """By which rules definitions are made. `finite`: no value is infinite or NaN, so that a product with 0 is 0.

    `thorough`: what differs in form alone is brought into one form, where that costs much and is rarely needed: merges
    of one contribution become that contribution, operands that commute are put in order by their elements.
    """

    finite: bool = False
    thorough: bool = False


PLAIN = Rules()


class Unprovable(Exception):
    """Something that the proof has no rule for; the text says what. The answer is *unknown*."""


class Definer:
    """Definitions for one program. `cuts` names the buffers of the entry that count as known arrays when read as
    they are in the end.
    """

    def __init__(self, flow: Flow, cuts: Mapping[Buffer, str], rules: Rules = PLAIN) -> None:
        self.flow = flow
        self.cuts = cuts
        self.rules = rules
        self._definitions: dict[Node, Definition] = {}
        self._scalars: dict[tuple[Path, str], list[Piece]] = {}
        self._defined: dict[Path, dict[str, int]] = {}

    def definition(self, node: Node) -> Definition:
        if node not in self._definitions:
            self._definitions[node] = self._define(node)
        return self._definitions[node]

    def _define(self, node: Node) -> Definition:
        keys = key_names(node)
        assigned = Points.empty(keys)
        values: list[Part] = []
        merged: list[tuple[Access, Relation]] = []
        visible = set(node.writers)
        for writer in reversed([w for w in self.flow.writers.get(node.buffer, []) if w.path in visible]):
            points = self.flow.writing(writer, node).outside(assigned)
            if points.is_empty:
                continue
            if writer.agg is Agg.ASSIGN:
                assigned = (assigned | points.domain).coalesced()
                values += self._assigned(writer, points)
            else:
                merged.append((writer, points))
        groups: list[Group] = []
        if merged:
            aggs = {writer.agg for writer, _ in merged}
            if len(aggs) > 1:
                raise Unprovable(f"'{node.buffer}' is written with several aggregations")
            values += self._given(node, assigned, merged)
            singles, groups, values = self._merge(keys, merged, values)
            values += singles
        covered = union([part.points.domain for part in values] + [g.keys for g in groups], keys).coalesced()
        if not node.prefix and node.buffer in self.flow.inputs:
            kept = self._kept(node, covered)
            values, covered = values + kept, covered | union((part.points.domain for part in kept), keys)
        return Definition(keys, tuple(values), tuple(groups), covered)

    def _kept(self, node: Node, covered: Points) -> list[Part]:
        """What an input holds where nobody writes: as an output it gives that back."""
        keys = key_names(node)
        sizes = self.flow.allocations[node.buffer].sizes
        box = Points.build(keys, {name: (0, size - 1) for name, size in zip(keys, sizes, strict=True)})
        rest = (box - covered).identity("'")
        if rest.is_empty:
            return []
        return [Part(p.term, rest, p.at, None) for p in self._initial(node, rest.reversed())]

    def _assigned(self, writer: Access, points: Relation) -> list[Part]:
        if not points.single_valued:
            raise Unprovable(f"an element of '{writer.buffer}' is assigned at two points")
        return [
            Part(piece.term, points.into(piece.at.domain), piece.at, writer)
            for piece in self.stored(writer)
            if not points.into(piece.at.domain).is_empty
        ]

    def _given(self, node: Node, assigned: Points, merged: list[tuple[Access, Relation]]) -> list[Part]:
        """What inputs and constants hold before the first merge: a base like what is assigned."""
        buffer = node.buffer
        given = buffer in self.flow.inputs
        if not given and constant_terms(self.flow.program, buffer, self.dtype(buffer)) is None:
            return []
        found: list[Part] = []
        for writer, points in merged:
            base = points.outside(assigned).first()
            assigned = assigned | base.domain
            if not base.is_empty:
                found += [Part(p.term, base, p.at, writer) for p in self._initial(node, base.reversed())]
        return found

    def _merge(
        self, keys: tuple[str, ...], merged: list[tuple[Access, Relation]], assigned: list[Part]
    ) -> tuple[list[Part], list[Group], list[Part]]:
        """(elements with one contribution, the group of the others, assigned elements to which nothing is merged)."""
        agg, dtype = merged[0][0].agg, self.dtype(merged[0][0].buffer)
        parts: list[Part] = []
        for writer, points in merged:
            for piece in self.stored(writer):
                here = points.into(piece.at.domain)
                if not here.is_empty:
                    parts += self._flattened(Part(piece.term, here, piece.at, writer), agg, dtype)
        touched = union((points.domain for _, points in merged), keys).coalesced()
        left: list[Part] = []
        for part in assigned:
            base = part.points.within(touched)
            if base.is_empty:
                left.append(part)
                continue
            parts.append(Part(part.term, base, part.at, part.origin))  # a base counts as a contribution
            rest = part.points.outside(touched)
            if not rest.is_empty:
                left.append(Part(part.term, rest, part.at, part.origin))
        zero = number(agg.identity(dtype), dtype)
        kept = [part for part in parts if part.term != zero]
        bare: list[Part] = []
        if len(kept) < len(parts):
            full = union((part.points.domain for part in kept), keys)
            bare = first_only([p for p in parts if p.term == zero], full)
        alone, several = (
            told_apart(kept, keys, counted=is_counted(agg, dtype))
            if self.rules.thorough
            else all_alike(kept, keys)
        )
        if several.is_empty:
            return bare + alone, [], left
        if alone:
            rest = (Part(p.term, p.points.within(several), p.at, p.origin) for p in kept)
            kept = [part for part in rest if not part.points.is_empty]
        return bare + alone, [Group(agg, dtype, tuple(kept), several)], left

    def _flattened(self, part: Part, agg: Agg, dtype: DType) -> list[Part]:
        """A contribution that is itself a merge by the same aggregation, as that merge's contributions."""
        term = part.term
        if not isinstance(term, Reduced):
            return [part]
        inner = self.definition(term.node)
        result: list[Part] = []
        for group in inner.groups:
            here = part.at.into(group.keys)
            if here.is_empty:
                continue
            narrowed = part.points.into(here.domain)
            if group.agg is not agg or group.dtype != dtype:
                result.append(Part(term, narrowed, here, part.origin))
                continue
            result += [composed(narrowed, here, sub) for sub in group.parts]
        return [p for p in result if not p.points.is_empty]

    def dtype(self, buffer: Buffer) -> DType:
        return self.flow.allocations[buffer].dtype

    def stored(self, writer: Access) -> list[Piece]:
        """What a store, or a special, writes at each of its points."""
        statement = writer.statement
        if isinstance(statement, Special):
            names = operand_names(writer)
            output = statement.outputs.index(writer.ref)
            term = Called(writer.path, statement.op, output, self.dtype(writer.buffer), len(names))
            points = reading(writer, Node(writer.buffer, (), (0,), (), len(writer.index))).domain
            return [Piece(term, points.identity("'"))]
        assert isinstance(statement, Store)
        return self.scalar(writer.nest, statement.value)

    def operands(self, path: Path) -> list[tuple[Access, list[Piece]]]:
        """What a special reads: for each input the elements at each of its points and places in that operand."""
        found: list[tuple[Access, list[Piece]]] = []
        for access in self.flow.by_path[path]:
            if not access.is_write:
                node = self.flow.node(access)
                found.append((access, self.read_node(node, reading(access, node))))
        return found

    def scalar(self, nest: Nest, name: str) -> list[Piece]:
        """The value of a scalar at the points of its block."""
        key = (nest.path, name)
        if key not in self._scalars:
            for place in _needed(nest.block, self._places(nest), name):
                defined = scalar_defined(nest.block.statements[place]) or ""
                if (nest.path, defined) not in self._scalars:
                    self._scalars[nest.path, defined] = list(self._scalar(nest, place))
        return self._scalars[key]

    def _places(self, nest: Nest) -> dict[str, int]:
        """Which statement of the block defines each scalar."""
        if nest.path not in self._defined:
            statements = enumerate(nest.block.statements)
            self._defined[nest.path] = {
                name: place for place, each in statements if (name := scalar_defined(each)) is not None
            }
        return self._defined[nest.path]

    def _scalar(self, nest: Nest, number_: int) -> Iterator[Piece]:
        points = points_of(nest.domain)
        match nest.block.statements[number_]:
            case Load():
                (load,) = self.flow.by_path[(*nest.path, number_)]
                yield from self.read(load)
            case LoadIndex(_, affine):
                value = affine.subs(nest.local)
                yield Piece(IndexValue(_I32), Relation.function(points, {"value": value}))
            case Constant(_, value, dtype):
                yield Piece(number(value, dtype), Relation.function(points, {}))
            case Intrinsic(_, op, inputs, dtype):
                operands = [self.scalar(nest, operand) for operand in inputs]
                if prod(map(len, operands)) > _MOST_PIECES:
                    raise Unprovable(f"'{op}' has operands from too many places")
                for combination in product(*operands):
                    piece = _applied(op, combination, dtype, finite=self.rules.finite)
                    if len(inputs) == 1 or not piece.at.is_empty:
                        yield piece
            case _:
                raise AssertionError("no scalar is defined here")

    def read(self, load: Access) -> list[Piece]:
        """The element that a load reads at each of its points."""
        node = self.flow.node(load)
        return self.read_node(node, reading(load, node))

    def read_node(self, node: Node, at: Relation) -> list[Piece]:
        """The elements of a node that `at` leads to."""
        dtype = self.dtype(node.buffer)
        if node.buffer in self.cuts and self.flow.is_final(node):
            return [Piece(Leaf(self.cuts[node.buffer], node.rank, dtype), at)]
        definition = self.definition(node)
        found: list[Piece] = []
        for part in definition.values:
            reached = at.then(part.image)
            if not reached.is_empty:
                found.append(Piece(part.term, reached.explicit()))
        for group in definition.groups:
            reached = at.into(group.keys)
            if not reached.is_empty:
                found.append(Piece(Reduced(node, dtype), reached.explicit()))
        rest = at.into(at.range - definition.covered)
        if not rest.is_empty:
            found += self._initial(node, rest)
        return found

    def _initial(self, node: Node, at: Relation) -> list[Piece]:
        """What a buffer holds before anything is written."""
        buffer, dtype = node.buffer, self.dtype(node.buffer)
        constant = constant_terms(self.flow.program, buffer, dtype)
        if constant is not None:
            names = at.outs[len(node.prefix) :]
            return [Piece(constant, at.keep(names) if constant.width else at.keep(()))]
        if buffer in self.flow.inputs:
            return [Piece(Leaf(f"in:{buffer.name}", node.rank, dtype), at.keep(at.outs[len(node.prefix) :]))]
        agg = self.flow.start[buffer]
        if agg is Agg.ASSIGN:
            return [Piece(Undefined(f"element of '{buffer}', which nobody wrote", dtype), at.keep(()))]
        return [Piece(number(agg.identity(dtype), dtype), at.keep(()))]


_I32 = DType.parse("i32")
_MOST_PIECES = 200
_MOST_COORDINATES = 400


def _needed(block: Block, places: Mapping[str, int], name: str) -> list[int]:
    """The statements that a scalar follows from, itself the last, in order: long chains need no deep recursion.
    `places` tells which statement defines each scalar.
    """
    found: set[int] = set()
    wanted = [name]
    while wanted:
        place = places[wanted.pop()]
        if place not in found:
            found.add(place)
            wanted += scalars_used(block.statements[place])
    return sorted(found)


def _applied(op: str, operands: tuple[Piece, ...], dtype: DType | None, *, finite: bool) -> Piece:
    """An intrinsic on one piece of each operand: defined where all of them are."""
    terms = [operand.term for operand in operands]
    order = operand_order(op, terms)
    at = operands[order[0]].at
    for k in order[1:]:
        at = at.beside(operands[k].at)
    if sum(term.width for term in terms) > _MOST_COORDINATES:
        raise Unprovable("an element-wise chain is too long")
    term = operation(op, [terms[k] for k in order], dtype, finite=finite)
    return Piece(term, at if term.width else at.keep(()))
