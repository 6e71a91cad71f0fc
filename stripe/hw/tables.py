"""Tables of numbers by operation and dtype, as hardware models write them, and names of dtypes in models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from stripe.ir.dtypes import DTYPES, DType
from stripe.ir.errors import did_you_mean
from stripe.ir.intrinsics import INTRINSICS

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _known_dtype(name: str) -> str:
    if name not in DTYPES:
        raise ValueError(unknown("dtype", name, DTYPES))
    return name


def unknown(kind: str, name: str, known: Mapping[str, object]) -> str:
    """The message for an unknown name in a model, with the nearest known name or all of them."""
    return f"unknown {kind} '{name}'; " + did_you_mean(name, known, f"known: {', '.join(known)}")


DTypeName = Annotated[str, AfterValidator(_known_dtype)]


def _as_table(value: object) -> object:
    """A plain number is the same for all operations."""
    return {"all": value} if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _known_operations(table: dict[str, float]) -> dict[str, float]:
    for key in table:
        operation, _, dtype = key.partition(":")
        if dtype:
            _known_dtype(dtype)
        if operation not in INTRINSICS and operation != "mac" and not (operation in DTYPES and not dtype):
            if key == "all":
                continue
            raise ValueError(unknown("operation or dtype", operation, INTRINSICS | DTYPES))
    return table


TABLE_HELP = (
    "one number for all operations, or by key: 'op:dtype', 'op', 'dtype', 'all', looked up in this order"
)

RateTable = Annotated[
    dict[str, Positive],
    BeforeValidator(_as_table, json_schema_input_type=Positive | dict[str, Positive]),
    AfterValidator(_known_operations),
]
EnergyTable = Annotated[
    dict[str, NotNegative],
    BeforeValidator(_as_table, json_schema_input_type=NotNegative | dict[str, NotNegative]),
    AfterValidator(_known_operations),
]


def look_up(table: Mapping[str, float], operation: str, dtype: DType) -> float | None:
    """The entry for an operation on a dtype, the most specific key first; None where there is none."""
    for key in (f"{operation}:{dtype.name}", operation, dtype.name, "all"):
        if key in table:
            return table[key]
    return None
