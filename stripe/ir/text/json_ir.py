"""The IR as JSON, for scripts: the classes below are its schema (`stripe-opt --schema ir` exports it).

Every node has the names of the IR's own classes; statements carry `kind`. An absent location is `[]`, absent tags `{}`.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

from stripe.ir import (
    Affine,
    Block,
    Constant,
    FloorDiv,
    Index,
    Intrinsic,
    Load,
    LoadIndex,
    Location,
    Program,
    Refinement,
    Special,
    Statement,
    Store,
    Tags,
)

FORMAT_VERSION = 1
TagsJson: TypeAlias = "dict[str, bool | int | float | str | None]"


class TermJson(TypedDict):
    """`coefficient` times an atom: an `index`, or `floor`(affine / `divisor`), or `mod`(affine, `divisor`)."""

    coefficient: int
    index: NotRequired[str]
    floor: NotRequired[AffineJson]
    mod: NotRequired[AffineJson]
    divisor: NotRequired[int]


class AffineJson(TypedDict):
    """`offset` plus the sum of `terms`."""

    offset: int
    terms: list[TermJson]


class DeviceJson(TypedDict):
    """One level of a location: a unit's name and its numbers."""

    name: str
    units: list[AffineJson]


class IndexJson(TypedDict):
    """An index over [0, range); with `affine` not null one value passed in from the block outside."""

    name: str
    range: int
    affine: AffineJson | None
    tags: TagsJson


class DimJson(TypedDict):
    """Size and stride of one dimension, in elements."""

    size: int
    stride: int


class RefinementJson(TypedDict):
    """A view of `source` moved by `access`, or an allocation when `dir` is none. `offset` is in bytes."""

    name: str
    dir: Literal["none", "in", "out", "inout"]
    source: str
    access: list[AffineJson]
    dtype: str
    dims: list[DimJson]
    agg: Literal["assign", "add", "mul", "min", "max"]
    location: list[DeviceJson]
    offset: int
    bank_dim: int | None
    tags: TagsJson


class StatementJson(TypedDict):
    """What all statements have: numbers of the earlier statements that it depends on, and tags."""

    deps: list[int]
    tags: TagsJson


class LoadJson(StatementJson):
    """`$into = load(ref)`."""

    kind: Literal["load"]
    into: str
    ref: str


class StoreJson(StatementJson):
    """`ref = store($value)`."""

    kind: Literal["store"]
    ref: str
    value: str


class LoadIndexJson(StatementJson):
    """`$into = load_index(affine)`."""

    kind: Literal["load_index"]
    into: str
    affine: AffineJson


class ConstantJson(StatementJson):
    """`$into = (dtype)value`; a value that JSON cannot hold is the text inf, -inf or nan."""

    kind: Literal["constant"]
    into: str
    value: bool | int | float | str
    dtype: str


class IntrinsicJson(StatementJson):
    """`$into = op($inputs)`; `dtype` is for cast alone."""

    kind: Literal["intrinsic"]
    into: str
    op: str
    inputs: list[str]
    dtype: str | None


class SpecialJson(StatementJson):
    """`(outputs) = op(inputs)` on whole refinements."""

    kind: Literal["special"]
    op: str
    outputs: list[str]
    inputs: list[str]


class BlockJson(StatementJson):
    """A block; each constraint means `>= 0`."""

    kind: Literal["block"]
    name: str
    comments: list[str]
    location: list[DeviceJson]
    indices: list[IndexJson]
    constraints: list[AffineJson]
    refinements: list[RefinementJson]
    statements: list[AnyStatementJson]


AnyStatementJson: TypeAlias = (
    "LoadJson | StoreJson | LoadIndexJson | ConstantJson | IntrinsicJson | SpecialJson | BlockJson"
)


class ConstantBufferJson(TypedDict):
    """Contents of an allocation of the entry: little-endian elements in row-major order, as hexadecimal digits."""

    name: str
    dtype: str
    sizes: list[int]
    data: str


class ProgramJson(TypedDict):
    """A whole program."""

    stripe_ir: int
    entry: BlockJson
    constants: list[ConstantBufferJson]


def program_json(program: Program) -> ProgramJson:
    """The program as values that the `json` module writes."""
    return {
        "stripe_ir": FORMAT_VERSION,
        "entry": _block(program.entry),
        "constants": [
            {"name": c.name, "dtype": c.dtype.name, "sizes": list(c.sizes), "data": c.data.hex()}
            for c in program.constants
        ],
    }


def _affine(affine: Affine) -> AffineJson:
    terms: list[TermJson] = []
    for atom, coefficient in affine.terms:
        if isinstance(atom, str):
            terms.append({"coefficient": coefficient, "index": atom})
        elif isinstance(atom, FloorDiv):
            terms.append({"coefficient": coefficient, "floor": _affine(atom.arg), "divisor": atom.divisor})
        else:
            terms.append({"coefficient": coefficient, "mod": _affine(atom.arg), "divisor": atom.modulus})
    return {"offset": affine.offset, "terms": terms}


def _tags(tags: Tags) -> TagsJson:
    return dict(tags.entries)


def _location(location: Location) -> list[DeviceJson]:
    return [
        {"name": device.name, "units": [_affine(unit) for unit in device.units]}
        for device in location.devices
    ]


def _index(index: Index) -> IndexJson:
    affine = None if index.affine is None else _affine(index.affine)
    return {"name": index.name, "range": index.range, "affine": affine, "tags": _tags(index.tags)}


def _refinement(ref: Refinement) -> RefinementJson:
    return {
        "name": ref.name,
        "dir": ref.dir.value,
        "source": ref.source,
        "access": [_affine(affine) for affine in ref.access],
        "dtype": ref.dtype.name,
        "dims": [{"size": dim.size, "stride": dim.stride} for dim in ref.dims],
        "agg": ref.agg.value,
        "location": _location(ref.location),
        "offset": ref.offset,
        "bank_dim": ref.bank_dim,
        "tags": _tags(ref.tags),
    }


def _block(block: Block) -> BlockJson:
    return {
        "kind": "block",
        "deps": list(block.deps),
        "tags": _tags(block.tags),
        "name": block.name,
        "comments": list(block.comments),
        "location": _location(block.location),
        "indices": [_index(index) for index in block.indices],
        "constraints": [_affine(constraint.affine) for constraint in block.constraints],
        "refinements": [_refinement(ref) for ref in block.refinements],
        "statements": [_statement(statement) for statement in block.statements],
    }


def _statement(statement: Statement) -> AnyStatementJson:
    deps, tags = list(statement.deps), _tags(statement.tags)
    match statement:
        case Load(into, ref):
            return {"kind": "load", "deps": deps, "tags": tags, "into": into, "ref": ref}
        case Store(ref, value):
            return {"kind": "store", "deps": deps, "tags": tags, "ref": ref, "value": value}
        case LoadIndex(into, affine):
            return {"kind": "load_index", "deps": deps, "tags": tags, "into": into, "affine": _affine(affine)}
        case Constant(into, value, dtype):
            shown = _finite(value)
            return {
                "kind": "constant",
                "deps": deps,
                "tags": tags,
                "into": into,
                "value": shown,
                "dtype": dtype.name,
            }
        case Intrinsic(into, op, inputs, dtype):
            name = None if dtype is None else dtype.name
            return {
                "kind": "intrinsic", "deps": deps, "tags": tags, "into": into, "op": op, "inputs": list(inputs),
                "dtype": name,
            }  # fmt: skip
        case Special(op, outputs, inputs):
            return {
                "kind": "special", "deps": deps, "tags": tags, "op": op, "outputs": list(outputs),
                "inputs": list(inputs),
            }  # fmt: skip
        case Block():
            return _block(statement)


def _finite(value: bool | int | float) -> bool | int | float | str:
    """JSON has no infinities and no NaN: those become text."""
    return repr(value) if value != value or value in (float("inf"), float("-inf")) else value
