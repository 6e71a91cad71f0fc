"""The textual form: printing and parsing are inverse, and errors say where and what would be right."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stripe.ir import (
    DTYPES,
    Affine,
    Agg,
    Block,
    Constant,
    Constraint,
    Dim,
    Direction,
    Index,
    Intrinsic,
    Load,
    LoadIndex,
    Location,
    Program,
    Refinement,
    Role,
    Special,
    Stage,
    Store,
    StripeError,
    Tags,
    parse_affine,
    parse_program,
    parse_with_spans,
    print_program,
)

CONV = """\
0: #program block [] ( // conv
    #user none new@0x00000000<DRAM[0]> I[0, 0, 0] i8(1024:32768, 1024:32, 32:1)
    #user none new@0x00000000<DRAM[0]> K1[0, 0, 0, 0] i8(3:6144, 3:2048, 32:64, 64:1)
    #user none new@0x00000000<DRAM[0]> O1[0, 0, 0] i8({1024:65536}, 1024:64, 64:1)
) {
  0: #main block [] ( // main
      in<DRAM[0]> I[0, 0, 0] i8(1024:32768, 1024:32, 32:1)
      in<DRAM[0]> K1[0, 0, 0, 0] i8(3:6144, 3:2048, 32:64, 64:1)
      out<DRAM[0]> O1[0, 0, 0]:assign i8(1024:65536, 1024:64, 64:1)
  ) {
    0: #agg_op_add #kernel #pid="a\\"b" block<CONV[0]> [ci:32, co:64, kx:3, ky:3, x:1024, y:1024] ( // kernel_0
        // O1[x, y, co : X, Y, CO] = +(I[-1 + kx + x, -1 + ky + y, ci] * K1[kx, ky, ci, co])
        -1 + kx + x >= 0
        1024 - kx - x >= 0
        -1 + ky + y >= 0
        1024 - ky - y >= 0
        in<DRAM[0]> I[-1 + kx + x, -1 + ky + y, ci] i8(1:32768, 1:32, 1:1)
        in<DRAM[0]> K = K1[kx, ky, ci, co] i8(1:6144, 1:2048, 1:64, 1:1)
        out<DRAM[0]> O1[x, y, co]:add i8(1:65536, 1:64, 1:1)
    ) {
      0: $I = load(I)
      1[0]: $K1 = load(K)
      2[0, 1]: $O1 = mul($I, $K1)
      3: O1 = store($O1)
    }
  }
}
"""


def test_the_designs_example_prints_as_it_was_read() -> None:
    program = parse_program(CONV)
    assert print_program(program) == CONV
    assert parse_program(print_program(program)) == program


def test_spans_tell_where_statements_stand() -> None:
    spans = parse_with_spans(CONV, "conv.stripe").spans
    assert str(spans[(0,)]) == "conv.stripe:1:1"
    assert str(spans[(0, 0, 0, 3)]) == "conv.stripe:24:7"


def test_comments_outside_of_block_heads_are_skipped() -> None:
    text = "// RUN: nothing\n" + CONV.replace(
        "      0: $I = load(I)", "      // a remark\n      0: $I = load(I)"
    )
    assert parse_program(text) == parse_program(CONV)


def test_accepts_an_omitted_location_as_nowhere() -> None:
    assert parse_program(CONV.replace("<DRAM[0]>", "")) == parse_program(CONV.replace("<DRAM[0]>", "<[0]>"))


def test_accesses_of_another_text_are_built_once() -> None:
    first, second = (parse_program(CONV.replace("1024:32768", size)) for size in ("1024:32768", "1024:99"))
    kernels = [next(next(program.entry.blocks).blocks) for program in (first, second)]
    assert kernels[0].refinements[0].access is kernels[1].refinements[0].access
    assert first.entry.refinements[0].dims != second.entry.refinements[0].dims


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        ("]:add i8", "]:addd i8", "unknown aggregation 'addd'", "did you mean 'add'?"),
        ("mul($I", "mull($I", "unknown intrinsic 'mull'", "did you mean 'mul'?"),
        ("i8(3:6144", "i9(3:6144", "unknown dtype 'i9'", "known are bool, i8"),
        ("      3: O1", "      5: O1", "statement 5 stands where 3 is due", "number it 3"),
        ("in<DRAM[0]> I[0", "in<DRAM[0] I[0", "unexpected 'I'", "expected '/' or '>'"),
        ("-1 + kx + x >= 0", "-1 + kx + x >= 1", "a constraint compares with 0", "affine >= 0"),
        ("= K1[kx", "= K1[floor(kx/0)", "division by zero", "positive"),
        ("$I = load(I)", "$I = ?", "unexpected character '?'", "expected"),
        ("#main", "#", "unexpected", "expected"),
    ],
)
def test_syntax_errors(old: str, new: str, message: str, hint: str) -> None:
    assert old in CONV
    with pytest.raises(StripeError) as caught:
        parse_program(CONV.replace(old, new, 1), "bad.stripe")
    assert message in str(caught.value)
    assert hint in str(caught.value)
    assert str(caught.value).startswith("bad.stripe:")


@pytest.mark.parametrize(
    "text", ["", "0:", "[" * 10_000, "0: #program block [] (" * 10_000, "\0", "0: $x = load(X)"]
)
def test_bad_texts_are_errors(text: str) -> None:
    with pytest.raises(StripeError):
        parse_program(text, "bad.stripe")


INDEX_NAMES = st.sampled_from(["x", "y", "k", "x.o", "i'"])


def affines(depth: int = 2) -> st.SearchStrategy[Affine]:
    linear = st.builds(
        Affine.linear, st.dictionaries(INDEX_NAMES, st.integers(-9, 9), max_size=3), st.integers(-20, 20)
    )
    if depth == 0:
        return linear
    inner = affines(depth - 1)
    divided = st.builds(Affine.floordiv, inner, st.integers(1, 9))
    reduced = st.builds(Affine.mod, inner, st.integers(1, 9))
    return st.one_of(
        linear, st.builds(lambda a, b, c: a + b * c, inner, divided | reduced, st.integers(-3, 3))
    )


REMAINDERS = (Affine.var("x").mod(8) + Affine.var("y")).mod(16)
"""A remainder in a remainder, which modulo 4 is neither."""


@given(affines())
@example(REMAINDERS.mod(4))
@example((3 * REMAINDERS).mod(4))
def test_affines_print_and_parse(affine: Affine) -> None:
    assert parse_affine(str(affine)) == affine


ENV = {"x": 5, "y": -7, "k": 12, "x.o": 3, "i'": 0}


@given(affines(), st.integers(1, 12))
def test_floor_and_mod_keep_their_value(affine: Affine, divisor: int) -> None:
    value = affine.evaluate(ENV)
    assert affine.floordiv(divisor).evaluate(ENV) == value // divisor
    assert affine.mod(divisor).evaluate(ENV) == value % divisor


@given(affines(), affines(1), affines(1))
def test_substitution_keeps_the_value(affine: Affine, left: Affine, right: Affine) -> None:
    env = {**ENV, "x": left.evaluate(ENV), "y": right.evaluate(ENV)}
    assert affine.subs({"x": left, "y": right}).evaluate(ENV) == affine.evaluate(env)


@given(affines(), st.data())
def test_bounds_contain_the_values(affine: Affine, data: st.DataObject) -> None:
    ranges = {name: (-4, data.draw(st.integers(-4, 9))) for name in ENV}
    env = {name: data.draw(st.integers(*ranges[name])) for name in ENV}
    low, high = affine.bounds(ranges)
    assert low <= affine.evaluate(env) <= high


TAGS = st.dictionaries(
    st.sampled_from(["a", "conv_inner", "in", "k-1"]),
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=False), st.text(max_size=5)),
    max_size=3,
).map(lambda d: Tags.from_pairs(d.items()))
LOCATIONS = st.sampled_from([Location(), Location.of("DRAM", 0), Location.of("A", 1, Affine.var("x"))])


@st.composite
def refinements(draw: st.DrawFn, name: str, direction: Direction) -> Refinement:
    rank = draw(st.integers(0, 3))
    return Refinement(
        name,
        direction,
        "" if direction is Direction.NONE else draw(st.sampled_from([name, "B"])),
        tuple(draw(affines()) for _ in range(rank)),
        draw(st.sampled_from(list(DTYPES.values()))),
        tuple(Dim(draw(st.integers(1, 9)), draw(st.integers(-3, 99))) for _ in range(rank)),
        draw(st.sampled_from(list(Agg))) if direction.writes or direction is Direction.NONE else Agg.ASSIGN,
        draw(LOCATIONS),
        draw(st.none() | st.integers(0, 1 << 40)) if direction is Direction.NONE else None,
        draw(st.none() | st.integers(0, rank - 1)) if rank else None,
        draw(TAGS),
        draw(st.none() | st.sampled_from(list(Role))) if direction is Direction.NONE else None,
        draw(st.integers(1, 3)) if direction is Direction.NONE else 1,
    )


STATEMENTS = st.sampled_from(
    [
        Load("x", "X"),
        Store("X", "x", deps=(0,)),
        LoadIndex("i", Affine.var("x") - 3),
        Constant("c", 1.5, DTYPES["fp32"]),
        Constant("c", -1e-30, DTYPES["fp64"]),
        Constant("c", float("-inf"), DTYPES["fp32"]),
        Constant("c", True, DTYPES["bool"]),
        Constant("c", -7, DTYPES["i8"], tags=Tags.of("k", v='q"\\é')),
        Intrinsic("z", "mod", ("x", "y")),
        Intrinsic("z", "floor", ("x",)),
        Intrinsic("z", "cast", ("x",), DTYPES["bf16"]),
        Special("gather", ("O",), ("D", "I")),
        Special("prng_step", ("S", "V"), ("S0",), tags=Tags.of(axis=3)),
    ]
)


def blocks(depth: int) -> st.SearchStrategy[Block]:
    indices = st.lists(
        st.builds(Index, INDEX_NAMES, st.integers(1, 9), st.none(), TAGS)
        | st.builds(Index, INDEX_NAMES, st.just(1), affines(), TAGS),
        max_size=3,
    )
    refs = st.lists(
        st.sampled_from(["X", "Y", "Out"]).flatmap(
            lambda name: st.sampled_from(list(Direction)).flatmap(lambda way: refinements(name, way))
        ),
        max_size=3,
    )
    inner = STATEMENTS if depth == 0 else st.one_of(STATEMENTS, blocks(depth - 1))
    names = st.sampled_from(["", "main", "a b // c", "kernel_0"])
    comments = st.lists(st.sampled_from(["", "note", "x >= 0", "// twice"]), max_size=2)
    return st.builds(
        Block, names, indices.map(tuple), st.lists(st.builds(Constraint, affines()), max_size=2).map(tuple),
        refs.map(tuple), st.lists(inner, max_size=3).map(tuple), LOCATIONS, comments.map(tuple), st.just(()), TAGS,
        st.booleans(), st.sampled_from(Stage), st.none() | st.integers(1, 4),
    )  # fmt: skip


@given(blocks(2))
def test_any_ir_prints_and_parses(block: Block) -> None:
    program = Program(block)
    text = print_program(program)
    again = parse_program(text)
    assert print_program(again) == text
    assert again == program
