"""The base of configuration that people write: frozen pydantic models that refuse unknown keys."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

Scalar = bool | int | float | str
"""A value of a template's parameter."""

UNVERIFIED = "unverified"
"""The source of a number that no publication backs."""


class ConfigModel(BaseModel):
    """A part of a configuration file: frozen, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Documented(ConfigModel):
    """Where a number of a model comes from."""

    path: str = Field(
        description="place in the rendered model: keys with dots, '*' for any; a bus by its name"
    )
    value: Scalar | None = Field(
        default=None,
        description="the value with the defaults of all parameters; another one in the template counts as unverified",
    )
    unit: str = Field(default="", description="unit of the value")
    source: str = Field(
        description="a publication, 'parameter NAME', or 'unverified'; empty where a model has no entry for the number"
    )
    note: str = Field(default="", description="a remark for people")

    @property
    def is_verified(self) -> bool:
        """Whether the value has a source."""
        return self.source not in ("", UNVERIFIED)


class Changed(Documented):
    """A number that is not the one of its source, `stated`: it was changed in the template, and is unverified."""

    stated: Scalar
