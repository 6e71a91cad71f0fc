"""The sweep file: the machine, pass lists and workloads, the axes that vary, and the aims, as pydantic models.

{ "hardware": "dsp_conv", "passes": ["dsp_conv"],
  "workloads": [ { "path": "networks/resnet50.tile", "weight": 3 }, { "path": "networks/mobilenet.tile" } ],
  "axes": { "NUM_CONV": { "log2": [1, 8] }, "SRAM_SIZE_KIB": { "values": [128, 512] }, "CLOCK_MHZ": {} },
  "conditions": ["NUM_SRAM * SRAM_SIZE_KIB <= 4096"],
  "constraints": ["area_mm2 < 4"],
  "objectives": ["latency_us", "energy_pJ"] }
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from stripe.config.model import ConfigModel, Scalar
from stripe.config.parameters import Number, ParameterName, Value
from stripe.frontends.registry import BUILTIN_SUFFIXES

MAX_VALUES = 10_000
"""Most values of one axis."""

Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class AxisSpec(ConfigModel):
    """The values of one parameter. An axis without any takes those that its params file describes."""

    values: tuple[Value, ...] | None = Field(default=None, min_length=1, description="the values themselves")
    range: tuple[Number, Number] | tuple[Number, Number, Number] | None = Field(
        default=None, description="first and last value, and the step between values (default: 1)"
    )
    log2: tuple[Number, Number] | None = Field(
        default=None, description="first and last value; each is twice the one before"
    )
    when: str | None = Field(
        default=None,
        description="Jinja expression over other parameters: where it is false, the parameter keeps its default",
    )

    @model_validator(mode="after")
    def _has_one_form(self) -> AxisSpec:
        forms = [name for name in ("values", "range", "log2") if getattr(self, name) is not None]
        if len(forms) > 1:
            raise ValueError(f"an axis has one of 'values', 'range' and 'log2', not {' and '.join(forms)}")
        _check_distinct(self.values or ())
        if self.range is not None:
            low, high, step = (*self.range, 1)[:3]
            if step <= 0:
                raise ValueError(f"the step {step} must be more than 0")
            if low > high:
                raise ValueError(f"the range from {low} to {high} is empty")
            if (high - low) / step >= MAX_VALUES:
                raise ValueError(f"the range has more than {MAX_VALUES} values; take a larger step")
        if self.log2 is not None and not 0 < self.log2[0] <= self.log2[1]:
            raise ValueError(f"doubling does not lead from {self.log2[0]} to {self.log2[1]}")
        return self

    def listed(self) -> tuple[Scalar, ...] | None:
        """The values in order; None for an axis that leaves them to the params file."""
        if self.values is not None:
            return self.values
        if self.range is not None:
            low, high, step = (*self.range, 1)[:3]
            return spaced(low, high, step)
        return doubled(*self.log2) if self.log2 is not None else None


def _check_distinct(values: Sequence[Value]) -> None:
    """Raises ValueError for equal values: points are told apart by equality, by which true is 1, and so is 1.0."""
    seen: dict[Value, Value] = {}
    for value in values:
        if value in seen:
            one, other = json.dumps(seen[value]), json.dumps(value)
            raise ValueError(
                "a value stands there twice" if one == other else f"the values {one} and {other} are equal"
            )
        seen[value] = value


def spaced(low: Number, high: Number, step: Number) -> tuple[Scalar, ...]:
    """The numbers from `low` to `high`, `step` apart; whole where all three are."""
    count = int((high - low) / step + 1e-9) + 1
    return tuple(low + number * step for number in range(count))


def doubled(low: Number, high: Number) -> tuple[Scalar, ...]:
    """`low` and its doubles, up to `high`."""
    found = [low]
    while found[-1] * 2 <= high:
        found.append(found[-1] * 2)
    return tuple(found)


class WorkloadSpec(ConfigModel):
    """A program to evaluate, and its share in a mix of programs."""

    path: str = Field(description=f"file of the program: {BUILTIN_SUFFIXES}; from the sweep file's folder")
    name: str | None = Field(default=None, description="name in rows and reports; default: that of the file")
    weight: Weight = Field(default=1.0, description="factor of its latency, energy and operations in the mix")
    shapes: dict[str, str] = Field(
        default_factory=dict, description='shapes of inputs, as --shape spells them: { "A": "128x20:fp32" }'
    )
    dims: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict,
        description='sizes of symbolic dimensions of a network, as --dim gives them: { "N": 1 }',
    )


class PassListSpec(ConfigModel):
    """A pass list to compare with others."""

    config: str = Field(description="pass list by shipped name, or by path from the sweep file's folder")
    name: str | None = Field(default=None, description="name in rows and reports; default: that of the list")
    parameters: dict[ParameterName, Value] = Field(
        default_factory=dict, description="fixed parameters of this list, as -D gives them"
    )


class ObjectiveSpec(ConfigModel):
    """A metric to make small, or large."""

    metric: str = Field(
        description="name of a metric, such as latency_us, or its path, such as memories.SRAM.peak_bytes"
    )
    goal: Literal["min", "max"] = Field(default="min", description="the better direction")


class StrategySpec(ConfigModel):
    """The order and choice of points."""

    name: Literal["grid", "random", "nsga2", "tpe"] = Field(
        default="grid",
        description="grid: all points in order; random: a sample without repetition; nsga2, tpe: samplers of Optuna, "
        "which learn from results",
    )
    seed: int = Field(default=0, ge=0, description="seed of all that is random")
    generation: int = Field(
        default=20, ge=1, le=10_000, description="points that a sampler proposes before it sees their results"
    )


class SweepFile(ConfigModel):
    """A whole sweep."""

    name: str | None = Field(default=None, description="title of the report; default: that of the file")
    hardware: str | None = Field(
        default=None,
        description="hardware model by shipped name, or path from the sweep file's folder; default: that of the lists",
    )
    passes: tuple[str | PassListSpec, ...] = Field(
        min_length=1, description="pass lists; of several, the axis `passes` takes one after the other"
    )
    workloads: tuple[str | WorkloadSpec, ...] = Field(min_length=1, description="programs, or their paths")
    fixed: dict[ParameterName, Value] = Field(
        default_factory=dict, description="parameters that have this value in all points"
    )
    axes: dict[ParameterName, AxisSpec] = Field(
        default_factory=dict,
        description="parameters of the hardware model or of the pass lists that vary, by name",
    )
    conditions: tuple[str, ...] = Field(
        default=(), description="Jinja expressions over parameters; points where one is false are left out"
    )
    constraints: tuple[str, ...] = Field(
        default=(),
        description="Jinja expressions over parameters and metrics; points that break one are infeasible",
    )
    objectives: tuple[str | ObjectiveSpec, ...] = Field(
        default=("latency_us", "energy_pJ"), min_length=1, description="metrics, or metrics with a goal"
    )
    strategy: StrategySpec = Field(default=StrategySpec(), description="order and choice of points")
    points: int | None = Field(default=None, ge=1, description="most points; default: all of the grid")
