"""A function that is being built: its lines and its free variables, which become parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from stripe.emit.c.dialect import Dialect
from stripe.emit.loops.scope import Pointer
from stripe.ir import Affine

WORKSPACE = "ws"
"""The memory for larger allocations of this thread."""
THREADS = "threads"
"""The workspaces of the threads of a parallel loop, one after the other."""


@dataclass(frozen=True, slots=True)
class CFunction:
    """A finished function: its comments, and its definition, whose first line is the head."""

    name: str
    comments: Sequence[str]
    definition: Sequence[str]

    @property
    def text(self) -> str:
        return "\n".join([*self.comments, *self.definition])

    @property
    def prototype(self) -> str:
        return self.definition[0].removesuffix(" {") + ";"


_WORD = re.compile(r'"[^"]*"|\b[A-Za-z_]\w*')
"""A word, or a text: options of gcc are no variables."""


def normal_form(definition: Sequence[str], identifier: Callable[[str], str]) -> str:
    """A text that two functions share when they differ only in comments and in the names of their variables.

    Variables are the words that `identifier` leaves as they are: it changes all words with a meaning of their own.
    """
    numbers: dict[str, str] = {}

    def numbered(match: re.Match[str]) -> str:
        word = match[0]
        is_variable = word[0] != '"' and identifier(word) == word
        return numbers.setdefault(word, f"${len(numbers)}") if is_variable else word

    lines = (line.split("//", 1)[0] for line in definition)
    return "\n".join(line if line.startswith("#") else _WORD.sub(numbered, line) for line in lines)


@dataclass(slots=True)
class FunctionText:
    """The lines of a function body. Names that are used and not declared inside are passed in.

    `inner_pointers` are those that the functions called from here use. `fuses`: any product may be rounded together
    with the sum that takes it. `negates`: sums of products may be negated. `sums`: floats are added or subtracted in
    several places, or a loop carries several sums. `tiled`: the code names the vectors that registers hold.
    """

    dialect: Dialect
    fuses: bool = False
    negates: bool = False
    sums: bool = False
    tiled: bool = False
    indent: int = 1
    lines: list[str] = field(default_factory=list[str])
    declared: set[str] = field(default_factory=set[str])
    pointers: dict[str, Pointer] = field(default_factory=dict[str, Pointer])
    written: set[str] = field(default_factory=set[str])
    variables: dict[str, str] = field(default_factory=dict[str, str])
    inner_pointers: list[Pointer] = field(default_factory=list[Pointer])

    @property
    def compiler_options(self) -> list[str]:
        """The options that gcc needs for this function."""
        has_loops = any(line.lstrip().startswith("for ") for line in self.lines)
        given = {
            "fp-contract=fast": self.fuses,
            "rounding-math": self.negates,
            "no-predictive-commoning": self.fuses or self.tiled,
            "no-tree-slp-vectorize": True,
            "no-ssa-phiopt": True,
            "no-tree-reassoc": True,
            "no-expensive-optimizations": not has_loops,
            "no-tree-loop-vectorize": self.sums,
        }
        return [option for option, holds in given.items() if holds]

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    def raw(self, *texts: str) -> None:
        """Lines that start at the margin (preprocessor directives)."""
        self.lines.extend(texts)

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

    def use(self, pointer: Pointer, *, write: bool = False) -> str:
        """The name of `pointer`, noted as used."""
        self.pointers[pointer.name] = pointer
        if write:
            self.written.add(pointer.name)
        return pointer.name

    def use_affine(self, affine: Affine) -> None:
        """Notes the variables of `affine` as used."""
        self.variables |= dict.fromkeys(sorted(affine.names()), f"{self.dialect.index_type} ")

    def use_bytes(self, name: str) -> str:
        """Notes a pointer to raw memory, such as the workspace or an arena, as used."""
        self.variables[name] = f"{self.dialect.byte_type} *"
        return name

    def parameters(self) -> tuple[list[Pointer], list[str]]:
        """The pointers, then the variables that come from outside, in order of first use."""
        pointers = [pointer for name, pointer in self.pointers.items() if name not in self.declared]
        return pointers, [name for name in self.variables if name not in self.declared]

    def definition(self, name: str) -> list[str]:
        """The whole function."""
        pointers, variables = self.parameters()
        known = [*self.pointers.values(), *self.inner_pointers]
        texts = [
            self.dialect.parameter(
                pointer,
                const=pointer.name not in self.written,
                restrict=not any(pointer.may_alias(other) for other in known if other is not pointer),
            )
            for pointer in pointers
        ]
        texts += [f"{self.variables[variable]}{variable}" for variable in variables]
        options = ", ".join(map(json.dumps, self.compiler_options))
        return [
            f"ST_FUNCTION({options}) {self.dialect.kernel} {name}({', '.join(texts) or 'void'}) {{",
            *self.lines,
            "}",
        ]

    def call(self, name: str, outer: FunctionText, private: str | None = None) -> str:
        """The call of the finished function from `outer`, which uses the arguments; `private` is its workspace."""
        pointers, variables = self.parameters()
        outer.inner_pointers += [*self.inner_pointers, *self.pointers.values()]
        arguments = [outer.use(pointer, write=pointer.name in self.written) for pointer in pointers]
        for variable in variables:
            if variable == WORKSPACE and private is not None:
                outer.use_bytes(THREADS)
                arguments.append(private)
            else:
                outer.variables[variable] = self.variables[variable]
                arguments.append(variable)
        return f"{name}({', '.join(arguments)});"
