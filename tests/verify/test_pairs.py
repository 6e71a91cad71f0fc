"""Correct rewrites prove equal, with little work; what the proof says about broken ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stripe.ir import Affine, Block, Program, rewrite_blocks, with_entry
from stripe.verify.assumptions import Assumption
from stripe.verify.policy import Policy
from stripe.verify.proof.judge import judge
from stripe.verify.proof.prove import OPERATIONS, prove_equal
from stripe.verify.proof.witness import Different, Equal, Unknown
from stripe.verify.soundness import check_soundness
from tests.support.programs import build, load
from tests.support.running import run_both
from tests.verify.mutate import mutants
from tests.verify.pairs import Pair, pair, pairs
from tests.verify.pass_pairs import pass_pairs


@pytest.mark.parametrize("pair", [*pairs(), *pass_pairs()], ids=lambda pair: pair.name)
def test_a_correct_rewrite_proves_equal(pair: Pair) -> None:
    assert check_soundness(pair.before) == []
    assert check_soundness(pair.after) == []
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


def test_a_witness_shows_element_point_and_operands() -> None:
    text = different(
        load("verify/pairs/matmul"),
        load("verify/pairs/matmul_tiles_overlap"),
    )
    lines = text.splitlines()
    assert lines[0].startswith("error: C[")
    assert lines[0].endswith("]: it is defined by other operands")
    assert "before: add mul(A[" in lines[1]
    assert "by matmul (0.0.0.3) at i=" in lines[2]
    assert "after:  add mul(A[" in lines[3]
    assert "by inner (0.0.0.0.3) at i=" in lines[4]


def test_an_operand_that_contributes_twice_is_counted() -> None:
    before = load("verify/pairs/repeat")
    text = different(before, load("verify/pairs/repeat_once_more"))
    assert "an operand contributes 6 times before, 7 times after" in text


def test_for_a_maximum_it_does_not_matter_how_often() -> None:
    before = load("verify/pairs/repeat_max")
    assert prove_equal(before, load("verify/pairs/repeat_max_once_more")) == Equal()


def copied_twice(access: str, agg: str) -> Program:
    """O is assigned A, then merged with `A[access]`."""
    return build(
        "in A 5; out O 5",
        f"""
    0: #kernel block [i:5] ( // copy
        in A[i] fp32(1:1)
        out O[i]:assign fp32(1:1)
    ) {{
      0: $A = load(A)
      1: O = store($A)
    }}
    1: #kernel block [i:5] ( // again
        in A[{access}] fp32(1:1)
        out O[i]:{agg} fp32(1:1)
    ) {{
      0: $A = load(A)
      1: O = store($A)
    }}""",
    )


@pytest.mark.parametrize("agg", ["max", "min", "add", "mul"])
def test_the_same_operand_again_matters_for_what_is_counted(agg: str) -> None:
    """`max(a, a)` is `a`, a sum is not: one program assigns the element, the other merges it again."""
    before = load("verify/pairs/copy")
    after = copied_twice("i", agg)
    other = copied_twice("4 - i", agg)
    different(before, other)
    if agg in ("max", "min"):
        assert prove_equal(before, after) == prove_equal(after, before) == Equal()
    else:
        different(before, after)


def test_statements_out_of_order() -> None:
    after = load("verify/pairs/matmul_cached")
    swapped = next(m for m in mutants(after) if m.kind == "order" and m.what == "statements 1 and 2")
    verdict = prove_equal(load("verify/pairs/matmul"), swapped.program)
    assert isinstance(verdict, Different)
    assert verdict.witness.message == "read, but unwritten"


def test_an_access_out_of_bounds() -> None:
    found = check_soundness(load("verify/pairs/matmul_out_of_bounds"))
    assert [str(f).splitlines()[0] for f in found] == ["error: A[0, 12]: read out of bounds of (8, 12)"]
    assert str(found[0].place).startswith("matmul (0.0.0.0) at i=0")


def test_a_view_whose_box_is_too_small() -> None:
    found = check_soundness(load("verify/pairs/matmul_small_box"))
    assert len(found) == 1
    assert found[0].message == "touched outside the box (4, 3) of the view 'A' in 'matmul'"


def test_two_points_that_assign_one_element() -> None:
    found = check_soundness(load("verify/pairs/matmul_assigned_twice"))
    assert [f.message.partition(",")[0] for f in found] == ["assigned at two points without order"]


def test_points_that_read_what_others_write() -> None:
    assert check_soundness(load("verify/pairs/chain")) == []
    messages = [f.message.partition(",")[0] for f in check_soundness(load("verify/pairs/race"))]
    assert "read and written at two points without order" in messages


def test_an_output_that_is_not_filled() -> None:
    found = check_soundness(load("verify/pairs/matmul_row_missing"))
    assert [str(f).splitlines()[0] for f in found] == [
        "error: C[7, 0]: this element of an output is not written"
    ]


def test_a_reduction_used_by_another_kernel_is_looked_into() -> None:
    before = load("verify/pairs/blur")
    text = different(before, load("verify/pairs/blur_without_last_tap"))
    assert "error: O[18]: an operand contributes only before" in text
    assert "before: add mul(I[19], K[2])" in text


def test_order_of_element_wise_operations_counts() -> None:
    before = load("verify/pairs/chain")
    different(before, load("verify/pairs/chain_operands_swapped"))
    swapped = load("verify/pairs/chain_product_swapped")
    assert prove_equal(load("verify/pairs/chain_product"), swapped) == Equal()  # exactly commutative


def test_names_places_and_tags_have_no_meaning() -> None:
    before = load("verify/pairs/matmul")
    assert prove_equal(before, load("verify/pairs/matmul_other_names")) == Equal()


def test_tensors_that_changed() -> None:
    before = load("verify/pairs/matmul")
    verdict = prove_equal(before, load("verify/pairs/matmul_wider_output"))
    assert isinstance(verdict, Different)
    assert "the output changed" in str(verdict)


def test_past_the_limit_the_answer_is_unknown_and_both_run(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pair("fuse_rows")
    assert isinstance(prove_equal(rows.before, rows.after, operations=50), Unknown)
    with monkeypatch.context() as patched:
        patched.setattr("stripe.verify.proof.judge.ENUMERATED", 10)
        judgement = judge(rows.before, rows.after, operations=50)
        assert (judgement.answer, judgement.accepted) == ("unknown", True)
        assert "ran both programs on 9 data sets: they agree" in str(judgement)
        assert not judge(rows.before, rows.after, Policy(unknown_fails=True), operations=50).accepted
    assert isinstance(judge(rows.before, rows.after, operations=50).verdict, Equal)  # by enumeration
    broken = load("verify/pairs/softmax_subtracts")
    judgement = judge(broken, rows.after, operations=50)
    assert not judgement.accepted
    assert "they differ" in str(judgement)


def many_kernels(count: int) -> tuple[Program, Program]:
    """A chain of matrix products and relus, before and after tiling every product."""
    buffers = [f"in X0 8 12; in B 12 12; out X{count} 8 12", *(f"tmp X{n} 8 12" for n in range(1, count))]
    frame = build("; ".join(buffers), "")
    relu = load("verify/pairs/layer_relu")
    chains = [(load(f"verify/pairs/{name}"), relu) for name in ("layer", "layer_tiled")]
    before, after = (with_main(frame, [_link(pair[n % 2], n) for n in range(count)]) for pair in chains)
    return before, after


def _link(layer: Program, number: int) -> Block:
    """The kernel of `layer` as number `number` of a chain: A is the buffer of that number, C the next."""
    (kernel,) = layer.main.blocks
    sources = {"A": f"X{number}", "B": "B", "C": f"X{number + 1}"}
    refs = tuple(replace(ref, source=sources[ref.source]) for ref in kernel.refinements)
    return replace(kernel, name=f"{kernel.name}{number}", refinements=refs)


def with_main(frame: Program, kernels: list[Block]) -> Program:
    return with_entry(
        frame, replace(frame.entry, statements=(replace(frame.main, statements=tuple(kernels)),))
    )


def test_a_hundred_kernels_that_all_change() -> None:
    before, after = many_kernels(100)
    assert prove_equal(before, after) == Equal()


def test_specials_are_equal_on_equal_operands() -> None:
    before = load("verify/pairs/gather")
    assert check_soundness(before) == []
    assert prove_equal(before, load("verify/pairs/gather_renamed")) == Equal()
    negated = load("verify/pairs/gather_of_negated")
    verdict = prove_equal(before, negated)
    assert isinstance(verdict, Unknown)
    assert "specials" in verdict.reason
    judgement = judge(before, negated)
    assert not judgement.accepted


@pytest.mark.long
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


@pytest.mark.parametrize("name", ["gram", "gram_sum", "gram_min"])
def test_operands_of_one_array_commute(name: str) -> None:
    """`A[i] * A[j]` is `A[j] * A[i]`, though only the elements tell the operands apart."""
    before = load(f"verify/pairs/{name}")
    assert prove_equal(before, load(f"verify/pairs/{name}_swapped")) == Equal()
    different(before, load(f"verify/pairs/{name}_of_squares"))


def test_a_difference_that_running_does_not_show_is_not_believed() -> None:
    """The greatest product of two numbers is the greatest square: that is more than the proof knows."""
    judgement = judge(
        load("verify/pairs/greatest_product"),
        load("verify/pairs/greatest_square"),
    )
    assert isinstance(judgement.verdict, Different)
    assert not judgement.accepted
    assert "they agree, which does not confirm the difference" in str(judgement)
    judgement = judge(
        load("verify/pairs/greatest_product"),
        load("verify/pairs/greatest_sum"),
    )
    assert "ran both programs on 9 data sets: they differ" in str(judgement)


def test_a_merge_of_one_contribution_is_that_contribution() -> None:
    """The last element of a triangle's rows gets one contribution; as a base it is assigned."""
    before = load("verify/pairs/triangle")
    assert prove_equal(before, load("verify/pairs/triangle_tip_assigned")) == Equal()
    different(before, load("verify/pairs/triangle_tip_of_another_element"))
