"""Loops that follow layouts: an index of which floors and remainders read digits becomes these digits.

    block [c:128] ( in I[floor(c/32), c mod 32] … )  =>  block [c.32:4, c.1:32] ( in I[c.32, c.1] … )

with c = 32*c.32 + c.1, and a constraint where 32 does not divide the range. A digit is called by its place value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import gcd

from stripe.ir.access import element_offset, separating
from stripe.ir.affine import Affine, Atom, FloorDiv, Interval, Mod
from stripe.ir.block import Block, Constraint, Index, LoadIndex
from stripe.ir.frozen import frozen, replace
from stripe.ir.nest import UNKNOWN, Nest
from stripe.ir.rename import substitute
from stripe.ir.text.names import fresh
from stripe.ir.walk import map_statements, with_statements


@frozen
class Digits:
    """An index as a number in mixed radix: each digit with its place value, the highest first."""

    index: Index
    places: tuple[tuple[Index, int], ...]

    @staticmethod
    def of(index: Index, radices: Sequence[int], taken: set[str]) -> Digits:
        """`radices` rise, each divides the next, and all are below the range."""
        places: list[tuple[Index, int]] = []
        top = -(-index.range // radices[-1]) * radices[-1]
        for place, above in zip((1, *radices), (*radices, top), strict=True):
            name = fresh(f"{index.name}.{place}", taken)
            taken.add(name)
            places.insert(0, (replace(index, name=name, range=above // place), place))
        return Digits(index, tuple(places))

    @property
    def value(self) -> Affine:
        """The index over its digits."""
        return Affine.linear({digit.name: place for digit, place in self.places})

    @property
    def bound(self) -> Constraint | None:
        """The constraint that keeps the last block in the range; None where it is full."""
        digit, place = self.places[0]
        return (
            None if digit.range * place == self.index.range else Constraint(self.index.range - 1 - self.value)
        )

    def __str__(self) -> str:
        return f"{self.index.name} = {self.value}"


def unfolded(block: Block, outside: Mapping[str, Interval] | None = None) -> Block:
    """`block` and all inside it with the same points, indices replaced by digits where that leaves fewer floors and
    remainders. The same object where there are none. `outside` has the intervals of the indices around.

    Contributions to one element come in the same order. Floors that cancel in an address, as those of a contiguous
    access in blocks do, count as none. Indices of stencils and spatial indices stay.
    """
    if not _has_floors(block):
        return block
    known = {name: UNKNOWN for index in block.passed if index.affine for name in index.affine.names()}
    known |= outside or {}
    block = _simplified(block, known)
    blocks: set[str] = set()  # the digits that count blocks of a layout
    for index in block.iterated:
        found = digits_of(block, index)
        if found is not None:
            split = _simplified(_split(block, found), known)
            if _weight(split) < _weight(block):
                block = split
                blocks.update(digit.name for digit, _ in found.places[:-1])
    block = _outside(block, blocks)
    own = block.intervals(known)
    return map_statements(block, lambda s: unfolded(s, own) if isinstance(s, Block) else s)


def _outside(block: Block, names: set[str]) -> Block:
    """`block` with the indices `names` first, as far as they keep outputs apart: contributions to one element stay in
    their order, and the elements of a block of the layout are done one after the other. Several sources may be one
    buffer outside, and stay as they are."""
    one = len({ref.source for ref in block.outputs}) == 1
    moved = names.intersection(separating(block, {})) if names and one else set[str]()
    if not moved:
        return block
    return replace(block, indices=tuple(sorted(block.indices, key=lambda index: index.name not in moved)))


def unfolded_nest(nest: Nest) -> Nest:
    """The nest with its innermost block unfolded."""
    return nest.with_block(unfolded(nest.block, nest.outer.intervals if nest.outer is not None else None))


def digits_of(block: Block, index: Index) -> Digits | None:
    """The digits of an iterated index that floors and remainders in `block` read; None where they read none."""
    if index.is_spatial or index.stencil:
        return None
    local = {other.name: Affine.var(other.name) for other in block.indices}
    wanted = Counter(radix for affine in _affines(block, local) for radix in _radices(affine, index.name, 1))
    chain: list[int] = []
    # Radices of which none divides the other have no common digits: those that are used most stay.
    for radix, _ in sorted(wanted.items(), key=lambda item: (-item[1], item[0])):
        if 1 < radix < index.range and all(radix % other == 0 or other % radix == 0 for other in chain):
            chain.append(radix)
    return Digits.of(index, sorted(chain), {other.name for other in block.indices}) if chain else None


def _radices(affine: Affine, name: str, outer: int) -> Iterator[int]:
    """The numbers b for which a floor or remainder in `affine` reads floor(name/b) or name mod b, where all of it is
    read by a division by `outer`."""
    for atom, coefficient in affine.terms:
        if isinstance(atom, str):
            if atom == name and outer > 1:
                yield outer // gcd(outer, coefficient)
            continue
        divisor = atom.divisor if isinstance(atom, FloorDiv) else atom.modulus
        inside = outer // gcd(outer, coefficient)
        yield from _radices(atom.arg, name, divisor)
        if inside > 1:
            yield from _radices(atom.arg, name, inside * divisor if isinstance(atom, FloorDiv) else inside)


def _affines(block: Block, local: Mapping[str, Affine], depth: int = 0) -> Iterator[Affine]:
    """All expressions of `block` and the blocks inside that hold floors, over its own indices and `x@depth` for those
    inside."""
    own = [a for ref in block.refinements if not element_offset(ref).is_linear for a in ref.access]
    own += [constraint.affine for constraint in block.constraints]
    own += [statement.affine for statement in block.statements if isinstance(statement, LoadIndex)]
    yield from (affine.subs(local) for affine in own if not affine.is_linear)
    for inner in block.blocks:
        names: dict[str, Affine] = {}
        for index in inner.indices:
            if index.affine is None:
                names[index.name] = Affine.var(f"{index.name}@{depth + 1}")
            else:
                names[index.name] = index.affine.subs(local)
        yield from _affines(inner, names, depth + 1)
        yield from (affine for affine in names.values() if not affine.is_linear)


def _weight(block: Block) -> int:
    """The number of floors and remainders in `block` and the blocks inside."""
    local = {index.name: Affine.var(index.name) for index in block.indices}
    return sum(_atoms(affine) for affine in _affines(block, local))


def _atoms(affine: Affine) -> int:
    atoms: list[Atom] = [atom for atom, _ in affine.terms]
    return sum(1 + _atoms(atom.arg) for atom in atoms if not isinstance(atom, str))


def _has_floors(block: Block) -> bool:
    return (
        any(not affine.is_linear for ref in block.refinements for affine in ref.access)
        or any(not constraint.affine.is_linear for constraint in block.constraints)
        or any(not s.affine.is_linear for s in block.statements if isinstance(s, LoadIndex))
        or any(index.affine is not None and not index.affine.is_linear for index in block.indices)
        or any(_has_floors(inner) for inner in block.blocks)
    )


def _split(block: Block, digits: Digits) -> Block:
    """`block` with an index as its digits, which stand in its place among the indices."""
    inner = substitute(block, {digits.index.name: digits.value})
    indices = [
        new
        for index in block.indices
        for new in ([digit for digit, _ in digits.places] if index.name == digits.index.name else [index])
    ]
    bounds = (digits.bound,) if digits.bound else ()
    inner = replace(inner, indices=tuple(indices), constraints=(*inner.constraints, *bounds))
    names = {digit.name for digit, _ in digits.places}
    return map_statements(inner, lambda s: _passing(s, names) if isinstance(s, Block) else s)


def _passing(block: Block, digits: set[str]) -> Block:
    """`block`, which gets sums of digits passed in, with each digit passed in for itself, where floors may read it."""
    if not _has_floors(block):
        return block
    mapping: dict[str, Affine] = {}
    indices: list[Index] = []
    names: dict[str, str] = {}
    taken = {index.name for index in block.indices}
    for index in block.indices:
        found = index.affine.names() if index.affine is not None else frozenset[str]()
        if index.affine is None or index.affine.single_name is not None or not found & digits:
            indices.append(index)
            continue
        for name in sorted(found - names.keys()):
            names[name] = fresh(name, taken)
            taken.add(names[name])
            indices.append(Index(names[name], 1, Affine.var(name)))
        mapping[index.name] = index.affine.subs({name: Affine.var(names[name]) for name in found})
    inner = replace(substitute(block, mapping), indices=tuple(indices)) if mapping else block
    own = {
        index.name
        for index in inner.passed
        if index.affine is not None and index.affine.single_name in digits
    }
    return map_statements(inner, lambda s: _passing(s, own) if isinstance(s, Block) else s)


def _simplified(block: Block, outside: Mapping[str, Interval]) -> Block:
    """`block` and the blocks inside without floors and remainders that the intervals of the indices decide."""
    if not _has_floors(block):
        return block
    own = block.intervals(dict(outside))

    def simpler(affine: Affine) -> Affine:
        return affine if affine.is_linear else affine.simplified(own)

    refs = tuple(
        ref
        if all(affine.is_linear for affine in ref.access)
        else replace(ref, access=tuple(map(simpler, ref.access)))
        for ref in block.refinements
    )
    statements = [
        replace(statement, affine=simpler(statement.affine))
        if isinstance(statement, LoadIndex)
        else _simplified(_simpler_passed(statement, own), own)
        if isinstance(statement, Block)
        else statement
        for statement in block.statements
    ]
    constraints = tuple(Constraint(simpler(constraint.affine)) for constraint in block.constraints)
    return with_statements(replace(block, refinements=refs, constraints=constraints), statements)


def _simpler_passed(block: Block, outside: Mapping[str, Interval]) -> Block:
    """`block` with simpler expressions for the indices passed in."""
    if all(index.affine is None or index.affine.is_linear for index in block.indices):
        return block
    indices = tuple(
        index if index.affine is None else replace(index, affine=index.affine.simplified(outside))
        for index in block.indices
    )
    return replace(block, indices=indices)


@frozen
class Coordinate:
    """A coordinate of an element: `affine`, or for a box the first of `size` values; it steps along dimension `dim`."""

    affine: Affine
    size: int
    dim: int


def coordinates(access: Sequence[Affine], sizes: Sequence[int]) -> tuple[Coordinate, ...]:
    """The coordinates of a view with `access` and `sizes`, one to one, digits of a value joined to the value again:
    `floor((x + r)/8)` and `(x + r) mod 8` are as good as `x + r`, which steps along the dimension of the lowest digit.
    """
    found = [Coordinate(a, size, dim) for dim, (a, size) in enumerate(zip(access, sizes, strict=True))]
    if all(affine.is_linear for affine in access):
        return tuple(found)
    while True:
        joined = next(
            (
                (above, below, whole)
                for below in found
                for above in found
                if above is not below and above.size == below.size == 1
                if (whole := _whole(above.affine, below.affine)) is not None
            ),
            None,
        )
        if joined is None:
            return tuple(found)
        above, below, whole = joined
        found[found.index(below)] = replace(below, affine=whole)
        found.remove(above)


def _whole(above: Affine, below: Affine) -> Affine | None:
    """The value a for which `below` is a mod n and `above` is floor(a/n); None where there is none."""
    if below.offset or len(below.terms) != 1 or below.terms[0][1] != 1:
        return None
    atom = below.terms[0][0]
    if not isinstance(atom, Mod):
        return None
    candidates = [(atom.arg, atom.modulus)]
    candidates += [
        (other.arg, other.divisor)
        for other, coefficient in above.terms
        if isinstance(other, FloorDiv) and coefficient == 1
    ]
    for value, divisor in candidates:
        # value = n*floor(value/n) + value mod n, and whole blocks may come on top
        rest = above - value.floordiv(divisor)
        if value.mod(divisor) == below and _atoms(rest) < _atoms(above):
            return value + rest * divisor
    return None
