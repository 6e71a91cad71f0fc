"""A padded convolution in tiles, with the transfers that the pass `cache` makes."""

from __future__ import annotations

from stripe.ir import Program, rewrite_matching, with_entry
from stripe.passes.base import LocationSpec, PassContext
from stripe.passes.cache import Cache
from stripe.rewrite.tile import tile_block
from stripe.tile import compile_tile

CONV = """function (I[X={x}, C=3]: i8, K[F=3, C, O=4]: i8) -> (R) {{
  [[conv]] R[x, o : X, O] = +(I[x + f - 1, c] * K[f, c, o]);
}}"""


def tiled_convolution(x: int, tile_x: int, tile_o: int) -> Program:
    """A convolution with padding, tiled and cached, so that edges are cut."""
    program = compile_tile(CONV.format(x=x), "conv")
    entry = rewrite_matching(program.entry, ("conv",), lambda b: tile_block(b, {"x": tile_x, "o": tile_o}))
    return Cache(
        reqs=("conv",), mem_loc=LocationSpec(name="SRAM", unit=0), xfer_loc=LocationSpec(name="DMA", unit=0)
    ).run(with_entry(program, entry), PassContext())
