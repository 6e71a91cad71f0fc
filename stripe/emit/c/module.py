"""Programs into C: one self-contained C11 file with one entry function.

    void stripe_NAME(const float *restrict A, …, float *restrict O);

takes the user tensors that the program reads, then those that it writes, each as its elements under its strides. The
file needs no library but libm. Compile without contraction of a*b + c (`-ffp-contract=off`), which would change bits.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal

from stripe.emit.c.block import Emitter
from stripe.emit.c.boxes import box_element, box_loops
from stripe.emit.c.constants import constant_array
from stripe.emit.c.function import THREADS, WORKSPACE, Buffer, Function, View, whole_view
from stripe.emit.c.names import Names, sanitize, sanitize_comment
from stripe.emit.c.options import COptions
from stripe.emit.c.pragmas import width_lines
from stripe.emit.c.scalars import memory_type
from stripe.emit.c.scope import Scope
from stripe.emit.loops.memory import check_size, is_placed, plan_arenas
from stripe.ir import Affine, Program, Refinement, StripeError, allocation_agg, is_dense

Role = Literal["in", "out", "inout", "const"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the entry function: the user tensor (or constant) `ref`, called `name` in C."""

    name: str
    ref: Refinement
    role: Role


@dataclass(frozen=True, slots=True)
class CModule:
    """A C file: its text, the name of its entry function, and what that takes."""

    source: str
    entry: str
    parameters: tuple[Parameter, ...]


def emit_c(program: Program, options: COptions | None = None) -> str:
    """The program as one C11 file."""
    return emit_module(program, options).source


def emit_module(program: Program, options: COptions | None = None) -> CModule:
    """The program as one C11 file, with what a caller must know of it.

    The program must be valid (`verify_structural`). Raises StripeError for sizes that no machine can address.
    """
    return _ModuleEmitter(program, options or COptions()).module()


class _ModuleEmitter:
    def __init__(self, program: Program, options: COptions) -> None:
        self.program = program
        self.options = options
        self.entry = f"stripe_{sanitize(program.name or 'program')}"
        names = Names([self.entry])
        self.scope = Scope(names)
        self.arenas = plan_arenas(program, names) if options.arenas else {}
        self.emitter = Emitter(options, Names([self.entry]), self.arenas)
        self.function = Function()
        self.constants: list[str] = []
        self.copies_out: list[tuple[View, View]] = []
        if any(index.range > 1 for index in program.entry.indices):
            raise StripeError(
                "the entry block runs at more than one point", hint="only blocks inside have indices"
            )

    def module(self) -> CModule:
        parameters = self._parameters()
        for ref in self.program.entry.refinements:
            check_size(ref)
        scope, _ = self.scope.inside(self.program.entry)
        with ExitStack() as stack:
            for parameter in parameters:
                self._bind(parameter, scope)
            self._bind_inline_constants(parameters, scope)
            self._allocate(scope, stack)
            self.emitter.point(self.program.entry, scope, self.function)
            for arena_view, user_view in self.copies_out:
                self._copy(user_view, arena_view, scope)
        source = "\n".join([*self._head(parameters), *self._entry(parameters)]) + "\n"
        return CModule(source, self.entry, parameters)

    def _parameters(self) -> tuple[Parameter, ...]:
        reads = {ref.name for ref in self.program.inputs}
        writes = {ref.name for ref in self.program.outputs}
        found: list[Parameter] = []
        for ref in self.program.inputs:
            role: Role = "inout" if ref.name in writes else "in"
            found.append(Parameter(self.scope.names.take(ref.name), ref, role))
        for ref in self.program.outputs:
            if ref.name not in reads:
                found.append(Parameter(self.scope.names.take(ref.name), ref, "out"))
        if self.options.constants == "arguments":
            for constant in self.program.constants:
                ref = self.program.entry.ref(constant.name)
                found.append(Parameter(self.scope.names.take(ref.name), ref, "const"))
        return tuple(found)

    def _bind(self, parameter: Parameter, scope: Scope) -> None:
        """Makes a parameter visible; in an arena, copies it in now and out at the end."""
        ref = parameter.ref
        view = whole_view(_buffer(parameter.name, ref))
        self.function.declare(parameter.name)
        scope.views[ref.name] = view
        if self.options.arenas and is_placed(ref):
            placed = self.emitter.storage.in_arena(ref, f"{ref.name}_placed", scope, self.function)
            scope.views[ref.name] = placed
            if parameter.role != "out":
                self._copy(placed, view, scope)
            if parameter.role in ("out", "inout"):
                self.copies_out.append((placed, view))
        if parameter.role == "out":
            agg = allocation_agg(self.program.entry, ref.name)
            self.emitter.storage.start(scope.views[ref.name], agg, scope, self.function)

    def _bind_inline_constants(self, parameters: tuple[Parameter, ...], scope: Scope) -> None:
        """Constants that are no parameters become static arrays at file scope."""
        for constant in self.program.constants:
            if any(
                parameter.role == "const" and parameter.ref.name == constant.name for parameter in parameters
            ):
                continue
            ref = self.program.entry.ref(constant.name)
            name = self.scope.names.take(ref.name)
            scope.names.take(name)
            self.function.declare(name)
            view = whole_view(_buffer(name, ref))
            scope.views[ref.name] = view
            self.constants.append(constant_array(name, constant, ref, self.emitter.helpers))
            if self.options.arenas and is_placed(ref):
                placed = self.emitter.storage.in_arena(ref, f"{ref.name}_placed", scope, self.function)
                self._copy(placed, view, scope)
                scope.views[ref.name] = placed

    def _allocate(self, scope: Scope, stack: ExitStack) -> None:
        for ref in self.program.entry.allocs:
            if ref.name not in scope.views:
                self.emitter.storage.allocate(ref, self.program.entry, scope, self.function, stack)

    def _copy(self, target: View, source: View, scope: Scope) -> None:
        """Copies all elements of one buffer to another."""
        helpers, function = self.emitter.helpers, self.function
        to, start = target.buffer, source.buffer
        same = to.strides == start.strides and is_dense(to.sizes, to.strides)
        if same and target.origin == source.origin == Affine():
            helpers.headers.add("string")
            pointers = f"{function.use(to, write=True)}, {function.use(start)}"
            function.line(f"memcpy({pointers}, {to.elements} * sizeof *{to.name});")
            return
        with box_loops(to.sizes, scope, function) as at:
            left = box_element(target, at, scope, function, helpers, write=True)
            right = box_element(source, at, scope, function, helpers)
            function.line(f"{left} = {right};")

    def _head(self, parameters: tuple[Parameter, ...]) -> list[str]:
        """Comment, includes, helpers, constants and functions: all before the entry."""
        storage, helpers = self.emitter.storage, self.emitter.helpers
        if storage.shared_bytes or storage.thread_bytes or self.arenas:
            helpers.need("allocate")
        lines = [f"// {sanitize_comment(self.program.name or 'program')}", "//"]
        lines += [f"//   {_describe(parameter)}" for parameter in parameters]
        lines += ["//", "// cc -std=c11 -O2 -ffp-contract=off FILE.c -lm", ""]
        headers = sorted({"stdbool", "stddef", "stdint", *helpers.headers})
        lines += [f"#include <{header}.h>" for header in headers]
        lines += ["", *_FLOAT_RULES, *width_lines(self.program.entry)]
        if storage.has_local:
            lines += _UNINITIALIZED
        if self.emitter.uses_threads:
            lines += [*_THREADS, f"#define ST_THREAD_BYTES {storage.thread_bytes}", ""]
        for text in (*helpers.texts(), *self.constants, *self.emitter.functions):
            lines += [text, ""]
        return lines

    def _entry(self, parameters: tuple[Parameter, ...]) -> list[str]:
        texts = [_declaration(parameter, parameter.name in self.function.written) for parameter in parameters]
        lines = [f"void {self.entry}({', '.join(texts) or 'void'}) {{"]
        lines += [f"  (void){p.name};" for p in parameters if p.name not in self.function.buffers]
        storage = self.emitter.storage
        blocks: list[str] = []
        for arena in self.arenas.values():
            lines.append(_allocation(arena.name, f"{arena.bytes}"))
            blocks.append(arena.name)
        threads = storage.thread_bytes > 0
        if storage.shared_bytes or threads:
            size = f"{storage.shared_bytes}"
            if threads:
                size += " + (size_t)ST_THREADS * ST_THREAD_BYTES"
            lines.append(_allocation(WORKSPACE, size))
            blocks.append(WORKSPACE)
        if THREADS in self.function.variables:
            lines.append(f"  unsigned char *{THREADS} = {WORKSPACE} + {storage.shared_bytes};")
        lines += self.function.lines
        lines += [f"  free({name});" for name in blocks]
        return [*lines, "}"]


def _buffer(name: str, ref: Refinement) -> Buffer:
    return Buffer(name, ref.dtype, ref.sizes, ref.strides, ref.span)


def _allocation(name: str, size: str) -> str:
    return f"  unsigned char *{name} = st_allocate({size});"


def _declaration(parameter: Parameter, written: bool) -> str:
    const = "" if written or parameter.role in ("out", "inout") else "const "
    return f"{const}{memory_type(parameter.ref.dtype)} *restrict {parameter.name}"


def _describe(parameter: Parameter) -> str:
    ref = parameter.ref
    strides = ", ".join(map(str, ref.strides))
    return f"{parameter.role:5} {parameter.name}: {ref.dtype}[{', '.join(map(str, ref.sizes))}], strides [{strides}]"


_FLOAT_RULES = ["#ifdef __clang__", "#pragma STDC FP_CONTRACT OFF", "#endif", ""]

_UNINITIALIZED = [
    "// The program reads no element before it is written, which gcc cannot always see.",
    "#if defined(__GNUC__) && !defined(__clang__)",
    '#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"',
    "#endif",
    "",
]

_THREADS = [
    "#ifdef _OPENMP",
    "#include <omp.h>",
    "#define ST_THREADS omp_get_max_threads()",
    "#define ST_THREAD omp_get_thread_num()",
    "#else",
    "#define ST_THREADS 1",
    "#define ST_THREAD 0",
    "#endif",
]
"""Number of threads of a parallel loop, and that of the thread that asks."""
