"""Finds the templates of hardware models and pass lists, by a shipped name or by path, and their parameters."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

from stripe.config.defines import parse_value
from stripe.config.document import Document, parse_document, read_text
from stripe.config.model import Scalar
from stripe.config.parameters import ParameterFile, read_parameters, resolve
from stripe.config.template import free_names
from stripe.ir.errors import ConfigError, combine, did_you_mean
from stripe.ir.package_data import data_dir, list_data

SUFFIXES = (".json.j2", ".json")

NATIVE = "native"
"""The name of the hardware model of this processor, which has no file."""


def find_file(name_or_path: str, kind: str) -> Path:
    """The file of a hardware model (`kind` "hwmodels") or pass list ("optconfigs"), by a shipped name or by path.

    A text with a folder or a suffix is a path. Raises ConfigError with the names there are.
    """
    if is_path(name_or_path):
        path = Path(name_or_path)
        if not path.exists() and path.name in shipped(kind):
            hint = f"without a folder, '{path.name}' is the one that comes with the program"
            raise ConfigError("there is no such file", path=name_or_path, hint=hint)
        return path
    file = data_dir(kind) / f"{name_or_path}.json.j2"
    if name_or_path and file.is_file():
        return file
    known = (*shipped(kind), NATIVE) if kind == "hwmodels" else shipped(kind)
    thing = {"hwmodels": "hardware model", "optconfigs": "pass list"}.get(kind, kind)
    beside = [f"./{name_or_path}{end}" for end in SUFFIXES if Path(f"{name_or_path}{end}").is_file()]
    otherwise = f"there are {', '.join(known) or 'none'}; or give the path of a file"
    hint = f"did you mean '{beside[0]}'?" if beside else did_you_mean(name_or_path, known, otherwise)
    raise ConfigError(f"there is no {thing} called '{name_or_path}'", hint=hint)


def is_path(text: str) -> bool:
    """Whether a text names a file by its path, not by a shipped name."""
    return any(sign in text for sign in "/\\.")


def shipped(kind: str = "hwmodels") -> tuple[str, ...]:
    """The names of the files of `kind` that come with the program."""
    return tuple(name.removesuffix(".json.j2") for name in list_data(kind) if name.endswith(".json.j2"))


def parameter_file(template: Path) -> Path:
    """The file that describes the parameters of a template: `NAME.params.json` beside it. It need not exist."""
    name = template.name
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return template.with_name(f"{name}.params.json")


def load_parameters(template: Path) -> tuple[Document, ParameterFile] | None:
    """The description of a template's parameters, None when there is none. Raises ConfigError."""
    path = parameter_file(template)
    return _parameters(path, read_text(path)) if path.exists() else None


@lru_cache(maxsize=64)
def _parameters(path: Path, text: str) -> tuple[Document, ParameterFile]:
    document = parse_document(text, str(path))
    return document, read_parameters(document)


def resolve_parameters(
    template: Path, defines: Mapping[str, Scalar], elsewhere: Collection[str] = ()
) -> dict[str, Scalar]:
    """The values with which `template` renders: its parameters' defaults, with `defines` over them.

    A name in `defines` that the template does not have is an error unless it is in `elsewhere`, the names that
    other templates of the same run have. Raises ConfigError.
    """
    described = load_parameters(template)
    known = set(described[1].parameters) if described else set(free_names(template))
    names = ", ".join(sorted(known)) or "none"
    unknown = [
        ConfigError(
            f"{template.name} has no parameter '{name}'",
            where=f"-D {name}",
            hint=did_you_mean(name, sorted(known), f"parameters: {names}"),
        )
        for name in defines
        if name not in known and name not in elsewhere
    ]
    if unknown:
        raise combine(unknown)
    if described is None:
        return {name: parse_value(value) for name, value in defines.items() if name in known}
    return resolve(*described, defines)
