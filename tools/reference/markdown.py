"""Tables of Markdown, and regions of pages that `make docs` fills."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

_REGION = re.compile(r"(<!-- generated: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; bars and line breaks in cells are escaped."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "".join(f"| {' | '.join(map(cell, line))} |\n" for line in lines)


def cell(text: str) -> str:
    """Text that stays in its column."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def code(words: Iterable[str]) -> str:
    """Words set as code, with commas between."""
    return ", ".join(f"`{word}`" for word in words)


def filled(page: str, regions: Mapping[str, Callable[[], str]]) -> str:
    """The page with the text of each region between `<!-- generated: NAME -->` and `<!-- end -->`.

    Raises ValueError unless the page has exactly these regions.
    """
    named = [match[2] for match in _REGION.finditer(page)]
    if sorted(named) != sorted(regions):
        raise ValueError(f"the page has the regions {named}, there are texts for {sorted(regions)}")
    return _REGION.sub(lambda match: f"{match[1]}{regions[match[2]]().strip()}\n{match[4]}", page)
