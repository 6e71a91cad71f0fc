"""One C function under construction: its lines, and what of the outside it uses, which become its parameters."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

from stripe.emit.c.scalars import memory_type
from stripe.ir import Affine, DType

WORKSPACE = "ws"
"""The memory for larger allocations of this thread."""
THREADS = "threads"
"""The workspaces of the threads of a parallel loop, one after the other."""


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """Memory that a C pointer or array `name` names; `arena`: name, first and last byte when it lies in an arena."""

    name: str
    dtype: DType
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    span: int
    arena: tuple[str, int, int] | None = None
    constant: bool = False

    @property
    def elements(self) -> int:
        """Number of elements of the box."""
        return prod(self.sizes)

    def may_alias(self, other: Buffer) -> bool:
        """Whether two buffers may share memory."""
        if self is other:
            return True
        if self.arena is None or other.arena is None or self.arena[0] != other.arena[0]:
            return False
        return self.arena[1] < other.arena[2] and other.arena[1] < self.arena[2]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A refinement in C: a buffer, and the element at the view's origin as an affine over C variables."""

    buffer: Buffer
    origin: Affine
    sizes: tuple[int, ...]


def whole_view(buffer: Buffer) -> View:
    """All of a buffer. With negative strides its origin lies above the lowest element, where the pointer points."""
    lowest = sum(
        (size - 1) * -stride for size, stride in zip(buffer.sizes, buffer.strides, strict=True) if stride < 0
    )
    return View(buffer, Affine(lowest), buffer.sizes)


@dataclass(slots=True)
class Function:
    """Lines of a function body. What is used and not declared inside is passed in.

    `inner_buffers` are those that the functions called from here use.
    """

    indent: int = 1
    lines: list[str] = field(default_factory=list[str])
    declared: set[str] = field(default_factory=set[str])
    buffers: dict[str, Buffer] = field(default_factory=dict[str, Buffer])
    written: set[str] = field(default_factory=set[str])
    variables: dict[str, str] = field(default_factory=dict[str, str])
    inner_buffers: list[Buffer] = field(default_factory=list[Buffer])

    def line(self, text: str = "") -> None:
        self.lines.append("  " * self.indent + text if text else "")

    def raw(self, text: str) -> None:
        """A line that starts at the margin (a preprocessor directive)."""
        self.lines.append(text)

    @contextmanager
    def braces(self, head: str) -> Generator[None]:
        """`head {` … `}`; a bare block when `head` is empty."""
        self.line(f"{head} {{" if head else "{")
        self.indent += 1
        yield
        self.indent -= 1
        self.line("}")

    def declare(self, *names: str) -> None:
        self.declared.update(names)

    def use(self, buffer: Buffer, *, write: bool = False) -> str:
        """The name of `buffer`, noted as used."""
        self.buffers[buffer.name] = buffer
        if write:
            self.written.add(buffer.name)
        return buffer.name

    def use_affine(self, affine: Affine) -> None:
        """Notes the variables of `affine` as used."""
        for name in sorted(affine.names()):
            self.variables[name] = "int64_t "

    def use_bytes(self, name: str) -> str:
        """Notes a pointer to raw memory, such as the workspace or an arena, as used."""
        self.variables[name] = "unsigned char *"
        return name

    def parameters(self) -> tuple[tuple[Buffer, ...], tuple[str, ...]]:
        """What comes from outside: buffers, then variables, in order of first use."""
        buffers = tuple(buffer for name, buffer in self.buffers.items() if name not in self.declared)
        return buffers, tuple(name for name in self.variables if name not in self.declared)

    def signature(self, name: str) -> str:
        """`static void name(parameters)`."""
        buffers, variables = self.parameters()
        texts = [self._pointer(buffer) for buffer in buffers]
        texts += [f"{self.variables[variable]}{variable}" for variable in variables]
        return f"static void {name}({', '.join(texts) or 'void'})"

    def call(self, name: str, outer: Function, private: str | None = None) -> str:
        """The call of the finished function from `outer`, which uses what it passes; `private` is its workspace."""
        buffers, variables = self.parameters()
        outer.inner_buffers += [*self.inner_buffers, *self.buffers.values()]
        arguments = [outer.use(buffer, write=buffer.name in self.written) for buffer in buffers]
        for variable in variables:
            if variable == WORKSPACE and private is not None:
                outer.use_bytes(THREADS)
                arguments.append(private)
            else:
                outer.variables[variable] = self.variables[variable]
                arguments.append(variable)
        return f"{name}({', '.join(arguments)});"

    def _pointer(self, buffer: Buffer) -> str:
        const = "" if buffer.name in self.written else "const "
        others = (other for other in (*self.buffers.values(), *self.inner_buffers) if other is not buffer)
        restrict = "" if any(buffer.may_alias(other) for other in others) else "restrict "
        return f"{const}{memory_type(buffer.dtype)} *{restrict}{buffer.name}"
