"""Copies of isl's sets for questions in which isl changes parts of its operand that other sets have too."""

from __future__ import annotations

from typing import TypeVar

import islpy as isl

from stripe.poly.encode import OUT

Raw = TypeVar("Raw", isl.Set, isl.Map)


def private_copy(raw: Raw) -> Raw:
    """The same set or map, of basic sets that no other set has.

    isl 0.28 (islpy 2026.2.2) has a fault: `isl_basic_map_detect_equalities` works in the basic set that it is given,
    where that has room for the equalities, without a copy where others hold it. `normalize_divs` drops floors and
    equalities there, and enters their new forms into a copy that is larger: the old basic set has lost constraints, in
    each set, union and relation that it is part of. `lexmin`, `lexmax`, `affine_hull`, `PwMultiAff.from_map` and
    `detect_equalities` do this, and their own results are right. So they are asked of private copies alone. Names are
    the cheapest change for which isl copies its basic sets.
    """
    if isinstance(raw, isl.Set):
        return raw.set_tuple_name("copy").reset_tuple_id()
    return raw.set_tuple_name(OUT, "copy").reset_tuple_id(OUT)
