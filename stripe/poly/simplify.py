"""The one exact helper for constraints and index expressions: bounds, implication, feasibility, simplification.

Interval arithmetic answers first; isl is asked only where an interval leaves the question open. Whatever is dropped or
replaced is proved redundant on the given domain. When isl's limit of operations is hit, the expression stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import gcd
from types import MappingProxyType

from stripe.ir import (
    Affine,
    Block,
    Constraint,
    Domain,
    FloorDiv,
    Interval,
    LoadIndex,
    Nest,
    Refinement,
    Statement,
    indices_of,
)
from stripe.ir.frozen import replace
from stripe.poly.limits import within
from stripe.poly.propagate import propagated
from stripe.poly.sets import Points

_OPERATIONS = 500_000


def feasible(domain: Domain) -> bool:
    """Whether the domain has a point (when isl gives up: True)."""
    verdicts = [_by_interval(affine, domain) for affine in domain.constraints]
    if False in verdicts or any(low > high for low, high in domain.intervals):
        return False
    if all(verdicts):
        return True
    box = propagated(domain.ranges, domain.constraints)
    if box is None or box.is_exact:
        return box is not None
    return _is_empty(domain) is not True


@lru_cache(maxsize=4096)
def _is_empty(domain: Domain) -> bool | None:
    """The answer of isl; None when it gives up. Parts of a peeled block, and layers of a network, ask it again."""
    points = Points.build(domain.names, domain.ranges, domain.constraints)  # the domain would keep it
    return within(_OPERATIONS, lambda: points.is_empty)


def implied(affine: Affine, domain: Domain) -> bool:
    """Whether affine >= 0 is proved for every point of the domain."""
    verdict = _by_interval(affine, domain)
    if verdict is True:
        return True
    if verdict is False and not domain.constraints:
        return False
    relevant = related(domain, affine.names())
    if not relevant.constraints and affine.is_linear:
        return False  # over a box the interval of a linear affine is exact
    box = propagated(relevant.ranges, relevant.constraints)
    if box is None or affine.bounds(box.ranges)[0] >= 0:
        return True
    if box.attains(affine):
        return False
    return _is_empty(relevant.with_constraints((-affine - 1,))) is True


def bounds(affine: Affine, domain: Domain) -> Interval | None:
    """The exact least and greatest value of `affine` on the domain; None when the domain is empty."""
    if affine.is_linear and not related(domain, affine.names()).constraints:
        if domain.constraints and not feasible(domain):
            return None
        return affine.bounds(domain.ranges)
    name = "value"
    while name in domain.names:
        name += "'"
    points = Points.build(
        (*domain.names, name), domain.ranges, domain.constraints, [affine - Affine.var(name)]
    )
    return points.bounds(name)


@lru_cache(maxsize=4096)
def tighten(domain: Domain) -> Mapping[str, Interval] | None:
    """The exact interval of every index under the constraints; None when there is no point."""
    constrained = indices_of(domain.constraints)
    if not constrained:
        return domain.ranges if feasible(domain) else None
    box = propagated(domain.ranges, domain.constraints)
    if box is None or box.is_exact:
        return None if box is None else MappingProxyType(dict(box.ranges))
    names = tuple(name for name in domain.names if name in constrained)
    found = Points.build(names, {n: domain.ranges[n] for n in names}, domain.constraints).box()
    return None if found is None else MappingProxyType({**domain.ranges, **found})


def normalized(affine: Affine) -> Affine:
    """The same constraint `affine >= 0` with coprime coefficients and the tightest offset."""
    divisor = gcd(*(coefficient for _, coefficient in affine.terms))
    if divisor <= 1:
        return affine
    return Affine(affine.offset // divisor, tuple((atom, c // divisor) for atom, c in affine.terms))


@lru_cache(maxsize=4096)
def reduce_constraints(constraints: tuple[Affine, ...], domain: Domain) -> tuple[Affine, ...] | None:
    """The `constraints` that the domain and the others do not imply, normalised and simplified, in their order.

    None when no point of the domain satisfies them all.
    """
    candidates: list[Affine] = []
    for affine in constraints:
        simpler = normalized(simplify_affine(affine, domain))
        if simpler not in candidates and not implied(simpler, domain):
            candidates.append(simpler)
    if not feasible(domain.with_constraints(tuple(candidates))):
        return None
    for affine in sorted(candidates, key=lambda a: -len(a.terms)):
        others = tuple(other for other in candidates if other is not affine)
        if others and implied(affine, domain.with_constraints(others)):
            candidates = list(others)
    return tuple(candidates)


def simplify_affine(affine: Affine, domain: Domain) -> Affine:
    """An equal expression on the domain: floors that are constant and remainders that do not wrap disappear."""
    if affine.is_linear:
        return affine
    return _local_simplified(affine, {}, domain)


def simplify_block(nest: Nest) -> Block | None:
    """The innermost block of `nest` with fewer constraints and simpler accesses and passed-in indices, using all that
    the blocks outside imply; the same object when nothing changed, None when the block has no point. Blocks inside
    stay.
    """
    block, domain = nest.block, nest.domain
    kept = _kept_constraints(nest)
    if kept is None:
        return None
    inside = Domain(domain.names, domain.intervals, domain.constraints)

    def simpler(affine: Affine) -> Affine:
        """Simplifies under the domain of the nest and keeps the block's own names."""
        return _local_simplified(affine, nest.local, inside)

    refs: list[Refinement] = []
    for ref in block.refinements:
        access = tuple(map(simpler, ref.access))
        refs.append(ref if access == ref.access else replace(ref, access=access))
    statements: list[Statement] = []
    for statement in block.statements:
        if isinstance(statement, LoadIndex):
            statement = replace(statement, affine=simpler(statement.affine))
        elif isinstance(statement, Block) and any(index.is_passed for index in statement.indices):
            indices = tuple(
                index if index.affine is None else replace(index, affine=simpler(index.affine))
                for index in statement.indices
            )
            statement = replace(statement, indices=indices)
        statements.append(statement)
    found = (kept, tuple(refs), tuple(statements))
    if found == (block.constraints, block.refinements, block.statements):
        return block
    return replace(block, constraints=kept, refinements=found[1], statements=found[2])


def _kept_constraints(nest: Nest) -> tuple[Constraint, ...] | None:
    """The innermost block's constraints that the blocks outside and the others do not imply, in its own names."""
    block, every = nest.block, nest.domain.constraints
    others = every[: len(every) - len(block.constraints)]
    outer = Domain(nest.domain.names, nest.domain.intervals, others)
    local = [normalized(_local_simplified(c.affine, nest.local, outer)) for c in block.constraints]
    pairs: dict[Affine, Affine] = {}
    for affine in local:
        pairs.setdefault(normalized(affine.subs(nest.local)), affine)
    reduced = reduce_constraints(tuple(pairs), outer)
    if reduced is None:
        return None
    kept = tuple(Constraint(pairs[a]) if a in pairs else None for a in reduced)
    if any(constraint is None for constraint in kept):  # simplified beyond the block's own names
        return tuple(Constraint(a) for a in local)
    return tuple(constraint for constraint in kept if constraint is not None)


def _local_simplified(affine: Affine, names: Mapping[str, Affine], domain: Domain) -> Affine:
    """`simplify_affine`, decided on the domain's names and carried out on the block's own."""
    if affine.is_linear:
        return affine
    result = Affine(affine.offset)
    for atom, coefficient in affine.terms:
        if isinstance(atom, str):
            result = result + Affine.var(atom) * coefficient
            continue
        inner = _local_simplified(atom.arg, names, domain)
        divisor = atom.divisor if isinstance(atom, FloorDiv) else atom.modulus
        # the quotient, where it is one number on the whole domain
        known = inner.subs(names)
        low, high = (end // divisor for end in known.bounds(domain.ranges))
        if low != high and domain.constraints:
            exact = within(_OPERATIONS, lambda known=known: bounds(known, domain))
            low, high = (end // divisor for end in exact) if exact is not None else (low, high)
        quotient = low if low == high else None
        if isinstance(atom, FloorDiv):
            simpler = inner.floordiv(divisor) if quotient is None else Affine(quotient)
        else:
            simpler = inner.mod(divisor) if quotient is None else inner - quotient * divisor
        result = result + simpler * coefficient
    return result


def _by_interval(affine: Affine, domain: Domain) -> bool | None:
    """True when affine >= 0 for sure, False when it is negative for sure, None when the intervals do not tell."""
    low, high = affine.bounds(domain.ranges)
    return True if low >= 0 else False if high < 0 else None


def related(domain: Domain, names: frozenset[str]) -> Domain:
    """The domain with only the constraints that reach `names` through shared indices.

    The constraints left out can only make the domain empty; then everything is implied and no conclusion is wrong.
    """
    reached = set(names)
    left = list(domain.constraints)
    taken: list[Affine] = []
    while True:
        touching = [affine for affine in left if affine.names() & reached]
        if not touching:
            break
        taken += touching
        left = [affine for affine in left if affine not in touching]
        for affine in touching:
            reached |= affine.names()
    used = reached | indices_of(taken)
    names_kept = tuple(name for name in domain.names if name in used)
    return Domain(names_kept, tuple(domain.ranges[name] for name in names_kept), tuple(taken))
