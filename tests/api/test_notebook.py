"""Values in notebooks: well-formed HTML with text, graph, timeline and tables; short `repr` elsewhere."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

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
    memories = "memories, bytes (3 of SRAM hold nothing)"
    assert captions[1:] == ["statements", *captions[2:4], memories, "energy"]
    assert str(report).startswith(f"conv_bias_relu on dsp_conv, {report.clock_mhz:g} MHz")
    assert (
        repr(report) == f"<SimulationReport conv_bias_relu on dsp_conv: {report.latency_cycles:,.0f} cycles>"
    )


def test_text_and_repr_of_values(tiled: stripe.Program) -> None:
    kernel = next(tiled.main.blocks)
    assert stripe.parse(str(tiled)) == tiled
    assert str(kernel.refinements[0]) in str(kernel)
    assert "\n" not in repr(tiled) + repr(kernel)


_SWEEP = {
    "passes": ["dsp_conv"],
    "workloads": ["examples/matmul.tile"],
    "axes": {"NUM_CONV": {"log2": [1, 2]}, "CLOCK_MHZ": {"values": [400, 500]}},
}


def test_a_sweep_gives_rows_as_they_come_and_shows_its_front(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run = stripe.sweep(_SWEEP)
    rows = iter(run)
    assert next(rows).parameters["CLOCK_MHZ"] == 400
    assert run.progress.done == 1
    assert "1 of at most 4 points" in run._repr_html_()
    assert [row.parameters["CLOCK_MHZ"] for row in rows] == [500, 400, 500]
    body = _parsed(run._repr_html_())
    assert body.find("p/progress") is not None
    assert body.find("table") is not None
    assert body.find(f"div/{_SVG}svg") is not None
    assert run.best("latency_us").point.choices["CLOCK_MHZ"] == 500
    with pytest.raises(stripe.ConfigError, match="no point has a metric 'latncy_us'"):
        run.best("latncy_us")


def test_a_notebook_shows_the_progress_of_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []

    class Handle:
        def update(self, obj: object) -> None:
            shown.append(obj)

    def display(obj: object, *, display_id: bool) -> Handle:
        shown.append(obj)
        return Handle()

    ipython = SimpleNamespace(get_ipython=object, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.chdir(ROOT)
    run = stripe.sweep(_SWEEP, limit=2)
    assert len(run.results) == 2
    assert len(shown) >= 2
    assert shown[0] is shown[-1] is run


def test_a_kept_sweep_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert len(stripe.sweep(_SWEEP, tmp_path / "out", limit=3).results) == 3
    again = stripe.sweep(_SWEEP, tmp_path / "out", resume=True)
    assert len(again.results) == 4
    assert again.progress.reused == 3
    again.report(tmp_path / "report.html")
    assert "<html" in (tmp_path / "report.html").read_text("utf-8")
    with pytest.raises(stripe.ConfigError, match="cannot stop its own points"):
        stripe.sweep(_SWEEP, point_timeout=1)
    with pytest.raises(TypeError, match="expected a file name or a dictionary, got int"):
        stripe.sweep(3)  # pyright: ignore[reportArgumentType]
