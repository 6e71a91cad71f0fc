"""Options of the emitted C."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

OpenMP: TypeAlias = Annotated[bool, Field(description="OpenMP loops for blocks tagged thread or parallel")]
Reorder: TypeAlias = Annotated[
    bool,
    Field(
        description="loops of innermost blocks in the order that suits caches and vectors, instead of that given"
    ),
]
StackBytes: TypeAlias = Annotated[
    int, Field(ge=0, description="largest allocation that becomes a local array; others lie in the workspace")
]
LOCAL_ARRAY_BYTES = 16384


class COptions(BaseModel):
    """Options of the emitted C. None changes a bit of the results."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    openmp: OpenMP = False
    arenas: bool = Field(
        default=True,
        description="one arena for each location, in which placed buffers lie at their addresses",
    )
    constants: Literal["inline", "arguments"] = Field(
        default="inline", description="constant buffers as static arrays, or as arguments after the outputs"
    )
    reorder: Reorder = False
    stack_bytes: StackBytes = LOCAL_ARRAY_BYTES
    checked: bool = Field(
        default=False,
        description="a heap block for each larger allocation, so that a sanitizer sees where it ends",
    )
    profile: bool = Field(
        default=False,
        description="a call `st_kernel_done(n)` after the n-th kernel of main, which the caller defines",
    )
