"""The pictures of a report as files, SVG or PNG, drawn by matplotlib: they need no browser."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, cast

from stripe.config.parameters import shown
from stripe.cost.report.table import summed
from stripe.sweeps.extras import extra
from stripe.sweeps.metrics import titled
from stripe.sweeps.results import PointResult, best, pareto_front
from stripe.sweeps.store import SweepFacts
from stripe.sweeps.trust import sensitivity

PictureFormat = Literal["svg", "png"]

_FRONT, _DOMINATED = "#d1793a", "#9fb3c8"
MOST_LAYERS = 12
"""Layers with a colour of their own; the others are drawn together."""


def pictures(
    facts: SweepFacts, results: Sequence[PointResult], form: PictureFormat, only: str = ""
) -> dict[str, bytes]:
    """The pictures whose names begin with `only`, by the names of their files. Raises ConfigError where matplotlib is
    not installed."""
    figure_class: Callable[..., Any] = extra("matplotlib.figure", "a picture").Figure
    feasible = [result for result in results if not result.reason]
    if not feasible:
        return {}
    front = pareto_front(feasible, facts.objectives)
    winners = {o.metric: winner for o in facts.objectives for winner in best(feasible, o)}
    drawn: dict[str, Any] = {}

    def draw(name: str, width: float, height: float, paint: Callable[[Any], object]) -> None:
        if name.startswith(only):
            figure = drawn[name] = figure_class(figsize=(width, height), layout="constrained")
            paint(figure.add_subplot())

    for x, y in combinations([objective.metric for objective in facts.objectives], 2):
        draw(f"front-{x}-{y}", 7, 4.5, lambda axes, x=x, y=y: _front(axes, feasible, front, x, y))
    draw("parallel", 9, 4.5, lambda axes: _parallel(axes, facts, feasible, front))
    draw("sensitivity", 8, 3.5, lambda axes: _sensitivity(axes, facts, feasible))
    for value, unit in (("cycles", "cycles"), ("energy_pJ", "pJ")):
        draw(f"layers-{value}", 8, 4.5, lambda axes, v=value, u=unit: _layers(axes, winners, v, u))
    for metric, winner in winners.items():
        energy = {k.removeprefix("energy."): v for k, v in winner.metrics.items() if k.startswith("energy.")}
        stalls = summed(stall for layer in _layers_of(winner) for stall in layer["stalls"].items())
        draw(f"energy-{metric}", 7, 3, lambda axes, e=energy: _bars(axes, e, "pJ"))
        draw(f"stalls-{metric}", 7, 3, lambda axes, s=stalls: _bars(axes, s, "cycles"))
        draw(f"timeline-{metric}", 9, 3, lambda axes, w=winner: _timeline(axes, w))
    return {f"{name}.{form}": _encoded(figure, form) for name, figure in drawn.items()}


def front_picture(facts: SweepFacts, results: Sequence[PointResult]) -> bytes:
    """The front across the first two objectives, as SVG; nothing where no point is feasible or there is one objective.
    Raises ConfigError where matplotlib is not installed."""
    found = pictures(facts, results, "svg", only="front-")
    return next(iter(found.values()), b"")


def _encoded(figure: Any, form: PictureFormat) -> bytes:
    stream = io.BytesIO()
    # Without a date and with fixed names equal pictures are equal files.
    matplotlib = extra("matplotlib", "a picture")
    with matplotlib.rc_context({"svg.hashsalt": "stripe", "svg.fonttype": "none"}):
        metadata = {"Date": None} if form == "svg" else {"Software": None}
        figure.savefig(stream, format=form, dpi=150, metadata=metadata)
    return stream.getvalue()


def _front(axes: Any, feasible: Sequence[PointResult], front: Sequence[PointResult], x: str, y: str) -> None:
    points = {result.point for result in front}
    dominated = [result for result in feasible if result.point not in points]
    for chosen, color, size, name in (
        (dominated, _DOMINATED, 14, "dominated"), (front, _FRONT, 28, "not dominated"),
    ):  # fmt: skip
        values = ([result.value(metric) for result in chosen] for metric in (x, y))
        axes.scatter(*values, s=size, color=color, label=name)
    axes.set(xlabel=titled(x), ylabel=titled(y))
    axes.legend()


def _parallel(
    axes: Any, facts: SweepFacts, feasible: Sequence[PointResult], front: Sequence[PointResult]
) -> None:
    """A line for each point through its place on each axis and objective, all scaled to one height."""
    columns: list[tuple[str, Callable[[PointResult], float]]] = []
    for number, (name, (_, values)) in enumerate(facts.axes.items()):
        places = {value: n / max(1, len(values) - 1) for n, value in enumerate(values)}
        columns.append(
            (name, lambda r, name=name, p=places: p.get(r.point.choices.get(name, r.point.passes), 0.5))
        )
        for value, place in places.items():
            axes.text(number + 0.03, place, shown(value), fontsize=8)
    for objective in facts.objectives:
        numbers = [result.value(objective.metric) for result in feasible]
        low, width = min(numbers), (max(numbers) - min(numbers)) or 1.0
        columns.append(
            (objective.metric, lambda r, m=objective.metric, low=low, w=width: (r.value(m) - low) / w)
        )
    points = {result.point for result in front}
    for result in sorted(feasible, key=lambda r: r.point in points):
        on = result.point in points
        axes.plot(
            range(len(columns)), [of(result) for _, of in columns],
            color=_FRONT if on else "#c5d1de", linewidth=1.2 if on else 0.5,
        )  # fmt: skip
    axes.set_xticks(range(len(columns)), [name for name, _ in columns], rotation=20)
    axes.set_yticks([])


def _sensitivity(axes: Any, facts: SweepFacts, feasible: Sequence[PointResult]) -> None:
    values = {name: values for name, (_, values) in facts.axes.items()}
    width = 0.8 / len(facts.objectives)
    for number, objective in enumerate(facts.objectives):
        found = sensitivity(feasible, values, objective.metric)
        places = [place + number * width for place in range(len(found))]
        axes.bar(places, [100 * share for share in found.values()], width, label=objective.metric)
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(values))], list(values))
    axes.set_ylabel("largest over smallest, less 1, %")
    axes.legend()


def _layers(axes: Any, winners: Mapping[str, PointResult], value: str, unit: str) -> None:
    totals = {
        metric: summed((str(layer["name"]), _of(layer, value)) for layer in _layers_of(winner))
        for metric, winner in winners.items()
    }
    largest = summed(pair for total in totals.values() for pair in total.items())
    names = sorted(largest, key=lambda name: -largest[name])[:MOST_LAYERS]
    base = [0.0] * len(totals)
    for name in [*names, ""]:
        heights = [
            total.get(name, 0.0) if name else sum(v for other, v in total.items() if other not in names)
            for total in totals.values()
        ]
        axes.bar(
            [f"best {metric}" for metric in totals], heights, bottom=base, label=name or "others",
            color=None if name else _DOMINATED,
        )  # fmt: skip
        base = [low + high for low, high in zip(base, heights, strict=True)]
    axes.set_ylabel(unit)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))


def _bars(axes: Any, values: Mapping[str, float], unit: str) -> None:
    names = sorted(values, key=lambda name: values[name])[-16:]
    axes.barh(names, [values[name] for name in names], color="#3366a8")
    axes.set_xlabel(unit)


def _timeline(axes: Any, result: PointResult) -> None:
    layers = [layer for layer in _layers_of(result) if layer["units"]]
    rows = list(dict.fromkeys(unit for layer in layers for unit in layer["units"]))
    for number, layer in enumerate(layers):
        bar = [(layer["start"], _of(layer, "cycles"))]
        for unit in layer["units"]:
            axes.broken_barh(bar, (rows.index(unit) - 0.4, 0.8), color=f"C{number % 10}")
    axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    axes.set_xlabel("cycles")


def _layers_of(result: PointResult) -> list[dict[str, Any]]:
    return [layer for row in result.rows for layer in cast("list[dict[str, Any]]", row.layers or [])]


def _of(layer: Mapping[str, Any], value: str) -> float:
    return layer["end"] - layer["start"] if value == "cycles" else layer[value]
