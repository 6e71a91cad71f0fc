"""Design spaces: values of axes, conditions, order, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripe.ir import ConfigError
from stripe.ir.package_data import data_dir
from stripe.sweeps.plan import SweepPlan
from stripe.sweeps.schema import AxisSpec

Plans = Callable[..., SweepPlan]


def test_the_grid_varies_the_last_axis_first(plan_of: Plans) -> None:
    points = [dict(point.parameters) for point in plan_of().space.grid()]
    assert points == [{"NUM_CONV": count, "CLOCK_MHZ": clock} for count in (1, 2, 4) for clock in (400, 500)]


def test_an_axis_without_values_takes_those_of_the_params_file(plan_of: Plans) -> None:
    (axis,) = plan_of(axes={"NUM_DSP": {}}).space.axes
    assert axis.values == (1, 2, 4, 8, 16, 32, 64)
    assert axis.unit == "units"


@given(st.integers(-20, 20), st.integers(0, 30), st.integers(1, 7))
def test_a_range_holds_its_first_value_and_each_step_up_to_its_last(low: int, length: int, step: int) -> None:
    listed = AxisSpec(range=(low, low + length, step)).listed()
    assert listed == tuple(range(low, low + length + 1, step))


def test_conditions_leave_points_out(plan_of: Plans) -> None:
    plan = plan_of(conditions=["NUM_CONV * CLOCK_MHZ <= 800"])
    assert [point.key for point in plan.space.grid()] == [
        "passes=dsp_conv,CLOCK_MHZ=400,NUM_CONV=1",
        "passes=dsp_conv,CLOCK_MHZ=500,NUM_CONV=1",
        "passes=dsp_conv,CLOCK_MHZ=400,NUM_CONV=2",
    ]


def test_an_axis_that_depends_on_another_is_left_to_its_default(plan_of: Plans) -> None:
    plan = plan_of(
        axes={"NUM_CONV": {"log2": [1, 2]}, "CLOCK_MHZ": {"values": [400, 500], "when": "NUM_CONV > 1"}}
    )
    assert [point.choices for point in plan.space.grid()] == [
        {"NUM_CONV": 1},
        {"NUM_CONV": 2, "CLOCK_MHZ": 400},
        {"NUM_CONV": 2, "CLOCK_MHZ": 500},
    ]


def test_several_lists_are_an_axis(plan_of: Plans) -> None:
    plan = plan_of(passes=["dsp_conv", {"config": "dsp_conv", "name": "again"}], axes={})
    assert [point.passes for point in plan.space.grid()] == ["dsp_conv", "again"]


def test_a_list_is_rendered_once_for_the_parameters_that_it_depends_on(plan_of: Plans) -> None:
    axes = {
        "NUM_CONV": {"values": [1, 2]},
        "CLOCK_MHZ": {"values": [400, 500]},
        "SRAM_SIZE_KIB": {"values": [64, 128]},
    }
    plan = plan_of(axes=axes)
    lists = []
    for point in plan.space.grid():
        machine, passes = plan.space.templates.rendered(point.choices, point.passes)
        assert (machine, passes) == plan_of(axes=axes).space.templates.rendered(point.choices, point.passes)
        lists.append(passes)
    kinds = {(entries, id(found)) for found in lists for entries in [repr(found.entries)]}
    assert len(kinds) == len({entries for entries, _ in kinds})


def test_a_sample_is_a_part_of_the_grid_and_repeats_nothing(plan_of: Plans) -> None:
    space = plan_of().space
    sample = list(space.sample(4, seed=1))
    assert len(set(sample)) == 4
    assert set(sample) <= set(space.grid())
    assert list(space.sample(4, seed=1)) == sample
    assert set(space.sample(100, seed=2)) == set(space.grid())


@pytest.mark.parametrize(
    ("keys", "reason", "hint"),
    [
        ({"axes": {"NUM_CNV": {"values": [1]}}}, "no template has a parameter 'NUM_CNV'", "did you mean 'NUM_CONV'?"),
        ({"axes": {"NUM_CONV": {"values": []}}}, "needs at least 1 entries", None),
        ({"axes": {"NUM_CONV": {"values": [1, 1]}}}, "a value stands there twice", None),
        ({"axes": {"NUM_CONV": {"values": [2, 1, True]}}}, "the values 1 and true are equal", None),
        ({"axes": {"NUM_CONV": {"range": [4, 1]}}}, "the range from 4 to 1 is empty", None),
        ({"axes": {"NUM_CONV": {"log2": [0, 8]}}}, "doubling does not lead from 0 to 8", None),
        ({"axes": {"NUM_CONV": {"values": [1], "log2": [1, 2]}}}, "one of 'values', 'range' and 'log2'", None),
        ({"axes": {"NUM_CONV": {"values": [1000]}}}, "1000 is not in the range 1 to 64", "convolution engines"),
        ({"axes": {"NUM_CONV": {"values": ["four"]}}}, "'four' is not a whole number", None),
        ({"conditions": ["NUM_CONV > 9"]}, "no point of 6 is left: NUM_CONV > 9", "loosen"),
        ({"conditions": ["NUM_CNV > 9"]}, "there is no parameter 'NUM_CNV'", "did you mean 'NUM_CONV'?"),
        ({"conditions": ["NUM_CONV >"]}, "is no expression", None),
        ({"constraints": ["latenz < 4"]}, "no metric and no parameter 'latenz'", None),
        ({"objectives": ["latency"]}, "there is no metric 'latency'", "did you mean 'latency_us'?"),
        ({"objectives": ["memory.SRAM.peak_bytes"]}, "there is no metric 'memory.SRAM.peak_bytes'", "'memories'?"),
        ({"objectives": ["units.CONV[0].peak"]}, "no metric", "paths of units end with utilisation, busy_cycles"),
        ({"constraints": ["NUM_CONV > 9"]}, "no point of 6 can be feasible: NUM_CONV > 9", "loosen a constraint"),
        ({"constraints": ["area_mm2 < 4", "area_mm2 > 5"]}, "can be feasible: area_mm2 < 4 and area_mm2 > 5", None),
        ({"fixed": {"NUM_CONV": 2}}, "'NUM_CONV' is fixed, and varies on an axis", None),
        ({"workloads": ["mm.til"]}, "unknown language", "the suffixes are"),
        ({"workloads": ["none.tile"]}, "none.tile", None),
        ({"workloads": ["mm.tile", "mm.tile"]}, "two workloads are called 'mm'", None),
        ({"passes": ["dsp_cnv"]}, "there is no pass list called 'dsp_cnv'", "did you mean 'dsp_conv'?"),
        ({"passes": ["minimal"]}, "the key 'hardware' is missing", None),
        ({"hardware": "no.json"}, "there is no file", None),
        ({"axis": {}}, "unknown key 'axis'", "did you mean 'axes'?"),
    ],
)  # fmt: skip
def test_a_wrong_sweep_file_is_refused_with_place_and_suggestion(
    plan_of: Plans, keys: dict[str, object], reason: str, hint: str | None
) -> None:
    with pytest.raises(ConfigError) as caught:
        plan_of(**keys)
    assert reason in caught.value.reason
    assert caught.value.path is not None
    assert caught.value.path.endswith("sweep.json")
    assert caught.value.line is not None
    if hint is not None:
        assert caught.value.hint is not None
        assert hint in caught.value.hint


@pytest.mark.parametrize("name", ["energy", "latency_us", "passes", "status", "edp"])
def test_a_parameter_with_the_name_of_a_metric_or_a_column_is_refused(
    plan_of: Plans, tmp_path: Path, name: str
) -> None:
    for end in ("json.j2", "params.json"):
        text = (data_dir("hwmodels") / f"dsp_conv.{end}").read_text("utf-8")
        (tmp_path / f"named.{end}").write_text(text.replace("NUM_CONV", name), "utf-8")
    with pytest.raises(ConfigError, match=f"a parameter is called '{name}'") as caught:
        plan_of(hardware=str(tmp_path / "named.json.j2"), axes={name: {"values": [1, 2]}})
    assert caught.value.where == f"$.axes.{name}" and caught.value.hint


def test_an_axis_that_no_template_reads_is_refused(plan_of: Plans, tmp_path: Path) -> None:
    (tmp_path / "tiny.json.j2").write_text('{ "clock_mhz": 100 }', "utf-8")
    described = '{ "parameters": { "WIDTH": { "default": 8, "range": [1, 64] } } }'
    (tmp_path / "tiny.params.json").write_text(described, "utf-8")
    with pytest.raises(ConfigError, match="'WIDTH' is described, but no template reads it"):
        plan_of(hardware="./tiny.json.j2", passes=["minimal"], axes={"WIDTH": {}})


def test_points_that_conditions_leave_are_counted(plan_of: Plans) -> None:
    assert plan_of().space.count == 6
    assert plan_of(conditions=["NUM_CONV * CLOCK_MHZ <= 800"]).space.count == 3
    whens = {"NUM_CONV": {"log2": [1, 4]}, "CLOCK_MHZ": {"values": [400, 500], "when": "NUM_CONV > 2"}}
    assert plan_of(axes=whens).space.count == 4
    # each depends on the next, and one that is off on nothing but its default
    chain = {
        "CLOCK_MHZ": {"values": [400, 500], "when": "SRAM_SIZE_KIB < 64"},
        "SRAM_SIZE_KIB": {"values": [32, 64], "when": "NUM_CONV > 1"},
        "NUM_CONV": {"log2": [1, 2]},
    }
    assert plan_of(axes=chain).space.count == 1 + 2 + 1
