"""Front ends of other packages: a language of bytes with its suffix, its reader and its reference."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from stripe.cli.start import opt, run
from stripe.config.registry import registered
from stripe.frontends import registry
from stripe.sweeps.plan import read_plan
from tests.support.toy import FRONT_END, MAGIC

Capture = pytest.CaptureFixture[str]


def _register(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    point = EntryPoint("toy", value, registry.ENTRY_POINT_GROUP)
    real = importlib.metadata.entry_points

    def points(*, group: str) -> object:
        return [point] if group == registry.ENTRY_POINT_GROUP else real(group=group)

    monkeypatch.setattr(importlib.metadata, "entry_points", points)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    for cached in (registry.third_party, registered):
        cached.cache_clear()
    yield
    for cached in (registry.third_party, registered):
        cached.cache_clear()


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    _register(monkeypatch, "tests.support.toy:FRONT_END")
    path = tmp_path / "four.toy"
    path.write_bytes(MAGIC + bytes([4, 250]))
    return path


def test_a_file_of_bytes_compiles(toy: Path, capsys: Capture) -> None:
    assert opt([str(toy), "--passes", "dce"]) == 0
    assert "250" in capsys.readouterr().out
    renamed = toy.rename(toy.with_suffix(".bin"))
    assert opt([str(renamed)]) == 2
    assert "--input-format toy" in capsys.readouterr().err
    assert opt([str(renamed), "--input-format", "toy"]) == 0


@pytest.mark.parametrize("option", ["--shape=A=3:fp32", "--dim=N=1", "--random-weights"])
def test_options_that_it_does_not_take_are_refused(toy: Path, option: str, capsys: Capture) -> None:
    assert opt([str(toy), option]) == 2
    assert "; the input's language is 'toy'\n" in capsys.readouterr().err


def test_a_language_with_weights_gets_random_ones_in_a_sweep(
    toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = toy.with_name("sweep.json")
    sweep.write_text(
        json.dumps(
            {
                "hardware": "dsp_conv",
                "passes": ["dsp_conv"],
                "workloads": [toy.name],
                "objectives": ["latency_cycles"],
            }
        )
    )
    for takes in ((), ("random_weights",)):
        front_end = dataclasses.replace(FRONT_END, takes=takes)
        monkeypatch.setattr(registry, "third_party", lambda found=front_end: {"toy": found})
        (workload,) = read_plan(sweep, {}).workloads
        assert workload.options.random_weights == bool(takes)


def test_its_errors_are_those_of_inputs(toy: Path, capsys: Capture) -> None:
    toy.write_bytes(b"\xff")
    assert opt([str(toy)]) == 1
    assert capsys.readouterr().err == f"{toy}: error: this is no toy\n  hint: a toy has 6 bytes\n"


def test_its_reference_judges_a_run(toy: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert run([str(toy), "--compare", "toy-numpy"]) == 0
    assert "interp agrees with toy-numpy, bit for bit" in capsys.readouterr().out
    assert run([str(toy), "--compare", "numpy"]) == 2
    assert "--compare numpy is no reference for an input in Toy" in capsys.readouterr().err
    assert run([str(toy), "--compare", "toy-nump"]) == 2
    assert "did you mean 'toy-numpy'?" in capsys.readouterr().err
    monkeypatch.setattr("tests.support.toy.evaluate", lambda _source, _shapes, inputs: {"O": inputs["A"]})
    assert run([str(toy), "--compare", "toy-numpy"]) == 3


def test_a_reproducer_holds_its_bytes(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def fall(_program: object) -> str:
        raise RuntimeError("emission fell over")

    with monkeypatch.context() as patched:
        patched.setattr("stripe.cli.commands.opt.print_program", fall)
        assert opt([str(toy), "--dump-dir", str(tmp_path / "d")]) == 70
    path = capsys.readouterr().err.split("--run-reproducer ")[1].strip()
    assert json.loads(Path(path).read_text("utf-8"))["input"] == "VE9ZAAT6"
    toy.unlink()
    assert opt(["--run-reproducer", path]) == 0
    assert "250" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("tests.support.toy:absent", "cannot be loaded from 'tests.support.toy:absent'"),
        ("tests.support.toy:MAGIC", "is no FrontEnd"),
    ],
)
def test_a_broken_front_end_is_no_fault_of_ours(
    value: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    _register(monkeypatch, value)
    path = tmp_path / "x.toy"
    path.write_bytes(MAGIC)
    assert opt([str(path)]) == 2
    assert reason in capsys.readouterr().err


def test_built_in_front_ends_are_found_without_a_look_at_other_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _register(monkeypatch, "no.such.module:X")
    for name, front_end in registry.BUILTIN.items():
        assert registry.find_front_end(name) is front_end
        for suffix in front_end.suffixes:
            assert registry.by_suffix(suffix.upper()) is front_end
