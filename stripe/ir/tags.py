"""Tags: sets of words, some with a value, on anything. They steer passes and never change meaning.

Hints to emitted code (`vector`, `thread`, `unroll`, …; docs/stripe.md has all) do change its time, the memory of its
threads, and what the simulator expects of vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import nan

from stripe.ir.frozen import frozen
from stripe.ir.stage import STAGE_WORDS

TagValue = bool | int | float | str

DOT_TILE = "dot_tile"
"""The tag of a block whose vectors run along its sum: a tile of sums of products of bytes, for C and for passes."""

BLOCK_WORDS = ("main", *STAGE_WORDS, "pipeline_depth")
REFINEMENT_WORDS = ("user", "const", "tmp", "placed", "buffers", "pitch")
INDEX_WORDS = ("spatial",)
COUNT_WORDS = ("pipeline_depth", "buffers", "pitch")
FIELD_WORDS = frozenset((*BLOCK_WORDS, *REFINEMENT_WORDS, *INDEX_WORDS))
"""The words by which the text spells fields of blocks, refinements and indices as if they were tags; no tag may be
such a word. Those of `COUNT_WORDS` have a number as their value, the others none."""


def require_field_word(word: str, value: TagValue | None) -> None:
    """Raises ValueError when `word` spells a field that cannot have this value."""
    if word in COUNT_WORDS:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"'#{word}' needs a number from 1 on, as in #{word}=2")
    elif word in FIELD_WORDS and value is not None:
        raise ValueError(f"'#{word}' takes no value")


_MOST_LANES = 256
"""Most elements of a vector: more are no vector of a machine."""


@frozen
class Tags:
    """An immutable set of words, each with a value or None, sorted by word."""

    entries: tuple[tuple[str, TagValue | None], ...] = ()

    @staticmethod
    def of(*words: str, **values: TagValue) -> Tags:
        """`Tags.of("conv", pid="k1")`: plain words, and words with a value."""
        return Tags.from_pairs([*((word, None) for word in words), *values.items()])

    @staticmethod
    def from_pairs(pairs: Iterable[tuple[str, TagValue | None]]) -> Tags:
        """Tags from (word, value or None); a later pair replaces an earlier one with the same word."""
        # All nan are one object, so that tags with nan are equal: tuples compare identities first.
        found = {word: nan if value != value else value for word, value in pairs}
        return Tags(tuple(sorted(found.items(), key=lambda entry: entry[0])))

    def __contains__(self, word: object) -> bool:
        for entry in self.entries:  # noqa: SIM110 (asked of every block by every pass)
            if entry[0] == word:
                return True
        return False

    def __iter__(self) -> Iterator[str]:
        return (word for word, _ in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __or__(self, other: Tags) -> Tags:
        return Tags.from_pairs(self.entries + other.entries) if other.entries else self

    def get(self, word: str) -> TagValue | None:
        """The value of `word`; None when it is absent or has no value."""
        return next((value for key, value in self.entries if key == word), None)

    def lanes(self, word: str) -> int:
        """The value of `word` as elements of a vector: a power of two; 0 where it is none."""
        value = self.get(word)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            return 0
        return 1 << (min(value, _MOST_LANES).bit_length() - 1)

    def has_all(self, reqs: Iterable[str]) -> bool:
        """Whether every word of `reqs` is here; the word `all` is in all tags."""
        return all(word == "all" or word in self for word in reqs)

    def has_any(self, words: Iterable[str]) -> bool:
        return any(word in self for word in words)

    def add(self, *words: str) -> Tags:
        """These tags with `words` added; words that are here keep their value."""
        missing = [(word, None) for word in words if word not in self]
        return Tags.from_pairs([*self.entries, *missing]) if missing else self

    def set(self, word: str, value: TagValue) -> Tags:
        return Tags.from_pairs([*self.entries, (word, value)])

    def remove(self, *words: str) -> Tags:
        """The tags without `words`; the same object when there is none of them."""
        kept = tuple(entry for entry in self.entries if entry[0] not in words)
        return self if len(kept) == len(self.entries) else Tags(kept)
