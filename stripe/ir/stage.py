"""The stages of a program."""

from __future__ import annotations

from enum import IntEnum


class Stage(IntEnum):
    """Progress of the statements of a block towards the machine; each stage includes the demands of the earlier ones
    (`stripe.ir.check.stages`). The text spells a later stage than the first as the word `#located`, `#scheduled` or
    `#placed` of the block."""

    TILED = 0
    LOCATED = 1
    SCHEDULED = 2
    PLACED = 3

    @property
    def word(self) -> str:
        """The stage in messages and in the text."""
        return self.name.lower()


STAGE_WORDS = tuple(stage.word for stage in Stage if stage is not Stage.TILED)
