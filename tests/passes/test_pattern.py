"""The pass `pattern`: classification of contractions, and the language of patterns."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from stripe.ir import Block, ConfigError, Program, StripeError, parse_affine
from stripe.passes.pattern.contraction_kinds import classify
from stripe.passes.pattern.terms import Items, Structure, Variable, find, matches, parse_term, term_of
from stripe.rewrite.refusal import Refusal
from tests.passes.kernels import kernel, program_of
from tests.passes.programs import lines_of, run_pass


def contraction(text: str, **ranges: int) -> Block:
    """A contraction; the shapes are as large as the accesses reach."""
    intervals = {name: (0, size - 1) for name, size in ranges.items()}
    shapes = {
        name: tuple(parse_affine(part).bounds(intervals)[1] + 1 for part in inside.split(","))
        for name, inside in re.findall(r"(\w+)\[(.*?)\]", text)
    }
    return kernel(text, ranges, shapes, name="kernel", tags=("contraction",))


def program(block: Block) -> Program:
    """A program of one contraction."""
    shapes = {
        ref.source: tuple(affine.bounds(block.intervals())[1] + 1 for affine in ref.access)
        for ref in block.refinements
    }
    return program_of([block], shapes, [ref.source for ref in block.outputs])


CONV = contraction("O[n,y,x,o] = add mul(I[n,2*y+j,2*x+i,c], K[j,i,c,o])", c=4, i=3, j=3, n=2, o=8, x=5, y=4)
MATMUL = contraction("C[i,j] = add mul(A[i,k], B[k,j])", i=4, j=5, k=6)
LINES = {
    "C[i,j] = add mul(A[i,k], B[k,j])": "matmul",
    "C[b,i,j] = add mul(A[b,i,k], B[b,k,j])": "matmul batched",
    "C[i] = add mul(A[i,k], B[k])": "matvec",
    "C[0] = add mul(A[k], B[k])": "dot",
    "O[n,y,x,o] = add mul(I[n,y+j,x+i,c], K[j,i,c,o])": "conv conv_3x3",
    "O[n,y,x,o] = add mul(K[j,i,c,o], I[n,y+j,x+i,c])": "conv conv_3x3",
    "O[n,o,y,x] = add mul(I[n,c,y+j,x], K[o,c,j,0])": "conv conv_3x1",
    "O[n,y,x,o] = add mul(I[n,y,x,c], K[0,0,c,o])": "conv matmul conv_1x1",
    "O[n,y,x,o] = add mul(I[n,y,x,c], K[c,o])": "conv matmul conv_1x1",
    "O[n,y,x,o] = add mul(I[n,2*y,2*x,c], K[c,o])": "conv matmul conv_1x1 strided",
    "O[y,x,c] = add mul(I[y+j,x+i,c], K[j,i,c])": "conv conv_3x3 depthwise",
    "O[y,g,o] = add mul(I[y+2*j,g,c], K[j,g,c,o])": "conv conv_3 dilated grouped",
    "O[2*x+i,o] = add mul(I[x,c], K[i,c,o])": "conv conv_transposed conv_3 strided",
    "O[y,x] = max ident(I[2*y+j,2*x+i])": "pooling max_pool window_3x3 strided",
    "O[y,x] = add ident(I[y+j,x+i])": "pooling sum_pool window_3x3",
    "O[x] = max ident(I[x,k])": "reduction max_reduction",
}
RANGES = {"b": 2, "c": 4, "g": 3, "i": 3, "j": 3, "k": 6, "n": 2, "o": 5, "x": 4, "y": 7}


def example(line: str) -> Block:
    """The contraction of one of `LINES`, with the ranges of the indices that occur."""
    accesses = "".join(re.findall(r"\[(.*?)\]", line))
    return contraction(line, **{name: size for name, size in RANGES.items() if name in accesses})


@pytest.mark.parametrize(("line", "tags"), LINES.items())
def test_classes(line: str, tags: str) -> None:
    block = example(line)
    kind = classify(block)
    assert not isinstance(kind, Refusal), kind
    assert kind.tags == tuple(tags.split())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("O[x] = assign ident(I[x])", "it aggregates nothing"),
        ("O[x] = add mul(I[x], K[x])", "it contracts no index"),
        ("O[x] = max mul(I[x,k], K[k])", "it aggregates products by max"),
        ("O[x] = add add(I[x,k], K[k])", "its stored value is neither a load nor a product of two"),
        ("O[x] = add ident(I[floor((x + k)/2)])", "an access has a floor or a remainder"),
    ],
)
def test_what_is_not_classified_says_why(line: str, reason: str) -> None:
    block = contraction(line, **({"k": 6, "x": 4} if "k" in line else {"x": 4}))
    before = program(block)
    result, remarks = run_pass(before, "pattern")
    assert result is before
    assert str(remarks[0]) == f"missed: kernel: not classified: {reason}"


def test_classification_sets_tags_and_attributes() -> None:
    result, remarks = run_pass(program(CONV), "pattern")
    assert lines_of(result, "#conv") == [
        '0: #contraction #conv #conv_3x3 #dilation="1x1" #kernel #stride="2x2" #strided #window="3x3" '
        "block [c:4, i:3, j:3, n:2, o:8, x:5, y:4] ( // kernel"
    ]
    assert "matched: conv, conv_3x3, strided, window=3x3" in str(remarks[0])
    again, _ = run_pass(result, "pattern")
    assert again is result


GEMM = """block({
    ref(in, {dim(0, {term(1, M)}, _, _), dim(0, {term(1, K)}, _, _)}),
    ref(in, {dim(0, {term(1, K)}, _, _), dim(0, {term(1, N)}, _, _)}),
    ref(out, {dim(0, {term(1, M)}, _, _), dim(0, {term(1, N)}, _, _)})  // the product
}, {idx(M, ROWS), idx(K, DEPTH), idx(N, COLUMNS), })"""


@pytest.mark.parametrize("line", ["C[i,j] = add mul(A[i,k], B[k,j])", "C[j,i] = add mul(B[j,k], A[k,i])"])
def test_a_pattern_sets_tags_attributes_and_tags_of_indices(line: str) -> None:
    result, _ = run_pass(
        program(contraction(line, i=4, j=5, k=6)), "pattern", pattern=GEMM, set_tags=["gemm"],
        set_vars={"depth": "DEPTH"}, set_idxs={"walks_k": "K"},
    )  # fmt: skip
    assert lines_of(result, "#gemm") == [
        "0: #contraction #depth=6 #gemm #kernel block [i:4, j:5, #walks_k k:6] ( // kernel"
    ]


def test_what_does_not_match_is_left_alone() -> None:
    before = program(CONV)
    result, remarks = run_pass(before, "pattern", pattern=GEMM, set_tags=["gemm"])
    assert result is before
    assert str(remarks[0]) == "missed: kernel: the pattern does not match"
    assert run_pass(before, "pattern", reqs=["eltwise"])[0] is before


def test_mistakes_in_patterns_are_shown() -> None:
    with pytest.raises(ValidationError, match="line 1, column 9: expected ',' or '}', found the end"):
        run_pass(program(MATMUL), "pattern", pattern="block({a")
    with pytest.raises(ConfigError, match="the pattern has no variable 'DEPHT'"):
        run_pass(program(MATMUL), "pattern", pattern=GEMM, set_vars={"depth": "DEPHT"})
    with pytest.raises(ConfigError, match="'a b' cannot be a tag"):
        run_pass(program(MATMUL), "pattern", pattern=GEMM, set_vars={"a b": "DEPTH"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f(a", "line 1, column 4: expected ',' or ')', found the end"),
        ("[a | b]", "line 1, column 7: expected a variable for the rest, found ']'"),
        ("f(a) b", "line 1, column 6: expected the end, found 'b'"),
        ("f(\n  ?)", "line 2, column 3: '?' has no place in a pattern"),
        ("f(a | R)", "a rest stands in lists and sets only"),
        ("", "expected a term, found the end"),
    ],
)
def test_syntax_errors_have_a_place(text: str, message: str) -> None:
    with pytest.raises(StripeError) as caught:
        parse_term(text)
    assert message in str(caught.value)


def test_lists_sets_rests_and_repeated_variables() -> None:
    def solutions(pattern: str, ground: str) -> list[str]:
        found = matches(parse_term(pattern), parse_term(ground), {})
        return [", ".join(f"{name}={value}" for name, value in sorted(way.items())) for way in found]

    assert solutions("[X, b]", "[a, b]") == ["X=a"]
    assert solutions("[X, b]", "[b, a]") == []
    assert solutions("{X, b}", "[b, a]") == ["X=a"]
    assert solutions("{X, Y}", "[a, b]") == ["X=a, Y=b", "X=b, Y=a"]
    assert solutions("[X, X]", "[a, b]") == []
    assert solutions("{f(X), g(X)}", "[g(2), f(1), f(2)]") == []
    assert solutions("{f(X), g(X) | Rest}", "[g(2), f(1), f(2)]") == ["Rest={f(1)}, X=2"]
    assert solutions("[X | Rest]", "[a, -3, +4]") == ["Rest=[-3, 4], X=a"]
    assert solutions("[_, _]", "[a, b]") == [""]
    assert solutions("f(a)", "f(a, b)") == []


def test_the_term_of_a_block() -> None:
    assert str(term_of(MATMUL)) == (
        "block([ref(in, [dim(0, [term(1, i)], 1, 6), dim(0, [term(1, k)], 1, 1)], assign, fp32), "
        "ref(in, [dim(0, [term(1, k)], 1, 5), dim(0, [term(1, j)], 1, 1)], assign, fp32), "
        "ref(out, [dim(0, [term(1, i)], 1, 5), dim(0, [term(1, j)], 1, 1)], add, fp32)], "
        "[idx(i, 4), idx(j, 5), idx(k, 6)])"
    )


@settings(deadline=None, max_examples=30)
@given(st.permutations(range(3)), st.permutations(["i", "j", "k"]), st.booleans())
def test_the_order_of_a_set_does_not_matter(refs: list[int], names: list[str], rest: bool) -> None:
    ground = term_of(MATMUL)
    views, idxs = ground.arguments
    assert isinstance(views, Items) and isinstance(idxs, Items)
    ranges = {"i": 4, "j": 5, "k": 6}
    pattern = Structure(
        "block",
        (
            Items(tuple(views.items[n] for n in refs), ordered=False),
            Items(
                tuple(Structure("idx", (n, ranges[n])) for n in names[: 2 if rest else 3]),
                ordered=False,
                rest=Variable("R") if rest else None,
            ),
        ),
    )
    assert len(list(matches(parse_term(str(pattern)), ground, {}))) == 1


@settings(deadline=None, max_examples=25)
@given(st.sampled_from(sorted(LINES)))
def test_tags_never_change_the_meaning(line: str) -> None:
    run_pass(program(example(line)), "pattern")


CONVOLUTION = """block({
    ref(in, [dim(_, {term(1, N)}, _, _), dim(_, {term(_, Y), term(_, J)}, _, _),
             dim(_, {term(_, X), term(_, I)}, _, _), dim(_, {term(1, C)}, _, _)]),
    ref(in, [dim(0, {term(1, J)}, _, _), dim(0, {term(1, I)}, _, _),
             dim(_, {term(1, C)}, _, _), dim(_, {term(1, O)}, _, _)]),
    ref(out, [dim(_, {term(1, N)}, _, _), dim(_, {term(1, Y)}, _, _),
              dim(_, {term(1, X)}, _, _), dim(_, {term(1, O)}, _, _)])},
    {idx(N, BATCH), idx(Y, _), idx(X, _), idx(J, ROWS), idx(I, COLUMNS), idx(C, _), idx(O, _)})"""


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("O[n,y,x,o] = add mul(I[n,y+j,x+i,c], K[j,i,c,o])", (2, 3, 3)),
        ("O[0,y,x,o] = add mul(I[0,y+j,x+i,c], K[j,i,c,o])", (1, 3, 3)),
        ("O[n,y,x,o] = add mul(I[n,y,x+i,c], K[0,i,c,o])", (2, 1, 3)),
        ("O[0,y,x,0] = add mul(I[0,y,x,c], K[0,0,c,0])", (1, 1, 1)),
        # An access that is constant in one tensor and not in the other is no index of range 1.
        ("O[0,y,x,o] = add mul(I[n,y+j,x+i,c], K[j,i,c,o])", None),
        ("O[n,y,x,o] = add mul(I[n,y+j,x,c], K[j,i,c,o])", None),
        ("C[i,j] = add mul(A[i,k], B[k,j])", None),
    ],
)
def test_a_convolution_is_found_whatever_sizes_are_1(line: str, found: tuple[int, ...] | None) -> None:
    bound = find(parse_term(CONVOLUTION), example(line))
    assert (bound and tuple(bound[name] for name in ("BATCH", "ROWS", "COLUMNS"))) == found
