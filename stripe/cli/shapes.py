"""`--shape A=64x64:fp32`: shapes and dtypes for inputs of a Tile function that leaves them open."""

from __future__ import annotations

import re

from stripe.ir import DTYPES, ConfigError, DType, closest

_SHAPE = re.compile(r"(?P<name>[A-Za-z_]\w*'?)=(?P<sizes>(?:\d+(?:x\d+)*)?)(?::(?P<dtype>\w+))?", re.ASCII)


def parse_shapes(texts: tuple[str, ...]) -> dict[str, tuple[tuple[int, ...], DType]]:
    """Sizes and dtype by input; no sizes are those of a scalar, and without a dtype it is fp32. Raises ConfigError."""
    shapes: dict[str, tuple[tuple[int, ...], DType]] = {}
    for text in texts:
        match = _SHAPE.fullmatch(text)
        if match is None:
            raise ConfigError(
                f"--shape takes NAME=SIZES:DTYPE, not '{text}'", hint="for example --shape A=64x64:fp32"
            )
        name = match["name"]
        if name in shapes:
            raise ConfigError(f"--shape gives '{name}' twice", hint="give each input once")
        sizes = tuple(int(size) for size in match["sizes"].split("x")) if match["sizes"] else ()
        shapes[name] = (sizes, _dtype(match["dtype"] or "fp32", text))
    return shapes


def _dtype(name: str, text: str) -> DType:
    if name not in DTYPES:
        near = closest(name, DTYPES)
        hint = f"did you mean '{near}'?" if near else f"known are {', '.join(DTYPES)}"
        raise ConfigError(f"--shape {text}: unknown dtype '{name}'", hint=hint)
    return DTYPES[name]
