"""Each property that the structural verifier checks: one broken program a property."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stripe.ir import (
    Agg,
    Dim,
    Stage,
    beginnings,
    check_magnitude,
    parse_program,
    verify_structural,
    with_entry,
    with_statement,
)
from tests.support.programs import load, source

GOOD = source("ir/verifier/good")


def test_a_valid_program_has_no_diagnostics() -> None:
    assert verify_structural(parse_program(GOOD)) == []
    assert verify_structural(load("ir/verifier/a_valid_program_has_no_diagnostics"), Stage.SCHEDULED) == []


BROKEN = {
    "two mains": ("0: #main", "0: #mainly", "the entry has 0 blocks tagged main"),
    "const without data": ("#tmp none", "#const none", "tagged #const and has no data"),
    "scalar twice": ("$b = cmp_lt", "$c = cmp_lt", "scalar 'c' is defined 2 times"),
    "refinement twice": (
        "        in<DRAM[0]> I[x, k] fp32(1:16, 1:1)\n",
        "        in<DRAM[0]> I[x, k] fp32(1:16, 1:1)\n        in<DRAM[0]> I[x, k] fp32(1:16, 1:1)\n",
        "refinement 'I' is defined 2 times",
    ),
    "index twice": ("[k:16, x:8]", "[k:16, x:8, x:2]", "index 'x' is defined 2 times"),
    "index range": ("[k:16, x:8]", "[k:0, x:8]", "index 'k' has range 0"),
    "passed unknown": ("[x.o = x]", "[x.o = xx]", "is passed 'xx', which the block outside does not have"),
    "constraint index": ("7 - x >= 0", "7 - z >= 0", "uses the unknown index 'z'"),
    "access index": ("in<DRAM[0]> I[x, k]", "in<DRAM[0]> I[x, kk]", "the access of 'I' uses the unknown index 'kk'"),
    "load_index": ("load_index(1 + x.o)", "load_index(1 + x)", "load_index uses the unknown index 'x'"),
    "block location": ("block<DSP[0]> [k:16", "block<DSP[q]> [k:16", "the location of the block uses"),
    "ranks": ("I[x, k] fp32(1:16, 1:1)", "I[x, k] fp32(1:16)", "'I' has 2 accesses for 1 dimensions"),
    "view rank": ("I[x, k] fp32(1:16, 1:1)", "I[x] fp32(1:16)", "'I' has 1 dimensions, its source 2"),
    "size": ("T[x]:add fp32(1:1)", "T[x]:add fp32(0:1)", "'T' has a size below 1"),
    "stride": ("I[x, k] fp32(1:16, 1:1)", "I[x, k] fp32(1:16, 2:2)", "the strides of 'I' differ"),
    "dtype": ("I[x, k] fp32(", "I[x, k] fp16(", "'I' is fp16, its source fp32"),
    "location": ("in<DRAM[0]> I[x, k]", "in<SRAM[0]> I[x, k]", "'I' is located in SRAM[0], its source in DRAM[0]"),
    "unknown source": ("in<DRAM[0]> I[x, k]", "in<DRAM[0]> I = J[x, k]", "views 'J', which the block outside"),
    "writes an input": ("in<DRAM[0]> I[x, k]", "out<DRAM[0]> I[x, k]", "'I' writes 'I', which the block outside only"),
    "reads an output": ("out<DRAM[0]> O[0]:assign fp32(1:1)\n      )", "in<DRAM[0]> O[0] fp32(1:1)\n)", "only writes"),
    "overlap": ("I[0, 0] fp32(8:16, 16:1)", "I[0, 0] fp32(8:15, 16:1)", "elements of 'I' share memory"),
    "access of a buffer": ("T[0] fp32(8:1)\n    #user", "T[1] fp32(8:1)\n    #user", "has an access other than 0"),
    "alignment": ("none new@0x00000000<DRAM[0]> T", "none new@0x00000002<DRAM[0]> T", "lies at byte 2"),
    "load of an output": ("$T = load(T)", "$T = load(O)", "'O' is read and its direction is out"),
    "store to an input": ("O = store($r)", "T = store($r)", "'T' is written and its direction is in"),
    "unknown buffer": ("$T = load(T)", "$T = load(TT)", "unknown refinement 'TT'"),
    "use before definition": ("cmp_lt($T, $c)", "cmp_lt($T, $r)", "scalar '$r' is used before its definition"),
    "stored type": ("O = store($r)", "O = store($b)", "stores bool into fp32"),
    "arity": ("cmp_lt($T, $c)", "cmp_lt($T)", "'cmp_lt' takes 2 inputs, not 1"),
    "condition": ("cond($b, $T", "cond($c, $T", "the first input of 'cond' must be bool"),
    "operand type": ("cast($i, fp32)", "sqrt($i)", "'sqrt' does not take i32"),
    "forward dependence": ("1[0]: #kernel", "1[1]: #kernel", "depends on [1]"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_programs(name: str) -> None:
    old, new, message = BROKEN[name]
    assert old in GOOD
    found = [str(diagnostic) for diagnostic in verify_structural(parse_program(GOOD.replace(old, new, 1)))]
    assert any(message in text for text in found), found


def test_all_errors_are_collected() -> None:
    text = source("ir/verifier/all_errors_are_collected")
    assert len(verify_structural(parse_program(text))) >= 2


def test_mixed_operand_types() -> None:
    text = source("ir/verifier/mixed_operand_types")
    (found,) = verify_structural(parse_program(text))
    assert "must have one dtype, not fp32, i32" in str(found)


def test_one_buffer_one_aggregation() -> None:
    text = source("ir/verifier/one_buffer_one_aggregation")
    program = parse_program(text)
    assert verify_structural(program) == []
    assert beginnings(program.entry)["O"] is Agg.MAX
    second = "    2[0, 1]: #kernel block<DSP[0]> [x:8] (\n        out<DRAM[0]> O[x]:add fp32(1:1)\n    ) {\n"
    second += "      0: $c = (fp32)1.0\n      1: O = store($c)\n    }\n  }\n}\n"
    broken = text.removesuffix("  }\n}\n") + second
    assert "'O' is written with add and max" in str(verify_structural(parse_program(broken))[0])


@pytest.mark.parametrize("char", ["\n", "\r", "\x1b", "\x9b", "\u202e", " ", "\t", "\xa0"])
def test_names_and_comments_that_a_terminal_would_obey_or_the_text_would_lose(char: str) -> None:
    program = parse_program(GOOD)
    for changes in ({"name": f"a{char}"}, {"comments": ("a", f"{char}b")}):
        (diagnostic,) = verify_structural(with_entry(program, replace(program.entry, **changes)))
        assert "spans lines, has blanks at an end, or control characters" in str(diagnostic)


@pytest.mark.parametrize(
    ("stage", "old", "new", "message"),
    [
        (Stage.LOCATED, "block<DSP[0]> [k:16", "block [k:16", "the kernel has no location"),
        (Stage.LOCATED, "<DRAM[0]>", "<[0]>", "the buffer 'I' has no location"),
        (Stage.SCHEDULED, "#main", "#main", "main is not scheduled"),
        (Stage.PLACED, "#tmp none", "#placed #tmp none", "the buffer 'I' has no address"),
    ],
)
def test_stages(stage: Stage, old: str, new: str, message: str) -> None:
    program = parse_program(GOOD.replace(old, new))
    assert verify_structural(program) == []
    assert any(message in str(diagnostic) for diagnostic in verify_structural(program, stage))


def test_what_a_valid_program_has_is_not_looked_at_again_but_what_its_surroundings_break_is():
    program = parse_program(GOOD)
    main = program.main
    assert verify_structural(program, valid=program) == []
    narrowed = replace(main, refinements=tuple(ref for ref in main.refinements if ref.name != "T"))
    broken = with_entry(program, with_statement(program.entry, 0, narrowed))
    assert verify_structural(broken, valid=program) == verify_structural(broken) != []


def test_a_constant_is_only_read() -> None:
    found = verify_structural(parse_program(source("ir/verifier/a_constant_is_only_read")))
    assert ["'K' writes 'K', which is a constant" in str(diagnostic) for diagnostic in found] == [True]


def test_a_constant_of_truth_values_holds_no_others() -> None:
    """C and the interpreter would keep other bytes of them."""
    text = source("ir/verifier/truth_values")
    assert verify_structural(parse_program(text)) == []
    (found,) = verify_structural(parse_program(text.replace("0001", "00ff")))
    assert "constant 'K' holds bytes that are neither false nor true" in str(found)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dims": (Dim(10**3000, 1), Dim(10**3000, 1))}, "the size of 'I' reaches more than 2^"),
        ({"copies": 10**30}, "the address of 'I' reaches 5120"),
        ({"copies": 2, "pitch": 10**30}, "the address of 'I' reaches 20"),
    ],
)
def test_numbers_that_64_bits_cannot_hold(changes: dict[str, object], message: str) -> None:
    program = parse_program(GOOD)
    others = tuple(ref for ref in program.entry.refinements if ref.name != "I")
    large = replace(program.entry.ref("I"), **changes)
    (diagnostic,) = check_magnitude(with_entry(program, replace(program.entry, refinements=(large, *others))))
    assert message in str(diagnostic)


def test_main_is_all_that_the_entry_runs() -> None:
    (diagnostic,) = verify_structural(parse_program(source("ir/verifier/beside_main")))
    assert str(diagnostic.message) == "the entry has statements beside main"
    assert diagnostic.hint == "move them into main"


SPECIALS = {
    "gather(A, I)": ("A i32(8:1)", "I i32(4:1)", "O i32(4:1)", ""),
    "gather(A, I) ": ("A i32(8:1)", "I i32(4:1)", "O i32(5:1)", "of i32(8) at i32(4) does not give i32(5)"),
    "gather(A, I)  ": ("A i32(8:1)", "I i32(4:1)", "O i8(4:1)", "of i32(8) at i32(4) does not give i8(4)"),
    "gather(A, I)   ": ("A i32(8:2, 2:1)", "I i32(4:1)", "O i32(4:1)", "does not give i32(4)"),
    "gather(A, I)    ": ("A i32(8:1)", "I fp32(4:1)", "O i32(4:1)", "integers as indices"),
    "scatter(A, I, A)": ("A i32(4:1)", "I i32(4:1)", "O i32(8:1)", ""),
    "scatter(A, I, A) ": (
        "A i32(4:1)",
        "I i32(9:1)",
        "O i32(8:1)",
        "into i32(8) at i32(9) does not take i32(4)",
    ),
    "scatter(A, I, A)  ": ("A fp32(4:1)", "I i32(4:1)", "O i32(8:1)", "does not take fp32(4)"),
}


@pytest.mark.parametrize("special", SPECIALS)
def test_operands_of_specials_fit_together(special: str) -> None:
    data, index, out, reason = SPECIALS[special]
    text = f"""0: #program block [] ( // p
    #user none new@0x00000000<[0]> {with_access(data)}
    #user none new@0x00000000<[0]> {with_access(index)}
    #user none new@0x00000000<[0]> {with_access(out)}
) {{
  0: #main block [] ( // main
      in<[0]> {with_access(data)}
      in<[0]> {with_access(index)}
      out<[0]> {with_access(out).replace("]", "]:assign", 1)}
  ) {{
    0: O = {special.strip()}
  }}
}}
"""
    found = [str(each) for each in verify_structural(parse_program(text))]
    assert len(found) == bool(reason)
    assert all(reason in each for each in found)


def with_access(ref: str) -> str:
    """`A i32(8:2, 2:1)` as `A[0, 0] i32(8:2, 2:1)`."""
    name, kind = ref.split(" ", 1)
    return f"{name}[{', '.join('0' for _ in kind.split(','))}] {kind}"
