"""Reads a hardware model: renders its template, checks it and tells where its numbers come from."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import translate
from functools import lru_cache
from math import isclose
from pathlib import Path
from types import NoneType

from pydantic import JsonValue

from stripe.config.document import read_text
from stripe.config.files import find_file, load_parameters, resolve_parameters
from stripe.config.model import UNVERIFIED, Changed, Documented, Scalar
from stripe.config.parameters import ParameterFile
from stripe.config.template import render_json
from stripe.config.validate import validate
from stripe.hw.checks import check_model
from stripe.hw.schema import HardwareModel
from stripe.ir.errors import ConfigError, combine


def load_hardware(
    name_or_path: str, defines: Mapping[str, Scalar] | None = None, elsewhere: Collection[str] = ()
) -> HardwareModel:
    """The hardware model with that name or path, rendered with `defines` over its defaults, and checked.

    Its `parameters` are the values that it was rendered with, its `sources` tell where its numbers come from.
    `elsewhere` are names in `defines` that belong to others, such as the pass list. Raises ConfigError: for everything
    that is wrong with the model at once, each with its line in the template.
    """
    path = find_file(name_or_path, "hwmodels")
    values = resolve_parameters(path, defines or {}, elsewhere)
    document = render_json(path, values)
    if isinstance(document.data, dict) and "passes" in document.data:
        raise document.error("this is a pass list, not a hardware model", (), "give it with --config")
    model = validate(HardwareModel, document)
    problems = check_model(model)
    if problems:
        raise combine([document.error(p.reason, p.path, p.hint, on_key=True) for p in problems])
    described = load_parameters(path)
    sources = model.sources
    if described is not None:
        sources += _sources(described[1], values, defines or {})
        as_described = _as_described(path) if defines else _numbers_of(model)
        sources += tuple(_changed(_numbers_of(model), as_described, described[1].values))
    return model.model_copy(
        update={
            "name": model.name or path.name.split(".")[0],
            "parameters": {**model.parameters, **values},
            "sources": (*sources, *_without_entry(model, sources)),
        }
    )


def _without_entry(model: HardwareModel, sources: Iterable[Documented]) -> Iterator[Documented]:
    """The numbers of the template with neither a source nor the mark *unverified*."""
    known = _any_of(tuple(entry.path for entry in sources))
    for place, value in _numbers_of(model).items():
        if not known.match(place):
            yield Documented(path=place, value=value, source="")


def _as_described(path: Path) -> Mapping[str, int | float]:
    """The numbers with the defaults of all parameters, of which the values beside sources are; none where the template
    makes no model with these."""
    try:
        return _numbers_with(path, read_text(path), tuple(resolve_parameters(path, {}).items()))
    except ConfigError:
        return {}


@lru_cache(maxsize=16)  # a sweep loads one template for each of its points
def _numbers_with(
    path: Path, text: str, parameters: tuple[tuple[str, Scalar], ...]
) -> Mapping[str, int | float]:
    """The numbers that a template of this text gives."""
    del text  # of the key alone
    return _numbers_of(validate(HardwareModel, render_json(path, dict(parameters))))


def _changed(
    numbers: Mapping[str, int | float],
    as_described: Mapping[str, int | float],
    entries: Sequence[Documented],
) -> Iterator[Changed]:
    """The numbers of a model that its template does not compute from those of their sources."""
    known = [(entry, _any_of((entry.path,))) for entry in entries]
    for place, value in as_described.items():
        entry = next((entry for entry, covered in known if covered.match(place)), None)
        if entry is None or isinstance(entry.value, (bool, str, NoneType)) or place not in numbers:
            continue
        if entry.is_verified and not isclose(value, entry.value):
            yield Changed(
                path=place,
                value=numbers[place],
                unit=entry.unit,
                source=UNVERIFIED,
                note=entry.source,
                stated=entry.value,
            )


@lru_cache(maxsize=1024)
def _any_of(places: tuple[str, ...]) -> re.Pattern[str]:
    """The places that entries name, and all below them."""
    return re.compile("|".join(translate(f"{p}{below}") for p in places for below in ("", ".*")) or r"(?!)")


def _numbers_of(model: HardwareModel) -> dict[str, int | float]:
    """The numbers that the template of a model writes, by place."""
    return dict(
        _numbers(model.model_dump(mode="json", exclude_unset=True, exclude={"parameters", "sources"}))
    )


def _numbers(value: JsonValue, place: str = "") -> Iterator[tuple[str, int | float]]:
    """The numbers of a rendered model by place; entries of lists go by their names."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            name = inner.get("name", position) if isinstance(inner, dict) else position
            yield from _numbers(inner, f"{place}.{name}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield place, value


def _sources(
    file: ParameterFile, values: Mapping[str, Scalar], defines: Mapping[str, Scalar]
) -> tuple[Documented, ...]:
    """Where the numbers of the template come from, then where the values of its parameters do."""
    given = tuple(
        Documented(
            path=f"parameters.{name}",
            value=values[name],
            unit=parameter.unit,
            source="given with -D" if name in defines else parameter.source,
        )
        for name, parameter in file.parameters.items()
        if parameter.expression is None
    )
    return file.values + given
