"""Correct rewrites prove equal, with little work; what the proof says about broken ones."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from stripe.ir import Affine, Block, Program, rewrite_blocks
from stripe.verify.assumptions import Assumption, Policy
from stripe.verify.program import check_program
from stripe.verify.proof.judge import judge
from stripe.verify.proof.prove import OPERATIONS, prove_equal
from stripe.verify.proof.running import run_both
from stripe.verify.proof.witness import Different, Equal, Unknown
from tests.verify.mutate import mutants
from tests.verify.pairs import (
    BLUR,
    BLUR_TENSORS,
    CHAIN,
    CHAIN_TENSORS,
    MATMUL,
    MATMUL_CACHED,
    MATMUL_TENSORS,
    MATMUL_TILED,
    REPEAT,
    REPEAT_TENSORS,
    SOFTMAX,
    SOFTMAX_TENSORS,
    Pair,
    pairs,
    program,
)
from tests.verify.pass_pairs import pass_pairs


@pytest.mark.parametrize("pair", [*pairs(), *pass_pairs()], ids=lambda pair: pair.name)
def test_a_correct_rewrite_proves_equal(pair: Pair) -> None:
    assert check_program(pair.before) == []
    assert check_program(pair.after) == []
    for verdict in (prove_equal(pair.before, pair.after), prove_equal(pair.after, pair.before)):
        assert isinstance(verdict, Equal), verdict
        assert (Assumption.FINITE in verdict.assumptions) == (pair.name == "pad")
    assert run_both(pair.before, pair.after) == ""


@pytest.mark.parametrize("pair", [*pairs(), *pass_pairs()], ids=lambda pair: pair.name)
def test_a_proof_takes_few_operations(pair: Pair) -> None:
    """A hundredth of what a proof may take; `make bench` has the times."""
    assert isinstance(prove_equal(pair.before, pair.after, operations=OPERATIONS // 100), Equal)


def different(before: Program, after: Program) -> str:
    verdict = prove_equal(before, after)
    assert isinstance(verdict, Different), verdict
    assert run_both(before, after) != ""
    return str(verdict)


def changed(old: str, new: str, kernels: str = MATMUL, tensors: str = MATMUL_TENSORS) -> Program:
    assert old in kernels
    return program(tensors, kernels.replace(old, new))


def test_a_witness_shows_element_point_and_operands() -> None:
    text = different(program(MATMUL_TENSORS, MATMUL), changed("4*k, 4*j", "4*k, 3*j", MATMUL_TILED))
    lines = text.splitlines()
    assert lines[0].startswith("error: C[")
    assert lines[0].endswith("]: it is defined by other operands")
    assert "before: add mul(A[" in lines[1]
    assert "by matmul (0.0.0.3) at i=" in lines[2]
    assert "after:  add mul(A[" in lines[3]
    assert "by inner (0.0.0.0.3) at i=" in lines[4]


def test_an_operand_that_contributes_twice_is_counted() -> None:
    before = program(REPEAT_TENSORS, REPEAT)
    text = different(before, changed("k:6", "k:7", REPEAT, REPEAT_TENSORS))
    assert "an operand contributes 6 times before, 7 times after" in text


def test_for_a_maximum_it_does_not_matter_how_often() -> None:
    largest = REPEAT.replace(":add", ":max")
    before = program(REPEAT_TENSORS, largest)
    assert prove_equal(before, program(REPEAT_TENSORS, largest.replace("k:6", "k:7"))) == Equal()


@pytest.mark.parametrize("agg", ["max", "min", "add", "mul"])
def test_the_same_operand_again_matters_for_what_is_counted(agg: str) -> None:
    """`max(a, a)` is `a`, a sum is not: one program assigns the element, the other merges it again."""
    kernel = """
    {number}: #kernel block [i:5] ( // copy
        in A[i] fp32(1:1)
        out O[i]:{agg} fp32(1:1)
    ) {{
      0: $A = load(A)
      1: O = store($A)
    }}"""
    once = kernel.format(number=0, agg="assign")
    before = program(REPEAT_TENSORS, once)
    after = program(REPEAT_TENSORS, once + kernel.format(number=1, agg=agg))
    other = program(REPEAT_TENSORS, once + kernel.format(number=1, agg=agg).replace("A[i]", "A[4 - i]"))
    different(before, other)
    if agg in ("max", "min"):
        assert prove_equal(before, after) == prove_equal(after, before) == Equal()
    else:
        different(before, after)


def test_statements_out_of_order() -> None:
    after = program(MATMUL_TENSORS, MATMUL_CACHED)
    swapped = next(m for m in mutants(after) if m.kind == "order" and m.what == "statements 1 and 2")
    verdict = prove_equal(program(MATMUL_TENSORS, MATMUL), swapped.program)
    assert isinstance(verdict, Different)
    assert verdict.witness.message == "read, but nobody wrote it"


def test_an_access_out_of_bounds() -> None:
    found = check_program(changed("in A[i, k]", "in A[i, 1 + k]"))
    assert [str(f).splitlines()[0] for f in found] == ["error: A[0, 12]: read out of bounds of (8, 12)"]
    assert str(found[0].place).startswith("matmul (0.0.0.0) at i=0")


def test_a_view_whose_box_is_too_small() -> None:
    found = check_program(
        changed("in A[4*i, 4*k] fp32(4:12, 4:1)", "in A[4*i, 4*k] fp32(4:12, 3:1)", MATMUL_TILED)
    )
    assert len(found) == 1
    assert found[0].message == "touched outside the box (4, 3) of the view 'A' in 'matmul'"


def test_two_points_that_assign_one_element() -> None:
    found = check_program(changed("out C[i, j]:add", "out C[i, j]:assign"))
    assert [f.message.partition(",")[0] for f in found] == ["assigned at two points without order"]


def test_points_that_read_what_others_write() -> None:
    kernels = CHAIN.replace("in T[x, y] fp32(1:8, 1:1)", "in T[x, y] fp32(1:8, 1:1)")
    racing = """
    0: #kernel block [x:6] ( // shift
        in A[x, 0] fp32(1:8, 1:1)
        inout T[0, 0]:assign fp32(6:8, 8:1)
        out O[x, 0]:assign fp32(1:8, 8:1)
    ) {
      0: block [y:8, xo=x] ( // write
          in A[0, 0] fp32(1:8, 1:1)
          out T[xo, y]:assign fp32(1:8, 1:1)
      ) {
        0: $A = load(A)
        1: T = store($A)
      }
      1: block [y:8, xo=x] ( // read
          in T[5 - xo, y] fp32(1:8, 1:1)
          out O[0, y]:assign fp32(1:8, 1:1)
      ) {
        0: $T = load(T)
        1: O = store($T)
      }
    }
"""
    assert check_program(program(CHAIN_TENSORS, kernels)) == []
    messages = [f.message.partition(",")[0] for f in check_program(program(CHAIN_TENSORS, racing))]
    assert "read and written at two points without order" in messages


def test_an_output_that_is_not_filled() -> None:
    found = check_program(changed("i:8", "i:7"))
    assert [str(f).splitlines()[0] for f in found] == [
        "error: C[7, 0]: nobody writes this element of an output"
    ]


def test_a_reduction_used_by_another_kernel_is_looked_into() -> None:
    before = program(BLUR_TENSORS, BLUR)
    text = different(before, changed("20 - k - x >= 0", "19 - k - x >= 0", BLUR, BLUR_TENSORS))
    assert "error: O[18]: an operand contributes only before" in text
    assert "before: add mul(I[19], K[2])" in text


def test_order_of_element_wise_operations_counts() -> None:
    before = program(CHAIN_TENSORS, CHAIN)
    different(before, changed("sub($R, $A)", "sub($A, $R)", CHAIN, CHAIN_TENSORS))
    product = CHAIN.replace("sub($A, $S)", "mul($A, $S)")
    swapped = program(CHAIN_TENSORS, product.replace("mul($A, $S)", "mul($S, $A)"))
    assert prove_equal(program(CHAIN_TENSORS, product), swapped) == Equal()  # exactly commutative


def test_names_places_and_tags_have_no_meaning() -> None:
    before = program(MATMUL_TENSORS, MATMUL)
    tagged = MATMUL.replace("#kernel block", "#conv #kernel block<CONV[0]>").replace("// matmul", "// other")
    assert prove_equal(before, program(MATMUL_TENSORS, tagged)) == Equal()


def test_tensors_that_changed() -> None:
    before = program(MATMUL_TENSORS, MATMUL)
    verdict = prove_equal(before, program(MATMUL_TENSORS.replace("C 8 10", "C 8 11"), MATMUL))
    assert isinstance(verdict, Different)
    assert "the output changed" in str(verdict)


def test_past_the_limit_the_answer_is_unknown_and_both_run(monkeypatch: pytest.MonkeyPatch) -> None:
    before = program(SOFTMAX_TENSORS, SOFTMAX)
    rows = next(pair for pair in pairs() if pair.name == "fuse_rows")
    assert isinstance(prove_equal(before, rows.after, operations=50), Unknown)
    with monkeypatch.context() as patched:
        patched.setattr("stripe.verify.proof.judge.ENUMERATED", 10)
        judgement = judge(rows.before, rows.after, operations=50)
        assert (judgement.answer, judgement.accepted, judgement.proved) == ("unknown", True, False)
        assert "ran both programs on 9 data sets: they agree" in str(judgement)
        assert not judge(rows.before, rows.after, Policy(unknown_fails=True), operations=50).accepted
    assert judge(rows.before, rows.after, operations=50).proved  # by enumeration
    broken = changed("$O = add($E, $S)", "$O = sub($E, $S)", SOFTMAX, SOFTMAX_TENSORS)
    judgement = judge(broken, rows.after, operations=50)
    assert not judgement.accepted
    assert "they differ" in str(judgement)


def many_kernels(count: int) -> tuple[Program, Program]:
    """A chain of matrix products and relus, before and after tiling every product."""
    lines = ["in B 12 12", "in X0 8 12", *(f"tmp X{n} 8 12" for n in range(1, count)), f"out X{count} 8 12"]
    before: list[str] = []
    after: list[str] = []
    for n in range(count):
        if n % 2:
            body = f"""
    {n}: #kernel block [i:8, j:12] ( // relu{n}
        in X{n}[i, j] fp32(1:12, 1:1)
        out X{n + 1}[i, j]:assign fp32(1:12, 1:1)
    ) {{
      0: $X = load(X{n})
      1: $Y = relu($X)
      2: X{n + 1} = store($Y)
    }}"""
            before.append(body)
            after.append(body)
            continue
        for target, text in ((before, MATMUL), (after, MATMUL_TILED)):
            text = text.replace("j:10", "j:12").replace("9 - j", "11 - j").replace(":10", ":12")
            text = text.replace("0: #kernel", f"{n}: #kernel", 1).replace("matmul", f"matmul{n}")
            text = text.replace("in A[", f"in A=X{n}[", 1).replace("out C[", f"out C=X{n + 1}[", 1)
            target.append(text.replace(f"in A=X{n}[", f"in A = X{n}[").replace("out C=", "out C = "))
    tensors = "\n".join(lines)
    return program(tensors, "\n".join(before)), program(tensors, "\n".join(after))


def test_a_hundred_kernels_that_all_change() -> None:
    before, after = many_kernels(100)
    assert prove_equal(before, after) == Equal()


SPECIAL_TENSORS = "in D 6 4\nin I i32(5)\nin W 4 3\nout O 5 3\ntmp E 6 4\ntmp G 5 4"
SPECIAL = """
    0: #kernel block [i:6, j:4] ( // relu
        in D[i, j] fp32(1:4, 1:1)
        out E[i, j]:assign fp32(1:4, 1:1)
    ) {
      0: $D = load(D)
      1: $E = relu($D)
      2: E = store($E)
    }
    1: #kernel block [] ( // gather
        in E[0, 0] fp32(6:4, 4:1)
        in I[0] i32(5:1)
        out G[0, 0]:assign fp32(5:4, 4:1)
    ) {
      0: G = gather(E, I)
    }
    2: #kernel block [k:5, m:4, p:3] ( // product
        in G[k, m] fp32(1:4, 1:1)
        in W[m, p] fp32(1:3, 1:1)
        out O[k, p]:add fp32(1:3, 1:1)
    ) {
      0: $G = load(G)
      1: $W = load(W)
      2: $O = mul($G, $W)
      3: O = store($O)
    }
"""


def renamed(text: str) -> str:
    return text.replace("tmp E", "tmp F").replace("tmp G", "tmp H")


def test_specials_are_equal_on_equal_operands() -> None:
    before = program(SPECIAL_TENSORS, SPECIAL)
    assert check_program(before) == []
    other = re.sub(r"\bE\b", "F", re.sub(r"\bG\b", "H", SPECIAL))
    assert prove_equal(before, program(renamed(SPECIAL_TENSORS), other)) == Equal()
    verdict = prove_equal(before, program(renamed(SPECIAL_TENSORS), other.replace("relu", "neg")))
    assert isinstance(verdict, Unknown)
    assert "specials" in verdict.reason
    judgement = judge(before, program(renamed(SPECIAL_TENSORS), other.replace("relu", "neg")))
    assert not judgement.accepted


def test_a_difference_far_from_the_output_is_not_called_equal() -> None:
    before, after = many_kernels(40)
    broken = replace(after, entry=rewrite_blocks(after.entry, _shifted))
    judgement = judge(before, broken)
    assert not judgement.accepted
    assert "X1[7, 11]: it is defined by other operands" in str(judgement)


def _shifted(block: Block) -> Block:
    if block.name != "matmul0":
        return block
    ref = block.ref("A")
    wrong = replace(ref, access=(ref.access[0], Affine.var("k") * 3))
    return replace(block, refinements=(wrong, *block.refinements[1:]))


GRAM_TENSORS = "in A 6\nout C 6 6"
GRAM = """
    0: #kernel block [i:6, j:6] ( // gram
        in A[i] fp32(1:1)
        in A_0 = A[j] fp32(1:1)
        out C[i, j]:assign fp32(1:6, 1:1)
    ) {
      0: $A = load(A)
      1: $B = load(A_0)
      2: $P = mul($A, $B)
      3: C = store($P)
    }"""


@pytest.mark.parametrize(
    ("tensors", "kernel"),
    [
        (GRAM_TENSORS, GRAM),
        ("in A 6\nout C 6", GRAM.replace("C[i, j]:assign fp32(1:6, 1:1)", "C[i]:add fp32(1:1)")),
        ("in A 6\nout C 1", GRAM.replace("C[i, j]:assign fp32(1:6, 1:1)", "C[0]:min fp32(1:1)")),
    ],
)
def test_operands_of_one_array_commute(tensors: str, kernel: str) -> None:
    """`A[i] * A[j]` is `A[j] * A[i]`, though only the elements tell the operands apart."""
    before = program(tensors, kernel)
    assert prove_equal(before, program(tensors, kernel.replace("mul($A, $B)", "mul($B, $A)"))) == Equal()
    different(before, program(tensors, kernel.replace("mul($A, $B)", "mul($A, $A)")))


def test_a_difference_that_running_does_not_show_is_not_believed() -> None:
    """The greatest product of two numbers is the greatest square: that is more than the proof knows."""
    kernel = GRAM.replace("C[i, j]:assign fp32(1:6, 1:1)", "C[0]:max fp32(1:1)")
    squares = kernel.replace("mul($A, $B)", "mul($A, $A)")
    judgement = judge(program("in A 6\nout C 1", kernel), program("in A 6\nout C 1", squares))
    assert isinstance(judgement.verdict, Different)
    assert not judgement.accepted
    assert "they agree, which does not confirm the difference" in str(judgement)
    wrong = kernel.replace("mul($A, $B)", "add($A, $A)")
    judgement = judge(program("in A 6\nout C 1", kernel), program("in A 6\nout C 1", wrong))
    assert "ran both programs on 9 data sets: they differ" in str(judgement)


def test_a_merge_of_one_contribution_is_that_contribution() -> None:
    """The last element of a triangle's rows gets one contribution; as a base it is assigned."""
    tensors = "in A 4\nout C 4"
    triangle = """
    0: #kernel block [i:4, k:4] ( // triangle
        3 - i - k >= 0
        in A[i + k] fp32(1:1)
        out C[i]:add fp32(1:1)
    ) {
      0: $A = load(A)
      1: C = store($A)
    }"""
    peeled = """
    0: #kernel block [i:3, k:4] ( // triangle
        3 - i - k >= 0
        in A[i + k] fp32(1:1)
        out C[i]:add fp32(1:1)
    ) {
      0: $A = load(A)
      1: C = store($A)
    }
    1: #kernel block [] ( // tip
        in A[3] fp32(1:1)
        out C[3]:assign fp32(1:1)
    ) {
      0: $A = load(A)
      1: C = store($A)
    }"""
    before = program(tensors, triangle)
    assert prove_equal(before, program(tensors, peeled)) == Equal()
    different(before, program(tensors, peeled.replace("A[3]", "A[2]")))
