"""The C sources of a library: the entry, the functions of blocks in files of like size, and the header for both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stripe.emit.c.function import THREADS, WORKSPACE, CFunction
from stripe.emit.c.module import EntryParameter, ModuleEmitter
from stripe.emit.c.names import sanitize_comment
from stripe.emit.c.options import COptions
from stripe.emit.library.names import LibraryDialect, with_prefix
from stripe.emit.library.runtime import SETUP_FILE, SETUP_LINKED, SETUP_MEMORY, SETUP_PLAIN
from stripe.emit.library.weights import Weights
from stripe.emit.loops.scope import Pointer
from stripe.ir import Program

_FILE_CHARACTERS = 100_000
"""Size at which functions go into files of their own, so that several compilers work at a time."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The C of a library in pieces.

    `inner` is the text of the function that computes, `memories` are the offsets of its arenas and workspaces in the
    caller's arena, of `arena_bytes` and `thread_bytes` for each thread.
    """

    title: str
    dialect: LibraryDialect
    parameters: tuple[EntryParameter, ...]
    prelude: tuple[str, ...]
    functions: tuple[CFunction, ...]
    inner: tuple[str, ...]
    memories: tuple[tuple[str, int], ...]
    arena_bytes: int
    thread_bytes: int

    @property
    def tensors(self) -> tuple[EntryParameter, ...]:
        """The parameters that callers pass."""
        return tuple(parameter for parameter in self.parameters if parameter.role != "const")

    def files(self, weights: Weights, linked: bool) -> Iterator[tuple[str, str]]:
        """The names and texts of the C files, those that others include first."""
        prefix = self.dialect.prefix
        groups = list(_groups(self.functions))
        small = len(groups) <= 1
        yield f"{prefix}_internal.h", "\n".join(self._internal())
        for number, group in enumerate(() if small else groups, 1):
            texts = (text for function in group for text in (function.text, ""))
            lines = [f"// {self.title}", "", f'#include "{prefix}_internal.h"', "", *texts]
            yield f"{prefix}_kernels_{number}.c", "\n".join(lines)
        lines = [f"// {self.title}", "", *self._setup(weights, linked)]
        lines += [text for function in self.functions if small for text in (function.text, "")]
        yield f"{prefix}.c", "\n".join([*lines, *self.inner, "", *self._run(weights), ""])

    def _internal(self) -> Iterator[str]:
        """The header that the C files share."""
        prefix = self.dialect.prefix
        guard = f"{prefix.upper()}_INTERNAL_H"
        yield from (f"// {self.title}", "", f"#ifndef {guard}", f"#define {guard}", "")
        yield from ("#include <string.h>", "", f'#include "{prefix}.h"', "", *self.prelude)
        yield from (function.prototype for function in self.functions)
        yield from ("", "#endif", "")

    def _setup(self, weights: Weights, linked: bool) -> Iterator[str]:
        prefix = self.dialect.prefix
        files = bool(weights.slots) and not linked
        yield from ("#define _POSIX_C_SOURCE 200809L", "") if files else ()
        yield from (f'#include "{prefix}_internal.h"', "")
        parts = [SETUP_MEMORY, SETUP_LINKED if linked else SETUP_FILE] if weights.slots else [SETUP_PLAIN]
        yield from (with_prefix(part, prefix) for part in parts)

    def _run(self, weights: Weights) -> Iterator[str]:
        """The definitions of `net_arena_bytes` and `net_run`."""
        prefix = self.dialect.prefix
        bad = f"{prefix.upper()}_ERROR_"
        threads = " + (size_t)ST_THREADS * ST_THREAD_BYTES" if self.thread_bytes else ""
        yield f"size_t {prefix}_arena_bytes(void) {{ return {self.arena_bytes}u{threads}; }}"
        yield f"\n{self.run_head()} {{"
        yield f"  if ({prefix} == NULL || !{prefix}->ready) return {bad}SETUP;"
        missing = [f"{p.name} == NULL" for p in self.tensors if p.ref.elements]
        if missing:
            yield f"  if ({' || '.join(missing)}) return {bad}ARGUMENT;"
        yield f"  if ({prefix}_size < {prefix}_arena_bytes()) return {bad}ARENA;"
        yield f"  if ((uintptr_t){prefix}_arena % {prefix.upper()}_ALIGNMENT != 0) return {bad}ARENA;"
        offsets = {slot.name: slot.offset for slot in weights.slots}
        arguments = [
            f"(const {self.dialect.memory_type(p.ref.dtype)} *)(const void *)"
            f"({prefix}->weights + {offsets[p.ref.name]})"
            if p.role == "const"
            else p.name
            for p in self.parameters
        ]
        if self.memories:
            yield f"  unsigned char *{prefix}_memory = {prefix}_arena;"
        arguments += [f"{prefix}_memory + {offset}" for _, offset in self.memories]
        yield f"  {prefix}_compute({', '.join(arguments)});"
        yield f"  return {prefix.upper()}_OK;"
        yield "}"

    def run_head(self) -> str:
        """The head of `net_run`."""
        prefix = self.dialect.prefix
        texts = [f"const {prefix}_model *{prefix}", f"void *{prefix}_arena", f"size_t {prefix}_size"]
        texts += [
            self.dialect.parameter(Pointer.of(p.name, p.ref), const=p.role == "in", restrict=False)
            for p in self.tensors
        ]
        return f"int {prefix}_run({', '.join(texts)})"


def emit_sources(program: Program, prefix: str, options: COptions, title: str) -> Sources:
    """The program as C. Raises StripeError for sizes that no machine can address."""
    dialect = LibraryDialect(prefix)
    emitter = ModuleEmitter(program, options, dialect)
    writer, _ = emitter.body()
    function, homes = writer.function, emitter.emitter.storage.homes
    offsets: dict[str, int] = {}
    used = 0
    for arena in emitter.arenas.values():
        offsets[arena.name] = used
        used += arena.bytes
    offsets[WORKSPACE] = used
    used += homes.shared_bytes
    offsets[THREADS] = used
    memories = tuple((name, at) for name, at in offsets.items() if name in function.variables)
    parameters = [*emitter.signature(writer), *(f"{dialect.byte_type} *{name}" for name, _ in memories)]
    attribute = f"{function.attribute} " if function.has_loops else ""
    inner = [f"{attribute}static void {prefix}_compute({', '.join(parameters) or 'void'}) {{"]
    inner += [f"  (void){p.name};" for p in emitter.parameters if p.name not in function.pointers]
    return Sources(
        sanitize_comment(title),
        dialect,
        emitter.parameters,
        tuple(emitter.prelude()),
        tuple(emitter.emitter.functions),
        (*inner, *function.lines, "}"),
        memories,
        used,
        homes.thread_bytes,
    )


def _groups(functions: Sequence[CFunction]) -> Iterator[list[CFunction]]:
    """The functions in order, in groups of like size."""
    group: list[CFunction] = []
    size = 0
    for function in functions:
        length = len(function.text)
        if group and size + length > _FILE_CHARACTERS:
            yield group
            group, size = [], 0
        group.append(function)
        size += length
    if group:
        yield group
