"""What the output access of a contraction touches: whether twice, and which elements not at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from stripe.ir.affine import Affine
from stripe.poly.contraction import IndexSet, Range, solve
from stripe.poly.lattice import Lattice, Polynomial

if TYPE_CHECKING:
    import islpy as isl


@dataclass(frozen=True, slots=True)
class Collision:
    """An element that two points of a domain reach; the points are over the indices of the domain."""

    element: tuple[int, ...]
    first: tuple[tuple[str, int], ...]
    second: tuple[tuple[str, int], ...]


def find_collision(domain: IndexSet, access: Sequence[Affine]) -> Collision | None:
    """Two points of the domain with one element under `access` (linear), or None when the access is injective.

    Raises `stripe.poly.limits.PolyLimit` when isl would take too long.
    """
    if _is_injective_everywhere(domain, access):
        return None
    import islpy as isl

    from stripe.poly.limits import CONTEXT, operation_limit

    names = [name for name, _ in domain.indices]
    same = [f"{_text(affine, 'a')} = {_text(affine, 'b')}" for affine in access]
    conditions = [*_conditions(domain, "a"), *_conditions(domain, "b"), *same]
    coordinates = ", ".join(f"{side}{place}" for side in "ab" for place in range(len(names)))
    rename = {name: str(place) for place, name in enumerate(names)}
    with operation_limit():
        for place in range(len(names)):
            equal = [f"a{before} = b{before}" for before in range(place)]
            text = " and ".join([*conditions, *equal, f"a{place} < b{place}"])
            pairs = isl.Set(f"{{ [{coordinates}] : {_numbered(text, rename)} }}", context=CONTEXT)
            if not pairs.is_empty():
                return _collision(pairs.lexmin(), names, access)
    return None


def _is_injective_everywhere(domain: IndexSet, access: Sequence[Affine]) -> bool:
    """Whether the linear map has no kernel at all: then no two integer points collide."""
    names = [name for name, _ in domain.indices]
    columns = tuple(tuple(affine.coeff(name) for affine in access) for name in names)
    if not columns:
        return True
    rank = len(Lattice((0,) * len(access), columns).hermite(range(len(access)))[1])
    return rank == len(names)


def _collision(pairs: isl.Set, names: Sequence[str], access: Sequence[Affine]) -> Collision:
    point = pairs.sample_point()
    import islpy as isl

    values = [
        point.get_coordinate_val(isl.dim_type.set, place).to_python() for place in range(2 * len(names))
    ]
    first = dict(zip(names, values[: len(names)], strict=True))
    second = dict(zip(names, values[len(names) :], strict=True))
    element = tuple(int(affine.evaluate(first)) for affine in access)
    return Collision(element, tuple(first.items()), tuple(second.items()))


def _text(affine: Affine, prefix: str) -> str:
    """isl's text of a linear affine; index names are marked for `_numbered`."""
    return " + ".join([*(f"{value}*{prefix}<{atom}>" for atom, value in affine.terms), str(affine.offset)])


def _numbered(text: str, rename: dict[str, str]) -> str:
    for name, number in rename.items():
        text = text.replace(f"<{name}>", number)
    return text


def _conditions(domain: IndexSet, prefix: str) -> list[str]:
    ranges = [f"0 <= {prefix}<{name}> < {size}" for name, size in domain.indices]
    return ranges + [f"{_text(affine, prefix)} >= 0" for affine in domain.constraints]


@lru_cache(maxsize=4096)
def untouched(
    domain: IndexSet, access: tuple[Affine, ...], sizes: tuple[int, ...], names: tuple[str, ...]
) -> tuple[IndexSet, ...]:
    """The elements of a tensor of `sizes` that no point of `domain` reaches through `access`, as disjoint sets.

    Each set has indices of its own; its `values` give the coordinates of an element, called `names`, over them.
    Raises `stripe.poly.limits.PolyLimit` when isl would take too long.
    """
    groups = _groups(domain, access)
    if all(_covers(domain, group, access, sizes) for group in groups):
        return ()
    from stripe.poly.limits import coalesced, operation_limit

    with operation_limit():
        image = _image(domain, range(len(access)), access)
        outside = coalesced(_box(range(len(sizes)), sizes).subtract(image))
        missing = outside.compute_divs().make_disjoint()
        return tuple(_index_set_of(piece, names) for piece in missing.compute_divs().get_basic_sets())


@dataclass(frozen=True, slots=True)
class _Group:
    """Indices and output dimensions that depend on each other, and on no others."""

    indices: tuple[str, ...]
    dims: tuple[int, ...]


def _groups(domain: IndexSet, access: Sequence[Affine]) -> list[_Group]:
    links = [affine.names() for affine in (*domain.constraints, *access)]
    group = {name: place for place, (name, _) in enumerate(domain.indices)}
    for names in links:
        roots = {group[name] for name in names}
        if len(roots) > 1:
            target = min(roots)
            group = {name: target if root in roots else root for name, root in group.items()}
    found = [
        _Group(
            tuple(name for name in group if group[name] == root),
            tuple(
                place
                for place, affine in enumerate(access)
                if any(group[name] == root for name in affine.names())
            ),
        )
        for root in sorted(set(group.values()))
    ]
    constant = [_Group((), (place,)) for place, affine in enumerate(access) if affine.is_constant]
    return [item for item in (*found, *constant) if item.dims]


def _covers(domain: IndexSet, group: _Group, access: Sequence[Affine], sizes: Sequence[int]) -> bool:
    """Whether the points of a group reach every combination of its output dimensions."""
    if not group.indices:
        return sizes[group.dims[0]] == 1
    constrained = any(affine.names() & set(group.indices) for affine in domain.constraints)
    if not constrained and len(group.dims) == 1 and len(group.indices) == 1:
        affine = access[group.dims[0]]
        return (
            abs(affine.coeff(group.indices[0])) == 1
            and domain.ranges[group.indices[0]] == sizes[group.dims[0]]
        )
    points = 1
    for name in group.indices:
        points *= domain.ranges[name]
    elements = 1
    for place in group.dims:
        elements *= sizes[place]
    if points < elements:
        return False
    from stripe.poly.limits import operation_limit

    with operation_limit():
        image = _image(domain, group.dims, access)
        return _box(group.dims, sizes).is_subset(image)


def _box(dims: Iterable[int], sizes: Sequence[int]) -> isl.Set:
    import islpy as isl

    from stripe.poly.limits import CONTEXT

    dims = tuple(dims)
    coordinates = ", ".join(f"o{place}" for place in dims)
    ranges = " and ".join(f"0 <= o{place} < {sizes[place]}" for place in dims)
    return isl.Set(f"{{ [{coordinates}] : {ranges or 'true'} }}", context=CONTEXT)


def _image(domain: IndexSet, dims: Iterable[int], access: Sequence[Affine]) -> isl.Set:
    """The elements of the dimensions `dims` that the domain reaches; indices that cannot matter are left out."""
    import islpy as isl

    from stripe.poly.limits import CONTEXT

    dims = tuple(dims)
    relevant = frozenset[str]().union(*(access[place].names() for place in dims))
    while True:  # a constraint ties further indices to the relevant ones
        tied = relevant.union(*(c.names() for c in domain.constraints if c.names() & relevant))
        if tied == relevant:
            break
        relevant = tied
    names = [name for name, _ in domain.indices if name in relevant]
    rename = {name: str(place) for place, name in enumerate(names)}
    conditions = [f"0 <= a<{name}> < {size}" for name, size in domain.indices if name in relevant]
    conditions += [
        f"{_text(affine, 'a')} >= 0" for affine in domain.constraints if affine.names() <= relevant
    ]
    conditions += [f"o{place} = {_text(access[place], 'a')}" for place in dims]
    inside = _numbered(" and ".join(conditions) or "true", rename)
    exists = f"exists {', '.join(f'a{place}' for place in range(len(names)))} : " if names else ""
    coordinates = ", ".join(f"o{place}" for place in dims)
    return isl.Set(f"{{ [{coordinates}] : {exists}{inside} }}", context=CONTEXT)


@dataclass(frozen=True, slots=True)
class _Floor:
    """floor((terms + offset) / divisor) over the coordinates and earlier floors."""

    terms: tuple[tuple[str, int], ...]
    offset: int
    divisor: int


def _index_set_of(piece: isl.BasicSet, names: tuple[str, ...]) -> IndexSet:
    """A basic set with explicit floors as a domain: a floor that an equality ties to coordinates (a stride) goes into
    the basis, others stay as quasi-affine constraints.
    """
    import islpy as isl

    floors = piece.dim(isl.dim_type.div)
    extra = tuple(f"q{place}" for place in range(floors))
    columns = [(isl.dim_type.set, place) for place in range(len(names))]
    columns += [(isl.dim_type.div, place) for place in range(floors)]
    everything = (*names, *extra)
    ranges: list[Range] = []
    for constraint in piece.get_constraints():
        terms = {
            name: Fraction(constraint.get_coefficient_val(kind, place).to_python())
            for name, (kind, place) in zip(everything, columns, strict=True)
        }
        polynomial = Polynomial.of(terms, constraint.get_constant_val().to_python())
        ranges.append(Range(polynomial, 1 if constraint.is_equality() else None))
    defined = {name: _floor(piece.get_div(place), everything, columns) for place, name in enumerate(extra)}
    bounds = [_floor_range(floor, name) for name, floor in defined.items()]
    found = solve(everything, (*ranges, *bounds))
    if not any(name in extra for name, _ in found.indices):
        return found
    return _quasi_affine(piece, names, ranges, defined)


def _floor(floor: isl.Aff, names: Sequence[str], columns: Sequence[tuple[isl.dim_type, int]]) -> _Floor:
    import islpy as isl

    divisor = floor.get_denominator_val().to_python()
    terms: list[tuple[str, int]] = []
    for name, (kind, place) in zip(names, columns, strict=True):
        source = isl.dim_type.in_ if kind == isl.dim_type.set else kind
        value = Fraction(str(floor.get_coefficient_val(source, place))) * divisor
        if value:
            terms.append((name, int(value)))
    return _Floor(tuple(terms), int(Fraction(str(floor.get_constant_val())) * divisor), divisor)


def _floor_range(floor: _Floor, own: str) -> Range:
    """0 <= numerator - divisor * own < divisor, which defines `own` as the floor."""
    terms: dict[str, Fraction | int] = dict(floor.terms)
    terms[own] = terms.get(own, 0) - floor.divisor
    return Range(Polynomial.of(terms, floor.offset), floor.divisor)


def _always(floor: _Floor, own: str) -> tuple[Polynomial, Polynomial]:
    """The two inequalities that the definition of a floor makes true."""
    rest = _floor_range(floor, own).polynomial
    return rest, rest.scale(Fraction(-1)) + Polynomial(Fraction(floor.divisor - 1))


def _quasi_affine(
    piece: isl.BasicSet, names: tuple[str, ...], ranges: Sequence[Range], floors: dict[str, _Floor]
) -> IndexSet:
    """The box of the piece, shifted to 0, with its constraints over floors of coordinates."""
    import islpy as isl

    points = isl.Set.from_basic_set(piece)
    values: dict[str, Affine] = {}
    indices: list[tuple[str, int]] = []
    for place, name in enumerate(names):
        low, high = (val.to_python() for val in (points.dim_min_val(place), points.dim_max_val(place)))
        values[name] = Affine.var(name) + low if high > low else Affine.constant(low)
        if high > low:
            indices.append((name, high - low + 1))
    known = dict(values)
    for name, floor in floors.items():
        known[name] = _sum(floor.terms, floor.offset, known).floordiv(floor.divisor)
    box = {name: (0, size - 1) for name, size in indices}
    always = {side for name, floor in floors.items() for side in _always(floor, name)}
    constraints: list[Affine] = []
    for item in ranges:
        opposite = item.polynomial.scale(Fraction(-1))
        for side in (item.polynomial,) if item.size is None else (item.polynomial, opposite):
            terms = tuple((name, int(value)) for name, value in side.terms)
            affine = _sum(terms, int(side.offset), known)
            if side not in always and affine.bounds(box)[0] < 0:
                constraints.append(affine)
    return IndexSet(tuple(sorted(indices)), tuple(dict.fromkeys(constraints)), tuple(values.items()))


def _sum(terms: Iterable[tuple[str, int]], offset: int, values: dict[str, Affine]) -> Affine:
    total = Affine.constant(offset)
    for name, value in terms:
        total = total + values[name] * value
    return total
