"""Targets: the forms in which a program can be written, spelled as `c{openmp=true}` on the command line.

A target is a frozen pydantic model whose fields are its options, as a pass is. Built-in targets stand in
`target_names`; others come through the entry-point group `stripe.targets`.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from pydantic import BaseModel, ConfigDict
from typing_extensions import override

from stripe.config.registry import Registry
from stripe.config.spelling import read_one
from stripe.emit.graphviz import block_graph
from stripe.emit.target_names import BUILTIN_TARGETS
from stripe.ir import Program, print_program
from stripe.ir.text.json_ir import program_json


class Target(BaseModel):
    """A form of output. Subclasses set `target_name` and declare their options as fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    target_name: ClassVar[str]
    unchecked: ClassVar[bool] = False
    """Whether the product is code that accesses memory without checks, so that the program has to be sound."""

    def join(self, products: Sequence[str]) -> str:
        """The products of several inputs as one text."""
        return "// -----\n".join(products)


class ProgramTarget(Target):
    """A form of programs, after all passes."""

    @abstractmethod
    def emit(self, program: Program) -> str:
        """The whole text for `program`, which is structurally valid."""


class FolderTarget(Target):
    """A form of programs, after all passes, that is a folder of files."""

    @property
    @abstractmethod
    def mark(self) -> str:
        """The file by which a folder of an earlier run is known."""

    @property
    def signature(self) -> str:
        """Words of the first line of that file."""
        return ""

    @property
    def owned(self) -> tuple[str, ...]:
        """Patterns of files that some runs write, and others leave out."""
        return ()

    @abstractmethod
    def files(self, program: Program, say: Callable[[str], None] | None = None) -> Mapping[str, bytes]:
        """The contents of all files, by name, for `program`, which is structurally valid; `say` takes remarks."""


class SourceTarget(Target):
    """A form of the Tile source, before lowering."""

    @abstractmethod
    def emit_source(self, text: str, name: str) -> str:
        """The whole text for the Tile source `text` of the file `name`."""


class StripeTarget(ProgramTarget):
    """The textual form of Stripe. (`stripe-opt` prints it without a target, which would have to be loaded.)"""

    target_name: ClassVar[str] = "stripe"

    @override
    def emit(self, program: Program) -> str:
        return print_program(program)


class JsonTarget(ProgramTarget):
    """The program as JSON, for scripts; stripe-opt reads it back."""

    target_name: ClassVar[str] = "json"

    @override
    def emit(self, program: Program) -> str:
        return json.dumps(program_json(program), indent=1) + "\n"

    @override
    def join(self, products: Sequence[str]) -> str:
        """A list, for more than one product."""
        return products[0] if len(products) == 1 else f"[{','.join(text.rstrip() for text in products)}]\n"


class DotTarget(ProgramTarget):
    """A picture for Graphviz: the blocks, and the buffers between them."""

    target_name: ClassVar[str] = "dot"

    @override
    def emit(self, program: Program) -> str:
        return block_graph(program)


TARGETS = Registry(
    "target",
    "stripe.targets",
    Target,
    "stripe",
    BUILTIN_TARGETS,
    "stripe-opt --list-targets",
)


def parse_target(text: str, source: str = "--emit") -> Target:
    """The target that `text` spells. Raises ConfigError with the column."""
    return read_one(text, source, "target").build(TARGETS.find)
