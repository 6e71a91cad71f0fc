"""Draws a machine as Graphviz text: `stripe-opt --hw NAME --emit dot | dot -Tsvg`."""

from __future__ import annotations

from stripe.hw.graph import UnitGraph, parse_unit
from stripe.hw.schema import Bus, ExecUnit, HardwareModel, MemUnit, TxUnit
from stripe.ir.text.graphviz import quote

_SHAPES = {"mem": "cylinder", "exec": "box", "tx": "cds"}
_COLOURS = {"mem": "lightsteelblue", "exec": "lightsalmon", "tx": "palegreen"}


def to_dot(model: HardwareModel, *, collapse_over: int = 16) -> str:
    """A digraph: a cylinder for each memory, a box for each execution unit, an arrow for each transfer unit, a point
    for each bus that has more than one source or sink. More than `collapse_over` units of one name become one node.
    """
    graph = UnitGraph(model)
    lines = [
        f"digraph {quote(model.name or 'machine')} {{",
        "  rankdir=LR;",
        '  node [fontname="Helvetica", fontsize=10, style=filled];',
        '  edge [fontname="Helvetica", fontsize=9];',
    ]
    for name, unit in model.units.items():
        kind = "mem" if isinstance(unit, MemUnit) else "exec" if isinstance(unit, ExecUnit) else "tx"
        text = _caption(unit)
        for label in _nodes(model, name, collapse_over):
            lines.append(
                f"  {quote(label)} [shape={_SHAPES[kind]}, fillcolor={_COLOURS[kind]}, "
                f"label={quote(label + chr(10) + text if text else label)}];"
            )
    for number, (bus, members) in enumerate(zip(model.buses, graph.members, strict=True)):
        sides = [list(dict.fromkeys(_node(model, unit, collapse_over) for unit in side)) for side in members]
        lines += _bus(number, bus, sides[0], sides[1])
    return "\n".join([*lines, "}", ""])


def _bus(number: int, bus: Bus, sources: list[str], sinks: list[str]) -> list[str]:
    label = f"{bus.bytes_per_cycle:g} B/cycle" + (f"\n{bus.name}" if bus.name else "")
    if len(sources) == len(sinks) == 1:
        return [f"  {quote(sources[0])} -> {quote(sinks[0])} [label={quote(label)}];"]
    node = quote(f"bus {number}")
    return [
        f"  {node} [shape=point, xlabel={quote(label)}];",
        *(f"  {quote(source)} -> {node} [arrowhead=none];" for source in sources),
        *(f"  {node} -> {quote(sink)};" for sink in sinks),
    ]


def _nodes(model: HardwareModel, name: str, collapse_over: int) -> list[str]:
    count = model.unit(name).count
    if count > collapse_over:
        return [f"{name}[0..{count - 1}]"]
    return [f"{name}[{number}]" for number in range(count)]


def _node(model: HardwareModel, unit: str, collapse_over: int) -> str:
    name = parse_unit(unit)[0]
    nodes = _nodes(model, name, collapse_over)
    return unit if unit in nodes else nodes[0]


def _caption(unit: MemUnit | ExecUnit | TxUnit) -> str:
    if isinstance(unit, MemUnit):
        return format_size(unit.size) + (" cache" if unit.is_cache else "")
    if isinstance(unit, ExecUnit):
        rates = ", ".join(
            f"{key} {rate:g}" if key != "all" else f"{rate:g}" for key, rate in unit.ops_per_cycle.items()
        )
        return f"{rates} ops/cycle"
    return ""


def format_size(size: int) -> str:
    """A size in bytes as people write it: `1.5 KiB`, `4 GiB`."""
    value: float = size
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:g} {unit}"
        value /= 1024
    return f"{value:g} TiB"
