"""Stripe: nested polyhedral blocks with refinements and constraints, as frozen values; their text, checks and
rewriting.

Only numpy may be imported below this package, and only lazily, because `--help` passes by here.
"""

from __future__ import annotations

from stripe.ir.affine import Affine, Atom, FloorDiv, Interval, Mod
from stripe.ir.block import (
    Block,
    Constant,
    Constraint,
    Index,
    Intrinsic,
    Load,
    LoadIndex,
    ScalarStatement,
    Special,
    Statement,
    Store,
)
from stripe.ir.check.diagnostic import Diagnostic
from stripe.ir.check.magnitude import check_block_magnitude, check_magnitude
from stripe.ir.check.stages import Stage
from stripe.ir.check.structure import allocation_agg, verify_structural
from stripe.ir.dtypes import DTYPES, DType, common_type, common_type_of
from stripe.ir.errors import ConfigError, StripeError, StripeWarning, closest
from stripe.ir.intrinsics import (
    INTRINSICS,
    SPECIALS,
    TRANSCENDENTAL,
    IntrinsicSpec,
    SpecialSpec,
    result_dtype,
)
from stripe.ir.location import Device, Location
from stripe.ir.program import ConstantBuffer, Program
from stripe.ir.refinement import Agg, Dim, Direction, Refinement, row_major
from stripe.ir.span import Span
from stripe.ir.tags import Tags, TagValue
from stripe.ir.text.names import RESERVED, fresh, is_name, is_tag
from stripe.ir.text.parser import ParsedProgram, parse_affine, parse_location, parse_program, parse_with_spans
from stripe.ir.text.printer import print_block, print_program, print_refinement, print_statement
from stripe.ir.traverse import (
    Path,
    aggregations_of,
    block_at,
    keep_statements,
    map_statements,
    map_views,
    reads_of,
    rename_indices,
    rename_refinements,
    rename_scalars,
    retarget,
    rewrite_blocks,
    rewrite_matching,
    scalar_defined,
    scalars_used,
    substitute,
    substitute_ref,
    uses_by_name,
    uses_of,
    views_of,
    walk,
    with_directions,
    with_entry,
    with_statement,
    with_statements,
    writes_of,
)

__all__ = [
    "DTYPES",
    "INTRINSICS",
    "RESERVED",
    "SPECIALS",
    "TRANSCENDENTAL",
    "Affine",
    "Agg",
    "Atom",
    "Block",
    "ConfigError",
    "Constant",
    "ConstantBuffer",
    "Constraint",
    "DType",
    "Device",
    "Diagnostic",
    "Dim",
    "Direction",
    "FloorDiv",
    "Index",
    "Interval",
    "Intrinsic",
    "IntrinsicSpec",
    "Load",
    "LoadIndex",
    "Location",
    "Mod",
    "ParsedProgram",
    "Path",
    "Program",
    "Refinement",
    "ScalarStatement",
    "Span",
    "Special",
    "SpecialSpec",
    "Stage",
    "Statement",
    "Store",
    "StripeError",
    "StripeWarning",
    "TagValue",
    "Tags",
    "aggregations_of",
    "allocation_agg",
    "block_at",
    "check_block_magnitude",
    "check_magnitude",
    "closest",
    "common_type",
    "common_type_of",
    "fresh",
    "is_name",
    "is_tag",
    "keep_statements",
    "map_statements",
    "map_views",
    "parse_affine",
    "parse_location",
    "parse_program",
    "parse_with_spans",
    "print_block",
    "print_program",
    "print_refinement",
    "print_statement",
    "reads_of",
    "rename_indices",
    "rename_refinements",
    "rename_scalars",
    "result_dtype",
    "retarget",
    "rewrite_blocks",
    "rewrite_matching",
    "row_major",
    "scalar_defined",
    "scalars_used",
    "substitute",
    "substitute_ref",
    "uses_by_name",
    "uses_of",
    "verify_structural",
    "views_of",
    "walk",
    "with_directions",
    "with_entry",
    "with_statement",
    "with_statements",
    "writes_of",
]  # fmt: skip
