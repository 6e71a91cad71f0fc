"""What a caller may choose about the emitted C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class EmitOptions:
    """Choices about the emitted C; none of them changes a bit of the results.

    `openmp` turns blocks tagged `thread` or `parallel` into OpenMP loops. `arenas` puts allocations tagged `placed`
    into one arena per location, at their addresses. `constants` says whether constant buffers are static arrays or
    further arguments after the outputs. `reorder` runs the loops of innermost blocks in the order that suits caches and
    vectors, not the one given. `stack_bytes` is the largest allocation that becomes a local array. `checked` gives each
    larger allocation a heap block of its own, so that a sanitizer sees where it ends.
    """

    openmp: bool = False
    arenas: bool = True
    constants: Literal["inline", "arguments"] = "inline"
    reorder: bool = False
    stack_bytes: int = 16384
    checked: bool = False
