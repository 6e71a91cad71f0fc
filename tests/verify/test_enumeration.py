"""The proof and the enumeration share no code: on small programs their answers must be the same."""

from __future__ import annotations

import pytest

from stripe.ir import Program, verify_structural
from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes
from stripe.tile import compile_tile
from stripe.verify.enumeration import InvalidProgram, decide, points
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Different, Equal, Unknown
from tests.support.programs import load
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
