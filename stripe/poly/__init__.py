"""The bridge to integer sets: domains, access relations, footprints, exact counts, dependences, simplification.

Sets have named coordinates. Only this package talks to isl. Each name loads on first use, and isl with the first that
needs it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stripe.poly.access import (
        Access,
        AccessKind,
        TouchedElements,
        accesses,
        element_names,
        leaf_accesses,
    )
    from stripe.poly.count.count import (
        count_accesses,
        count_domain,
        count_elements,
        count_points,
        count_touched,
        count_union,
        distinct_per_point,
    )
    from stripe.poly.count.separable import distinct_values, tile_elements
    from stripe.poly.deps import (
        common_depth,
        conflicts,
        overlap,
        race,
        statement_deps,
        touched_at,
        with_exact_deps,
    )
    from stripe.poly.footprint import (
        Footprint,
        box_of,
        box_points,
        box_volume,
        elements,
        footprints,
        through_view,
        untouched,
        view_box,
    )
    from stripe.poly.limits import PolyLimit, check_time, isl_failures, operation_limit, time_limit, within
    from stripe.poly.relations import Relation
    from stripe.poly.sets import Points, pieces, points_of, union
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

_HOMES = {
    "access": "Access AccessKind TouchedElements accesses element_names leaf_accesses",
    "count.count": (
        "count_accesses count_domain count_elements count_points count_touched count_union distinct_per_point"
    ),
    "count.separable": "distinct_values tile_elements",
    "deps": ("common_depth conflicts overlap race statement_deps touched_at with_exact_deps"),
    "footprint": "Footprint box_of box_points box_volume elements footprints through_view untouched view_box",
    "limits": "PolyLimit check_time isl_failures operation_limit time_limit within",
    "relations": "Relation",
    "sets": "Points pieces points_of union",
    "simplify": (
        "bounds feasible implied normalized reduce_constraints simplify_affine simplify_block tighten"
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Access", "AccessKind", "Footprint", "Points", "PolyLimit", "Relation", "TouchedElements",
    "accesses",
    "bounds", "box_of", "box_points", "box_volume", "check_time", "common_depth", "conflicts",
    "count_accesses", "count_domain", "count_elements", "count_points", "count_touched", "count_union",

    "distinct_per_point", "distinct_values", "element_names", "elements", "feasible", "footprints", "implied",
    "isl_failures", "leaf_accesses", "normalized", "operation_limit", "overlap", "pieces", "points_of",
    "race", "reduce_constraints", "simplify_affine", "simplify_block", "statement_deps", "through_view", "tighten",
    "tile_elements", "time_limit", "touched_at", "union", "untouched", "view_box", "with_exact_deps", "within",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'stripe.poly' has no attribute '{name}'")
    found = getattr(import_module(f"stripe.poly.{_HOME_OF[name]}"), name)
    globals()[name] = found
    return found
