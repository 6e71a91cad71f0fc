"""The data of the page, as JSON: points with their layers, the trust in them, and how objectives follow axes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, cast

from pydantic import JsonValue

from stripe.config.model import Scalar
from stripe.sweeps.metrics import titled
from stripe.sweeps.results import PointResult, best, pareto_front
from stripe.sweeps.space import DesignPoint
from stripe.sweeps.store import SweepFacts
from stripe.sweeps.trust import Reversal, reversals, sensitivity, without_effect

MOST_REVERSALS = 20
MOST_EXPLAINED = 3
"""Reversals whose two points are compiled again, for the decisions in which they differ."""
MOST_DECISIONS = 40
"""Decisions that are shown of a reversal."""
ALWAYS = ("latency_us", "energy_pJ", "peak_bytes")
"""Metrics that an axis has to change, beside the objectives, to have an effect."""


def page_data(
    facts: SweepFacts,
    results: Sequence[PointResult],
    faster: Mapping[str, Literal["more", "less"]],
    rendered: Mapping[str, str],
    options: str,
    unverified: Sequence[str],
    explained: Callable[[DesignPoint, DesignPoint], list[list[str]]],
) -> dict[str, JsonValue]:
    """All that the page shows. `faster` has the axes along which a machine can only get faster; `rendered` the
    model and the list of the best point, `options` its options; `unverified` the unverified numbers of its model;
    `explained` gives the decisions in which two points differ.
    """
    axes = {name: values for name, (_, values) in facts.axes.items()}
    number = {result.point: n for n, result in enumerate(results)}
    front = {result.point for result in pareto_front(results, facts.objectives)}
    winners = {o.metric: number[r.point] for o in facts.objectives for r in best(results, o)}
    metrics = [objective.metric for objective in facts.objectives]
    shown = _shown(results, metrics)
    names: dict[str, int] = {}

    def decisions_of(found: Reversal) -> list[list[str]]:
        return explained(found.slower_machine.point, found.faster_machine.point)[:MOST_DECISIONS]

    return {
        "title": facts.title,
        "machine": facts.machine,
        "weights": dict(facts.weights),
        "objectives": [{"metric": o.metric, "goal": o.goal} for o in facts.objectives],
        "titles": {name: titled(name) for name in shown},
        "axes": {name: {"unit": unit, "values": list(values)} for name, (unit, values) in facts.axes.items()},
        "points": [_point(result, result.point in front, shown, names) for result in results],
        "names": list(names),
        "best": cast("JsonValue", winners),
        "sensitivity": {metric: cast("JsonValue", sensitivity(results, axes, metric)) for metric in metrics},
        "reversals": [
            {
                "axis": r.axis, "factor": r.factor,
                "slower": number[r.slower_machine.point], "faster": number[r.faster_machine.point],
                "decisions": cast("JsonValue", decisions_of(r)) if rank < MOST_EXPLAINED else [],
            }
            for rank, r in enumerate(reversals(results, axes, faster)[:MOST_REVERSALS])
        ],
        "silent": list(without_effect(results, axes, (*metrics, *ALWAYS))),
        "unverified": list(unverified),
        "rendered": dict(rendered),
        "options": options,
    }  # fmt: skip


def _point(
    result: PointResult, front: bool, shown: Sequence[str], names: dict[str, int]
) -> dict[str, JsonValue]:
    choices: dict[str, Scalar] = {"passes": result.point.passes, **result.point.choices}
    return {
        "choices": cast("JsonValue", choices),
        "metrics": {name: result.value(name) for name in shown} if result.metrics else {},
        "reason": result.reason,
        "front": front,
        "layers": {row.workload: _layers(row.layers, names) for row in result.rows},
    }


def _shown(results: Sequence[PointResult], objectives: Sequence[str]) -> list[str]:
    """The metrics that the page has: of the paths those to energies, and to objectives."""
    known = dict.fromkeys(name for result in results for name in result.metrics)
    return [name for name in known if name in objectives or "." not in name or name.startswith("energy.")]


def _layers(layers: JsonValue, names: dict[str, int]) -> list[JsonValue]:
    """Each layer as [name, units, start, end, energy, bound, stalls]; texts are numbers in the list of names."""

    def short(text: str) -> int:
        return names.setdefault(text, len(names))

    found: list[JsonValue] = []
    for layer in cast("list[dict[str, JsonValue]]", layers or []):
        stalls = cast("dict[str, float]", layer["stalls"])
        found.append(
            [
                short(str(layer["name"])),
                [short(str(unit)) for unit in cast("list[str]", layer["units"])],
                round(cast("float", layer["start"]), 3),
                round(cast("float", layer["end"]), 3),
                round(cast("float", layer["energy_pJ"]), 3),
                short(str(layer["bound"])),
                {str(short(cause)): round(cycles, 3) for cause, cycles in stalls.items()},
            ]
        )
    return found


def script_safe(value: JsonValue) -> str:
    """JSON that may stand inside a script element: no text of it can end the element."""
    return json.dumps(value).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
