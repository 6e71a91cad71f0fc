"""Schedule, placement and simulation."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import programs
from benchmarks.measure import Row, limited, timed
from benchmarks.passes import shipped
from stripe.cost.time.simulate import simulate_program

NETWORK = 60
STATEMENTS = 2000


def rows() -> Iterator[Row]:
    pipeline = shipped("slides")
    hardware = pipeline.hardware
    assert hardware is not None
    network = programs.lowered(programs.convolutions(NETWORK))
    times = timed(lambda: simulate_program(pipeline.run(network), hardware), 3)
    yield limited(
        f"compile, schedule, place and simulate {NETWORK} kernels", times, 10.0, "pass list `slides`"
    )
    kernels = NETWORK
    scheduled = pipeline.run(network)
    while len(scheduled.main.statements) < STATEMENTS:
        kernels = kernels * STATEMENTS // len(scheduled.main.statements) + 10
        scheduled = pipeline.run(programs.lowered(programs.convolutions(kernels)))
    times = timed(lambda: simulate_program(scheduled, hardware), 3)
    how = f"{kernels} kernels; the simulation alone"
    yield limited(f"simulate {len(scheduled.main.statements)} scheduled statements", times, 5.0, how)
