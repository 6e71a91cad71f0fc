"""Reading, lowering, printing, and the start of the command line."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import programs
from benchmarks.measure import Row, limited, python, timed
from stripe.ir import parse_program, print_program

KERNELS = 200


def rows() -> Iterator[Row]:
    text = programs.convolutions(KERNELS)
    yield limited(f"lower a Tile program of {KERNELS} kernels", timed(lambda: programs.lowered(text), 5), 2.0)
    program = programs.lowered(text)
    printed = print_program(program)
    times = timed(lambda: parse_program(print_program(program), "<printed>"), 5)
    assert parse_program(printed, "<printed>") == program
    yield limited("print and parse that program", times, 3.0, f"{len(printed) // 1000} kB of text")
    times = timed(lambda: python("-c", "from stripe.cli.start import opt; opt()", "--help"), 11)
    bare = timed(lambda: python("-c", "pass"), 11)
    yield limited(
        "`stripe-opt --help`", times, 0.1,
        f"a process of its own each time; a Python that does nothing takes {bare.median * 1e3:.0f} ms here", own=False,
    )  # fmt: skip
