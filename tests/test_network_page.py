"""The page of networks: facts of stopped runs stay, and stages without facts say why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import network_page

FACTS: list[network_page.Facts] = [
    {"network": "a", "stage": "c", "error": ["stopped after 9 s"], "nodes": 3},
    {"network": "a", "stage": "c", "nodes": 3, "run_seconds": 0.5, "allowed": 0.25},
    {"network": "a", "stage": "machine", "peak_bytes": {"DRAM[0]": 2048}, "proof_answers": ["tile: unknown"]},
    {"network": "b", "stage": "c", "error": ["no memory"]},
]


def test_facts_become_tables(tmp_path: Path) -> None:
    path = tmp_path / "facts.jsonl"
    path.write_text("".join(f"{json.dumps(facts)}\n" for facts in FACTS))
    text = network_page.page(network_page.recorded(path), ["a", "b"])
    assert "| a | 3 | - |" in text
    assert "0.25 of the allowed error" in text
    assert "- b, c: no memory" in text and "- a, c:" not in text
    assert "- a, proof: tile: unknown" in text


def test_a_stopped_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages with facts are not measured again; those that failed are."""
    (tmp_path / "facts.jsonl").write_text(
        '{"network": "resnet50", "stage": "c"}\n{"network": "vgg19", "stage": "c", "error": ["stopped"]}\n'
    )
    measured: list[tuple[str, str]] = []

    def measure(name: str, stage: str, peers: str | None) -> network_page.Facts:
        measured.append((name, stage))
        return {"network": name, "stage": stage}

    monkeypatch.setattr(network_page, "FOLDER", tmp_path)
    monkeypatch.setattr(network_page, "PAGE", tmp_path / "networks.md")
    monkeypatch.setattr(network_page, "measure", measure)
    monkeypatch.setattr("sys.argv", ["network_page", "resnet50", "vgg19", "--stages", "c"])
    assert network_page.main() == 0
    assert measured == [("vgg19", "c")]
    assert (tmp_path / "networks.md").exists()
