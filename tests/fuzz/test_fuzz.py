"""A short run of the fuzzer, the same cases each time; `make fuzz N=…` runs others, and many more."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripe.ir import Intrinsic, Special, Store, aggregations, walk
from stripe.passes.registry import pass_names
from stripe.tile import compile_tile
from tests.fuzz.__main__ import draw_cases, draw_many, replay
from tests.fuzz.case import SMALL, machine
from tests.fuzz.check import LEVELS, Counts, check_cases
from tests.fuzz.corpus import seeds
from tests.fuzz.pass_lists import pass_lists, pass_of
from tests.fuzz.structures.programs import stripe_programs


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_interpreter_c_and_proof_agree(seed: int) -> None:
    counts = Counts()
    failures = check_cases(draw_cases(50, seed), counts, level=LEVELS[seed])
    assert [f"{f.group}\n{f.case.text}{f.case.passes}\n{f.detail}" for f in failures] == []
    assert counts.equal > 25
    assert counts.refused_programs < 10


@pytest.mark.long
def test_structures_that_lowering_never_makes() -> None:
    failures = check_cases(draw_cases(20, 300, structures=True), Counts())
    assert [f"{f.group}\n{f.case.text}{f.case.passes}\n{f.detail}" for f in failures] == []


def test_the_structures_are_drawn() -> None:
    found: set[str] = set()
    for program in draw_many(stripe_programs(), 60, 0):
        main = program.main
        sources = [ref.source for ref in main.refinements if ref.source]
        aggs = aggregations(program.entry)
        found |= (
            {"a packed input that is output"}
            if any(ref.layout and ref in program.outputs for ref in program.inputs)
            else set()
        )
        found |= {"a main of several points"} if main.points > 1 else set()
        found |= {"a buffer of main"} if main.allocs else set()
        found |= {"two names of a buffer in main"} if len(set(sources)) < len(sources) else set()
        found |= {"an input that is output"} if set(program.inputs) & set(program.outputs) else set()
        found |= {"assigned and merged"} if any(len(each) > 1 for each in aggs.values()) else set()
        for path, block in walk(main):
            found |= {s.op for s in block.statements if isinstance(s, Special | Intrinsic)}
            found |= (
                {"a special in a loop"}
                if block.indices and any(isinstance(s, Special) for s in block.statements)
                else set()
            )
            stores = [s.ref for s in block.statements if isinstance(s, Store)]
            views = [ref.source for ref in block.refinements if ref.source]
            deep = len(path) > 2
            found |= {"several stores"} if len(stores) > 1 else set()
            found |= {"two names of a name"} if deep and len(set(views)) < len(views) else set()
            found |= {"a buffer of an inner block"} if block.allocs and deep else set()
            found |= {"a vast range"} if any(index.range >= 10**9 for index in block.indices) else set()
            found |= {ref.dtype.name for ref in block.refinements}
    assert found >= {
        "a main of several points", "a buffer of main", "two names of a buffer in main", "an input that is output",
        "assigned and merged", "several stores", "two names of a name", "a buffer of an inner block", "a vast range",
        "gather", "scatter", "prng_step", "a special in a loop", "a packed input that is output", "div",
        "i8", "u8", "i16", "fp16",
    }  # fmt: skip


def test_every_registered_pass_is_fuzzed() -> None:
    """A new pass is drawn because it is registered; its options come from its own schema."""
    hardware = machine(SMALL[0])
    program = compile_tile("function (A[M=4, N=3]: fp32) -> (O) { T[i : M] = +(A[i, j]); O = relu(T); }")
    missing = set(pass_names())
    for number in range(12):
        lists = draw_many(pass_lists(program, hardware), 25, number)
        missing -= {key for entries in lists for entry in entries for key in entry}
        if not missing:
            break
    assert not missing


@pytest.mark.parametrize("name", pass_names())
def test_every_pass_has_golden_tests_to_begin_with(name: str) -> None:
    assert any(pass_of(entry) == name for seed in seeds(name) for entry in seed.passes)


@pytest.mark.long
def test_c_of_fuzz_cases_is_clean_under_the_sanitizers() -> None:
    failures = check_cases(draw_cases(25, 100), Counts(), sanitize=True)
    assert [f"{f.group}\n{f.case.text}{f.case.passes}\n{f.detail}" for f in failures] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(101, 105))
def test_c_of_many_fuzz_cases_is_clean_under_the_sanitizers(seed: int) -> None:
    failures = check_cases(draw_cases(100, seed), Counts(), sanitize=True)
    assert [f"{f.group}\n{f.case.text}{f.case.passes}\n{f.detail}" for f in failures] == []


def test_a_replay_of_what_is_no_case_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"passes": []}', encoding="utf-8")
    for path, reason in (
        (other, "this is no crash reproducer"),
        (tmp_path / "none.json", "there is no such file"),
    ):
        assert replay([path]) == 2
        assert reason in capsys.readouterr().err
