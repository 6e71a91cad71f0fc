"""Work that a unit does at once: stencils, the axes of a grid of units, systolic arrays."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from stripe.config.model import ConfigModel
from stripe.hw.tables import DTypeName, NotNegative, Positive, unknown
from stripe.ir.intrinsics import INTRINSICS
from stripe.ir.refinement import Agg

MAX_COUNT = 65536
"""Most units of one name."""

Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]


class StencilIndex(ConfigModel):
    """One index of a stencil. The rules say which coefficient it has in the access of each output and input:
    -1 any, 0 none, 1 contiguous, else that very number."""

    name: str = Field(description="for remarks and tags of the index that takes this place")
    size: int = Field(description="points of this index; -1: the whole range of what it matches")
    outs: tuple[Annotated[int, Field(ge=-1)], ...] = Field(description="one rule for each output")
    ins: tuple[Annotated[int, Field(ge=-1)], ...] = Field(description="one rule for each input")

    @model_validator(mode="after")
    def _size_is_meant(self) -> StencilIndex:
        if self.size != -1 and self.size < 1:
            raise ValueError(
                f"the size of the index '{self.name}' must be at least 1, or -1 for the whole range"
            )
        return self


class Stencil(ConfigModel):
    """A block of work that a unit does as one instruction. The form is that of the pass `tensorize`, and what the
    instruction computes stands beside it."""

    idxs: tuple[StencilIndex, ...] = Field(min_length=1, description="its indices")
    name: str | None = Field(default=None, description="for remarks")
    startup_cost: NotNegative = Field(default=0.0, description="cost of one use beside its points, in points")
    combination: str | None = Field(
        default=None, description="intrinsic that combines the inputs, such as 'mul'"
    )
    aggregation: Agg | None = Field(
        default=None, description="how results of one output element are put together"
    )
    dtypes: tuple[DTypeName, ...] = Field(default=(), description="dtypes of inputs that it takes; none: any")
    accumulator: DTypeName | None = Field(
        default=None, description="dtype of the results; absent: that of the inputs"
    )
    cycles: Positive | None = Field(
        default=None, description="cycles of one use; absent: by the unit's ops_per_cycle"
    )

    @model_validator(mode="after")
    def _rules_agree(self) -> Stencil:
        if len({(len(index.outs), len(index.ins)) for index in self.idxs}) > 1:
            raise ValueError("all indices of a stencil need the same number of 'outs' and of 'ins'")
        names = [index.name for index in self.idxs]
        if len(set(names)) < len(names):
            raise ValueError(f"two indices of the stencil have the same name ({', '.join(names)})")
        if self.combination is not None and self.combination not in INTRINSICS:
            raise ValueError(unknown("combination", self.combination, INTRINSICS))
        return self


class GridAxis(ConfigModel):
    """An axis of a grid of units that work in step. What several positions need is read once and multicast; results
    that they add to one element are summed on the way."""

    name: str = Field(description="name that memories refer to by 'along'")
    size: Count = Field(description="positions along it")
    carries: Literal["any", "reduced", "outputs", "multicast"] = Field(
        default="any",
        description="indices that may run along it: any; those that results are summed over; those of the results; "
        "of these only the ones on which the moving operand does not depend, so that it is multicast",
    )


class SystolicArray(ConfigModel):
    """Rows and columns of multiply-accumulate units through which operands flow."""

    rows: Count = Field(description="multiply-accumulate units in a column")
    columns: Count = Field(description="multiply-accumulate units in a row")
    dataflow: Literal["weight_stationary", "output_stationary", "input_stationary", "row_stationary"] = Field(
        description="operand that stays in the units"
    )
    loads_ahead: bool = Field(
        default=False,
        description="a weight-stationary array shifts in the weights of its next fold while it computes",
    )
