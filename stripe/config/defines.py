"""Values of parameters as `-D NAME=VALUE` gives them."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from stripe.ir.errors import ConfigError

if TYPE_CHECKING:
    from stripe.config.model import Scalar

_INTEGER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|[0-9]+)")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


def parse_value(text: Scalar) -> Scalar:
    """The value that a text on the command line stands for: a number, `true`, `false`, else the text itself."""
    if not isinstance(text, str):
        return text
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text) and len(text) < 100:
        return int(text, 16 if "x" in text.lower() else 10)
    number = float(text) if _FLOAT.fullmatch(text) and len(text) < 100 else math.inf
    return number if math.isfinite(number) else text


def parse_define(text: str) -> tuple[str, str]:
    """The name and the value of `NAME=VALUE`, as `-D` takes it. Raises ConfigError."""
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name.strip()):
        raise ConfigError(f"'{text}' is no definition", where="-D", hint="write -D NAME=VALUE")
    return name.strip(), value.strip()
