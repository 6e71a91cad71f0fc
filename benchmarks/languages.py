"""Reading, lowering, printing, and the start of the command line."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import programs
from benchmarks.measure import Row, Times, limited, python, timed
from stripe.ir import parse_program, print_program

KERNELS = 200
LAYERS = 340

STARTS = (
    ("--help", 0.1),
    ("examples/matmul.tile", 0.4),
    ("examples/matmul.tile --passes dce", 0.4),
    ("examples/matmul.tile --config dsp_conv", 1.0),
)
"""Command lines with the seconds that they may take; the last one runs a whole pass list for a machine."""


def rows() -> Iterator[Row]:
    text = programs.convolutions(KERNELS)
    yield limited(f"lower a Tile program of {KERNELS} kernels", timed(lambda: programs.lowered(text), 5), 2.0)
    program = programs.lowered(text)
    printed = print_program(program)
    times = timed(lambda: parse_program(print_program(program), "<printed>"), 5)
    assert parse_program(printed, "<printed>") == program
    yield limited("print and parse that program", times, 3.0, f"{len(printed) // 1000} kB of text")
    yield from _training()
    bare = timed(lambda: python("-c", "pass"), 11)
    note = f"a process of its own each time; a Python that does nothing takes {bare.median * 1e3:.0f} ms here"
    for words, limit in STARTS:
        yield limited(f"`stripe-opt {words}`", _start(words), limit, note)


def _training() -> Iterator[Row]:
    """A step of training as long as that of ResNet-50: 230 kB of Tile, 4 MB of Stripe."""
    text = programs.training(LAYERS)
    name = f"lower {LAYERS} layers with their gradients"
    yield limited(name, timed(lambda: programs.lowered(text), 3), 6.0, f"{len(text) // 1000} kB of Tile")
    printed = print_program(programs.lowered(text))
    times = timed(lambda: parse_program(printed, "<printed>"), 3)
    yield limited("read that program as Stripe", times, 4.0, f"{len(printed) // 1000} kB of text")


def _start(words: str) -> Times:
    command = ("-c", "import sys; from stripe.cli.start import opt; sys.exit(opt())", *words.split())
    return timed(lambda: python(*command), 11)
