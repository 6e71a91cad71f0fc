"""python -m tools.fidelity [SECTION…]: measures the models and writes docs/fidelity.md, or prints some sections."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.fidelity import arrays, caches, mapper, processors, units

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fidelity.md"

SECTIONS: dict[str, Callable[[], Iterator[str]]] = {
    "mapper": mapper.section,
    "units": units.section,
    "arrays": arrays.section,
    "caches": caches.section,
    "processors": processors.section,
}

HEAD = """# How near the models come

`make fidelity` writes this page: it runs the models and sets their numbers beside those of other tools and of chips.
"""


def main() -> int:
    """Writes the page; with names of sections it prints these instead."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}")
    chosen: list[str] = parser.parse_args().sections
    unknown = [name for name in chosen if name not in SECTIONS]
    if unknown:
        parser.error(f"unknown section '{unknown[0]}', known are {', '.join(SECTIONS)}")
    if chosen:
        for name in chosen:
            for part in SECTIONS[name]():
                print(part, end="", flush=True)
        return 0
    parts = [HEAD, *("".join(section()) for section in SECTIONS.values())]
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    print(PAGE)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
