"""The base classes of passes: a frozen pydantic model whose fields are the options, and a function on programs.

From the class follow the JSON entry, the `--passes` spelling, the help text and the JSON Schema. The docstring's first
line is the summary; the rest shows a block before and after.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, ClassVar, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, field_validator

from stripe.ir import (
    LARGEST,
    Block,
    ConfigError,
    Nest,
    Program,
    Stage,
    did_you_mean,
    rewrite_matching,
    separating,
    shared_names,
    walk,
    with_entry,
)
from stripe.ir.frozen import replace
from stripe.rewrite.nests import rewrite_nests
from stripe.rewrite.options import (
    UNIT_NAME,
    DependsOn,
    LocationSpec,
    NewTag,
    Reqs,
    Selection,
    Selects,
    TagReqs,
    TagSet,
)
from stripe.rewrite.refusal import Refusal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from stripe.cost.time.price import Price
    from stripe.hw.schema import HardwareModel

    Evaluate: TypeAlias = Callable[
        [Program, Mapping[str, npt.NDArray[np.generic]]], Mapping[str, npt.NDArray[np.generic]]
    ]

__all__ = [
    "LOCATED", "TILES", "UNIT_NAME", "BlockPass", "DependsOn", "LocationSpec", "NestPass", "NewTag",
    "Pass", "PassContext", "PassExample", "PassGroup", "Refusal", "Remark", "RemarkKind", "Reqs",
    "Selection", "Selects", "TagReqs", "TagSet", "matching",
]  # fmt: skip


class RemarkKind(Enum):
    """As LLVM's optimization remarks."""

    APPLIED = "applied"
    MISSED = "missed"
    ANALYSIS = "analysis"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Remark:
    """A change to a block, or the reason why there is none, with the numbers."""

    kind: RemarkKind
    block: str
    message: str
    cycles: tuple[tuple[str, float], ...] = ()
    """Of a decision by price: the statements that were priced, and the cycles of each alone."""

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.kind.value, self.block, self.message)))


@dataclass(frozen=True, slots=True)
class PassContext:
    """The surroundings of a pass: the machine, the listener for remarks, `evaluate`, which runs a program on arrays
    (passes stand below the interpreter and cannot call it themselves), and `price`, which runs the rest of the pass
    list on a program and simulates the result. It raises StripeError where the list refuses the program. `words_named`
    gives the words that options of the list's passes name; `runs_for_price` tells whether the run is one for a price;
    `shared` has the names of the program that are of one buffer (`shared_names`), in the context of a `BlockPass` or
    `NestPass`, or one `about` a program.
    """

    hardware: HardwareModel | None = None
    listener: Callable[[Remark], None] | None = None
    evaluate: Evaluate | None = None
    price: Callable[[Program], Price] | None = None
    words_named: Callable[[], frozenset[str]] = frozenset
    runs_for_price: Callable[[], bool] = lambda: False
    shared: Callable[[], Mapping[str, str]] = dict

    def about(self, program: Program) -> PassContext:
        """The context of a rewrite of the blocks of `program`."""
        return replace(self, shared=cache(lambda: shared_names(program.entry)))

    def separating(self, block: Block) -> tuple[str, ...]:
        """The indices of a block that is rewritten such that points that differ in any write different elements."""
        return separating(block, self.shared())

    def applied(self, block: Block | str, message: str, cycles: tuple[tuple[str, float], ...] = ()) -> None:
        self._say(RemarkKind.APPLIED, block, message, cycles)

    def missed(self, block: Block | str, message: str) -> None:
        self._say(RemarkKind.MISSED, block, message)

    def analysis(self, block: Block | str, message: str) -> None:
        self._say(RemarkKind.ANALYSIS, block, message)

    def warned(self, message: str) -> None:
        """Says of an option that it has no effect; commands print that without `--remarks`."""
        self._say(RemarkKind.WARNING, "", message)

    def _say(
        self,
        kind: RemarkKind,
        block: Block | str,
        message: str,
        cycles: tuple[tuple[str, float], ...] = (),
    ) -> None:
        if self.listener is not None:
            self.listener(Remark(kind, block if isinstance(block, str) else block.name, message, cycles))

    def unknown_names(self, option: str, thing: str, asked: Iterable[str], known: Iterable[str]) -> None:
        """Says of each name in the option that no block has which of the `known` names is nearest.

        `thing` is the kind of the names, such as 'index'.
        """
        wanted = tuple(asked)
        there = sorted(set(known)) if wanted else []
        for name in wanted:
            if name not in there:
                hint = did_you_mean(name, there, f"there are {', '.join(there) or 'none'}")
                self.warned(f"{option}: no block that the tags fit has the {thing} '{name}'; {hint}")

    def need_hardware(self, why: str) -> HardwareModel:
        """The hardware model; ConfigError that says `why` when none was given."""
        if self.hardware is None:
            raise ConfigError(
                f"{why} needs a hardware model", hint="give one with --hw, for example --hw dsp_conv"
            )
        return self.hardware

    def check_unit(self, spec: LocationSpec) -> None:
        """Raises ConfigError when there is a hardware model and it has no unit of that name or number."""
        if self.hardware is None:
            return
        units = {**self.hardware.mem_units, **self.hardware.exec_units, **self.hardware.tx_units}
        if spec.name not in units:
            hint = did_you_mean(spec.name, units, f"its units are {', '.join(units)}")
            raise ConfigError(f"the hardware model has no unit '{spec.name}'", hint=hint)
        unit = units[spec.name]
        # Unit 0 always exists, so that it does not ask how many there are.
        if isinstance(spec.unit, int) and spec.unit:
            count = unit.count
            if not 0 <= spec.unit < count:
                raise ConfigError(
                    f"the hardware model has {count} {spec.name}, no number {spec.unit}",
                    hint=f"0 to {count - 1}",
                )


class PassGroup(Enum):
    """The chapters of the reference of passes."""

    STRUCTURE = "Structure"
    DATA = "Data"
    PLACEMENT = "Placement in the machine"
    CLEANING = "Cleaning"
    PATTERN = "By pattern"
    OTHER = "Others"


@dataclass(frozen=True, slots=True)
class PassExample:
    """A use of a pass that finds work on the programs under `examples/`: options and entries before it, both in the
    spelling of `--passes`, and the hardware model; `programs` are golden programs to take where no example has work.
    """

    options: str = ""
    after: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    hardware: str = "dsp_conv"


TILES = "autotile{reqs=[contraction],max_total_size=4096,outer_set=[tile],inner_set=[inner]}"
"""The entry before many an example: blocks of tiles."""

LOCATED = (
    "locate_block{reqs=[kernel],loc={name:DSP}},locate_memory{reqs=[program],loc={name:DRAM}},"
    "locate_memory{reqs=[main],loc={name:DRAM}}"
)
"""The entries before an example that needs units and memories."""


def _parts(value: object) -> Iterable[object]:
    """The values of an option that holds several, or the only one."""
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("tuple[object, ...]", value) if isinstance(value, tuple) else (value,)


class Pass(BaseModel):
    """A rewrite of a whole program. Subclasses set `pass_name`, declare their options as fields and define `run`.

    `requires` is the stage that the program must have reached, `ensures` the latest stage to which the pass raises the
    field `stage` of main (None: it leaves it). A pass that cannot keep the meaning does not apply and says why through
    `context.missed`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)

    pass_name: ClassVar[str]
    group: ClassVar[PassGroup] = PassGroup.OTHER
    example: ClassVar[PassExample] = PassExample()
    requires: ClassVar[Stage] = Stage.TILED
    ensures: ClassVar[Stage | None] = None
    refused: ClassVar[str] = "not rewritten"
    """The beginning of the remark of a refusal."""
    keeps_addresses: ClassVar[bool] = False
    """Whether buffers keep size and memory and none lives longer: only such passes follow one that gives addresses."""

    @field_validator("*")
    @classmethod
    def _fits(cls, value: object) -> object:
        """The value. Raises ValueError for a number that no index of a program reaches."""
        if any(isinstance(number, int) and abs(number) > LARGEST for number in _parts(value)):
            raise ValueError("a number stays below 2^62")
        return value

    @property
    def changes_interface(self) -> bool:
        """Whether tensors of the user may lie in memory in another way afterwards."""
        return False

    @abstractmethod
    def run(self, program: Program, context: PassContext) -> Program:
        """The rewritten program; the same object when nothing changed."""

    def settings(self, program: Program, context: PassContext, count: int) -> Sequence[Sequence[Pass]]:
        """The choices that `--tune` may settle by measuring: for each the best `count` settings of this pass by its own
        cost, of which the first is the pass as it is. A pass without a search has none."""
        del program, context, count
        return ()

    def settled(self, block: Block, answer: Block | Refusal, context: PassContext) -> Block:
        """The block that stands after `answer`, with a remark where that is a refusal."""
        if isinstance(answer, Block):
            return answer
        context.missed(block, f"{self.refused}: {answer.reason}")
        return block


class BlockPass(Pass):
    """A rewrite of each outermost block with the tags `reqs`. Subclasses define `rewrite`.

    A refusal becomes the remark `missed: NAME: REFUSED: REASON`; remarks of success come from `rewrite`.
    """

    reqs: Reqs

    def run(self, program: Program, context: PassContext) -> Program:
        within = context.about(program)

        def answer(block: Block) -> Block:
            return self.settled(block, self.rewrite(block, within), within)

        return with_entry(program, rewrite_matching(program.entry, self.reqs, answer))

    @abstractmethod
    def rewrite(self, block: Block, context: PassContext) -> Block | Refusal:
        """The rewritten block, the same object when there is nothing to do, or the reason against it."""


class NestPass(Pass):
    """A rewrite of each outermost block with the tags `reqs`, given with the blocks around it. As `BlockPass`."""

    reqs: Reqs

    def run(self, program: Program, context: PassContext) -> Program:
        within = context.about(program)

        def answer(nest: Nest) -> Block:
            return self.settled(nest.block, self.rewrite(nest, within), within)

        return rewrite_nests(program, self.reqs, answer)

    @abstractmethod
    def rewrite(self, nest: Nest, context: PassContext) -> Block | Refusal:
        """As `BlockPass.rewrite`, for the innermost block of `nest`."""


def matching(program: Program, reqs: tuple[str, ...]) -> tuple[Block, ...]:
    """All blocks of `program` with the tags `reqs`."""
    return tuple(block for _, block in walk(program.entry) if block.words.has_all(reqs))


def any_matching(program: Program, reqs: tuple[str, ...]) -> bool:
    """Whether some block of `program` has the tags `reqs`."""
    return any(block.words.has_all(reqs) for _, block in walk(program.entry))
