"""The built-in targets by name. Nothing is imported here: help of command lines is made from it."""

from __future__ import annotations

BUILTIN_TARGETS = {
    "stripe": "emit.targets:StripeTarget",
    "tile": "pipeline.targets.source:TileTarget",
    "ast": "pipeline.targets.source:AstTarget",
    "json": "emit.targets:JsonTarget",
    "dot": "emit.targets:DotTarget",
    "c": "emit.c.target:CTarget",
    "library": "pipeline.targets.library:LibraryTarget",
}
"""`module:Class` below `stripe`."""
