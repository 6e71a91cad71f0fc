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
        return f"'{self.name}'{self._kind}"

    @property
    def title(self) -> str:
        """The name in tables: `fuse_relu (fusion)`."""
        return f"{self.name}{self._kind}"

    @property
    def _kind(self) -> str:
        kind = self.pass_.pass_name
        return "" if self.name == kind else f" ({kind})"
