"""`stripe-run --compare`: results beside a reference's, and the part at fault where they differ."""

from __future__ import annotations

from dataclasses import dataclass

from stripe.cli.commands.run_report import ComparisonJson
from stripe.exec.compare import LOOSE, Tolerance, compare, layered, tolerance_for, worst_element
from stripe.exec.interp import interpret
from stripe.exec.precision import is_doubtful, measured_bounds
from stripe.exec.rounding import rounding_bounds, telling
from stripe.frontends.frontend import ReadOptions, Source
from stripe.frontends.registry import find_front_end
from stripe.ir import ConfigError, Program, StripeError
from stripe.pipeline.engines import Arrays


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """The parties of a comparison: the program before and after the passes, its inputs, an engine's results."""

    source: Source
    original: Program
    program: Program
    inputs: Arrays
    outputs: Arrays
    engine: str
    small_integers: bool
    reading: ReadOptions

    def against(self, reference: str) -> ComparisonJson:
        """Compares with another way to compute the same. Raises ConfigError when the input has no such way."""
        expected = self._expected(reference)
        # Passes may change the order of sums, so the looser of the tolerances of both programs holds.
        both = [tolerance_for(p, small_integers=self.small_integers) for p in (self.original, self.program)]
        if reference != "interp" and not find_front_end(self.source.language).rounds_alike:
            both.append(LOOSE)
        tolerance = max(both, key=lambda tolerance: (tolerance.relative, tolerance.absolute))
        tolerance = layered(tolerance, self.original)
        bounds = {} if tolerance.exact else telling(rounding_bounds(self.original, self.inputs), expected)
        if is_doubtful(expected, self.outputs, tolerance):
            bounds = measured_bounds(self.original, self.inputs, expected, tolerance) | bounds
        found = tuple(compare(expected, self.outputs, tolerance, bounds))
        identical = not found and not compare(expected, self.outputs)
        blame = self._blame(reference, expected, tolerance) if found else ""
        worst = None if tolerance.exact or found else worst_element(expected, self.outputs, tolerance, bounds)
        return ComparisonJson(
            reference=reference,
            equal=not found,
            exact=tolerance.exact,
            identical=identical,
            differences=tuple(map(str, found)),
            blame=blame,
            worst_ratio=worst.ratio if worst else None,
            worst_element=str(worst) if worst else None,
        )

    def _expected(self, reference: str) -> Arrays:
        if reference == "interp":
            return interpret(self.original, self.inputs)
        front_end = find_front_end(self.source.language)
        if reference not in front_end.references:
            others = ("interp", *front_end.references)
            reason = f"--compare {reference} is no reference for an input in {front_end.name.capitalize()}"
            raise ConfigError(reason, path=self.source.name, hint=f"use --compare {' or '.join(others)}")
        return front_end.evaluate(reference, self.source, self.reading, self.inputs)

    def _blame(self, reference: str, expected: Arrays, tolerance: Tolerance) -> str:
        """The culprit where runs show it: the reference, the passes or the engine."""
        if reference != "interp" and compare(expected, interpret(self.original, self.inputs), tolerance):
            return f"the interpreter differs before any pass: lowering, or {reference} itself, is at fault"
        changed = self.program is not self.original
        if not changed and self.engine == "interp":
            return ""
        try:
            interpreted = interpret(self.program, self.inputs)
        except StripeError as error:
            return f"the interpreter refuses the program after the passes: {error.reason}"
        if compare(expected, interpreted, tolerance):
            return "the interpreter differs too: the passes changed the result"
        after = " on the program after the passes" if changed else ""
        return f"the interpreter agrees{after}: the engine '{self.engine}' is at fault"
