"""The C compilers of this machine, and the builds that emitted code must pass."""

from __future__ import annotations

import shutil
from typing import Literal

from stripe.exec.compile import CompileOptions

STRICT = ("-Wall", "-Wextra", "-Werror")
COMPILERS = tuple(name for name in ("gcc", "clang") if shutil.which(name))


def sanitized(level: Literal["O0", "O1"] = "O1") -> CompileOptions:
    """A build with the sanitizers by the default compiler (clang often lacks their libraries)."""
    return CompileOptions(level=level, sanitize=True, extra_flags=STRICT)


def strict(
    compiler: str, level: Literal["O0", "O1", "O2", "O3"] = "O2", *, openmp: bool = False
) -> CompileOptions:
    """A build that no warning passes."""
    return CompileOptions(compiler, level=level, openmp=openmp, extra_flags=STRICT)


BUILDS = [*(strict(name, "O1") for name in COMPILERS), sanitized("O0")]
BUILD_NAMES = [*COMPILERS, "sanitized"]
