"""The parameters of a template: `NAME.params.json` beside `NAME.json.j2`.

    { "parameters": {
        "NUM_SRAM": { "default": 8, "range": [1, 64], "unit": "memories", "description": "…", "source": "…" },
        "KIND":     { "default": "HBM", "choices": ["HBM", "DDR"], "description": "…", "source": "…" },
        "TOTAL":    { "expression": "NUM_SRAM * 32", "description": "computed from the others" } },
      "checks": [ { "that": "TOTAL <= 4096", "reason": "the chip has no room for more" } ],
      "values": [ { "path": "clock_mhz", "value": 700, "unit": "MHz", "source": "…" } ] }

So a template renders with no `-D` at all, and a sweep knows its possible axes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from stripe.config.defines import parse_value
from stripe.config.document import Document
from stripe.config.model import ConfigModel, Documented, Scalar
from stripe.config.template import evaluate, names_in
from stripe.config.validate import validate
from stripe.ir.errors import ConfigError, combine, did_you_mean

Value = StrictBool | StrictInt | StrictFloat | StrictStr
Number = StrictInt | StrictFloat
ParameterName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Parameter(ConfigModel):
    """One parameter. Its type is that of its default; a whole number stays one."""

    default: Value | None = Field(default=None, description="value where none is given")
    expression: str | None = Field(
        default=None, description="instead of a default: computed from other parameters"
    )
    range: tuple[Number, Number] | None = Field(default=None, description="lowest and highest value")
    step: Number | None = Field(default=None, gt=0, description="distance of the values that a sweep tries")
    scale: Literal["linear", "log2"] = Field(default="linear", description="log2: a sweep doubles the value")
    choices: tuple[Value, ...] | None = Field(
        default=None, min_length=1, description="the values that it may have"
    )
    faster: Literal["more", "less"] | None = Field(
        default=None, description="direction in which the machine can only get faster, where it has one"
    )
    unit: str = Field(default="", description="unit of the value")
    description: str = Field(default="", description="meaning, for people")
    source: str = Field(default="unverified", description="where the default comes from")

    @model_validator(mode="after")
    def _makes_sense(self) -> Parameter:
        if (self.default is None) == (self.expression is None):
            raise ValueError("a parameter needs 'default' or 'expression', one of the two")
        if self.range is not None and self.choices is not None:
            raise ValueError("a parameter has 'range' or 'choices', not both")
        if self.range is not None and self.range[0] > self.range[1]:
            raise ValueError(f"the range from {self.range[0]} to {self.range[1]} is empty")
        if self.default is not None and (wrong := self.misfit(self.default)):
            raise ValueError(f"the default {wrong}")
        return self

    @property
    def kind(self) -> str:
        """The type of the value in words."""
        return _KINDS[type(self.default)] if self.default is not None else "computed"

    def misfit(self, value: Scalar) -> str | None:
        """The reason why the parameter may not have `value`, None when it may."""
        if isinstance(self.default, (bool, int, float, str)) and not _same_kind(self.default, value):
            return f"{shown(value)} is not {self.kind}"
        if self.choices is not None and not any(_same_kind(c, value) and c == value for c in self.choices):
            return f"{shown(value)} is none of {', '.join(map(shown, self.choices))}"
        if self.range is not None:
            low, high = self.range
            if isinstance(value, (bool, str)) or not low <= value <= high:
                return f"{shown(value)} is not in the range {low} to {high}"
        return None


_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def _same_kind(wanted: Scalar, value: Scalar) -> bool:
    if isinstance(wanted, bool) or isinstance(value, bool):
        return isinstance(wanted, bool) and isinstance(value, bool)
    if isinstance(wanted, float):
        return isinstance(value, (int, float))
    return type(wanted) is type(value)


def shown(value: Scalar) -> str:
    """A value as it stands in messages: texts in quotes, `true` and `false` as JSON has them."""
    if isinstance(value, str):
        return f"'{value}'"
    return str(value).lower() if isinstance(value, bool) else str(value)


class Check(ConfigModel):
    """A condition between parameters."""

    that: str = Field(description="a Jinja expression that must be true")
    reason: str = Field(description="the reason where it does not hold")


class ParameterFile(ConfigModel):
    """The whole of a `NAME.params.json`."""

    description: str = Field(default="", description="the template in one line, for people")
    parameters: dict[ParameterName, Parameter] = Field(default_factory=dict, description="parameters by name")
    checks: tuple[Check, ...] = Field(default=(), description="conditions between parameters")
    values: tuple[Documented, ...] = Field(
        default=(), description="where the numbers of the template come from"
    )


def read_parameters(document: Document) -> ParameterFile:
    """The parameters that `document` describes. Raises ConfigError: bad schema, unknown names, cycles."""
    file = validate(ParameterFile, document)
    errors: list[ConfigError] = []
    for name, parameter in file.parameters.items():
        if parameter.expression is not None:
            errors += _unknown_names(document, file, parameter.expression, ("parameters", name, "expression"))
    for number, check in enumerate(file.checks):
        errors += _unknown_names(document, file, check.that, ("checks", number, "that"))
    if errors:
        raise combine(errors)
    cycle = find_cycle({name: _needs(parameter) for name, parameter in file.parameters.items()})
    if cycle:
        reason = f"the parameter '{cycle[0]}' is computed from itself: {' -> '.join((*cycle, cycle[0]))}"
        raise document.error(reason, ("parameters", cycle[0], "expression"), "give one of them a 'default'")
    return file


def _needs(parameter: Parameter) -> frozenset[str]:
    return names_in(parameter.expression) if parameter.expression is not None else frozenset()


def _unknown_names(
    document: Document, file: ParameterFile, expression: str, path: tuple[str | int, ...]
) -> list[ConfigError]:
    try:
        names = names_in(expression)
    except ConfigError as error:
        return [document.error(error.reason, path, error.hint)]
    errors: list[ConfigError] = []
    for name in sorted(names - file.parameters.keys()):
        hint = did_you_mean(name, file.parameters, f"parameters: {', '.join(file.parameters)}")
        errors.append(document.error(f"there is no parameter '{name}'", path, hint))
    return errors


def find_cycle(needs: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """The names on a cycle of `needs`, in order; empty when there is none."""
    try:
        TopologicalSorter({name: sorted(needs[name]) for name in sorted(needs)}).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1][:0:-1]  # a name follows its need there
        first = cycle.index(min(cycle))
        return (*cycle[first:], *cycle[:first])
    return ()


def resolve(document: Document, file: ParameterFile, defines: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The value of each parameter: from `defines`, else its default, else computed.

    Names in `defines` that are no parameters are left out. Raises ConfigError for a value of a wrong kind, out of
    range or none of the choices, for one given to a computed parameter, and for a check that fails.
    """
    values: dict[str, Scalar] = {}
    errors: list[ConfigError] = []
    for name, parameter in file.parameters.items():
        if name in defines:
            try:
                values[name] = _defined(name, parameter, defines[name])
            except ConfigError as error:
                errors.append(error)
        elif parameter.default is not None:
            values[name] = parameter.default
    if errors:
        raise combine(errors)
    needs = {name: sorted(_needs(parameter)) for name, parameter in file.parameters.items()}
    for name in TopologicalSorter(needs).static_order():
        if name not in values:
            path, parameter = ("parameters", name, "expression"), file.parameters[name]
            values[name] = _evaluate(document, parameter.expression or "", values, path)
            if wrong := parameter.misfit(values[name]):
                raise document.error(f"the computed value of '{name}': {wrong}", path)
    for number, check in enumerate(file.checks):
        if not _evaluate(document, check.that, values, ("checks", number, "that")):
            used = ", ".join(f"{name} = {shown(values[name])}" for name in sorted(names_in(check.that)))
            raise ConfigError(
                f"{check.reason} ({used})", path=document.path, hint=f"it must hold that {check.that}"
            )
    return {name: values[name] for name in file.parameters}


def _defined(name: str, parameter: Parameter, given: Scalar) -> Scalar:
    where = f"-D {name}={given}"
    if parameter.expression is not None:
        needs = ", ".join(sorted(names_in(parameter.expression)))
        hint = f"set {needs} instead" if needs else None
        raise ConfigError(f"'{name}' is computed ({parameter.expression})", where=where, hint=hint)
    if isinstance(parameter.default, str):
        value: Scalar = str(given).lower() if isinstance(given, bool) else str(given)
    else:
        value = parse_value(given)
    if wrong := parameter.misfit(value):
        unit = f", {parameter.unit}" if parameter.unit else ""
        hint = f"{name}: {parameter.description or 'no description'}{unit}"
        raise ConfigError(f"the value of '{name}': {wrong}", where=where, hint=hint)
    return value


def _evaluate(
    document: Document, expression: str, values: Mapping[str, Scalar], path: tuple[str | int, ...]
) -> Scalar:
    try:
        return evaluate(expression, values)
    except ConfigError as error:
        raise document.error(error.reason, path, error.hint) from None
