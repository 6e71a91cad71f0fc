"""Values in notebooks: well-formed HTML with text, graph, timeline and tables; short `repr` elsewhere."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

import stripe
from stripe.api.notebook import MOST_BOXES
from stripe.api.picture import block_picture, boxes

ROOT = Path(__file__).resolve().parents[2]
_SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def tiled() -> stripe.Program:
    return stripe.run_passes(stripe.read(ROOT / "examples" / "conv_bias_relu.tile"), "dsp_conv")


def _parsed(html: str | None) -> ElementTree.Element:
    assert html is not None
    return ElementTree.fromstring(f"<body>{html.replace('<details open>', '<details>')}</body>")


def test_a_program_is_text_and_graph(tiled: stripe.Program) -> None:
    body = _parsed(tiled._repr_html_())
    assert body.findtext("details/pre") == str(tiled)
    assert body.findtext("details/summary") == f"{tiled!r} ({len(str(tiled).splitlines())} lines)"
    assert "<details open>" not in (tiled._repr_html_() or "")
    assert body.find(f"div/{_SVG}svg") is not None
    kernel = next(tiled.main.blocks)
    assert _parsed(kernel._repr_html_()).findtext("details/pre") == str(kernel)
    small = stripe.parse("function (A[N=4]) -> (O) { O = A + A; }", language="tile")
    assert _parsed(small._repr_html_()).findtext("details/summary") == repr(small)
    assert "<details open>" in (small._repr_html_() or "")
    assert repr(stripe.prove(small, small)) == "<Judgement equal>"


def test_a_large_program_is_text_for_graphviz(tiled: stripe.Program) -> None:
    kernel = next(tiled.main.blocks)
    main = replace(tiled.main, statements=(kernel,) * MOST_BOXES)
    body = _parsed(stripe.Program(replace(tiled.entry, statements=(main,)))._repr_html_())
    assert body.find(f"div/{_SVG}svg") is None
    assert (body.findtext("details[2]/pre") or "").startswith("digraph")


def test_boxes_lie_inside_of_each_other(tiled: stripe.Program) -> None:
    root = ElementTree.fromstring(block_picture(tiled.entry))
    paper, *rects = root.findall(f"{_SVG}rect")
    assert paper.get("width") == "100%"
    assert len(rects) == boxes(tiled.entry)
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    for number, rect in enumerate(rects):
        x, y, w, h = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + w <= width and 0 <= y <= y + h <= height
        for other in rects[:number]:  # outer before inner: apart, or inside
            ox, oy, ow, oh = (float(other.attrib[name]) for name in ("x", "y", "width", "height"))
            inside = ox <= x and x + w <= ox + ow + 0.02 and oy <= y and y + h <= oy + oh + 0.02
            assert inside or ox + ow <= x + 0.02


def test_each_use_has_a_dot(tiled: stripe.Program) -> None:
    root = ElementTree.fromstring(block_picture(tiled.main))
    titles = {title.text for title in root.iter(f"{_SVG}title")}
    assert {"reads I", "reads K", "reads B", "writes O"} <= titles


def test_a_simulation_is_timeline_and_tables(tiled: stripe.Program) -> None:
    report = stripe.simulate(tiled, "dsp_conv")
    body = _parsed(report._repr_html_())
    assert body.find(f"div/{_SVG}svg") is not None
    captions = [table.findtext("caption") for table in body.findall("table")]
    assert captions[1:] == ["statements", *captions[2:4], "memories, bytes", "energy"]
    assert str(report).startswith(f"conv_bias_relu on dsp_conv, {report.clock_mhz:g} MHz")
    assert (
        repr(report) == f"<SimulationReport conv_bias_relu on dsp_conv: {report.latency_cycles:,.0f} cycles>"
    )


def test_text_and_repr_of_values(tiled: stripe.Program) -> None:
    kernel = next(tiled.main.blocks)
    assert stripe.parse(str(tiled)) == tiled
    assert str(kernel.refinements[0]) in str(kernel)
    assert "\n" not in repr(tiled) + repr(kernel)
