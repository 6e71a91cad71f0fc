"""Hardware models and their parameters as text, for `--list-models`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stripe.config.files import find_file, load_parameters, shipped
from stripe.config.parameters import Parameter, shown
from stripe.config.template import free_names


def list_models() -> str:
    """All shipped hardware models with their parameters."""
    return "\n".join(map(describe_model, shipped("hwmodels")))


def describe_model(name_or_path: str) -> str:
    """One hardware model, by its name or path. Raises ConfigError for an unknown one."""
    return "\n".join(_describe(name_or_path, find_file(name_or_path, "hwmodels")))


def _describe(name: str, template: Path) -> Iterator[str]:
    yield name
    described = load_parameters(template)
    if described is None:
        names = ", ".join(sorted(free_names(template)))
        yield f"    parameters without description: {names}" if names else "    no parameters"
        yield ""
        return
    file = described[1]
    if file.description:
        yield f"    {file.description}"
    yield "    parameters:" if file.parameters else "    no parameters"
    for parameter, entry in file.parameters.items():
        yield f"      {parameter}: {'; '.join(_facts(entry))}"
        if entry.description:
            yield f"          {entry.description}"
        if entry.default is not None:
            yield f"          source: {entry.source}"
    for check in file.checks:
        yield f"      it must hold that {check.that}: otherwise {check.reason}"
    yield ""


def _facts(parameter: Parameter) -> Iterator[str]:
    """Values that the parameter may have, its default and its unit."""
    if parameter.choices is not None:
        yield " or ".join(map(shown, parameter.choices))
    elif parameter.range is not None:
        yield f"{parameter.range[0]} to {parameter.range[1]}"
    elif parameter.default is not None:
        yield parameter.kind
    if parameter.expression is not None:
        yield f"computed as {parameter.expression}"
    elif parameter.default is not None:
        yield f"default {shown(parameter.default)}"
    if parameter.unit:
        yield f"unit: {parameter.unit}"
