"""One block to tile: what counts, what it costs, and how that is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stripe.passes.autotile.cost import FormulaModel, Limits, MachineModel, TileShape
from stripe.passes.autotile.search import Ranked, Search

if TYPE_CHECKING:
    from stripe.passes.autotile.machine import Machine


@dataclass(frozen=True, slots=True)
class Task:
    """One block to tile: what is counted, and what it costs."""

    shape: TileShape
    model: FormulaModel | MachineModel
    machine: Machine | None

    def describe(self, best: Ranked) -> str:
        """The tile, what it takes and what it costs."""
        import numpy as np

        sizes = np.array([best.sizes], dtype=np.int64)
        tile = ", ".join(f"{name}:{size}" for name, size in zip(self.shape.names, best.sizes, strict=True))
        held = int(self.shape.held(sizes)[0])
        count = 1
        for size, whole in zip(best.sizes, self.shape.ranges, strict=True):
            count *= -(-whole // size)
        text = f"{count} tile{'s' * (count > 1)} of [{tile}]"
        if self.machine is None or not isinstance(self.model, MachineModel):
            return f"{text}, {held} bytes each, cost {cost_text(best.cost)}"
        compute = float(self.model.compute_cycles(sizes)[0])
        move = float(self.model.move_cycles(sizes, sizes)[0])
        time = float(self.model.time(sizes, sizes)[0])
        room = self.machine.memory_bytes // self.machine.pipeline_depth
        said = (
            f"; {', '.join(self.machine.missing)} counted at the slowest speed"
            if self.machine.missing
            else ""
        )
        return (
            f"{text}, {held} of {room} bytes of {self.machine.memory}, {cost_text(time)} cycles on "
            f"{self.machine.unit} ({cost_text(compute)} computing, {cost_text(move)} moving){said}"
        )

    def why_not(self, smallest: list[int]) -> str:
        """Which limits the smallest tile breaks."""
        import numpy as np

        sizes = np.array([smallest], dtype=np.int64)
        tile = ", ".join(f"{name}:{size}" for name, size in zip(self.shape.names, smallest, strict=True))
        limits = self.shape.limits
        held = int(self.shape.held(sizes)[0])
        if limits.memory is not None and held > limits.memory and self.machine is not None:
            machine = self.machine
            return (
                f"the smallest tile [{tile}] takes {held} bytes, {machine.memory} has {limits.memory} "
                f"({machine.memory_bytes} for pipeline depth {machine.pipeline_depth})"
            )
        if bool(self.shape.too_big(sizes)[0]):
            return f"the smallest tile [{tile}] takes {held} bytes, which is over a limit: {_limits_text(limits)}"
        return f"no tile keeps all limits: {_limits_text(limits)}"

    def table(self, search: Search, found: list[Ranked]) -> str:
        """The best candidates as the slides show them: a column for each index, then the cost."""
        rows = [[*map(str, ranked.sizes), cost_text(ranked.cost)] for ranked in found]
        header = [*self.shape.names, "cost"]
        widths = [max(len(row[c]) for row in [header, *rows]) for c in range(len(header))]
        lines = [
            "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
            for row in [header, *rows]
        ]
        unit = "cost"
        if isinstance(self.model, MachineModel):
            weight = self.model.move_weight
            unit = f"cycles + {weight:g}*cycles of moving" if weight else "cycles"
        inexact = [f.ref.name for f in self.shape.footprints if not f.is_exact]
        said = f"; {', '.join(inexact)} counted as a box" if inexact else ""
        effort = f"{search.costed} costed, {search.bounded} boxes bounded"
        title = f"best {len(found)} of {search.size} tiles, by {unit} ({effort}{said})"
        return "\n".join([title, *lines])


def _limits_text(limits: Limits) -> str:
    names = (
        "max_input_size max_per_input_size max_output_size max_per_output_size max_total_size max_sizes_product "
        "max_po2_product max_count"
    ).split()
    given = [f"{name} {getattr(limits, name)}" for name in names if getattr(limits, name)]
    if limits.memory is not None:
        given.append(f"{limits.memory} bytes of memory")
    return ", ".join(given)


def cost_text(cost: float) -> str:
    """A cost in a few digits: whole from a thousand on."""
    return f"{cost:.0f}" if cost >= 1000 else f"{cost:.6g}"
