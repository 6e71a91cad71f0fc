"""The benchmarks have programs of the length asked for, and rows that tell a kept target from a missed one."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest

from benchmarks import programs
from benchmarks.measure import Row, Times, limited, python, timed
from benchmarks.run import TOPICS
from stripe.ir import Block, verify_structural


@pytest.mark.parametrize("text", [programs.convolutions, programs.matmuls])
@pytest.mark.parametrize("kernels", [1, 2, 13, 40])
def test_programs_have_as_many_kernels_as_asked_for(text: Callable[[int], str], kernels: int) -> None:
    program = programs.lowered(text(kernels))
    assert verify_structural(program) == []
    found = [
        block for block in program.main.statements if isinstance(block, Block) and "kernel" in block.tags
    ]
    assert len(found) == kernels


def test_every_topic_has_rows() -> None:
    assert all(callable(importlib.import_module(f"benchmarks.{topic}").rows) for topic in TOPICS)


def test_a_median_above_its_limit_is_missed() -> None:
    assert limited("x", Times((1.0, 2.0, 3.0), (1.0, 2.0, 3.0)), 2.5).ok
    assert not limited("x", Times((1.0, 3.0, 3.0), (3.0, 3.0, 3.0)), 2.5).ok
    assert "**missed**" in str(Row("x", "2", "", "under 1", ok=False))


def test_processor_time_is_also_that_of_processes_of_its_own() -> None:
    assert timed(lambda: python("-c", "pass"), 1, warm_up=False).cpu[0] > 0.002, (
        "a start of Python takes 10 ms"
    )


def test_a_machine_that_was_busy_is_told_from_work_that_is_slow() -> None:
    row = limited("x", Times((3.0,), (1.0,)), 2.0)
    assert row.ok is False
    assert "busy" in str(row)


def test_times_are_those_of_the_runs_that_count() -> None:
    calls: list[int] = []
    assert len(timed(lambda: calls.append(1), 3).wall) == 3
    assert len(calls) == 4
