"""Tables of the keys of files that people write, from their pydantic models."""

from __future__ import annotations

import re
from collections.abc import Callable

from pydantic import BaseModel

from stripe.pipeline.describe import options_of
from tools.reference.markdown import table


def keys_of(model: type[BaseModel]) -> Callable[[], str]:
    """The table of a model's fields."""

    def text() -> str:
        rows = [
            (f"`{option.name}`", short_type(option.type), shown_default(option.default), option.description)
            for option in options_of(model)
        ]
        return table(("key", "type", "default", "meaning"), rows)

    return text


def short_type(kind: str) -> str:
    """The type without the fields of objects, which have tables of their own."""
    return re.sub(
        r"object \{NAME: object\}", "objects by name", re.sub(r"object \{(?!NAME)[^{}]*\}", "object", kind)
    )


def shown_default(value: str | None) -> str:
    """The default as a table shows it; empty for values that say nothing."""
    return "required" if value is None else "" if value in ("null", '""', "[]", "{}") else f"`{value}`"
