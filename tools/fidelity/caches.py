"""The layer of the Mali document through the model of its GPU, beside the times that the document measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stripe.cost.time.simulate import Simulation, simulate_program
from stripe.hw import load_hardware
from stripe.pipeline.manager import PassManager
from stripe.pipeline.setup import read_setup
from stripe.tile import compile_tile

SWEEPS = Path(__file__).resolve().parents[2] / "examples" / "sweeps"
MEASURED = {
    # rows and columns of a workgroup's tile, threads along columns and rows: microseconds
    (1, 16, 4, 1): 13431, (2, 8, 4, 1): 13489, (4, 4, 4, 1): 14216,
    (2, 8, 2, 2): 13337, (4, 4, 2, 2): 13681, (8, 2, 2, 2): 13544,
}  # fmt: skip

HEAD = """## Caches

The 3x3 convolution of 258x258x16 to 256 channels on `mobile_gpu` with 14 cores, in the six pairs of tiles and
workgroups whose fp32 times on a Mali-G78 stand in *CodeGen Performant Convolution Kernels for Mobile GPUs*. Image and
filter are 4.41 MB, the results 67.11 MB; without hits the cores would read 3.5 GB.

| tile | workgroup | read from memory, MB | written, MB | predicted, ms | measured, ms | error |
| --- | --- | --- | --- | --- | --- | --- |
"""

TAIL = """
The model finds the cores at their peak. The document reaches half of it, and gives no reason: what the model leaves out
is the issue of instructions and the number of threads that registers allow.
"""


def _moved(found: Simulation, source: str, sink: str) -> float:
    """Bytes between two kinds of units, in MB."""
    flows = (flow for cost in found.costs for flow in cost.flows)
    ends = ((flow.source.split("[")[0], flow.sink.split("[")[0], flow.bytes) for flow in flows)
    return sum(size for here, there, size in ends if (here, there) == (source, sink)) / 1e6


def section() -> Iterator[str]:
    """The section."""
    program = compile_tile((SWEEPS / "mali.tile").read_text(encoding="utf-8"), "mali")
    model = load_hardware("mobile_gpu", {"SHADER_CORES": 14})
    yield HEAD
    for (y, x, columns, rows), microseconds in MEASURED.items():
        values = {"TILE_Y": y, "TILE_X": x, "GROUP_Y": columns, "GROUP_Z": rows}
        entries, _ = read_setup([("config", str(SWEEPS / "mali_passes.json.j2"))], model, values)
        found = simulate_program(PassManager(entries, model).run(program), model)
        predicted, measured = found.cycles / model.clock_mhz / 1e3, microseconds / 1e3
        traffic = f"{_moved(found, 'DRAM', 'L2'):.2f} | {_moved(found, 'L2', 'DRAM'):.2f}"
        yield (
            f"| {y}x{x}x16 | 4x{columns}x{rows} | {traffic} "
            f"| {predicted:.1f} | {measured:.1f} | {predicted / measured - 1:+.0%} |\n"
        )
    yield TAIL
