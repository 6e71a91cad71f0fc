"""Writes the pages of the manual, or their regions, that come from the code: `make docs`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tools.reference import hardware, passes, passlists, stripe, sweeps, tile
from tools.reference.markdown import filled

ROOT = Path(__file__).resolve().parents[1]

WHOLE: dict[str, Callable[[], str]] = {"docs/passes.md": passes.reference}
"""Pages that come from the code altogether."""

FILLED = {
    "docs/hardware.md": hardware.REGIONS,
    "docs/passlists.md": passlists.REGIONS,
    "docs/stripe.md": stripe.REGIONS,
    "docs/sweeps.md": sweeps.REGIONS,
    "docs/tile.md": tile.REGIONS,
}
"""Pages with regions that do."""


def pages() -> dict[Path, str]:
    """The text that each of these pages should have."""
    found = {ROOT / name: text() for name, text in WHOLE.items()}
    for name, regions in FILLED.items():
        found[ROOT / name] = filled((ROOT / name).read_text("utf-8"), regions)
    return found


def main() -> int:
    """Writes the pages that changed, and names them."""
    for path, text in pages().items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
