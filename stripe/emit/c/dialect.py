"""The words of C11, in which a language near C differs: types, qualifiers, address spaces, thread indices.

OpenCL or CUDA is a subclass that overrides these, and a target that says which blocks are kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from stripe.emit.c.names import sanitize
from stripe.emit.loops.hints import Hint, SimdHint
from stripe.emit.loops.scope import Pointer
from stripe.ir import DType

FLAGS = (
    "-std=c11",
    "-ffp-contract=off",  # an element-wise a*b + c rounds twice; sums of products say multiply-adds themselves
    "-fno-math-errno",  # errno is not read, and sqrt without it is one instruction
    "-fno-trapping-math",  # nor floating-point exceptions: lets conditions become selections
)
"""Flags of the C compiler on which the meaning of emitted code, and its speed, rely."""

_WIDE = 64
"""Bytes of vectors that gcc avoids by itself on most processors that have them."""


class Dialect:
    """C11 with OpenMP. A scalar of a narrow float is a `float` whose value the narrow type can hold; in memory it
    is its bits in an unsigned integer. A bool is a `uint8_t` in memory, so that no byte pattern is undefined behaviour.
    """

    build: ClassVar[str] = f"cc -O3 -march=native {' '.join(FLAGS)} FILE.c -lm"
    index_type: ClassVar[str] = "int64_t"
    byte_type: ClassVar[str] = "unsigned char"
    size_type: ClassVar[str] = "size_t"
    restrict: ClassVar[str] = "restrict "
    kernel: ClassVar[str] = "static void"
    """Qualifiers and result of the functions of blocks."""
    entry: ClassVar[str] = "void"
    helper: ClassVar[str] = "static inline"
    constant: ClassVar[str] = "static const"
    thread: ClassVar[str] = "ST_THREAD"
    """The number of the thread that runs a point of a parallel loop."""
    headers: ClassVar[tuple[str, ...]] = ("stdbool", "stddef", "stdint")
    bool_type: ClassVar[str] = "bool"
    own_functions: ClassVar[bool] = True
    """Whether exp and its kind on fp32 are functions of the file, so that compilers make vectors of them."""
    shares_functions: ClassVar[bool] = False
    """Whether blocks that are equal but for names are one function."""
    float_types: ClassVar[Mapping[int, str]] = {32: "float", 64: "double"}
    """The types of floats, by bits."""

    def integer(self, bits: int, *, signed: bool) -> str:
        """The type of integers of `bits`."""
        return f"{'' if signed else 'u'}int{bits}_t"

    def scalar_type(self, dtype: DType) -> str:
        """The type of a scalar variable."""
        if dtype.kind == "bool":
            return self.bool_type
        if dtype.is_float:
            return self.float_types[dtype.compute.bits]
        return self.integer(dtype.bits, signed=dtype.kind == "int")

    def memory_type(self, dtype: DType) -> str:
        """The type of an element in memory."""
        as_bits = dtype.is_narrow or dtype.kind == "bool"
        return self.integer(8 * dtype.bytes, signed=False) if as_bits else self.scalar_type(dtype)

    def raw_type(self, dtype: DType) -> tuple[str, str]:
        """The type of an element in bytes that hold elements of other types at other times, and its definition: for the
        rules of C on effective types an access of it is one of bytes, so that compilers move none of the others across.
        """
        c_type = self.memory_type(dtype)
        if dtype.bytes == 1:
            return c_type, ""
        name = f"st_raw_{c_type}"
        return (
            name,
            f"""\
#ifdef __GNUC__
typedef {c_type} {name} __attribute__((may_alias));
#else
typedef {c_type} {name}; // strict aliasing has to be off
#endif""",
        )

    def _element_type(self, pointer: Pointer) -> str:
        return self.raw_type(pointer.dtype)[0] if pointer.is_raw else self.memory_type(pointer.dtype)

    def identifier(self, name: str) -> str:
        """An identifier like `name` that is no word of the language."""
        return sanitize(name)

    def function_name(self, block: str) -> str:
        """The name that the function of the block `block` gets where it is free."""
        name = self.identifier(block)
        return name if name.startswith("kernel") else f"kernel_{name}"

    def math(self, name: str, dtype: DType) -> str:
        """The function of the mathematical library on floats of `dtype`; narrow types compute in `float`."""
        return name if dtype.bits == 64 else f"{name}f"

    def parameter(self, pointer: Pointer, *, const: bool, restrict: bool) -> str:
        """A parameter of a function, through which others may reach the same elements unless `restrict`."""
        qualifiers = self.restrict if restrict else ""
        return f"{'const ' if const else ''}{self._element_type(pointer)} *{qualifiers}{pointer.name}"

    def local_array(self, dtype: DType, name: str, count: int, alignment: int) -> str:
        """The definition of an array of a function, aligned to bytes unless 0."""
        aligned = f"_Alignas({alignment}) " if alignment else ""
        return f"{aligned}{self.memory_type(dtype)} {name}[{count}];"

    def pointer_into(self, pointer: Pointer, memory: str, offset: int, *, restrict: bool) -> str:
        """The definition of a pointer to elements at a byte of raw memory."""
        c_type, qualifiers = self._element_type(pointer), self.restrict if restrict else ""
        return f"{c_type} *{qualifiers}{pointer.name} = ({c_type} *)(void *)({memory} + {offset});"

    def hint(self, hint: Hint | None) -> Sequence[str]:
        """Preprocessor lines for the loop that follows."""
        if hint is None:
            return ()
        if isinstance(hint, SimdHint):
            return ("#ifdef _OPENMP", "#pragma omp simd", "#endif")
        return (
            "#if defined(__clang__)",
            f"#pragma clang loop unroll_count({hint.count})",
            "#elif defined(__GNUC__)",
            f"#pragma GCC unroll {hint.count}",
            "#endif",
        )

    def loop(self, var: str, low: str, high: str, step: int = 1) -> str:
        """The head of the loop of `var` over [low, high)."""
        forward = f"++{var}" if step == 1 else f"{var} += {step}"
        return f"for ({self.index_type} {var} = {low}; {var} < {high}; {forward})"

    def parallel(self, loops: Sequence[tuple[str, str, str]]) -> tuple[Sequence[str], Sequence[str]]:
        """Loops (variable, low, high) whose points run on threads: preprocessor lines, and the heads of the braces
        around a point.
        """
        clause = f" collapse({len(loops)})" if len(loops) > 1 else ""
        pragma = f"#pragma omp parallel for{clause} schedule(static)"
        return ("#ifdef _OPENMP", pragma, "#endif"), [self.loop(*loop) for loop in loops]

    def includes(self, headers: Iterable[str]) -> Sequence[str]:
        """The lines that include the headers of the library."""
        return [f"#include <{header}.h>" for header in sorted(headers)]

    def prelude(self, widest_vector: int, *, local_arrays: bool) -> Iterator[str]:
        """Lines before all functions: rules for floats, settings for vectors of so many bytes and for local arrays."""
        yield from ("#ifdef __clang__", "#pragma STDC FP_CONTRACT OFF", "#endif", "")
        if (
            widest_vector >= _WIDE
        ):  # accumulators of a tile that fits the registers of that width fit none of half
            yield "#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)"
            yield f'#pragma GCC target("prefer-vector-width={8 * _WIDE}")'
            yield from ("#endif", "")
        if local_arrays:
            yield "// The program reads no element before it is written, which gcc cannot always see."
            yield "#if defined(__GNUC__) && !defined(__clang__)"
            yield '#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"'
            yield from ("#endif", "")

    def threads(self, thread_bytes: int) -> Iterator[str]:
        """Lines before all functions: the number of threads, the current thread, the bytes of a thread's workspace."""
        yield from ("#ifdef _OPENMP", "#include <omp.h>", "#define ST_THREADS omp_get_max_threads()")
        yield from ("#define ST_THREAD omp_get_thread_num()", "#else", "#define ST_THREADS 1")
        yield from ("#define ST_THREAD 0", "#endif", f"#define ST_THREAD_BYTES {thread_bytes}", "")


C11 = Dialect()
