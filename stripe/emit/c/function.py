"""A function that is being built: its lines and its free variables, which become parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from stripe.emit.c.dialect import Dialect
from stripe.emit.c.gcc_hazards import GccHazards
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
class _Loop:
    """A loop that is open: its variable, whether gcc may make straight code of it, and the elements (by pointer and
    place) to which one iteration stores, loops inside that it makes straight code of included."""

    var: str
    is_short: bool
    stores: set[tuple[str, Affine]] = field(default_factory=set[tuple[str, Affine]])


@dataclass(slots=True)
class FunctionText:
    """The lines of a function body. Names that are used and not declared inside are passed in.

    `inner_pointers` are those that the functions called from here use.
    """

    dialect: Dialect
    hazards: GccHazards = field(default_factory=GccHazards)
    has_loops: bool = False
    indent: int = 1
    lines: list[str] = field(default_factory=list[str])
    declared: set[str] = field(default_factory=set[str])
    pointers: dict[str, Pointer] = field(default_factory=dict[str, Pointer])
    written: set[str] = field(default_factory=set[str])
    variables: dict[str, str] = field(default_factory=dict[str, str])
    inner_pointers: list[Pointer] = field(default_factory=list[Pointer])
    hints: dict[int, Sequence[str]] = field(default_factory=dict[int, Sequence[str]])
    """Hints that a loop makes vectors, by the number of the line that they precede."""
    _loops: list[_Loop] = field(default_factory=list[_Loop])

    @property
    def vectorizes(self) -> bool:
        """Whether gcc may make vectors of loops. It does so with a hint whatever the options of the function say."""
        return not (self.hazards.has_several_sums or self.hazards.stores_neighbours)

    @property
    def compiler_options(self) -> list[str]:
        """The options that gcc needs for this function."""
        given = {
            "fp-contract=fast": self.hazards.contracts,
            "rounding-math": self.hazards.negates,
            "stack-reuse=none": True,
            "no-predictive-commoning": True,
            "no-tree-loop-distribution": True,
            "no-tree-slp-vectorize": True,
            "no-ssa-phiopt": True,
            "no-tree-reassoc": True,
            "no-expensive-optimizations": not self.has_loops,
            "no-tree-loop-vectorize": not self.vectorizes,
        }
        return [option for option, holds in given.items() if holds]

    @property
    def attribute(self) -> str:
        """The options as an attribute of the function, by the helper `function`."""
        return f"ST_FUNCTION({', '.join(map(json.dumps, self.compiler_options))})"

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

    @contextmanager
    def loop(self, var: str, low: str, high: str, step: int = 1, *, is_short: bool) -> Generator[None]:
        """The loop of `var` over [low, high). `is_short`: gcc may make straight code of it."""
        self.has_loops = True
        self._loops.append(_Loop(var, is_short))
        with self.braces(self.dialect.loop(var, low, high, step)):
            yield
        loop = self._loops.pop()
        if len({pointer for pointer, _ in loop.stores}) < len(loop.stores):
            self.hazards.stores_neighbours = True
        if not self._loops:
            return
        outer = self._loops[-1]
        if loop.is_short:
            # What two iterations store to tells whether all of them store to one element.
            outer.stores |= {(name, at.subs({var: Affine(n)})) for name, at in loop.stores for n in (0, 1)}
        else:
            outer.is_short = False

    def store(self, pointer: Pointer, place: Affine) -> None:
        """Notes a store to an element."""
        if self._loops:
            self._loops[-1].stores.add((pointer.name, place))

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
        hints = self.hints if self.vectorizes else {}
        return [
            f"{self.attribute} {self.dialect.kernel} {name}({', '.join(texts) or 'void'}) {{",
            *(text for number, line in enumerate(self.lines) for text in (*hints.get(number, ()), line)),
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
