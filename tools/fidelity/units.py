"""A layer spread over more and more engines, beside the bound of its busiest resource."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stripe.cost.time.simulate import simulate_program
from stripe.pipeline.manager import PassManager
from stripe.pipeline.setup import read_setup
from stripe.tile import compile_tile

LAYER = Path(__file__).resolve().parents[2] / "examples" / "slides_layer.tile"

HEAD = """## Units

The layer of PlaidML's slides (`examples/slides_layer.tile`) on `dsp_conv` with more and more engines.
The *bound* is the time for which the resource that *binds* is needed: all engines (`CONV`), or a bus.

| list | engines | engines that work | cycles | bound | binds | over the bound |
| --- | --- | --- | --- | --- | --- | --- |
"""


def section() -> Iterator[str]:
    """The section."""
    program = compile_tile(LAYER.read_text(encoding="utf-8"), "slides_layer")
    yield HEAD
    for pass_list in ("dsp_conv", "slides"):
        for count in (1, 2, 4, 8):
            entries, model = read_setup([("config", pass_list)], None, {"NUM_CONV": count}, "passes")
            assert model is not None
            found = simulate_program(PassManager(tuple(entries), model).run(program), model)
            number = max(range(len(found.costs)), key=lambda n: found.costs[n].work.cycles)
            demand = found.costs[number].demand
            binding = max(demand, key=lambda resource: demand[resource])
            busy = {unit for unit in found.runs[number].units if unit.startswith("CONV")}
            yield (
                f"| {pass_list} | {count} | {len(busy)} | {found.cycles:,.0f} | {demand[binding]:,.0f} "
                f"| {binding.name} | {found.cycles / demand[binding] - 1:+.1%} |\n"
            )
