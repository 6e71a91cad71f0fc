"""The passes by name. Built-in ones stand in the table; others come through the entry-point group `stripe.passes`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from stripe.ir import ConfigError, closest
from stripe.passes.base import Pass

ENTRY_POINT_GROUP = "stripe.passes"

BUILTIN: dict[str, str] = {
    "autotile": "autotile.autotile:Autotile",
    "cache": "cache:Cache",
    "compute_deps": "compute_deps:ComputeDeps",
    "constant_fold": "constant_fold:ConstantFold",
    "constant_tensor": "constant_tensor:ConstantTensor",
    "dce": "dce:DeadCodeElimination",
    "fix_strides": "fix_strides:FixStrides",
    "fusion": "fusion.fusion:Fusion",
    "layout": "layout.layout:Layout",
    "localize": "localize:Localize",
    "locate_block": "locate_block:LocateBlock",
    "locate_inner_block": "locate_inner_block:LocateInnerBlock",
    "locate_memory": "locate_memory:LocateMemory",
    "locate_recursive": "locate_recursive:LocateRecursive",
    "memory_placement": "memory_placement.memory_placement:MemoryPlacement",
    "package": "package:Package",
    "pad": "pad.pad:Pad",
    "partition": "partition.partition:Partition",
    "pattern": "pattern.pattern:Pattern",
    "peel": "peel:Peel",
    "prune_indexes": "prune_indexes:PruneIndexes",
    "prune_refinements": "prune_refinements:PruneRefinements",
    "reduce_constraints": "reduce_constraints:ReduceConstraints",
    "register_cache": "register_cache.register_cache:RegisterCache",
    "reorder_blocks": "reorder_blocks:ReorderBlocks",
    "reorder_indexes": "reorder_indexes:ReorderIndexes",
    "rewrite_locations": "rewrite_locations:RewriteLocations",
    "scalarize": "scalarize:Scalarize",
    "schedule": "schedule.schedule:Schedule",
    "split_reduction": "split_reduction:SplitReduction",
    "subgroup": "subgroup.subgroup:Subgroup",
    "tensorize": "tensorize.tensorize:Tensorize",
    "thread": "thread:Thread",
    "transpose": "transpose:Transpose",
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


@cache
def _third_party() -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=ENTRY_POINT_GROUP)}


def pass_names() -> tuple[str, ...]:
    """All passes by their full names, sorted."""
    return tuple(sorted({*BUILTIN, *_third_party()}))


def find_pass(name: str) -> type[Pass]:
    """The class of the pass called `name` (short names included); ConfigError that names the nearest otherwise."""
    full = SHORT_NAMES.get(name, name)
    known = {**_third_party(), **BUILTIN}
    if full not in known:
        near = closest(name, [*known, *SHORT_NAMES])
        hint = f"did you mean '{near}'?" if near else "stripe-opt --list-passes lists them"
        raise ConfigError(f"unknown pass '{name}'", hint=hint)
    found = _load_builtin(known[full]) if full in BUILTIN else _load_third_party(full, known[full])
    if not (isinstance(found, type) and issubclass(found, Pass)):
        raise ConfigError(
            f"the entry point of pass '{full}' is no Pass",
            hint="it must be a subclass of stripe.passes.base.Pass",
        )
    return found


def _load_builtin(place: str) -> object:
    module, _, attribute = place.partition(":")
    return getattr(import_module(f"stripe.passes.{module}"), attribute)


def _load_third_party(name: str, place: str) -> object:
    """As `_load_builtin`; ConfigError when the package that registered the pass is broken: no fault of ours."""
    module, _, attribute = place.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:  # noqa: BLE001 - a foreign module may raise anything
        raise ConfigError(
            f"the pass '{name}' cannot be loaded from '{place}': {type(error).__name__}: {error}",
            hint=f"repair or remove the package that registers it in the group {ENTRY_POINT_GROUP}",
        ) from None
