"""The proof and the enumeration share no code: on small programs their answers must be the same."""

from __future__ import annotations

import pytest

from stripe.ir import Program, parse_program, verify_structural
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes
from stripe.tile import compile_tile
from stripe.verify.enumerated_cells import InvalidProgram
from stripe.verify.enumeration import decide, points
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Different, Equal, Unknown
from tests.support.programs import load, source
from tests.verify.mutate import Mutant, mutants, surroundings
from tests.verify.pairs import Pair, pairs
from tests.verify.pass_pairs import pass_pairs

PAIRS = [*pairs(), *pass_pairs()]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_correct_rewrites_are_equal(pair: Pair) -> None:
    assert isinstance(decide(pair.before, pair.after), Equal)


def check(pair: Pair, found: list[Mutant]) -> None:
    for mutant in found:
        if verify_structural(mutant.program):
            continue
        proved, enumerated = prove_equal(pair.before, mutant.program), decide(pair.before, mutant.program)
        assert type(proved) is type(enumerated), f"{mutant}:\n{proved}\n{enumerated}"


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_tenth_of_the_mutants(pair: Pair) -> None:
    check(pair, [*mutants(pair.after), *surroundings(pair.after)][::10])


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_all_mutants(pair: Pair) -> None:
    check(pair, [*mutants(pair.after), *surroundings(pair.after)])


def test_many_points_are_unknown() -> None:
    matmul = load("verify/enumeration/many_points_are_unknown")
    assert points(matmul) == 2 + 8 * 10 * 12
    assert isinstance(decide(matmul, matmul, most_points=900), Unknown)


def test_elements_that_nothing_wrote_are_not_copied() -> None:
    """One that is merged on by the aggregation at whose identity it starts is none; a copy makes it a number."""
    program = load("verify/enumeration/copy_of_an_unwritten_element")
    merged = load("verify/enumeration/merge_of_an_unwritten_element")
    for after, answer in ((program, Different), (merged, Equal)):
        assert isinstance(decide(merged, after), answer)
        assert isinstance(prove_equal(merged, after), answer)


def test_the_witness_is_an_element() -> None:
    before = compile_tile("function (A[N=6]) -> (B) { B[i : N] = +(A[i]); }", "a.tile", {})
    after = compile_tile("function (A[N=6]) -> (B) { B[i : N] = +(A[i]), i < 5; }", "b.tile", {})
    found = decide(before, after)
    assert isinstance(found, Different)
    assert found.witness.element == (5,)
    assert str(found.witness.before) == "A[5]"


def test_a_race_is_undefined() -> None:
    race = load("verify/enumeration/a_race_is_undefined")
    with pytest.raises(InvalidProgram, match=r"two points touch B\[0\]: one by 'assign', one by 'assign'"):
        decide(race, race)


def compiled(text: str) -> Program:
    return compile_tile(text, "small.tile", {})


SMALL = {
    "conv": "function (I[X=6, C=2], K[W=3, C, O=3]) -> (Q) { Q[x, o : X, O] = +(I[x + k - 1, c] * K[k, c, o]); }",
    "softmax": "function (X[I=3, J=5]) -> (S) { M[i, 0 : I, 1] = >(X[i, j]); E = exp(X - M); "
    "N[i, 0 : I, 1] = +(E[i, j]); S = E / N; }",
    "chain": "function (A[M=4, K=5], B[K, N=3]) -> (R) { C[i, j : M, N] = +(A[i, k] * B[k, j]); R = relu(C); }",
}
LISTS = [
    "autotile{reqs=[kernel],outer_set=[tile],inner_set=[inner]},dce",
    "fusion,localize,scalarize",
    "pad,reduce_constraints,prune_indexes",
    "unroll{reqs=[kernel]},constant_fold,dce",
]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("passes", LISTS)
def test_results_of_passes(name: str, passes: str) -> None:
    before = compiled(SMALL[name])
    after = PassManager(parse_passes(passes)).run(before)
    assert isinstance(decide(before, after), Equal)


def test_nested_floors_are_only_numbers() -> None:
    plain = load("verify/enumeration/nested_plain")
    packed = load("verify/enumeration/nested_packed")
    wrong = load("verify/enumeration/nested_wrong")
    assert isinstance(decide(plain, packed), Equal)
    assert isinstance(decide(plain, wrong), Different)


def test_a_buffer_begins_at_one_identity() -> None:
    both = load("verify/enumeration/two_aggregations")
    with pytest.raises(
        InvalidProgram, match=r"T\[4\] begins at the identity of 'add' and is merged into by 'max'"
    ):
        decide(both, both)


def test_elements_that_nothing_touches_cost_nothing() -> None:
    """A thousand million elements, eight of which are read; the tensor that is updated keeps the others."""
    read = "function (A[N=1000000000]: fp32) -> (B) {{ B[i : 8] = +({}[i]); }}"
    before, after = compiled(read.format("A").replace("A[i]", "A[i + 5]")), compiled(read.format("A"))
    assert isinstance(decide(before, before), Equal)
    found = decide(before, after)
    assert isinstance(found, Different)
    assert found.witness.element == (0,)
    assert str(found.witness.before) == "A[5]"
    updated = load("verify/enumeration/updated_in_place")
    other = load("verify/enumeration/updated_elsewhere")
    assert isinstance(decide(updated, updated), Equal)
    found = decide(updated, other)
    assert isinstance(found, Different)
    assert found.witness.element == (1,)
    assert (str(found.witness.before), str(found.witness.after)) == ("relu(A[1])", "A[1]")


GATHER = "function (E[V={}, D=4]: fp32, I[N=64]: i32) -> (O) {{ J = {}; O = gather(E, J); }}"


def test_operands_of_specials_are_counted() -> None:
    """A row of the table may come from each of its elements, of which there are too many."""
    plain, clamped = (compiled(GATHER.format(500000, index)) for index in ("I", "max(I, 0)"))
    assert points(plain) < 1000
    found = decide(plain, clamped, most_steps=1_000_000)
    assert isinstance(found, Unknown)
    assert found.reason == "enumeration takes more than 1000000 steps"


def test_an_operand_of_a_special_is_hashed_once() -> None:
    plain, clamped = (compiled(GATHER.format(5000, index)) for index in ("I", "max(I, 0)"))
    assert isinstance(decide(plain, plain), Equal)
    assert isinstance(decide(plain, clamped), Different)


def doubled(op: str, last: str) -> str:
    steps = " ".join(f"T{n + 1} = T{n} {op} T{n};" for n in range(60))
    return f"function (A[N=2]) -> (B) {{ T0 = A * 0.0; {steps} S = {last}; B[i : 1] = +(S[i]); }}"


@pytest.mark.parametrize("op", ["+", "*"])
def test_terms_that_share_terms(op: str) -> None:
    """60 doublings of a term, which is one operand in 2^60 places: as a chain a sum of so many, and a product that
    vanishes with any of them."""
    before, after = (compiled(doubled(op, last)) for last in ("T60", "relu(T60)"))
    assert isinstance(decide(before, before), Equal)
    found = decide(before, after, most_steps=100_000)
    assert isinstance(found, Unknown if op == "+" else Equal)  # a product with 0 adds nothing, clamped or not


@pytest.mark.parametrize("infinity", ["(fp32)inf", "(fp32)-inf", "(fp32)nan", "div($a, $z)"])
def test_a_product_of_0_and_an_infinity_does_not_vanish(infinity: str) -> None:
    """`0 * x` is left out of a sum where `x` may be finite."""
    before, after = (
        source("verify/enumeration/infinite_absent"),
        source("verify/enumeration/infinite_times_zero"),
    )
    assert "(fp32)inf" in after
    for text, answer in (
        (after.replace("(fp32)inf", infinity), Different),
        (after.replace("inf", "2.5"), Equal),
    ):
        found = decide(parse_program(before), parse_program(text))
        assert isinstance(found, answer)


@pytest.mark.parametrize(
    ("factor", "answer"),
    [
        *((factor, Equal) for factor in ("A / 2.0", "log(A)", "exp(A * 0.0)", "tanh(1.0 / (A * 0.0 + 3.0))")),
        *((factor, Different) for factor in ("A / 0.0", "-(A / 0.0)", "1.0 / (A * 0.0)", "A / (A * 0.0)")),
        *((f"{op}(A * 0.0)", Different) for op in ("log", "1.0 + log", "A * log")),
        *((f"{op}(A * 0.0 + 1000.0)", Different) for op in ("exp", "A * exp", "acos", "A + atanh")),
        ("sqrt(A * 0.0 - 1.0)", Different),
        ("pow(A * 0.0, -1.0)", Different),
    ],
)
def test_a_product_of_0_and_an_infinity_does_not_vanish_in_the_proof(factor: str, answer: type) -> None:
    before = compiled("function (A[N=4]) -> (B) { B = A + A; }")
    after = compiled(f"function (A[N=4]) -> (B) {{ B = A + A + A * 0.0 * ({factor}); }}")
    for proof in (prove_equal, decide):
        assert isinstance(proof(before, after), answer)


@pytest.mark.parametrize(
    ("kept", "answer"),
    [
        *((kept, Equal) for kept in ("relu(Z)", "zelu(Z)", "abs(-Z)", "floor(Z)", "sqrt(Z)")),
        *((kept, Different) for kept in ("Z + 1.0", "as_float(Z == 0.0, 32)", "sigmoid(Z)", "Z / Z")),
    ],
)
def test_an_operation_that_keeps_zeros_vanishes(kept: str, answer: type) -> None:
    before = compiled("function (A[N=4]) -> (B) { B = A + A; }")
    after = compiled(f"function (A[N=4]) -> (B) {{ Z = A * 0.0; B = A + A + {kept}; }}")
    for proof in (prove_equal, decide):
        assert isinstance(proof(before, after), answer)


@pytest.mark.parametrize("table", ["table", "gathered"])
@pytest.mark.parametrize(
    ("element", "vanishes"), [("0000807f", False), ("0000c07f", False), ("00004040", True)]
)
def test_a_product_of_0_and_a_table_vanishes_where_the_table_is_finite(
    table: str, element: str, vanishes: bool
) -> None:
    before, text = (
        load(f"verify/enumeration/{table}_absent"),
        source(f"verify/enumeration/{table}_times_zero"),
    )
    assert "0000807f" in text
    after = parse_program(text.replace("0000807f", element))
    for proof in (prove_equal, decide):
        assert isinstance(proof(before, after), Equal) is vanishes


@pytest.mark.parametrize(
    ("op", "infinity", "vanishes"),
    [("max", "inf", False), ("min", "-inf", False), ("max", "-inf", True), ("min", "inf", True)],
)
def test_a_product_of_0_and_a_clamped_number_vanishes_where_the_number_decides(
    op: str, infinity: str, vanishes: bool
) -> None:
    before, text = load("verify/enumeration/table_absent"), source("verify/enumeration/clamped_times_zero")
    after = parse_program(text.replace("max", op).replace("(fp32)inf", f"(fp32){infinity}"))
    for proof in (prove_equal, decide):
        assert isinstance(proof(before, after), Equal) is vanishes


@pytest.mark.parametrize(
    "clamped",
    [
        ("$r = max($q, $z)",),
        ("$r = min($q, $z)",),
        ("$r = relu($q)",),
        ("$p = max($q, $x)", "$r = mul($p, $z)"),
        ("$p = min($q, $x)", "$r = mul($p, $z)"),
        ("$p = cmp_lt($x, $z)", "$r = cond($p, $q, $z)"),
    ],
)
def test_infinities_whose_sign_is_that_of_a_zero_do_not_vanish(clamped: tuple[str, ...]) -> None:
    """`-1 / (x * 0)` is an infinity of either sign, so that nothing clamps it to 0."""
    before, text = load("verify/enumeration/table_absent"), source("verify/enumeration/clamped_quotient")
    first, last = "      5: $r = max($q, $z)\n", "      6: O = store($r)\n"
    assert first + last in text
    lines = [f"      {number}: {each}\n" for number, each in enumerate((*clamped, "O = store($r)"), 5)]
    after = parse_program(text.replace(first + last, "".join(lines)))
    for proof in (prove_equal, decide):
        assert not isinstance(proof(before, after), Equal)


MASKED = """function (Q[N=6, D=2]: fp32, K[N, D]: fp32, V[N, D]: fp32) -> (O) {
  S[i, k : N, 3] = +(Q[i, d] * K[i + k - 1, d]);
  M = index(S, 1) > index(S, 0) ? -infinity() : S;
  X[i, 0 : N, 1] = >(M[i, k]);
  E = exp(M - X);
  O[i, d : N, D] = +(E[i, k] * V[i + k - 1, d]);
}"""


def test_zeros_beside_a_masked_softmax_vanish() -> None:
    """`exp` makes a number of the mask's infinity: rims of windows may be padded."""
    before = compiled(MASKED)
    after = PassManager(parse_passes("pad{reqs=[contraction],allow_nonfinite=true}")).run(before)
    assert before != after
    for proof in (prove_equal, decide):
        assert isinstance(proof(before, after), Equal)


def test_tags_of_specials_change_nothing() -> None:
    text = source("verify/enumeration/special_i32")
    assert "0: T = gather" in text
    tagged = parse_program(text.replace("0: T = gather", "0: #embedding T = gather"))
    for found in (decide(parse_program(text), tagged), decide(tagged, parse_program(text))):
        assert isinstance(found, Equal)


@pytest.mark.parametrize("dtype", ["i8", "fp32"])
def test_the_same_special_of_another_dtype(dtype: str) -> None:
    before, after = (load(f"verify/enumeration/special_{name}") for name in ("i32", dtype))
    assert isinstance(decide(before, after), Different)
    assert isinstance(decide(after, before), Different)
