"""Programs before and after passes whose rewrites are too long to write by hand: each pair must prove equal."""

from __future__ import annotations

from functools import cache

from stripe.pipeline.manager import PassManager
from stripe.pipeline.passlist import parse_passes
from stripe.tile import compile_tile
from tests.verify.pairs import Pair

WINDOWS = """
function (I[X=10], K[N=3]) -> (Q) {
    O[x : X] = +(I[-1 + x + k] * K[k]);
    Q[x : X] = >(O[-1 + x + k]), k < 3;
}"""
DOT = """
function (A[M=3, K=19], B[K]) -> (C) {
    C[i : M] = +(A[i, k] * B[k]);
}"""
PRODUCT = """
function (A[M=6, K=7], B[N=10, K]) -> (C) {
    C[i, j : M, N] = +(A[i, k] * B[j, k]);
}"""
ROWS = [
    ("keep", WINDOWS, "fusion{overlap=keep,max_steps=3}"),
    ("split_reduction", DOT, "split_reduction{reqs=[kernel],vector_bytes=16,vectors=1}"),
    (
        "cache_shared",
        PRODUCT,
        "autotile{reqs=[kernel],fixed={i:2,j:4,k:7},outer_set=[tile],inner_set=[inner]},"
        "cache{reqs=[tile],dirs=[in],shared=3,vector=true}",
    ),
]


@cache
def pass_pairs() -> tuple[Pair, ...]:
    """All rewrites by passes."""
    found: list[Pair] = []
    for name, text, passes in ROWS:
        before = compile_tile(text, f"{name}.tile", {})
        after = PassManager(parse_passes(passes)).run(before)
        assert after is not before, name
        found.append(Pair(name, before, after))
    return tuple(found)
