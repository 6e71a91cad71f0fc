"""Options of the emitted C."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class COptions(BaseModel):
    """Options of the emitted C. None changes a bit of the results."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    openmp: bool = Field(default=False, description="OpenMP loops for blocks tagged thread or parallel")
    arenas: bool = Field(
        default=True,
        description="one arena for each location, in which placed buffers lie at their addresses",
    )
    constants: Literal["inline", "arguments"] = Field(
        default="inline", description="constant buffers as static arrays, or as arguments after the outputs"
    )
    reorder: bool = Field(
        default=False,
        description="loops of innermost blocks in the order that suits caches and vectors, instead of that given",
    )
    stack_bytes: int = Field(default=16384, ge=0, description="largest allocation that becomes a local array")
    checked: bool = Field(
        default=False,
        description="a heap block for each larger allocation, so that a sanitizer sees where it ends",
    )
    profile: bool = Field(
        default=False,
        description="a call `st_kernel_done(n)` after the n-th kernel of main, which the caller defines",
    )
