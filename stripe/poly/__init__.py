"""The bridge to integer sets: domains, access relations, footprints, exact counts, dependences, simplification.

Sets have named coordinates. Only this package talks to isl. Importing it loads isl: do so lazily where `--help`
passes by.
"""

from __future__ import annotations

from stripe.poly.access import Access, AccessKind, accesses, element_names, leaf_accesses
from stripe.poly.count.count import (
    count_accesses,
    count_domain,
    count_elements,
    count_points,
    count_union,
    distinct_per_point,
)
from stripe.poly.count.separable import distinct_values, tile_elements
from stripe.poly.deps import (
    Dependence,
    DepKind,
    accumulation_indices,
    common_depth,
    conflicts,
    dependences,
    distances,
    injective,
    overlap,
    race,
    statement_deps,
    touched_at,
)
from stripe.poly.footprint import (
    Footprint,
    box_of,
    box_volume,
    elements,
    footprints,
    through_view,
    untouched,
    view_box,
)
from stripe.poly.limits import PolyLimit, isl_failures, operation_limit, within
from stripe.poly.sets import Points, Relation, pieces, points_of, union
from stripe.poly.simplify import (
    bounds,
    feasible,
    implied,
    normalized,
    reduce_constraints,
    simplify_affine,
    simplify_block,
    tighten,
)

__all__ = [
    "Access", "AccessKind", "DepKind", "Dependence", "Footprint", "Points", "PolyLimit", "Relation", "accesses",
    "accumulation_indices", "bounds", "box_of", "box_volume", "common_depth", "conflicts", "count_accesses",
    "count_domain", "count_elements", "count_points", "count_union", "dependences", "distances",
    "distinct_per_point", "distinct_values", "element_names", "elements", "feasible", "footprints", "implied",
    "injective", "isl_failures", "leaf_accesses", "normalized", "operation_limit", "overlap", "pieces", "points_of",
    "race", "reduce_constraints", "simplify_affine", "simplify_block", "statement_deps", "through_view", "tighten",
    "tile_elements", "touched_at", "union", "untouched", "view_box", "within",
]  # fmt: skip
