"""The pass manager: stages, faults of passes, and the clients that watch it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from stripe.ir import ConfigError, Program, Role, parse_program, print_program, with_entry
from stripe.passes.base import Remark
from stripe.pipeline.checks.bounds import BoundsCheck
from stripe.pipeline.checks.structure import RoundTripCheck, StructureCheck
from stripe.pipeline.dumps import Dumps
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.fault import InternalFault
from stripe.pipeline.instrument import Instrument
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes
from stripe.pipeline.printing import PrintPrograms, Remarks, Shown
from stripe.pipeline.timing import Timing
from stripe.tile import compile_tile
from tests.support.programs import MATMUL, source

PROGRAM = parse_program(MATMUL)


def _run(passes: str, *instruments: Instrument) -> Program:
    return PassManager(parse_passes(passes), None, instruments).run(PROGRAM)


class _Log(Instrument):
    """Notes every call."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self._name = name
        self._lines = lines

    def begin(self, program: Program) -> None:
        self._lines.append(f"{self._name} begin")

    def before(self, entry: PassEntry, program: Program) -> None:
        self._lines.append(f"{self._name} before {entry.name}")

    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        self._lines.append(f"{self._name} after {entry.name} {'same' if before is after else 'changed'}")

    def remark(self, entry: PassEntry, remark: Remark) -> None:
        self._lines.append(f"{self._name} remark {entry.name} {remark.kind.value}")

    def failed(self, entry: PassEntry, program: Program, error: Exception) -> None:
        self._lines.append(f"{self._name} failed {entry.name} {type(error).__name__}")

    def end(self, program: Program) -> None:
        self._lines.append(f"{self._name} end")


def test_no_pass_gives_the_same_object() -> None:
    assert PassManager(()).run(PROGRAM) is PROGRAM
    assert _run("dce") is PROGRAM


def test_clients_are_called_around_each_pass_the_first_closest() -> None:
    lines: list[str] = []
    _run("x:prune_indexes,dce", _Log("a", lines), _Log("b", lines))
    calls = [line for line in lines if "remark" not in line]
    assert calls == [
        "a begin", "b begin",
        "b before x", "a before x", "a after x changed", "b after x changed",
        "b before dce", "a before dce", "a after dce same", "b after dce same",
        "a end", "b end",
    ]  # fmt: skip


@pytest.mark.usefixtures("bad_passes")
def test_user_errors_pass_through_and_are_told_to_the_clients() -> None:
    lines: list[str] = []
    with pytest.raises(ConfigError, match="cannot do that"):
        _run("refuses", _Log("a", lines))
    assert lines == ["a begin", "a before refuses", "a remark refuses missed", "a failed refuses ConfigError"]


@pytest.mark.usefixtures("bad_passes")
def test_a_crash_is_our_fault_and_names_the_pass() -> None:
    with pytest.raises(
        InternalFault, match=r"pass 'x' \(crash\) crashed: RuntimeError: the pass fell over"
    ) as caught:
        _run("x:crash")
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_another_interface_is_our_fault() -> None:
    outputs = {ref.name for ref in PROGRAM.outputs}
    refs = tuple(
        replace(ref, role=Role.TEMPORARY) if ref.name in outputs else ref for ref in PROGRAM.entry.refinements
    )
    after = with_entry(PROGRAM, replace(PROGRAM.entry, refinements=refs))
    (entry,) = parse_passes("dce")
    with pytest.raises(InternalFault, match="pass 'dce' changed the interface of the program"):
        StructureCheck().after(entry, PROGRAM, after)


@pytest.mark.usefixtures("bad_passes")
def test_invalid_ir_is_our_fault_and_says_what_is_wrong() -> None:
    with pytest.raises(InternalFault, match="pass 'invalid' produced invalid IR") as caught:
        _run("dce,invalid", StructureCheck())
    assert any("index 'bad' has range 0" in line for line in caught.value.details)


@pytest.mark.usefixtures("bad_passes")
@pytest.mark.parametrize(
    ("passes", "culprit"),
    [("dce,x:outside,prune_indexes", "the result of pass 'x' (outside)"), ("prune_indexes", "the input")],
)
def test_accesses_out_of_bounds_at_the_end_name_the_pass_at_fault(passes: str, culprit: str) -> None:
    entries, told = parse_passes(passes), list[str]()
    first = PROGRAM if "outside" in passes else _run("outside")
    manager = PassManager(entries, None, (BoundsCheck(entries, None, told.append),))
    with pytest.raises(InternalFault) as caught:
        manager.run(first)
    assert caught.value.reason == f"{culprit} accesses memory out of bounds, or unwritten"
    assert caught.value.details[0].startswith("error: A[1000, 1000]: read out of bounds of ")
    assert not told
    unchanged = PassManager(parse_passes("dce"), None, (BoundsCheck((), None, told.append),))
    assert unchanged.run(first) is first, "a program that no pass changed was checked before"


@pytest.mark.usefixtures("bad_passes")
def test_a_pass_that_leaves_a_buffer_unwritten_is_named() -> None:
    program = compile_tile("function (A[N=8]: i32) -> (O) { T = A + A; O[] = +(T[i]); }", "t")
    entries, told = parse_passes("dce,x:forgets,prune_indexes"), list[str]()
    manager = PassManager(entries, None, (BoundsCheck(entries, None, told.append),))
    with pytest.raises(InternalFault) as caught:
        manager.run(program)
    reason = "the result of pass 'x' (forgets) accesses memory out of bounds, or unwritten"
    assert caught.value.reason == reason
    assert caught.value.details[0].startswith("error: T[0]: read, but unwritten")
    assert not told


@pytest.mark.usefixtures("bad_passes")
def test_the_demands_of_a_stage_that_a_pass_sets_are_checked() -> None:
    with pytest.raises(InternalFault, match="'says_located' produced invalid IR") as caught:
        _run("says_located", StructureCheck())
    assert any("has no location" in line for line in caught.value.details)


@pytest.mark.usefixtures("bad_passes")
def test_a_pass_raises_the_stage_no_further_than_it_declares() -> None:
    with pytest.raises(
        InternalFault, match="'says_placed' gives a program of the stage 'placed', though it keeps"
    ):
        _run("says_placed")


@pytest.mark.usefixtures("bad_passes")
def test_an_unmet_stage_names_who_ran_what_is_missing_and_who_ensures_it() -> None:
    with pytest.raises(ConfigError) as caught:
        _run("first:dce,needs_schedule")
    assert "pass 'needs_schedule' requires the stage 'scheduled'" in caught.value.reason
    assert "'tiled' after 'first'" in caught.value.reason
    assert "has no location" in caught.value.reason
    assert caught.value.hint


@pytest.mark.usefixtures("bad_passes")
def test_a_program_that_comes_scheduled_satisfies_a_pass_that_requires_it() -> None:
    located = source("pipeline/manager/scheduled")
    located = located.replace("#main", "#main #scheduled")
    program = parse_program(located)
    assert PassManager(parse_passes("needs_schedule")).run(program) is program


def test_remarks_name_the_entry() -> None:
    lines: list[str] = []
    _run("loc:locate{reqs=kernel,loc={name:CONV}}", Remarks(lines.append))
    assert lines == ["remark: loc: applied: kernel_0: located on CONV[0]\n"]


def test_programs_are_shown_after_named_passes() -> None:
    shown: list[str] = []
    result = _run(
        "a:prune_indexes,b:prune_indexes,dce", PrintPrograms(shown.append, Shown(after=("a", "dce")))
    )
    assert shown == [
        f"// ----- after 'a' (prune_indexes) -----\n{print_program(result)}",
        "// ----- after 'dce' -----\n// (no change)\n",
    ]
    everything: list[str] = []
    _run("a:prune_indexes,b:prune_indexes,dce", PrintPrograms(everything.append, Shown(after_all=True)))
    assert len(everything) == 3


def test_dumps_are_numbered_and_come_with_the_documents(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    entries = parse_passes('"odd/name":prune_indexes,dce')
    _run('"odd/name":prune_indexes,dce', Dumps(folder, entries))
    assert sorted(path.name for path in folder.iterdir()) == [
        "00_input.stripe", "01_odd_name.stripe", "02_dce.stripe", "config.json", "dumps.json",
    ]  # fmt: skip
    assert (folder / "00_input.stripe").read_text("utf-8") == MATMUL
    assert json.loads((folder / "config.json").read_text("utf-8"))["passes"][0]["name"] == "odd/name"


def test_a_dump_folder_that_is_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(ConfigError, match="cannot make the folder for dumps"):
        _run("dce", Dumps(tmp_path / "file", []))


def test_timing_lists_passes_and_their_sum() -> None:
    timing = Timing()
    _run("x:prune_indexes,dce", timing)
    lines = timing.table().splitlines()
    assert [line.split(maxsplit=2)[2] for line in lines] == [
        "what", "reading and lowering the input", "x (prune_indexes)", "dce", "checks, dumps, prints", "total",
    ]  # fmt: skip


@pytest.mark.usefixtures("bad_passes")
def test_timing_lists_a_pass_that_fails() -> None:
    timing = Timing()
    with pytest.raises(InternalFault):
        _run("x:crash", timing)
    assert "x (crash), failed" in timing.table()


def test_the_round_trip_check_accepts_what_prints_well_and_names_what_does_not() -> None:
    _run("prune_indexes", RoundTripCheck())
    broken = parse_program(MATMUL)
    object.__setattr__(broken.entry, "name", "two\nlines")
    with pytest.raises(InternalFault, match="the input prints to text"):
        PassManager((), None, (RoundTripCheck(),)).run(broken)
