"""A language near C is a dialect of a few lines: OpenCL by its types, qualifiers, address spaces and work items.

The text is compiled as C behind a shim that defines the words of OpenCL, and run once for each work item.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import numpy as np
from typing_extensions import override

from stripe.emit.c import COptions, emit_module
from stripe.emit.c.dialect import Dialect
from stripe.emit.loops.hints import Hint
from stripe.emit.loops.scope import Pointer
from stripe.exec.interp import interpret
from stripe.exec.toolchain import CompileOptions, toolchain
from stripe.ir import DType
from tests.support.programs import load


class OpenCL(Dialect):
    """Work items take the points of a parallel loop in turn."""

    index_type: ClassVar[str] = "long"
    entry: ClassVar[str] = "__kernel void"
    own_functions: ClassVar[bool] = False

    @override
    def integer(self, bits: int, *, signed: bool) -> str:
        return ("" if signed else "u") + {8: "char", 16: "short", 32: "int", 64: "long"}[bits]

    @override
    def memory_type(self, dtype: DType) -> str:
        return "uchar" if dtype.kind == "bool" else super().memory_type(dtype)

    @override
    def includes(self, headers: Iterable[str]) -> Sequence[str]:
        return ()

    @override
    def parameter(self, pointer: Pointer, *, const: bool, restrict: bool) -> str:
        return f"__global {super().parameter(pointer, const=const, restrict=restrict)}"

    @override
    def math(self, name: str, dtype: DType) -> str:
        return name

    @override
    def prelude(self, widest_vector: int, *, local_arrays: bool) -> Iterator[str]:
        yield "#pragma OPENCL FP_CONTRACT OFF"

    @override
    def threads(self, thread_bytes: int) -> Iterator[str]:
        yield from ()

    @override
    def local_array(self, dtype: DType, name: str, count: int, alignment: int) -> str:
        return f"{self.memory_type(dtype)} {name}[{count}];"

    @override
    def hint(self, hint: Hint | None) -> Sequence[str]:
        return ()

    @override
    def parallel(self, loops: Sequence[tuple[str, str, str]]) -> tuple[Sequence[str], Sequence[str]]:
        heads = [
            f"for (long {var} = {low} + get_global_id({d}); {var} < {high}; {var} += get_global_size({d}))"
            for d, (var, low, high) in enumerate(loops)
        ]
        return (), heads


SHIM = """\
#include <stddef.h>
#define __kernel
#define __global
typedef unsigned char uchar;
typedef unsigned int uint;
typedef unsigned long ulong;
long shim_id[2], shim_size[2];
static long get_global_id(int d) { return shim_id[d]; }
static long get_global_size(int d) { return shim_size[d]; }
void stripe_test(const float *restrict A, const uint *restrict B, float *restrict O);
"""


def test_a_dialect_of_fifty_lines_gives_kernels_that_run() -> None:
    built = load("emit/dialect/kernels")
    text = emit_module(built, COptions(openmp=True), OpenCL()).source
    entry = re.search(r"__kernel void (\w+)\(__global const float \*restrict A, __global const uint", text)
    assert entry is not None
    assert "for (long i = 0 + get_global_id(0); i < 5; i += get_global_size(0))" in text
    code = re.sub(r"//.*", "", text)
    assert not re.search(r"\w_t\b|#include|_Alignas|omp|expf", code)
    tools = toolchain(CompileOptions(level="O1"))
    shim = SHIM.replace("stripe_test", entry[1]) + "#include <math.h>\n"
    library = ctypes.CDLL(str(tools.build(shim + text, shared=True)))
    data = {
        "A": np.arange(20, dtype=np.float32).reshape(5, 4) / 16,
        "B": np.arange(7, dtype=np.uint32),
    }
    out = np.zeros((5, 7), np.float32)
    sizes = (ctypes.c_long * 2).in_dll(library, "shim_size")
    items = (ctypes.c_long * 2).in_dll(library, "shim_id")
    sizes[:] = (2, 3)
    for item in np.ndindex(2, 3):
        items[:] = item
        library[entry[1]](*(ctypes.c_void_p(array.ctypes.data) for array in (data["A"], data["B"], out)))
    assert np.allclose(out, interpret(built, data)["O"], rtol=1e-6)
