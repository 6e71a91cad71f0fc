"""Options that several passes have: sets of tags, and locations as pass lists write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from stripe.ir import FIELD_WORDS, Affine, ConfigError, Location, is_tag, parse_affine, read_index_map


def _checked_tag(word: str) -> str:
    if is_tag(word.removeprefix("#")) and word.startswith("#"):
        raise ValueError(f"'{word}' cannot be a tag; write '{word[1:]}', without the '#'")
    if not is_tag(word):
        raise ValueError(f"'{word}' cannot be a tag: letters, digits and _ . - that begin with a letter")
    return word


def _checked_new_tag(word: str) -> str:
    if word in FIELD_WORDS:
        raise ValueError(
            f"'{word}' is a property of blocks or buffers that no pass sets as a tag; choose another word"
        )
    return _checked_tag(word)


TagReqs: TypeAlias = tuple[Annotated[str, AfterValidator(_checked_tag)], ...]
"""Words of blocks: tags, and `main` or `scheduled`. A list that excludes blocks may name tags that no block has."""


class Selection:
    """Marks an option that selects blocks by their tags: the pass manager warns where no block has them."""


@dataclass(frozen=True, slots=True)
class DependsOn:
    """Marks an option that has an effect only with another one or, where `absent`, only without it: the pass manager
    warns where it has none."""

    option: str
    absent: bool = False


Selects: TypeAlias = Annotated[TagReqs, Selection()]
"""Words that a selected block must have, all of them."""

TagSet: TypeAlias = tuple[Annotated[str, AfterValidator(_checked_new_tag)], ...]
"""Tags that a pass gives to its results."""

NewTag: TypeAlias = Annotated[str, AfterValidator(lambda word: _checked_new_tag(word) if word else word)]
"""A tag that a pass gives to its results; none where empty."""

Reqs: TypeAlias = Annotated[
    Selects, Field(description="tags that a block must have, all of them; 'all' fits any block")
]


def _checked_map(text: str) -> str:
    if text:
        try:
            read_index_map(text)
        except ConfigError as error:
            hint = f"; {error.hint}" if error.hint else ""
            raise ValueError(f"{error.where}: {error.reason}{hint}") from None
    return text


MapText: TypeAlias = Annotated[str, AfterValidator(_checked_map)]
"""An index map as pass lists write it; empty for none."""


UNIT_NAME = r"^([A-Za-z_][A-Za-z0-9_]*)?$"
"""The names of units that the text of a program can hold; empty where the unit may be left out."""


class LocationSpec(BaseModel):
    """A location as pass lists write it: `{ "name": "SRAM", "unit": 0 }`; `unit` is a number, an affine as text,
    `"any"`: whichever unit of that name is free, or `"all"`: the work is spread over all of them."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: str = Field(
        min_length=1, pattern=UNIT_NAME,
        description="name of a memory, execution or transfer unit of the hardware model",
    )  # fmt: skip
    unit: int | str = Field(
        default=0,
        description="which one of them: a number, an affine over the block's indices, 'any': whichever is free, or "
        "'all': a block is split into parts, one for each unit of the hardware model",
    )

    @property
    def is_all(self) -> bool:
        """Whether work is spread over all units of the name."""
        return self.unit == "all"

    def location(self) -> Location:
        """The location; StripeError when `unit` is a text that is no affine, or 'all'."""
        if self.unit == "any":
            return Location.of(self.name)
        if self.is_all:
            raise ConfigError(
                f"all units of {self.name} together are no place for a buffer or a transfer",
                hint="a block may run on 'all'; partition{memory=…} splits a buffer over banks",
            )
        unit = Affine(self.unit) if isinstance(self.unit, int) else parse_affine(self.unit)
        return Location.of(self.name, unit)

    def each(self, count: int | None) -> tuple[Location, ...]:
        """The locations that take turns: the `count` units of a machine for 'any' and 'all', else the fixed one."""
        if count is None or not (self.is_all or self.unit == "any"):
            return (self.fixed(),)
        return tuple(Location.of(self.name, number) for number in range(count))

    def fixed(self) -> Location:
        """The location where no index of the program is known; ConfigError when the unit uses an index."""
        location = self.location()
        if location.names():
            raise ConfigError(
                f"the unit '{self.unit}' of {self.name} uses an index that is not known there",
                hint="give a number",
            )
        return location
