"""Programs as the pass `schedule` leaves them: transfers on transfer units between kernels, with dependences."""

from __future__ import annotations

from stripe.ir import Block, Program, parse_program

_HEAD = """\
0: #program block [] ( // chain
    #user none new@0x00000000<DRAM[0]> I[0] i8({n}:1)
    #user none new@0x00000000<DRAM[0]> O[0] i8({n}:1)
) {{
  0: #main #scheduled block [] ( // main
      in<DRAM[0]> I[0] i8({n}:1)
      out<DRAM[0]> O[0]:assign i8({n}:1)
"""
_ALLOC = "      none new@0x00000000<SRAM[{bank}]> {name}[0] i8({size}:1)\n"
_COPY = """\
    {number}{deps}: #{tag} block<DMA[0]> [d0:{size}] ( // {tag}_{near}
        in<{source_at}> {source}[{source_offset}d0] i8(1:1)
        out<{sink_at}> {sink}[{sink_offset}d0]:assign i8(1:1)
    ) {{
      0: $x = load({source})
      1: {sink} = store($x)
    }}
"""
_KERNEL = """\
    {number}{deps}: #kernel block<{unit}> [i:{size}, k:{work}] ( // kernel_{tile}
        in<SRAM[{bank}]> {source}[i] i8(1:1)
        out<SRAM[{bank}]> {sink}[i]:add i8(1:1)
    ) {{
      0: $x = load({source})
      1: $y = mul($x, $x)
      2: {sink} = store($y)
    }}
"""


def tiles(count: int, *, size: int = 6400, work: int = 4, depth: int = 2, units: int = 1) -> Program:
    """`count` tiles of `size` bytes: swapped in, `work` multiply-accumulates for each byte, swapped out. `depth` pairs
    of buffers take turns in the banks of SRAM, `units` convolution engines in computing."""
    total = count * size
    text = _HEAD.format(n=total)
    for buffer in range(depth):
        text += _ALLOC.format(name=f"A{buffer}", bank=buffer % 4, size=size)
        text += _ALLOC.format(name=f"B{buffer}", bank=buffer % 4, size=size)
    text += "  ) {\n"
    for tile in range(count):
        text += _tile(tile, size, work, depth, units)
    return parse_program(text + "  }\n}\n", "scheduled")


def _tile(tile: int, size: int, work: int, depth: int, units: int) -> str:
    number, buffer = 3 * tile, tile % depth
    bank = f"SRAM[{buffer % 4}]"
    before = 3 * (tile - depth)
    offset = f"{tile * size} + " if tile else ""
    free_in, free_out = ([before + 1], [before + 2]) if tile >= depth else ([], [])
    load = _COPY.format(
        number=number, deps=_deps(free_in), tag="swap_in", size=size, near=f"A{buffer}",
        source="I", source_at="DRAM[0]", source_offset=offset, sink=f"A{buffer}", sink_at=bank, sink_offset="",
    )  # fmt: skip
    kernel = _KERNEL.format(
        number=number + 1, deps=_deps([*free_out, number]), size=size, work=work, tile=tile, bank=buffer % 4,
        source=f"A{buffer}", sink=f"B{buffer}", unit=f"CONV[{tile % units}]",
    )  # fmt: skip
    store = _COPY.format(
        number=number + 2, deps=_deps([number + 1]), tag="swap_out", size=size, near=f"B{buffer}",
        source=f"B{buffer}", source_at=bank, source_offset="", sink="O", sink_at="DRAM[0]", sink_offset=offset,
    )  # fmt: skip
    return load + kernel + store


def _deps(numbers: list[int]) -> str:
    return f"[{', '.join(map(str, sorted(numbers)))}]" if numbers else ""


def kernels(program: Program) -> list[Block]:
    """The kernels of `main`."""
    return [block for block in program.main.blocks if "kernel" in block.tags]
