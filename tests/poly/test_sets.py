"""Sets and relations where isl itself fails."""

from __future__ import annotations

from typing import cast

import islpy as isl
import pytest

from stripe.poly import Points, PolyLimit, Relation, count_points, operation_limit, union
from stripe.poly.encode import isl_val, number_of


class _Failing:
    """A map that isl cannot coalesce. (A real one has a hundred pieces, and text does not bring the same ones back.)"""

    def __init__(self, message: str) -> None:
        self._error = isl.Error(f"call to isl_map_coalesce failed: {message}")

    def coalesce(self) -> isl.Map:
        raise self._error


def relation(message: str) -> Relation:
    return Relation(("x",), ("y",), cast("isl.Map", _Failing(message)))


def test_what_isl_cannot_coalesce_stays_in_its_pieces() -> None:
    whole = relation("original tableau does not correspond to original basic map")
    assert whole.coalesced().raw is whole.raw


def test_the_limit_on_operations_counts_all_the_same() -> None:
    with pytest.raises(isl.Error):
        relation("maximal number of operations exceeded").coalesced()


def test_numbers_past_the_limit_of_operations_are_no_type_error() -> None:
    """isl reads numbers as text, and gives none once its operations are used up."""
    number = isl_val(12345)
    domain = Points.build(("x",), {"x": (0, 9)})
    with pytest.raises(PolyLimit), operation_limit(1):
        with pytest.raises(isl.Error):
            domain.lexmin()
        number_of(number)
    assert number_of(number) == 12345


def test_a_set_of_one_point_tells_it() -> None:
    one, several = Points.build(("x", "y"), {"x": (3, 3), "y": (4, 4)}), Points.build(("x",), {"x": (0, 1)})
    assert one.only_point == (3, 4)
    assert several.only_point is None
    assert (several | Points.build(("x",), {"x": (5, 5)})).only_point is None
    assert Points.build((), {}).only_point == ()


def test_many_sets_are_united_in_any_order_of_their_coordinates() -> None:
    parts = [Points.build(("y", "x"), {"x": (n, n), "y": (0, n)}) for n in range(9)]
    whole = union(parts, ("x", "y"))
    assert whole.names == ("x", "y")
    assert count_points(whole) == sum(range(1, 10))
    assert union([], ("x",)).is_empty
