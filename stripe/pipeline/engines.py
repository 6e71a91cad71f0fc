"""The engines of `stripe-run`, spelled as `c{openmp=true}`: each loads a program and runs it on data."""

from __future__ import annotations

import shlex
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import override

from stripe.config.registry import Registry
from stripe.config.spelling import read_one
from stripe.exec.arith import Array
from stripe.exec.compile import CompiledProgram, CompileOptions, Stopwatch, Timings, compile_program
from stripe.exec.interp import interpret
from stripe.exec.isolation import isolated
from stripe.ir import ConfigError, Program

Arrays = Mapping[str, Array]


class Runner(Protocol):
    """A program that an engine has loaded."""

    def run(self, inputs: Arrays) -> dict[str, Array]:
        """The outputs by name."""
        ...

    def bench(self, inputs: Arrays, count: int) -> Timings:
        """The times of `count` runs."""
        ...

    def profile(self, inputs: Arrays, count: int) -> tuple[float, ...]:
        """The least seconds of each kernel of main in `count` runs; empty where the engine cannot tell."""
        ...


class Engine(BaseModel):
    """A way to run programs. Subclasses set `engine_name` and declare their options as fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    engine_name: ClassVar[str]
    unchecked: ClassVar[bool] = True
    """Whether it runs code that accesses memory without checks, so that the program has to be sound."""
    untrusted: ClassVar[frozenset[str]] = frozenset()
    """Options that can run anything, which a reproducer may not set."""

    def with_options(self, options: Mapping[str, object]) -> Self:
        """The engine with some options set. Raises ConfigError for an unknown option."""
        if unknown := sorted(options.keys() - type(self).model_fields.keys()):
            reason = f"the engine '{self.engine_name}' has no option '{unknown[0]}'"
            raise ConfigError(reason, where=f"--{unknown[0]}", hint="the engine c has it: --engine c")
        return self.model_copy(update=dict(options))

    @abstractmethod
    def load(self, program: Program, *, reorder: bool) -> Runner:
        """Prepares `program`; `reorder` allows an order of loops that suits caches instead of that given."""


class InterpEngine(Engine):
    """The interpreter, which runs a program by its meaning."""

    engine_name: ClassVar[str] = "interp"
    unchecked: ClassVar[bool] = False

    @override
    def load(self, program: Program, *, reorder: bool) -> Runner:
        return _Interpreted(program)


class CEngine(Engine):
    """The emitted C, compiled, in a process of its own; only the calls are timed."""

    engine_name: ClassVar[str] = "c"
    untrusted: ClassVar[frozenset[str]] = frozenset({"cc", "cflags"})

    openmp: bool = Field(default=False, description="blocks tagged thread or parallel run on several threads")
    threads: int | None = Field(
        default=None, ge=1, description="threads of these blocks, with openmp where more than 1; all cores by default"
    )  # fmt: skip
    cc: str | None = Field(default=None, description="C compiler; by default the first of cc, gcc and clang")
    cflags: str = Field(default="", description="more flags for it, after -O3 and that for this processor")

    @override
    def load(self, program: Program, *, reorder: bool) -> Runner:
        options = CompileOptions(
            self.cc,
            openmp=self.openmp or (self.threads or 1) > 1,
            threads=self.threads,
            reorder=reorder,
            extra_flags=tuple(shlex.split(self.cflags)),
        )
        return _Compiled(compile_program(program, options), options)


@dataclass(frozen=True, slots=True)
class _Interpreted:
    program: Program

    def run(self, inputs: Arrays) -> dict[str, Array]:
        return interpret(self.program, inputs)

    def bench(self, inputs: Arrays, count: int) -> Timings:
        watch = Stopwatch()
        for _ in range(count):
            watch.time(lambda: self.run(inputs))
        return watch.timings()

    def profile(self, inputs: Arrays, count: int) -> tuple[float, ...]:
        del inputs, count
        return ()


@dataclass(frozen=True, slots=True)
class _Compiled:
    compiled: CompiledProgram
    options: CompileOptions

    def run(self, inputs: Arrays) -> dict[str, Array]:
        return isolated(lambda: self.compiled.run(inputs))

    def bench(self, inputs: Arrays, count: int) -> Timings:
        return isolated(lambda: self.compiled.bench(inputs, count))

    def profile(self, inputs: Arrays, count: int) -> tuple[float, ...]:
        profiled = compile_program(self.compiled.program, replace(self.options, profile=True))
        return isolated(lambda: profiled.profile(inputs, count))


ENGINES = Registry(
    "engine", "stripe.engines", Engine, "stripe.pipeline",
    {"interp": "engines:InterpEngine", "c": "engines:CEngine"}, "stripe-run --list-engines",
)  # fmt: skip


def parse_engine(text: str, source: str = "--engine") -> Engine:
    """The engine that `text` spells. Raises ConfigError with the column."""
    return read_one(text, source, "engine").build(ENGINES.find)
