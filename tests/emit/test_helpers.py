"""The helpers of C: each brings what it names, in whatever file it is the only one."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from stripe.emit.c.dialect import C11, FLAGS
from stripe.emit.c.helpers import FIXED, TYPED, Helpers
from stripe.ir import DTYPES, INTRINSICS

NARROW = [
    f"{dtype}_{form}" for dtype in DTYPES.values() if dtype.is_narrow for form in ("load", "store", "round")
]
INTEGERS = [
    f"{helper}_{dtype}{source}"
    for dtype in DTYPES.values()
    for helper, kind in TYPED
    if dtype.kind == kind and (helper != "index" or dtype.bits == 64)
    for source in (("_fp32", "_fp64") if helper == "to" else ("",))
]
ELEMENTARY = [name for name, spec in INTRINSICS.items() if spec.steps is not None]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_each_helper_stands_alone(compiler: str) -> None:
    """A file of one helper has the headers, macros and functions that the helper names, each before its use."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    refused: dict[str, str] = {}
    for name in dict.fromkeys([*FIXED, *NARROW, *INTEGERS, *ELEMENTARY]):
        helpers = Helpers(C11)
        helpers.need(name)
        text = "\n".join([*C11.includes(helpers.headers), *helpers.texts(), "typedef int a_file;"])
        command = [
            compiler,
            *FLAGS,
            "-Wall",
            "-Wextra",
            "-Werror",
            "-Wno-unused-function",
            "-fsyntax-only",
            "-xc",
            "-",
        ]
        run = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if run.returncode:
            refused[name] = run.stderr
    assert refused == {}
