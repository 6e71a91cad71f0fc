"""The energies of mappings that the pass `map` finds on ref16x16, each counted, and its program proved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import process_time

import stripe
from stripe.cost.counts.counts import count_program
from stripe.cost.mapping.mapper import Mapper
from stripe.hw import load_hardware
from stripe.ir import Nest
from stripe.passes.base import Refusal
from stripe.passes.map.build import MappingBuilder, loop_nest
from tools.reference.markdown import table


@dataclass(frozen=True)
class Layer:
    """A matrix product or a convolution without padding, of stride 1 or 2."""

    name: str
    source: str


def matmul(name: str, m: int, n: int, k: int) -> Layer:
    body = "O[m, n : M, N] = +(I[m, k] * W[k, n]);"
    return Layer(name, f"function (I[M={m}, K={k}]: i8, W[K, N={n}]: i8) -> (O) {{ {body} }}")


def conv(name: str, size: int, window: int, c: int, k: int, stride: int = 1) -> Layer:
    step = f"{stride} * " if stride > 1 else ""
    side = stride * (size - 1) + window
    body = f"O[x, y, k : {size}, {size}, K] = +(I[{step}x + i, {step}y + j, c] * W[i, j, c, k]);"
    tensors = f"I[X={side}, Y={side}, C={c}]: i8, W[FX={window}, FY={window}, C, K={k}]: i8"
    return Layer(name, f"function ({tensors}) -> (O) {{ {body} }}")


def depthwise(name: str, size: int, window: int, c: int, stride: int = 1) -> Layer:
    step = f"{stride} * " if stride > 1 else ""
    side = stride * (size - 1) + window
    body = f"O[x, y, c : {size}, {size}, C] = +(I[{step}x + i, {step}y + j, c] * W[i, j, c]);"
    tensors = f"I[X={side}, Y={side}, C={c}]: i8, W[FX={window}, FY={window}, C]: i8"
    return Layer(name, f"function ({tensors}) -> (O) {{ {body} }}")


MATMUL = matmul("matmul", 512, 512, 512)
CONV = conv("conv3x3", 56, 3, 64, 64)

Rules = dict[str, bool]
TASKS: tuple[tuple[str, Rules, Layer, float], ...] = (
    ("page", {}, MATMUL, 330.737),
    ("page", {}, CONV, 167.163),
    ("bypass", {"BYPASS": True}, MATMUL, 330.737),
    ("bypass", {"BYPASS": True}, CONV, 164.76),
    ("keep", {"KEEP_HALO": True}, MATMUL, 330.737),
    ("keep", {"KEEP_HALO": True}, CONV, 163.338),
    ("free", {"FREE": True}, MATMUL, 321.866),
    ("free", {"FREE": True}, CONV, 155.046),
    ("free, bypass", {"FREE": True, "BYPASS": True}, MATMUL, 321.866),
    ("free, bypass", {"FREE": True, "BYPASS": True}, CONV, 152.637),
    ("free, bypass, keep", {"FREE": True, "BYPASS": True, "KEEP_HALO": True}, MATMUL, 321.866),
    ("free, bypass, keep", {"FREE": True, "BYPASS": True, "KEEP_HALO": True}, CONV, 148.773),
)
LAYERS = (
    conv("ResNet conv1, 7x7 stride 2", 112, 7, 3, 64, 2),
    conv("ResNet conv2, 1x1", 56, 1, 64, 256),
    conv("ResNet conv3, 3x3", 28, 3, 128, 128),
    conv("ResNet conv4, 3x3", 14, 3, 256, 256),
    conv("ResNet conv5, 1x1 stride 2", 7, 1, 1024, 2048, 2),
    matmul("ResNet classifier", 1, 1000, 2048),
    conv("MobileNet 1x1", 14, 1, 512, 512),
    depthwise("MobileNet depthwise 3x3", 14, 3, 512),
    matmul("BERT query", 384, 768, 768),
    matmul("BERT feed-forward", 384, 3072, 768),
)


@dataclass(frozen=True)
class Measured:
    """A mapping of a layer: its energy as priced and as counted, the bound, the price of other mappings."""

    priced_pJ: float
    counted_pJ: float
    gap: float
    mappings: int
    priced: int
    seconds: float

    @property
    def speed(self) -> float:
        """Mappings priced a second."""
        return self.priced / self.seconds


def measured(layer: Layer, rules: Rules) -> Measured:
    """The search alone, and the program that the pass makes of it, proved and counted.

    Raises StripeError where the proof fails.
    """
    machine = load_hardware("ref16x16", rules)
    program = stripe.parse(layer.source, name="layer")
    nest = next(Nest.root(program.entry).enter(0).children())[1]
    problem = loop_nest(nest)
    assert not isinstance(problem, Refusal)
    mapper = Mapper(machine, "PE", peels=False)
    start = process_time()
    (plan,) = mapper.plans(problem, machine.exec_unit("PE").mac_energy_pJ(stripe.DTYPES["i8"]))
    seconds = process_time() - start
    entry = MappingBuilder(machine, "PE", ("step",), {}).mapped(nest.blocks[0], nest.path, plan)
    assert not isinstance(entry, Refusal)
    mapped = stripe.Program(entry)
    verdict = stripe.prove(program, mapped)
    if not verdict:
        raise stripe.StripeError(f"{layer.name}: {verdict}")
    (counted,) = count_program(mapped, "keep" if rules.get("KEEP_HALO") else "refetch", machine)
    assert counted.energy_pJ is not None
    return Measured(plan.energy_pJ, counted.energy_pJ, plan.gap, mapper.mappings, mapper.priced, seconds)


def cells(found: Measured) -> list[str]:
    return [
        f"{found.priced_pJ / 1e6:.3f}",
        f"{found.counted_pJ / 1e6:.3f}",
        f"{found.gap:.1%}",
        f"{found.seconds:.1f}",
        f"{found.mappings:.1e}",
        f"{found.speed / 1e6:.1f}",
    ]


COLUMNS = ("uJ, priced", "uJ, counted", "gap", "seconds", "mappings", "M priced/s")


def section() -> Iterator[str]:
    yield """## The mapper

The pass `map` on the hardware model `ref16x16`, inputs or weights stationary, beside the energies that a search by
simulated annealing found with the weights stationary. Energies are those of one layer in the model; *matmul* is 512 x
512 x 512, *conv3x3* gives 56 x 56 x 64 from 64 channels, in 8 bits. Rules: *page*, the
defaults of the model (inputs multicast over columns, outputs summed over rows, boxes fetched whole), *bypass* (outputs
may pass the SRAM by), *keep* (halos kept), *free* (any index on rows, any of the results on columns, windows shared
along diagonals). The search is complete over divisors: the *gap* between its best mapping and its lower bound is 0.
Each mapping was made a program, which was proved equal to the layer (`--verify exact`) and counted (`--counts`).
*Seconds* are processor time of the search alone, *mappings* is the size of the space that it covers, and *M priced/s*
the millions of whole mappings that it priced a second: combinations of some indices, whose bounds it takes, are not
counted. Where bounds leave few mappings to price, the tables of splits take most of the time.

A price is never below its count. It is above in two cases: a strided access is priced as a box with its gaps, of which
the count leaves the gaps out; and under *keep* the price keeps halos in the SRAM alone, as the model says, where
`--halo keep` of the count keeps them in every memory.

"""
    tasks = [(name, layer, best, measured(layer, rules)) for name, rules, layer, best in TASKS]
    rows = ([name, layer.name, f"{best:.3f}", *cells(found)] for name, layer, best, found in tasks)
    yield table(("rules", "layer", "annealer, uJ", *COLUMNS), rows)
    yield "\nFurther layers, under the rules *page*:\n\n"
    layers = [(layer, measured(layer, {})) for layer in LAYERS]
    yield table(("layer", *COLUMNS), ([layer.name, *cells(found)] for layer, found in layers))
    every = [*(found for *_, found in tasks), *(found for _, found in layers)]
    priced, seconds = sum(found.priced for found in every), sum(found.seconds for found in every)
    yield (
        f"\nAll of these searches together price {priced / 1e6:.0f} million mappings in {seconds:.0f} s: "
        f"{priced / seconds / 1e6:.1f} million a second.\n"
    )
