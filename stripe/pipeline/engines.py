"""The engines of `stripe-run`, spelled as `c{openmp=true}`: each loads a program and runs it on data."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import override

from stripe.config.registry import Registry
from stripe.config.spelling import print_spelled, read_one
from stripe.exec.arith import Array
from stripe.exec.compile import CompiledProgram, CompileOptions, compile_program
from stripe.exec.interp import interpret
from stripe.exec.isolation import isolated
from stripe.ir import Program

Arrays = Mapping[str, Array]


class Runner(Protocol):
    """A program that an engine has loaded."""

    def run(self, inputs: Arrays) -> dict[str, Array]:
        """The outputs by name."""
        ...

    def bench(self, inputs: Arrays, count: int) -> tuple[float, ...]:
        """The seconds that each of `count` runs took."""
        ...


class Engine(BaseModel):
    """A way to run programs. Subclasses set `engine_name` and declare their options as fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine_name: ClassVar[str]

    @property
    def spelling(self) -> str:
        """The text that `parse_engine` reads back."""
        options = self.model_dump(mode="json", exclude_defaults=True)
        return print_spelled(self.engine_name, self.engine_name, options)

    @abstractmethod
    def load(self, program: Program, *, reorder: bool) -> Runner:
        """Prepares `program`; `reorder` allows an order of loops that suits caches instead of that given."""


class InterpEngine(Engine):
    """The interpreter, which runs a program by its meaning."""

    engine_name: ClassVar[str] = "interp"

    @override
    def load(self, program: Program, *, reorder: bool) -> Runner:
        return _Interpreted(program)


class CEngine(Engine):
    """The emitted C, compiled, in a process of its own; only the calls are timed."""

    engine_name: ClassVar[str] = "c"

    openmp: bool = Field(default=False, description="blocks tagged thread or parallel run on several threads")

    @override
    def load(self, program: Program, *, reorder: bool) -> Runner:
        return _Compiled(compile_program(program, CompileOptions(openmp=self.openmp, reorder=reorder)))


@dataclass(frozen=True, slots=True)
class _Interpreted:
    program: Program

    def run(self, inputs: Arrays) -> dict[str, Array]:
        return interpret(self.program, inputs)

    def bench(self, inputs: Arrays, count: int) -> tuple[float, ...]:
        times: list[float] = []
        for _ in range(count):
            started = time.perf_counter()
            self.run(inputs)
            times.append(time.perf_counter() - started)
        return tuple(times)


@dataclass(frozen=True, slots=True)
class _Compiled:
    compiled: CompiledProgram

    def run(self, inputs: Arrays) -> dict[str, Array]:
        return isolated(lambda: self.compiled.run(inputs))

    def bench(self, inputs: Arrays, count: int) -> tuple[float, ...]:
        return isolated(lambda: self.compiled.bench(inputs, count).seconds)


ENGINES = Registry(
    "engine",
    "stripe.engines",
    Engine,
    "stripe.pipeline",
    {"interp": "engines:InterpEngine", "c": "engines:CEngine"},
    "stripe-run --list-engines",
)


def parse_engine(text: str, source: str = "--engine") -> Engine:
    """The engine that `text` spells. Raises ConfigError with the column."""
    return read_one(text, source, "engine").build(ENGINES.find)
