"""Physical layouts of user tensors: text and JSON, packing at the interface, C, proofs across layouts, bad layouts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from stripe.cli.start import opt
from stripe.emit.c import emit_c
from stripe.exec.compile import compile_program
from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.exec.layout import from_flat, to_flat
from stripe.ir import Program, parse_program, print_program
from stripe.ir.text.json_ir import json_schema, parse_json, program_json
from stripe.pipeline.checks.proof import ExactCheck, ProofError
from stripe.pipeline.passlist import parse_passes
from stripe.verify import enumeration
from stripe.verify.enumerated_cells import InvalidProgram
from stripe.verify.interface import moved_tensor
from stripe.verify.policy import ANY
from stripe.verify.proof.prove import prove_equal, prove_pads
from stripe.verify.proof.witness import Different, Equal
from stripe.verify.soundness import check_soundness
from tests.support.programs import PROGRAMS, build, checked, load, source

PACKED = source("verify/interface/packed")
"""B = A + A for 2x10 elements, both in blocks of four and padded with zeros, without a test in the loop."""

BAD = (
    ("c mod 4) else", "c mod 2) else", r"the elements \[0, 0\] and \[0, 2\] both lie at \[0, 0, 0\]"),
    ("3:4, 4:1) =", "2:4, 4:1) =", r"floor\(c/4\) reaches 2, and dimension 1 has 2 elements"),
    ("floor(c/4) |", "floor(k/4) |", "the map uses the unknown index 'k'; its indices are n, c"),
    ("(n:2, c:10)", "(n:2, n:10)", "two of its indices have one name"),
    ("| c mod 4)", ")", "the map has 2 results, the allocation 3 dimensions"),
    ("c:10)", "c:0)", "a logical size is below 1"),
    ("| c mod 4)", "| (c + n) mod 4)", r"are no sums of digits of its indices"),
    ("else 0.0", "else 0", "the pad 0 is no value of fp32"),
    ("else 0.0", "else 1e39", "the pad 1e\\+39 is not exact in fp32, where it is inf"),
    ("else 0.0", "else nan", "the pad nan is not exact in fp32"),
    ("#user none", "#tmp none", "'A' has a layout and is no tensor of the user"),
)  # fmt: skip


def json_of(program: Program) -> str:
    return json.dumps(program_json(program))


def text(name: str) -> str:
    return (Path(__file__).parent / "programs" / name).read_text("utf-8")


def test_text_and_json_keep_layouts() -> None:
    program = checked(source("verify/interface/input"))
    assert print_program(program) == source("verify/interface/input")
    assert parse_json(json_of(program)) == program
    whole = print_program(program).replace("else 0.0", "else inf")
    assert parse_json(json_of(parse_program(whole))) == parse_program(whole)
    assert "PhysicalLayoutJson" in json_schema()["$defs"]  # pyright: ignore[reportOperatorIssue]


@pytest.mark.parametrize("name", ["", "mod", "a b", "c:10) -> (n) else 0.0 // ", "c\nint evil; //"])
def test_json_names_no_index_of_a_layout_what_text_cannot(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names of indices stand in comments of C, also where no result has them."""
    path = tmp_path / "bad.json"
    program = json.loads(json_of(checked(source("verify/interface/input"))))
    layout = program["entry"]["refinements"][0]["layout"]
    layout["map"]["names"].append(name)
    layout["sizes"].append(1)
    path.write_text(json.dumps(program))
    assert opt([str(path), "--emit", "c"]) == 1
    assert "cannot be the name of an index" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("part", "value", "reason"),
    [
        ("axes", [1], "the axes of 3 results are"),
        ("axes", [4, -1], "the axes of 3 results are"),
        ("sizes", [2, 10, 1], "the map has 2 indices, and 3 logical sizes"),
        ("sizes", [2], "the map has 2 indices, and 1 logical sizes"),
    ],
)
def test_parts_of_a_layout_in_json_fit_together(
    part: str, value: list[int], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.json"
    program = json.loads(json_of(checked(source("verify/interface/input"))))
    layout = program["entry"]["refinements"][0]["layout"]
    (layout if part == "sizes" else layout["map"])[part] = value
    path.write_text(json.dumps(program))
    assert opt([str(path)]) == 1
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(("good", "bad", "reason"), BAD)
def test_bad_layouts_are_refused(
    good: str, bad: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.stripe"
    path.write_text(source("verify/interface/input").replace(good, bad, 1))
    assert opt([str(path)]) == 1
    error = capsys.readouterr().err
    assert re.search(reason, error), error
    assert f"{path}:2:" in error


def test_an_integer_pad_that_overflows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.stripe"
    path.write_text(source("verify/interface/input").replace("fp32", "i8").replace("else 0.0", "else 300"))
    assert opt([str(path)]) == 1
    assert "the pad 300 overflows i8, which holds -128 to 127" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["input", "packed"])
def test_callers_see_logical_arrays(name: str) -> None:
    program = load(f"verify/interface/{name}")
    given = {"A": np.arange(20, dtype="f4").reshape(2, 10)}
    for found in (interpret(program, given)["B"], compile_program(program).run(given)["B"]):
        assert np.array_equal(found, 2 * given["A"])


def test_packing_and_unpacking_are_inverse() -> None:
    ref = load("verify/interface/packed").entry.ref("A")
    array = np.arange(1, 21, dtype="f4").reshape(2, 10)
    flat = to_flat(ref, array)
    assert np.array_equal(from_flat(ref, flat), array)
    assert flat[8:12].tolist() == [9, 10, 0, 0]


def test_c_states_shape_map_and_pad() -> None:
    text = emit_c(load("verify/interface/input"))
    layout = "the elements of (n:2, c:10) -> (n, floor(c/4) | c mod 4), others 0.0"
    assert f"in    A: fp32[2, 3, 4], strides [12, 4, 1], {layout}" in text


@pytest.mark.parametrize("first", ["plain", "input", "packed"])
@pytest.mark.parametrize("second", ["plain", "input", "packed"])
def test_programs_of_different_layouts_are_proved_equal(first: str, second: str) -> None:
    before, after = load(f"verify/interface/{first}"), load(f"verify/interface/{second}")
    assert isinstance(prove_equal(before, after), Equal)
    assert isinstance(enumeration.decide(before, after), Equal)
    assert isinstance(prove_pads(after), Equal)


@pytest.mark.parametrize(("before", "after"), [("hole_a", "hole_b"), ("hole_c", "hole_d")])
def test_holes_of_a_tensor_that_is_merged_into_hold_what_the_caller_left(before: str, after: str) -> None:
    """They begin at no identity: the caller's number comes into the sum of the first program."""
    first, second = (parse_program(text(f"{name}.stripe")) for name in (before, after))
    assert not isinstance(prove_equal(first, second), Equal)
    with pytest.raises(InvalidProgram, match="was not written"):
        enumeration.decide(first, second)


def test_another_element_is_a_witness_by_logical_coordinates() -> None:
    wrong = checked(PACKED.replace("B[n, c, i]:", "B[n, c, 3 - i]:"))
    found = prove_equal(load("verify/interface/plain"), wrong)
    assert isinstance(found, Different)
    assert found.witness.buffer == "B"
    assert found.witness.element == (1, 9)


def test_a_pad_is_owed_for_outputs() -> None:
    wrong = checked(PACKED[::-1].replace("0.0 esle", "0.1 esle", 1)[::-1])
    found = prove_pads(wrong)
    assert isinstance(found, Different)
    assert (found.witness.buffer, found.witness.element) == ("B.padded", (0, 2, 2))
    assert isinstance(prove_equal(load("verify/interface/plain"), wrong), Different)
    assert isinstance(enumeration.decide(load("verify/interface/plain"), wrong), Different)
    given = {"A": np.ones((2, 10), "f4")}
    for run in (lambda: interpret(wrong, given), lambda: compile_program(wrong).run(given)):
        with pytest.raises(ExecutionError, match=r"ends with 0.0 in the hole \[0, 2, 2\]"):
            run()


FLAT = """
    0: #kernel block [n:2, c:10] ( // twice
        in A[n, c] fp32(1:10, 1:1)
        out B[10*n + c]:assign fp32(1:1)
    ) {
      0: $a = load(A)
      1: $b = add($a, $a)
      2: B = store($b)
    }"""


def test_an_output_of_another_rank_owes_no_pad() -> None:
    flat = build("in A 2 10\nout B 20", FLAT)
    for before, after in ((flat, checked(PACKED)), (checked(PACKED), flat)):
        found = prove_equal(before, after)
        assert isinstance(found, Different)
        assert found.witness.message == "the output changed"


def test_a_hole_without_a_pad_is_not_read() -> None:
    wrong = checked(PACKED.replace(" else 0.0", "", 1))
    with pytest.raises(ExecutionError, match=r"'A'\[0, 2, 2\], which is unwritten"):
        interpret(wrong, {"A": np.ones((2, 10), "f4")})
    found = prove_equal(load("verify/interface/plain"), wrong)
    assert isinstance(found, Different)
    assert found.witness.after.place is not None
    assert found.witness.after.place.path == (0, 0, 0, 0)


def test_a_hole_without_a_pad_is_not_merged_into(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A merge reads what the caller left there. An accumulator that is an output alone begins at the identity."""
    given = {"A": np.ones(4, "f4"), "X": np.ones(3, "f4")}
    wrong = parse_program(text("hole_merged.stripe"))
    with pytest.raises(ExecutionError, match="merges into a hole without a pad, at the point i=3"):
        interpret(wrong, given)
    with pytest.raises(InvalidProgram, match="merged into and was not written"):
        enumeration.decide(wrong, wrong)
    (found,) = check_soundness(wrong)
    assert (found.message, found.place.path) == ("merged into, but unwritten", (0, 0, 0, 1))
    path = tmp_path / "p.stripe"
    path.write_text(text("hole_merged.stripe"))
    assert opt([str(path), "--emit", "c", "-o", str(tmp_path / "p.c")]) == 1
    assert "merged into, but unwritten" in capsys.readouterr().err
    right = parse_program(text("hole_merged.stripe").replace("block [i:4]", "block [i:3]"))
    assert prove_equal(right, right) == Equal()
    assert isinstance(prove_equal(right, wrong), Different)
    # the statement is the same, and the hole has lost its pad
    padded = parse_program(text("hole_merged.stripe").replace("n mod 2)\n", "n mod 2) else 0.0\n", 1))
    assert isinstance(prove_equal(padded, wrong), Different)
    alone = text("hole_merged.stripe").replace("inout<[0]> X", "out<[0]> X")
    assert check_soundness(parse_program(alone)) == []
    for run in (interpret, lambda program, data: compile_program(program).run(data)):
        assert run(parse_program(alone), {"A": given["A"]})["X"].tolist() == [1, 1, 1]


def test_the_command_checks_pads_and_layouts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plain, packed = (str(PROGRAMS / "verify" / "interface" / f"{n}.stripe") for n in ("plain", "packed"))
    assert opt([packed, "--verify-against", plain, "-o", str(tmp_path / "o")]) == 0
    wrong = tmp_path / "wrong.stripe"
    wrong.write_text(PACKED[::-1].replace("0.0 esle", "0.1 esle", 1)[::-1])
    assert opt([str(wrong), "--verify", "exact", "--passes", "dce"]) == 1
    assert "B.padded[0, 2, 2]: it is defined by other operands" in capsys.readouterr().err


def test_a_tensor_with_the_name_of_the_pads_is_compared() -> None:
    before = PACKED.replace(
        "    #user none new@0x00000000<[0]> B",
        "    #user none new@0x00000000<[0]> B.padded[0] fp32(2:1)\n    #user none new@0x00000000<[0]> B",
    ).replace(
        "      out<[0]> B", "      out<[0]> B.padded[0]:max fp32(2:1)\n      out<[0]> B", 1
    ).replace(
        "        out<[0]> B[n", "        out<[0]> B.padded[n]:max fp32(1:1)\n        out<[0]> B[n", 1
    ).replace("      2: B = store($b)", "      2: B = store($b)\n      3: B.padded = store($a)")  # fmt: skip
    after = before.replace("B.padded = store($a)", "B.padded = store($b)")
    assert isinstance(prove_equal(checked(before), checked(before)), Equal)
    assert isinstance(prove_equal(checked(before), checked(after)), Different)
    assert isinstance(enumeration.decide(checked(before), checked(after)), Different)


@pytest.mark.parametrize("second", ["plain", "input"])
def test_a_pass_may_not_move_a_tensor_of_the_user(second: str) -> None:
    """Equal by logical elements, and callers of the C see another memory, or holes without the pad."""
    entry = parse_passes("dce")[0]
    check = ExactCheck(lambda _: None, ANY)
    before, after = load("verify/interface/packed"), load(f"verify/interface/{second}")
    check.after(entry, before, before)
    with pytest.raises(ProofError, match="lies in memory in another way than before"):
        check.after(entry, before, after)


def test_zeros_of_both_signs_are_two_pads() -> None:
    """A hole that holds 0.0 does not hold -0.0: not for the proof, not for callers, not for passes."""
    plus = load("verify/interface/written_hole")
    minus = parse_program(print_program(plus).replace("else 0.0", "else -0.0"))
    assert plus != minus
    assert moved_tensor(plus, minus) == "O"
    assert not isinstance(prove_equal(plus, minus), Equal)
    assert isinstance(prove_pads(plus), Equal)
    assert not isinstance(prove_pads(minus), Equal)
    x = np.arange(3, dtype=np.float32)
    assert interpret(plus, {"X": x})["O"].tolist() == [0, 1, 2]
    with pytest.raises(ExecutionError, match=r"promises -0\.0"):
        interpret(minus, {"X": x})
    allocation = next(ref for ref in minus.entry.refinements if ref.name == "O")
    assert np.signbit(to_flat(allocation, x)).tolist() == [False, False, False, True]
