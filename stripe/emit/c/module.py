"""Programs into C: one self-contained C11 file with one entry function.

    void stripe_NAME(const float *restrict A, …, float *restrict O);

takes the user tensors that the program reads, then those that it writes, each as its elements under its strides. The
file needs no library but libm. Compile without contraction of a*b + c (`-ffp-contract=off`): each operation rounds,
but for products that a sum by aggregation takes, which the code itself makes multiply-adds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Literal

from stripe.emit.c.block import BlockEmitter
from stripe.emit.c.constants import constant_array
from stripe.emit.c.dialect import C11, Dialect
from stripe.emit.c.function import THREADS, WORKSPACE
from stripe.emit.c.names import sanitize_comment
from stripe.emit.c.options import COptions
from stripe.emit.c.writer import Writer
from stripe.emit.loops.hints import widest_vector
from stripe.emit.loops.memory import plan_arenas, require_addressable
from stripe.emit.loops.scope import Area, CodeScope, Names, Pointer
from stripe.ir import Program, Refinement, StripeError, beginnings, unfolded, with_entry

ParameterRole = Literal["in", "out", "inout", "const"]


@dataclass(frozen=True, slots=True)
class EntryParameter:
    """A parameter of the entry function: the user tensor (or constant) `ref`, called `name` in C."""

    name: str
    ref: Refinement
    role: ParameterRole

    def describe(self) -> str:
        """The parameter as a comment of the file tells it."""
        sizes, strides = (", ".join(map(str, numbers)) for numbers in (self.ref.sizes, self.ref.strides))
        text = f"{self.role:5} {self.name}: {self.ref.dtype}[{sizes}], strides [{strides}]"
        layout = self.ref.layout
        if layout is None:
            return text
        pad = "undefined" if layout.pad is None else f"{layout.pad}"
        return f"{text}, the elements of {layout}, others {pad}"


@dataclass(frozen=True, slots=True)
class CModule:
    """A C file: its text, and the name and parameters of its entry function. `kernels` is the number of kernels of main
    after which it calls `st_kernel_done`."""

    source: str
    entry: str
    parameters: tuple[EntryParameter, ...]
    kernels: int = 0


def emit_c(program: Program, options: COptions | None = None) -> str:
    """The program as one C11 file."""
    return emit_module(program, options).source


def emit_module(program: Program, options: COptions | None = None, dialect: Dialect = C11) -> CModule:
    """The program as one file in a dialect of C.

    The program must be valid (`verify_structural`). Raises StripeError for sizes that no machine can address.
    """
    return ModuleEmitter(program, options or COptions(), dialect).module()


class ModuleEmitter:
    """Emits a program into pieces: the body of its entry, the functions of blocks, and all that these need.

    Emission begins with a rewrite: floors and remainders of the accesses become indices where ranges allow it.
    """

    def __init__(self, program: Program, options: COptions, dialect: Dialect) -> None:
        self.program = program = with_entry(program, unfolded(program.entry))
        self.dialect = dialect
        self.entry = f"stripe_{dialect.identifier(program.name or 'program')}"
        names = Names(dialect.identifier, [self.entry])
        self.names = names
        self.begins = beginnings(program.entry)
        self.arenas = plan_arenas(program, names) if options.arenas else {}
        self.emitter = BlockEmitter(options, dialect, Names(dialect.function_name, [self.entry]), self.arenas)
        self.parameters = tuple(self._parameters(options.constants == "arguments"))
        if any(index.range > 1 for index in program.entry.indices):
            raise StripeError(
                "the entry block runs at more than one point", hint="only blocks inside have indices"
            )

    def _parameters(self, constants: bool) -> Iterator[EntryParameter]:
        reads = {ref.name for ref in self.program.inputs}
        writes = {ref.name for ref in self.program.outputs}
        for ref in self.program.inputs:
            yield EntryParameter(self.names.take(ref.name), ref, "inout" if ref.name in writes else "in")
        for ref in self.program.outputs:
            if ref.name not in reads:
                yield EntryParameter(self.names.take(ref.name), ref, "out")
        for constant in self.program.constants if constants else ():
            yield EntryParameter(
                self.names.take(constant.name), self.program.entry.ref(constant.name), "const"
            )

    def module(self) -> CModule:
        """All pieces as one file."""
        writer, constants = self.body()
        lines = [*self._head(constants), *self._entry(writer)]
        return CModule("\n".join(lines) + "\n", self.entry, self.parameters, self.emitter.kernels)

    def body(self) -> tuple[Writer, list[str]]:
        """The body of the entry, and the static arrays of the constants that are no parameters."""
        entry = self.program.entry
        for ref in entry.refinements:
            require_addressable(ref)
        scope, _ = CodeScope(self.names).inside(entry)
        writer = self.emitter.writer(scope)
        with ExitStack() as stack:
            results = [copy for parameter in self.parameters for copy in self._bind(parameter, writer)]
            constants = list(self._inline_constants(writer))
            free = [ref for ref in entry.allocs if ref.name not in scope.areas]
            self.emitter.storage.allocate(free, entry, writer, stack)
            self.emitter.entry(entry, writer)
            for target, source in results:
                writer.copy(target, source)
            if writer.function.has_loops:  # fills and copies
                self.emitter.helpers.need("function")
        return writer, constants

    def _bind(self, parameter: EntryParameter, writer: Writer) -> Iterator[tuple[Area, Area]]:
        """Makes a parameter visible. One in an arena is copied in here, and yields the copy out at the end."""
        ref, role, storage = parameter.ref, parameter.role, self.emitter.storage
        area = Pointer.of(parameter.name, ref).whole()
        writer.function.declare(parameter.name)
        writer.scope.areas[ref.name] = area
        if placed := self._placed(ref, writer):
            writer.scope.areas[ref.name] = placed
            if role != "out":
                writer.copy(placed, area)
            if role in ("out", "inout"):
                yield area, placed
        if role == "out":
            storage.start(placed or area, self.begins[ref.name], writer)

    def _placed(self, ref: Refinement, writer: Writer) -> Area | None:
        """The place in an arena of a buffer that has an array besides; None where it has none."""
        return self.emitter.storage.placed(ref, f"{ref.name}_placed", writer)

    def _inline_constants(self, writer: Writer) -> Iterator[str]:
        """The static arrays of the constants that are no parameters."""
        for constant in self.program.constants:
            ref = self.program.entry.ref(constant.name)
            if ref.name in writer.scope.areas:
                continue
            name = self.names.take(ref.name)
            writer.scope.names.take(name)
            writer.function.declare(name)
            area = Pointer.of(name, ref).whole()
            writer.scope.areas[ref.name] = area
            yield constant_array(name, constant, ref, writer)
            if placed := self._placed(ref, writer):
                given = replace(area.pointer, name=writer.scope.names.take(f"{name}_given"))
                writer.function.declare(given.name)
                writer.line(
                    f"{self.dialect.parameter(given, const=True, restrict=False)} = st_given({name});"
                )
                writer.helpers.need("given")
                writer.copy(placed, given.whole())
                writer.scope.areas[ref.name] = placed

    def _head(self, constants: list[str]) -> Iterator[str]:
        """Comment, includes, helpers, constants and functions: all before the entry."""
        homes, helpers = self.emitter.storage.homes, self.emitter.helpers
        if homes.shared_bytes or homes.thread_bytes or self.arenas:
            helpers.need("allocate")
        yield f"// {sanitize_comment(self.program.name or 'program')}"
        yield "//"
        yield from (f"//   {sanitize_comment(parameter.describe())}" for parameter in self.parameters)
        yield from ("//", f"// {self.dialect.build}", "")
        yield from self.prelude()
        for text in (*constants, *(function.text for function in self.emitter.functions)):
            yield from (text, "")

    def prelude(self) -> Iterator[str]:
        """Includes, settings and helpers: all that the functions need."""
        helpers, homes = self.emitter.helpers, self.emitter.storage.homes
        yield from (*self.dialect.includes(helpers.headers), "")
        yield from self.dialect.prelude(widest_vector(self.program.entry), local_arrays=homes.has_local)
        if self.emitter.options.profile:
            yield from ("void st_kernel_done(int kernel);", "")
        if self.emitter.uses_threads:
            yield from self.dialect.threads(homes.thread_bytes)
        for text in helpers.texts():
            yield from (text, "")

    def signature(self, writer: Writer) -> list[str]:
        """The parameters of the entry as C declares them."""
        texts: list[str] = []
        for p in self.parameters:
            written = p.name in writer.function.written or p.role in ("out", "inout")
            texts.append(self.dialect.parameter(Pointer.of(p.name, p.ref), const=not written, restrict=True))
        return texts

    def _entry(self, writer: Writer) -> Iterator[str]:
        dialect, function, homes = writer.dialect, writer.function, self.emitter.storage.homes
        attribute = f"{function.attribute} " if function.has_loops else ""
        yield f"{attribute}{dialect.entry} {self.entry}({', '.join(self.signature(writer)) or 'void'}) {{"
        yield from (f"  (void){p.name};" for p in self.parameters if p.name not in function.pointers)
        sizes = {arena.name: str(arena.bytes) for arena in self.arenas.values()}
        if homes.shared_bytes or homes.thread_bytes:
            threads = f" + ({dialect.size_type})ST_THREADS * ST_THREAD_BYTES" if homes.thread_bytes else ""
            sizes[WORKSPACE] = f"{homes.shared_bytes}{threads}"
        for name, size in sizes.items():
            yield f"  {dialect.byte_type} *{name} = st_allocate({size});"
        if THREADS in function.variables:
            yield f"  {dialect.byte_type} *{THREADS} = {WORKSPACE} + {homes.shared_bytes};"
        yield from function.lines
        yield from (f"  free({name});" for name in sizes)
        yield "}"
