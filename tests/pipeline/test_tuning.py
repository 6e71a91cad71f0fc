"""Tuning by measurement: which settings are tried, which is kept, and for how long."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from stripe.api.compiling import hardware
from stripe.cli.start import opt
from stripe.config.document import read_json
from stripe.ir import ConfigError, Program, parse_program
from stripe.passes.autotile.autotile import Autotile
from stripe.pipeline import tuning
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes, read_pass_list
from stripe.pipeline.tuning import Tuner, tuned
from tests.support.programs import MATMUL


def smallest_outer(programs: Sequence[Program]) -> list[float]:
    """In place of a clock: the points of the outermost kernels."""
    return [float(sum(block.points for block in program.main.blocks)) for program in programs]


def largest_outer(programs: Sequence[Program]) -> list[float]:
    return [-seconds for seconds in smallest_outer(programs)]


@pytest.fixture
def program() -> Program:
    from stripe.tile import compile_tile

    return compile_tile(
        "function (A[M=8, K=12], B[K, N=16]) -> (C) { C[i, j : M, N] = +(A[i, k] * B[k, j]); }", "mm", {}
    )


def test_the_fastest_of_the_best_ranks_is_kept(program: Program) -> None:
    entries = parse_passes("autotile{reqs=[contraction],max_total_size=400}")
    lines: list[str] = []
    for measure in (smallest_outer, largest_outer):
        found = Tuner(entries, None, 5, lines.append, measure).run(program)
        variants = [
            (*entries[:0], entries[0].__class__(entries[0].name, setting))
            for setting in entries[0].pass_.settings(program, tuning.PassContext(), 5)[0]
        ]
        seconds = measure([PassManager(tuple(variant)).run(program) for variant in variants])
        (entry,) = found
        assert isinstance(entry.pass_, Autotile)
        assert measure([PassManager(found).run(program)])[0] == min(seconds)
        assert entry.pass_.ranks == {"kernel_0": seconds.index(min(seconds))}
    assert sum(line.endswith("<-") for line in lines) == 2
    assert len(lines) == 10


def test_ranks_beyond_the_last_take_the_last(program: Program) -> None:
    (first,) = parse_passes("autotile{reqs=[contraction],fixed={i:4,j:4,k:4}}")
    (last,) = parse_passes("autotile{reqs=[contraction],fixed={i:4,j:4,k:4},ranks={kernel_0:50}}")
    assert PassManager((first,)).run(program) == PassManager((last,)).run(program)


def test_values_of_a_list_are_tried_for_any_option(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    entry = {"name": "threads", "thread": {"reqs": ["kernel"], "threads": 2}, "tune": {"threads": [2, 4, 8]}}
    path.write_text(json.dumps({"passes": [entry]}))
    entries = read_pass_list(read_json(path)).entries
    assert entries[0].tune == (("threads", (2, 4, 8)),)
    tried: list[int] = []

    def measure(programs: Sequence[Program]) -> list[float]:
        tried.append(len(programs))
        return [3.0, 1.0, 2.0][: len(programs)]

    (found,) = Tuner(entries, None, 8, str, measure).run(program)
    assert tried == [3]
    assert found.pass_.model_dump()["threads"] == 4


@pytest.mark.parametrize(
    ("tune", "reason"),
    [
        ({"thread": [2]}, "the pass has no option 'thread'"),
        ({"threads": 2}, "the values to try are a list"),
        ({"threads": ["many"]}, "\"many\" is no value of 'threads'"),
        ([2], "'tune' is an object"),
    ],
)
def test_errors_in_what_to_tune_have_a_place(tune: object, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text(
        json.dumps({"passes": [{"name": "t", "thread": {"reqs": ["kernel"], "threads": 2}, "tune": tune}]})
    )
    with pytest.raises(ConfigError, match=reason) as caught:
        read_pass_list(read_json(path))
    assert "tune" in str(caught.value)


def test_results_are_kept_for_program_list_and_machine(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    entries = parse_passes("autotile{reqs=[contraction],max_total_size=400}")
    monkeypatch.setattr(tuning, "measured_seconds", largest_outer)
    said: tuple[list[str], list[str]] = ([], [])
    first = tuned(entries, None, program, 4, said[0].append)
    monkeypatch.setattr(tuning, "measured_seconds", None)
    assert tuned(entries, None, program, 4, said[1].append) == first
    assert said[0] == said[1] != []
    with pytest.raises(TypeError):
        tuned(entries, None, program, 3)
    with pytest.raises(TypeError):
        tuned(entries, hardware("portable"), program, 4)


def test_tuning_measures_compiled_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    passes = "autotile{reqs=[contraction],max_total_size=2048}"
    words = ["examples/matmul.tile", "--passes", passes, "--tune", "2", "--remarks", "--verify", "exact"]
    assert opt(words) == 0
    err = capsys.readouterr().err
    assert err.count("remark: tune: 'autotile': ") == 2
    assert err.count("µs") == 2


@pytest.mark.usefixtures("bad_passes")
def test_candidates_that_leave_their_buffers_are_not_run() -> None:
    program = parse_program(MATMUL)
    outside = PassManager(parse_passes("outside")).run(program)
    time, none = tuning.measured_seconds([program, outside])
    assert 0 < time < none == float("inf")
