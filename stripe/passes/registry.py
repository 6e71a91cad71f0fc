"""The passes by name. Built-in ones stand in the table; others come through the entry-point group `stripe.passes`."""

from __future__ import annotations

from stripe.config.registry import Registry
from stripe.passes.base import Pass

BUILTIN: dict[str, str] = {
    "autotile": "autotile.autotile:Autotile",
    "cache": "cache:Cache",
    "compute_deps": "compute_deps:ComputeDeps",
    "constant_fold": "constant_fold:ConstantFold",
    "constant_tensor": "constant_tensor:ConstantTensor",
    "dce": "dce:DeadCodeElimination",
    "fix_strides": "fix_strides:FixStrides",
    "fusion": "fusion.fusion:Fusion",
    "hoist": "hoist:Hoist",
    "layout": "layout.layout:Layout",
    "localize": "localize:Localize",
    "locate_block": "locate:LocateBlock",
    "locate_inner_block": "locate:LocateInnerBlock",
    "locate_memory": "locate:LocateMemory",
    "locate_recursive": "locate:LocateRecursive",
    "map": "map.map:Map",
    "memory_placement": "memory_placement.memory_placement:MemoryPlacement",
    "package": "package:Package",
    "pad": "pad.pad:Pad",
    "partition": "partition.partition:Partition",
    "pattern": "pattern.pattern:Pattern",
    "peel": "peel:Peel",
    "prune_aggregations": "prune_aggregations:PruneAggregations",
    "prune_indexes": "prune_indexes:PruneIndexes",
    "prune_refinements": "prune_refinements:PruneRefinements",
    "reduce_constraints": "reduce_constraints:ReduceConstraints",
    "register_cache": "register_cache.register_cache:RegisterCache",
    "reorder_blocks": "reorder_blocks:ReorderBlocks",
    "reorder_indexes": "reorder_indexes:ReorderIndexes",
    "rewrite_locations": "locate:RewriteLocations",
    "scalarize": "scalarize:Scalarize",
    "schedule": "schedule.schedule:Schedule",
    "split_reduction": "split_reduction:SplitReduction",
    "subgroup": "subgroup.subgroup:Subgroup",
    "tensorize": "tensorize.tensorize:Tensorize",
    "thread": "thread:Thread",
    "transpose": "transpose:Transpose",
    "unfold": "unfold:Unfold",
    "unroll": "unroll:Unroll",
    "vectorize": "vectorize:Vectorize",
}
"""Name of the pass -> `module:Class` below `stripe.passes`; a module is imported when its pass is first asked for."""

SHORT_NAMES: dict[str, str] = {
    "fuse": "fusion",
    "locate": "locate_block",
    "place": "memory_placement",
    "stencil": "tensorize",
    "prune_idxs": "prune_indexes",
    "prune_refs": "prune_refinements",
    "dead_code_elimination": "dce",
}


PASSES = Registry(
    "pass", "stripe.passes", Pass, "stripe.passes", BUILTIN, "stripe-opt --list-passes", SHORT_NAMES
)


def pass_names() -> tuple[str, ...]:
    """All passes by their full names, sorted."""
    return PASSES.names()


def find_pass(name: str) -> type[Pass]:
    """The class of the pass called `name` (short names included); ConfigError that names the nearest otherwise."""
    return PASSES.find(name)
