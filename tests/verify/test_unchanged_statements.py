"""Statements that both programs have: what they compute depends on what stands before them and around them."""

from __future__ import annotations

import pytest

from stripe.ir import Program, parse_program, print_program, verify_structural
from stripe.verify.proof.judge import judge
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Different, Equal
from stripe.verify.soundness import check_soundness
from tests.support.programs import build, load, source
from tests.support.running import run_both

COPY = """
    {number}: #kernel block [i:4] ( // to_{target}
        in {source}[i] fp32(1:1)
        out {target}[i]:assign fp32(1:1)
    ) {{
      0: $A = load({source})
      1: {target} = store($A)
    }}"""
TENSORS = "in A 4\nout O 4\ntmp T 4\ntmp U 4"


def copies(*steps: str) -> Program:
    """A program of copies: `AT` copies A to T."""
    kernels = [COPY.format(number=n, source=step[0], target=step[1]) for n, step in enumerate(steps)]
    return build(TENSORS, "".join(kernels))


def wrong(before: Program, after: Program) -> Different:
    """`after` is seen to be wrong, and a run or the checks of the program alone say so too."""
    assert verify_structural(before) == verify_structural(after) == []
    verdict = prove_equal(before, after)
    assert isinstance(verdict, Different)
    assert check_soundness(after) != [] or run_both(before, after) != ""
    return verdict


@pytest.mark.parametrize("steps", [("TU", "AT", "AO"), ("TU", "AO"), ("AO", "TU", "AT")])
def test_a_read_of_what_is_written_later_or_never(steps: tuple[str, ...]) -> None:
    """No output depends on it, and yet such a read may be of anything, and end the program."""
    before = copies("AT", "TU", "AO")
    assert prove_equal(before, copies("AO", "AT", "TU")) == Equal()
    assert "read, but unwritten" in wrong(before, copies(*steps)).witness.message


def test_a_read_between_two_writes_moves() -> None:
    before = copies("AT", "TU", "AT", "UO")
    assert prove_equal(before, copies("AT", "AT", "TU", "UO")) == Equal()
    wrong(before, copies("TU", "AT", "AT", "UO"))


def test_a_merge_of_what_starts_at_the_identity_only_by_a_later_merge() -> None:
    """Where nothing is ever merged into T, it starts undefined."""
    merge = COPY.replace(":assign", ":add")
    steps = (merge.format(number=0, source="T", target="U"), merge.format(number=1, source="A", target="T"))
    output = COPY.format(number=2, source="A", target="O")
    before = build(TENSORS, "".join((*steps, output)))
    assert check_soundness(before) == []
    wrong(before, build(TENSORS, steps[0] + output.replace("2: #kernel", "1: #kernel")))


def test_padding_that_is_multiplied_by_zero_is_written() -> None:
    """What nobody wrote may be infinite."""
    before = load("verify/unchanged_statements/padded")
    text = print_program(before)
    start, end = text.index("    1: #kernel"), text.index("    2: #kernel")
    after = text[:start] + text[end:]
    for number in (2, 3, 4):
        after = after.replace(f"\n    {number}: #kernel", f"\n    {number - 1}: #kernel")
    wrong(before, parse_program(after))


def test_statements_of_different_blocks_that_are_repeated_alike() -> None:
    """Each block writes every element once; both statements in one block do so at two points without order."""
    text = source("verify/unchanged_statements/main_repeated")
    before = parse_program(text)
    assert check_soundness(before) == []
    assert prove_equal(before, parse_program(text)) == Equal()
    second = text.index("    0: #kernel", text.index("again"))
    moved = text[second:].removesuffix("  }\n}\n").replace("0: #kernel", "1: #kernel")
    shifted = moved.replace("[b]", "[3 - b]")
    for body, race in ((moved, False), (shifted, True)):
        after = parse_program(text[: text.index("  }\n  1: block")] + body + "  }\n}\n")
        found = check_soundness(after)
        assert bool(found) is race
        assert isinstance(prove_equal(before, after), Different) is race


CHOICE = """
    0: #kernel block [i:4] ( // quotient
        in A[i] fp32(1:1)
        out O[i]:assign fp32(1:1)
    ) {{
      0: $A = load(A)
      1: $z = (fp32){zero}
      2: $O = div($A, $z)
      3: O = store($O)
    }}"""


def test_zero_and_minus_zero() -> None:
    first, second = (build("in A 4\nout O 4", CHOICE.format(zero=zero)) for zero in ("0.0", "-0.0"))
    assert first != second
    judgement = judge(first, second)
    assert not judgement.accepted
    assert not isinstance(judgement.verdict, Equal)


def test_not_a_number_is_the_same_constant() -> None:
    text = print_program(load("verify/unchanged_statements/choice_nan"))
    assert parse_program(text) == parse_program(text)
    assert prove_equal(parse_program(text), parse_program(text)) == Equal()


def test_two_versions_of_a_buffer_that_one_statement_writes() -> None:
    """A statement that both programs have writes one array to `T` and another to `T^0`."""
    text = source("verify/unchanged_statements/versions")
    wrong(parse_program(text), parse_program(text.replace("X = T[j]", "X = T^0[j]")))
