"""What a pass is: a frozen pydantic model whose fields are its options, and a function from program to program.

From the class follow the JSON entry, the `--passes` spelling, the help text and the JSON Schema. The
docstring's first line is the summary; the rest shows a block before and after.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from stripe.ir import (
    Affine,
    Block,
    ConfigError,
    Location,
    Program,
    Stage,
    closest,
    is_tag,
    parse_affine,
    walk,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from stripe.hw.schema import HardwareModel

    Evaluate: TypeAlias = Callable[
        [Program, Mapping[str, npt.NDArray[np.generic]]], Mapping[str, npt.NDArray[np.generic]]
    ]


class RemarkKind(Enum):
    """As LLVM's optimization remarks."""

    APPLIED = "applied"
    MISSED = "missed"
    ANALYSIS = "analysis"


@dataclass(frozen=True, slots=True)
class Remark:
    """What a pass did to a block, or why it left the block alone, with the numbers."""

    kind: RemarkKind
    block: str
    message: str

    def __str__(self) -> str:
        return (
            f"{self.kind.value}: {self.block}: {self.message}"
            if self.block
            else f"{self.kind.value}: {self.message}"
        )


def _drop(_remark: Remark) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class PassContext:
    """What a pass may ask for besides the program: the machine, somebody who listens to its remarks, and somebody who
    runs a program on arrays (passes stand below the interpreter and cannot call it themselves).
    """

    hardware: HardwareModel | None = None
    listener: Callable[[Remark], None] = _drop
    evaluate: Evaluate | None = None

    def applied(self, block: Block | str, message: str) -> None:
        self._say(RemarkKind.APPLIED, block, message)

    def missed(self, block: Block | str, message: str) -> None:
        self._say(RemarkKind.MISSED, block, message)

    def analysis(self, block: Block | str, message: str) -> None:
        self._say(RemarkKind.ANALYSIS, block, message)

    def unknown_names(self, option: str, thing: str, asked: Iterable[str], known: Iterable[str]) -> None:
        """Says of each name that `option` asks for and nothing has which of the known ones is nearest.

        `thing` is what has the names, such as 'index'; `known` are those of all the blocks that the pass looks at.
        """
        wanted = tuple(asked)
        there = sorted(set(known)) if wanted else []
        for name in wanted:
            if name not in there:
                near = closest(name, there)
                hint = f"did you mean '{near}'?" if near else f"there are {', '.join(there) or 'none'}"
                self.missed("", f"{option}: no block that the tags fit has the {thing} '{name}'; {hint}")

    def _say(self, kind: RemarkKind, block: Block | str, message: str) -> None:
        self.listener(Remark(kind, block if isinstance(block, str) else block.name, message))

    def need_hardware(self, why: str) -> HardwareModel:
        """The hardware model; ConfigError that says `why` when none was given."""
        if self.hardware is None:
            raise ConfigError(
                f"{why} needs a hardware model", hint="give one with --hw, for example --hw dsp_conv"
            )
        return self.hardware


def _as_tag(word: str) -> str:
    if is_tag(word.removeprefix("#")) and word.startswith("#"):
        raise ValueError(f"'{word}' cannot be a tag; write '{word[1:]}', without the '#'")
    if not is_tag(word):
        raise ValueError(f"'{word}' cannot be a tag: letters, digits and _ . - that begin with a letter")
    return word


TagSet: TypeAlias = tuple[Annotated[str, AfterValidator(_as_tag)], ...]


Reqs: TypeAlias = Annotated[
    TagSet, Field(description="tags that a block must have, all of them; 'all' fits any block")
]


class Pass(BaseModel):
    """A rewrite. Subclasses set `pass_name`, declare their options as fields and define `run`.

    `requires` is the stage that the program must have reached, `ensures` the stage that it has afterwards
    (None: the same). A pass that cannot keep the meaning does not apply and says why through `context.missed`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    pass_name: ClassVar[str]
    requires: ClassVar[Stage] = Stage.TILED
    ensures: ClassVar[Stage | None] = None
    keeps_addresses: ClassVar[bool] = False
    """Whether buffers keep size and memory and none lives longer: only such passes follow one that gives addresses."""

    def ensured(self, program: Program) -> Stage | None:
        """What the pass ensures of `program`: nothing when it was asked for other blocks than main or the entry."""
        reqs = self.model_dump(include={"reqs"}).get("reqs", ())
        whole = (program.entry, program.main)
        return self.ensures if any(block.tags.has_all(reqs) for block in whole) else None

    @abstractmethod
    def run(self, program: Program, context: PassContext) -> Program:
        """The rewritten program; the same object when nothing changed."""


def matching(program: Program, reqs: tuple[str, ...]) -> tuple[Block, ...]:
    """All blocks of `program` with the tags `reqs`."""
    return tuple(block for _, block in walk(program.entry) if block.tags.has_all(reqs))


UNIT_NAME = r"^([A-Za-z_][A-Za-z0-9_]*)?$"
"""What the text of a program can hold as a unit's name; empty where the unit may be left out."""


class LocationSpec(BaseModel):
    """A location as pass lists write it: `{ "name": "SRAM", "unit": 0 }`; `unit` is a number, or an affine as text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(
        min_length=1, pattern=UNIT_NAME,
        description="name of a memory, execution or transfer unit of the hardware model",
    )  # fmt: skip
    unit: int | str = Field(
        default=0, description="which one of them: a number, or an affine over the block's indices"
    )

    def location(self) -> Location:
        """The location; StripeError when `unit` is a text that is no affine."""
        unit = Affine(self.unit) if isinstance(self.unit, int) else parse_affine(self.unit)
        return Location.of(self.name, unit)

    def fixed(self) -> Location:
        """The location, for blocks and buffers that know none of the program's indices; ConfigError when the unit uses
        one.
        """
        location = self.location()
        if location.names():
            raise ConfigError(
                f"the unit '{self.unit}' of {self.name} uses an index that is not known there",
                hint="give a number",
            )
        return location
