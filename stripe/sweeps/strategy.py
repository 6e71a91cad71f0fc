"""The order of points: the whole grid, a random sample, or proposals of a sampler that learns from results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from stripe.config.model import Scalar
from stripe.ir import ConfigError
from stripe.sweeps.extras import extra
from stripe.sweeps.plan import SweepPlan
from stripe.sweeps.space import DesignAxis, DesignPoint

Outcome = tuple[float, ...] | None
"""The objectives of a point, smaller being better; None where it has none."""


class Strategy(Protocol):
    """Proposes points in batches, and is told the outcome of each batch before it proposes the next."""

    def ask(self) -> tuple[DesignPoint, ...]:
        """The next points; none when all are proposed."""
        ...

    def tell(self, outcomes: Mapping[DesignPoint, Outcome]) -> None:
        """The outcomes of the points that were last asked for."""
        ...


def strategy_of(plan: SweepPlan, limit: int | None) -> Strategy:
    """The strategy that a sweep file names, for at most `limit` points."""
    counts = [count for count in (plan.points, limit) if count is not None]
    most = min(counts, default=None)
    if plan.strategy.name == "grid":
        return Listed(islice(plan.space.grid(), most))
    if most is None:
        reason = f"the strategy '{plan.strategy.name}' needs a number of points"
        raise ConfigError(reason, path=str(plan.file), where="$.strategy", hint='add "points": 100')
    if plan.strategy.name == "random":
        return Listed(plan.space.sample(most, plan.strategy.seed))
    return Sampled(plan, most)


@dataclass(slots=True)
class Listed:
    """Points of a list, whatever the results."""

    points: Iterator[DesignPoint]
    batch: int = 1000

    def ask(self) -> tuple[DesignPoint, ...]:
        return tuple(islice(self.points, self.batch))

    def tell(self, outcomes: Mapping[DesignPoint, Outcome]) -> None:
        """Nothing depends on outcomes."""


@dataclass(slots=True)
class Sampled:
    """Points that a multi-objective sampler of Optuna proposes, a generation at a time. A generation does not depend on
    the order in which the generation before was evaluated: with equal seeds and numbers of points all runs, parallel or
    resumed, propose the same points.
    """

    plan: SweepPlan
    most: int
    seen: set[DesignPoint] = field(default_factory=set[DesignPoint])
    _study: Any = None
    _asked: dict[DesignPoint, Any] = field(default_factory=dict[DesignPoint, Any])

    def ask(self) -> tuple[DesignPoint, ...]:
        optuna = extra("optuna", f"the strategy '{self.plan.strategy.name}'")
        study = self._study = self._study or _new_study(optuna, self.plan)
        failed = optuna.trial.TrialState.FAIL
        room = min(self.plan.strategy.generation, self.most - len(self.seen), self.plan.space.size)
        self._asked.clear()
        for _ in range(50 * room + 100):  # the sampler repeats itself the more, the fewer points are left
            if len(self._asked) == room:
                break
            trial = study.ask(_distributions(optuna, self.plan.space.axes))
            choice: dict[str, Scalar] = {
                axis.name: axis.values[trial.params[axis.name]] for axis in self.plan.space.axes
            }
            point = self.plan.space.point(choice)
            if point is None or point in self.seen:
                study.tell(trial, state=failed)
                continue
            self.seen.add(point)
            self._asked[point] = trial
        return tuple(self._asked)

    def tell(self, outcomes: Mapping[DesignPoint, Outcome]) -> None:
        optuna = extra("optuna", "the strategy")
        for point, trial in self._asked.items():
            outcome = outcomes[point]
            state = optuna.trial.TrialState.FAIL if outcome is None else None
            self._study.tell(trial, outcome, state=state)


def _distributions(optuna: Any, axes: tuple[DesignAxis, ...]) -> dict[str, Any]:
    """The positions of values: numbers have an order that the sampler may use, texts have none."""
    return {
        axis.name: optuna.distributions.IntDistribution(0, len(axis.values) - 1)
        if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in axis.values)
        else optuna.distributions.CategoricalDistribution(tuple(range(len(axis.values))))
        for axis in axes
    }


def _new_study(optuna: Any, plan: SweepPlan) -> Any:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seed, generation = plan.strategy.seed, plan.strategy.generation
    samplers = optuna.samplers
    sampler = (
        samplers.NSGAIISampler(population_size=generation, seed=seed)
        if plan.strategy.name == "nsga2"
        else samplers.TPESampler(seed=seed, n_startup_trials=generation)
    )
    return optuna.create_study(directions=["minimize"] * len(plan.objectives), sampler=sampler)
