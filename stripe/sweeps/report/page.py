"""The page: data, script and plotly in one HTML file that needs no network."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import cast

from pydantic import JsonValue

from stripe.sweeps.extras import extra
from stripe.sweeps.report.data import script_safe


def page_html(data: dict[str, JsonValue]) -> str:
    """The HTML file. Raises ConfigError where plotly is not installed."""
    here = files(__package__ or "stripe.sweeps.report")
    parts = {
        "TITLE": escape(str(data["title"])),
        "PLOTLY": cast("str", extra("plotly.offline", "a report").get_plotlyjs()),
        "DATA": script_safe(data),
        "SCRIPT": here.joinpath("page.js").read_text("utf-8"),
    }
    # Split at the marks of the template alone: the parts may hold such marks themselves.
    pieces = here.joinpath("page.html").read_text("utf-8").split("@")
    return "".join(parts.get(piece, piece) if n % 2 else piece for n, piece in enumerate(pieces))
