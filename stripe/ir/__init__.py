"""Stripe: nested polyhedral blocks with refinements and constraints, as frozen values; their text, checks and
rewriting.

Only numpy may be imported below this package, and only lazily, because `--help` passes by here.
"""

from __future__ import annotations

from stripe.ir.access import (
    determined,
    element_offset,
    is_dense,
    is_row_major,
    linearized,
    separates,
    separating,
    step,
)
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
from stripe.ir.check.structure import unmet_demands, verify_structural
from stripe.ir.content import content_key
from stripe.ir.dtypes import DTYPES, DType, common_type, common_type_of, value_key
from stripe.ir.edit import Around, Edit, keep_statements, moved_down, splice, surround, transitive_reduction
from stripe.ir.errors import ConfigError, StripeError, StripeWarning, closest, did_you_mean
from stripe.ir.index_map import IndexMap, PhysicalLayout
from stripe.ir.intrinsics import (
    INTRINSICS,
    SPECIALS,
    IntrinsicSpec,
    SpecialSpec,
    result_dtype,
)
from stripe.ir.live_ranges import LiveRange, interference, live_ranges, peak_bytes
from stripe.ir.location import Device, Location
from stripe.ir.nest import Buffer, Domain, Nest, View, nest_at
from stripe.ir.program import ConstantBuffer, Program
from stripe.ir.refinement import Agg, Dim, Direction, Refinement, Role, compact_strides, row_major
from stripe.ir.rename import (
    canonical_names,
    rename_indices,
    rename_refinements,
    rename_scalars,
    retarget,
    substitute,
    substitute_ref,
)
from stripe.ir.span import Span
from stripe.ir.stage import Stage
from stripe.ir.tags import FIELD_WORDS, Tags, TagValue
from stripe.ir.text.index_maps import read_index_map
from stripe.ir.text.names import RESERVED, fresh, is_name, is_tag
from stripe.ir.text.parser import ParsedProgram, parse_affine, parse_location, parse_program, parse_with_spans
from stripe.ir.text.printer import print_block, print_program, print_refinement, print_statement
from stripe.ir.unfold import coordinates, digits_of, unfolded, unfolded_nest
from stripe.ir.uses import (
    aggregations,
    aggregations_of,
    beginnings,
    loaded_refs,
    reads_of,
    refs_used,
    scalar_defined,
    scalars_used,
    uses_by_name,
    uses_of,
    views_of,
    with_directions,
    writes_of,
)
from stripe.ir.walk import (
    Path,
    block_at,
    map_statements,
    map_views,
    replace_at,
    rewrite_blocks,
    rewrite_matching,
    walk,
    with_entry,
    with_statement,
    with_statements,
)

__all__ = [
    "DTYPES",
    "FIELD_WORDS",
    "INTRINSICS",
    "RESERVED",
    "SPECIALS",
    "Affine",
    "Agg",
    "Around",
    "Atom",
    "Block",
    "Buffer",
    "ConfigError",
    "Constant",
    "ConstantBuffer",
    "Constraint",
    "DType",
    "Device",
    "Diagnostic",
    "Dim",
    "Direction",
    "Domain",
    "Edit",
    "FloorDiv",
    "Index",
    "IndexMap",
    "Interval",
    "Intrinsic",
    "IntrinsicSpec",
    "LiveRange",
    "Load",
    "LoadIndex",
    "Location",
    "Mod",
    "Nest",
    "ParsedProgram",
    "Path",
    "PhysicalLayout",
    "Program",
    "Refinement",
    "Role",
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
    "View",
    "aggregations",
    "aggregations_of",
    "beginnings",
    "block_at",
    "canonical_names",
    "check_block_magnitude",
    "check_magnitude",
    "closest",
    "common_type",
    "common_type_of",
    "compact_strides",
    "content_key",
    "coordinates",
    "determined",
    "did_you_mean",
    "digits_of",
    "element_offset",
    "fresh",
    "interference",
    "is_dense",
    "is_name",
    "is_row_major",
    "is_tag",
    "keep_statements",
    "linearized",
    "live_ranges",
    "loaded_refs",
    "map_statements",
    "map_views",
    "moved_down",
    "nest_at",
    "parse_affine",
    "parse_location",
    "parse_program",
    "parse_with_spans",
    "peak_bytes",
    "print_block",
    "print_program",
    "print_refinement",
    "print_statement",
    "read_index_map",
    "reads_of",
    "refs_used",
    "rename_indices",
    "rename_refinements",
    "rename_scalars",
    "replace_at",
    "result_dtype",
    "retarget",
    "rewrite_blocks",
    "rewrite_matching",
    "row_major",
    "scalar_defined",
    "scalars_used",
    "separates",
    "separating",
    "splice",
    "step",
    "substitute",
    "substitute_ref",
    "surround",
    "transitive_reduction",
    "unfolded",
    "unfolded_nest",
    "unmet_demands",
    "uses_by_name",
    "uses_of",
    "value_key",
    "verify_structural",
    "views_of",
    "walk",
    "with_directions",
    "with_entry",
    "with_statement",
    "with_statements",
    "writes_of",
]  # fmt: skip
