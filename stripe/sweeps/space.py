"""The design space: axes and their values, and the points that the conditions leave."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import prod

from stripe.config.document import Document
from stripe.config.model import Scalar
from stripe.config.parameters import Parameter, shown
from stripe.config.template import evaluate, names_in
from stripe.ir import ConfigError
from stripe.ir.errors import combine, did_you_mean
from stripe.sweeps.metrics import COLUMNS, EDP, METRICS, PATHS
from stripe.sweeps.schema import SweepFile, doubled, spaced
from stripe.sweeps.templates import Templates

PASSES = "passes"
"""The axis of the pass lists."""

MAX_COUNTED = 20_000
"""Points of a grid with conditions that are counted one by one, before a run."""

MAX_SEARCHED = 1_000_000
"""Points that are tried in search of a point that the conditions allow."""


@dataclass(frozen=True, slots=True)
class DesignAxis:
    """A parameter that varies, its values in order, and the condition under which it varies at all."""

    name: str
    values: tuple[Scalar, ...]
    unit: str = ""
    when: str | None = None


@dataclass(frozen=True, slots=True)
class DesignPoint:
    """One choice on each axis. `key` is the same for the same choice, whatever the order of the axes."""

    passes: str
    parameters: tuple[tuple[str, Scalar], ...]
    """The parameters given, sorted by name; axes that do not vary here are left to their defaults."""

    @property
    def key(self) -> str:
        return ",".join([f"{PASSES}={self.passes}", *(f"{name}={shown(v)}" for name, v in self.parameters)])

    @property
    def choices(self) -> dict[str, Scalar]:
        """The parameters given, by name."""
        return dict(self.parameters)


@dataclass(frozen=True)
class DesignSpace:
    """Axes, the first of which varies slowest, and conditions on points."""

    templates: Templates
    axes: tuple[DesignAxis, ...]
    fixed: Mapping[str, Scalar]
    conditions: tuple[str, ...]

    @property
    def size(self) -> int:
        """Points of the grid, before conditions."""
        return prod(len(axis.values) for axis in self.axes)

    @cached_property
    def count(self) -> int | None:
        """Points that the conditions leave; None where they are too many to try each."""
        if not self.conditions and not any(axis.when for axis in self.axes):
            return self.size
        return sum(1 for _ in self.grid()) if self.size <= MAX_COUNTED else None

    def grid(self) -> Iterator[DesignPoint]:
        """All points that the conditions leave, each once, in order."""
        yield from _distinct(self.at(number) for number in range(self.size))

    def sample(self, count: int, seed: int) -> Iterator[DesignPoint]:
        """`count` points of the grid at random, without repetition; fewer where there are no more."""
        generator = random.Random(seed)
        if self.size <= MAX_SEARCHED:
            numbers = iter(generator.sample(range(self.size), self.size))
        else:
            numbers = (generator.randrange(self.size) for _ in range(max(MAX_SEARCHED, 10 * count)))
        yield from islice(_distinct(self.at(number) for number in numbers), count)

    def at(self, number: int) -> DesignPoint | None:
        """The point of the grid with that number; None where a condition leaves it out."""
        choice: dict[str, Scalar] = {}
        for axis in reversed(self.axes):
            number, position = divmod(number, len(axis.values))
            choice[axis.name] = axis.values[position]
        return self.point(choice)

    def point(self, choice: Mapping[str, Scalar]) -> DesignPoint | None:
        """The point with a value for each axis; None where a condition leaves it out. Raises ConfigError."""
        passes = str(choice.get(PASSES, next(iter(self.templates.lists))))
        given = {**self.fixed, **{name: value for name, value in choice.items() if name != PASSES}}
        conditional = [axis for axis in self.axes if axis.when is not None]
        values = self._values(given, passes) if conditional or self.conditions else {}
        off: set[str] = set()
        for _ in conditional:  # an axis that is off has its default in the conditions of others
            found = {axis.name for axis in conditional if not evaluate(axis.when or "", values)}
            if found == off:
                break
            off = found
            values = self._values({name: given[name] for name in given if name not in off}, passes)
        given = {name: value for name, value in given.items() if name not in off}
        if not all(evaluate(condition, values) for condition in self.conditions):
            return None
        return DesignPoint(passes, tuple(sorted(given.items())))

    def _values(self, given: Mapping[str, Scalar], passes: str) -> dict[str, Scalar]:
        return {**self.templates.resolved(given, passes), PASSES: passes}


def _distinct(points: Iterator[DesignPoint | None]) -> Iterator[DesignPoint]:
    seen: set[DesignPoint] = set()
    for point in points:
        if point is not None and point not in seen:
            seen.add(point)
            yield point


def design_space(sweep: SweepFile, templates: Templates, document: Document) -> DesignSpace:
    """The space of a sweep file. Raises ConfigError for all that is wrong with its axes and conditions at once."""
    errors: list[ConfigError] = []
    axes: list[DesignAxis] = []
    for name in sorted({*METRICS, EDP, *PATHS, *COLUMNS} & {*templates.names, *templates.described_names}):
        place = next((part for part in ("axes", "fixed") if name in getattr(sweep, part)), "passes")
        reason = f"a parameter is called '{name}', as a metric or a column of the results is"
        hint = "give the parameter another name in the template and in the file that describes it"
        errors.append(document.error(reason, (place, name) if place != "passes" else (place,), hint))
    if errors:
        raise combine(errors)
    if len(templates.lists) > 1:
        axes.append(DesignAxis(PASSES, tuple(templates.lists)))
    for name, spec in sweep.axes.items():
        place = ("axes", name)
        try:
            _require_known(name, templates)
            parameter = templates.parameter(name)
            values = spec.listed() or _described_values(parameter)
            _require_fitting(values, parameter)
            if spec.when:
                _require_names(spec.when, templates)
            axes.append(DesignAxis(name, values, parameter.unit if parameter else "", spec.when))
        except ConfigError as error:
            errors.append(document.error(error.reason, place, error.hint))
    for name, value in sweep.fixed.items():
        try:
            _require_known(name, templates)
            _require_fitting((value,), templates.parameter(name))
            if name in sweep.axes:
                raise ConfigError(f"'{name}' is fixed, and varies on an axis", hint="leave one of them out")
        except ConfigError as error:
            errors.append(document.error(error.reason, ("fixed", name), error.hint))
    for number, condition in enumerate(sweep.conditions):
        try:
            _require_names(condition, templates)
        except ConfigError as error:
            errors.append(document.error(error.reason, ("conditions", number), error.hint))
    if errors:
        raise combine(errors)
    space = DesignSpace(templates, tuple(axes), dict(sweep.fixed), sweep.conditions)
    # conditions that contradict each other leave no point
    if all(space.at(number) is None for number in range(min(space.size, MAX_SEARCHED))):
        listed = " and ".join(space.conditions)
        raise document.error(
            f"no point of {space.size} is left: {listed}", ("conditions",), "loosen a condition or add values"
        )
    return space


def _require_known(name: str, templates: Templates) -> None:
    known = sorted(templates.names)
    if name not in known:
        parameter = templates.parameter(name)
        if parameter is not None:
            needs = ", ".join(sorted(names_in(parameter.expression or "")))
            raise ConfigError(f"'{name}' is computed ({parameter.expression})", hint=f"vary {needs} instead")
        hint = did_you_mean(name, known, f"parameters: {', '.join(known) or 'none'}")
        raise ConfigError(f"no template has a parameter '{name}'", hint=hint)
    if not templates.readers(name):
        reason = f"the parameter '{name}' is described, but no template reads it"
        raise ConfigError(reason, hint="use it in the template, or take the axis out")


def _described_values(parameter: Parameter | None) -> tuple[Scalar, ...]:
    """The values that a params file tells a sweep to try."""
    if parameter is not None and parameter.choices is not None:
        return parameter.choices
    if parameter is not None and isinstance(parameter.default, bool):
        return (False, True)
    if parameter is None or parameter.range is None:
        reason = "the axis has no values, and no params file describes a range or choices"
        raise ConfigError(reason, hint='give "values": [ … ]')
    low, high = parameter.range
    if parameter.scale == "log2":
        return doubled(low, high)
    if parameter.step is None and not isinstance(parameter.default, int):
        raise ConfigError("the params file describes no step", hint=f'give "range": [{low}, {high}, STEP]')
    return spaced(low, high, parameter.step or 1)


def _require_fitting(values: tuple[Scalar, ...], parameter: Parameter | None) -> None:
    for value in values:
        if parameter is not None and (wrong := parameter.misfit(value)):
            raise ConfigError(wrong, hint=parameter.description or None)


def _require_names(expression: str, templates: Templates) -> None:
    known = sorted({*templates.names, *templates.described_names, PASSES})
    for name in sorted(names_in(expression) - set(known)):
        hint = did_you_mean(name, known, f"parameters: {', '.join(known)}")
        raise ConfigError(f"'{expression}': there is no parameter '{name}'", hint=hint)
