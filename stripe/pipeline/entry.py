"""An entry of a pass list."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from stripe.passes.base import Pass


@dataclass(frozen=True, slots=True)
class PassEntry:
    """A pass with its options and the name that the pass list gives it."""

    name: str
    pass_: Pass
    tune: tuple[tuple[str, tuple[JsonValue, ...]], ...] = ()
    """Options with the values that tuning may try beside the pass's own."""
    optional: bool = False
    """Whether programs are expected in which no block has its tags."""

    @property
    def label(self) -> str:
        """The name in messages: `'fuse_relu' (fusion)`, or `'dce'` where both names are the same."""
        kind = self.pass_.pass_name
        return f"'{self.name}'" if self.name == kind else f"'{self.name}' ({kind})"
