"""Doubts about results: better machines with worse results, axes without effect, and the page that shows them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from stripe.sweeps.decisions import differing
from stripe.sweeps.evaluate import ResultRow, RowStatus
from stripe.sweeps.plan import SweepPlan
from stripe.sweeps.report.data import page_data
from stripe.sweeps.report.page import page_html
from stripe.sweeps.results import PointResult, best, best_point, pareto_front, point_results
from stripe.sweeps.schema import ObjectiveSpec
from stripe.sweeps.space import DesignPoint
from stripe.sweeps.store import SweepFacts
from stripe.sweeps.trust import reversals, sensitivity, without_effect

AXES = {"N": (1, 2, 4), "M": (10, 20)}


def results(latency: dict[tuple[int, int], float]) -> tuple[PointResult, ...]:
    """Points with a latency for each pair of N and M."""
    rows = [
        ResultRow(
            DesignPoint("list", (("M", m), ("N", n))), "net", RowStatus.OK,
            metrics={"latency_us": value, "energy_pJ": 1.0},
        )
        for (n, m), value in latency.items()
    ]  # fmt: skip
    return point_results(rows, {"net": 1.0}, ())


def test_a_better_machine_with_a_worse_result_is_found_with_both_points() -> None:
    points = results({(1, 10): 8, (2, 10): 9, (4, 10): 4, (1, 20): 8, (2, 20): 8.05, (4, 20): 8})
    (found,) = reversals(points, AXES, {"N": "more"})
    assert found.factor == 9 / 8
    assert found.slower_machine.point.choices == {"M": 10, "N": 1}
    assert found.faster_machine.point.choices == {"M": 10, "N": 2}
    assert len(reversals(points, AXES, {"N": "less"})) == 1


def test_an_axis_without_effect_is_named() -> None:
    points = results({(1, 10): 8, (2, 10): 6, (1, 20): 8, (2, 20): 6})
    assert without_effect(points, AXES, ("latency_us", "energy_pJ")) == ("M",)
    assert sensitivity(points, AXES, "latency_us") == {"N": 8 / 6 - 1, "M": 0.0}


def test_what_a_point_does_not_use_counts_zero() -> None:
    """Of two points one has no multiplications on a unit: it is the best by their energy, and on the front."""
    first, second = (
        ResultRow(
            DesignPoint("list", (("N", n),)), "net", RowStatus.OK,
            metrics={"latency_us": 1.0, "energy_pJ": 1.0, **extra},
        )
        for n, extra in ((1, {"energy.compute CONV": 5.0}), (2, {}))
    )  # fmt: skip
    points = point_results([first, second], {"net": 1.0}, ())
    objective = ObjectiveSpec(metric="energy.compute CONV")
    assert best_point(points, objective).point.choices == {"N": 2}
    assert [point.point.choices["N"] for point in pareto_front(points, (objective,))] == [2]
    assert [point.value("energy.compute CONV") for point in points] == [5.0, 0.0]
    assert [point.outcome((objective,)) for point in points] == [(5.0,), (0.0,)]
    assert best(points, ObjectiveSpec(metric="energy.compute NONE")) == ()


def test_the_page_holds_its_data_and_no_text_ends_its_script() -> None:
    page = page_html({"title": "a <b> & @DATA@", "points": ["</script><script>alert(1)</script>"]})
    assert "<title>a &lt;b&gt; &amp; @DATA@</title>" in page
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page)
    assert found is not None
    assert json.loads(found[1])["points"] == ["</script><script>alert(1)</script>"]
    assert not re.search(r'(src|href)="http', page.replace(found[0], "").split("<body>")[1])


@pytest.mark.long
def test_two_points_differ_in_decisions_that_are_named(plan_of: Callable[..., SweepPlan]) -> None:
    example = Path(__file__).resolve().parents[2] / "examples" / "conv_bias_relu.tile"
    plan = plan_of(workloads=[str(example)], axes={"SRAM_SIZE_KIB": {"values": [4, 64]}})
    small, large = plan.space.grid()
    assert differing(plan, small, small) == []
    rows = differing(plan, small, large)
    what, first, second = next(row for row in rows if "tile_conv" in row[0])
    assert what == "conv_bias_relu tile_conv conv"
    assert first != second
    assert "tiles" in first


def test_the_page_explains_the_largest_reversals() -> None:
    points = results({(1, 10): 8, (2, 10): 9, (4, 10): 4, (1, 20): 8, (2, 20): 8.05, (4, 20): 8})
    facts = SweepFacts(
        title="t", file="f", defines={}, text="", identity="", machine="m", lists={}, constraints=(),
        weights={"net": 1}, objectives=(ObjectiveSpec(metric="latency_us"),),
        axes={"N": ("", (1, 2, 4)), "M": ("", (10, 20))},
    )  # fmt: skip
    asked: list[tuple[int, int]] = []

    def explained(a: DesignPoint, b: DesignPoint) -> list[list[str]]:
        asked.append((int(a.choices["N"]), int(b.choices["N"])))
        return [["net tile kernel", "4 tiles", "5 tiles"]]

    (found,) = cast(
        "list[dict[str, object]]", page_data(facts, points, {"N": "more"}, {}, "", (), explained)["reversals"]
    )
    assert asked == [(1, 2)]
    assert found["decisions"] == [["net tile kernel", "4 tiles", "5 tiles"]]
