"""The Stripe that Tile becomes: blocks, index sets, tags, names."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stripe.ir import Block, Program, parse_program, print_block, print_program, verify_structural
from stripe.tile import compile_tile
from stripe.tile.typed import Op, rename_tensors
from tests.support.programs import load, source

CONV = source("tile/lowering/conv")


def program(inputs: str, statements: str, outputs: str = "O") -> Program:
    made = compile_tile(f"function ({inputs}) -> ({outputs}) {{ {statements} }}", "t.tile")
    assert verify_structural(made) == []
    assert parse_program(print_program(made)) == made
    return made


def kernels(inputs: str, statements: str, outputs: str = "O") -> list[Block]:
    return list(program(inputs, statements, outputs).main.blocks)


def body(block: Block) -> str:
    """The block without its first line."""
    return "\n".join(line.strip() for line in print_block(block).splitlines()[1:])


def test_the_slides_convolution() -> None:
    text = """function (I[X=1024, Y=1024, CI=32]: i8, K1[KX=3, KY=3, CI, CO=64]: i8) -> (O1) {
      O1[x, y, co : X, Y, CO] = +(I[-1 + kx + x, -1 + ky + y, ci] * K1[kx, ky, ci, co]);
    }"""
    assert print_program(compile_tile(text, "dir/conv.tile")) == CONV


def test_programs_are_named_after_their_file() -> None:
    text = "function (A[N=3]) -> (O) { O = A; }"
    assert compile_tile(text, "a/b/layer.tile").name == "layer"
    assert compile_tile(text).name == "program"
    assert compile_tile(text, "<stdin>").name == "program"


@pytest.mark.parametrize(
    ("inputs", "statement", "indices", "constraints", "accesses"),
    [
        # a stride bounds the taps
        ("A[N=9], K[J=3]", "O[i : 4] = +(A[2*i + j] * K[j]);", "i:4 j:3", [], ["2*i + j", "j", "i"]),
        # indices shift to 0
        ("A[N=9]", "O[i - 2 : 5] = +(A[i + j]), j < 1;", "i:5", [], ["2 + i", "i"]),
        ("A[N=9]", "O[-i : 5] = +(A[i + 6]);", "i:5", [], ["2 + i", "4 - i"]),
        # size-1 dimensions carry no index
        ("A[N=1, M=5]", "O[i, j : N, M] = +(A[i, j]);", "j:5", [], ["0", "j", "0", "j"]),
        # exact divisibility, not a floor
        ("A[N=4]", "O[i : 9] = +(A[i/2]);", "i:4", [], ["i", "2*i"]),
        ("A[N=4]", "O[i : 9] = +(A[(i - 1)/2]);", "i:4", [], ["i", "1 + 2*i"]),
        ("A[N=9]", "O[i : 3] = +(A[3*i + 1]);", "i:3", [], ["1 + 3*i", "i"]),
        # an equality removes an index
        ("A[N=4, M=6]", "O[i : N] = +(A[i, j]), i - j < 1;", "i:4", [], ["i", "i", "i"]),
        ("A[N=4, M=6]", "O[] = +(A[i, j]), 2*i - j < 1;", "i:3", [], ["i", "2*i"]),
        # only what the box does not say remains
        ("A[N=6]", "O[i : 6] = +(A[k]), i - k < 6, i < 9;", "i:6 k:6", ["i - k"], ["k", "i"]),
        ("A[N=6]", "O[i : 6] = +(A[k]), i - k < 3, k < 2;", "i:4 k:2", ["i - k", "2 - i + k"], ["k", "i"]),
        # a convolution over one element is one element
        ("A[N=1], K[J=3]", "O[i : 1] = +(A[i + j - 1] * K[j]);", "", [], ["0", "1", "0"]),
    ],
)  # fmt: skip
def test_index_sets(
    inputs: str, statement: str, indices: str, constraints: list[str], accesses: list[str]
) -> None:
    block = next(b for b in kernels(inputs, statement) if "contraction" in b.tags)
    assert " ".join(f"{i.name}:{i.range}" for i in block.indices) == indices
    assert [str(c.affine) for c in block.constraints] == constraints
    assert [str(affine) for ref in block.refinements for affine in ref.access] == accesses


def test_a_transposed_convolution_has_small_boxes() -> None:
    (block,) = kernels("A[N=8], K[J=3]", "O[x : 16] = +(A[(x + 1 - j)/2] * K[j]);")
    assert block.points <= 3 * 9


@pytest.mark.parametrize(
    ("statement", "fills"),
    [
        ("O[i : 6] = +(A[i]);", []),
        ("O[i : 6] = +(A[i + j]), j < 3;", []),
        ("O[i + 2 : 6] = +(A[i]), i < 4;", [("i1:2", "i1")]),
        ("O[i : 9] = +(A[i]);", [("i:3", "6 + i")]),
        ("O[2*i : 12] = +(A[i]);", [("i1:6", "1 + 2*i1")]),
        ("O[0 : 2] = +(A[i]);", [("", "1")]),
        ("O[i, i : 6, 6] = =(A[i]);", None),
    ],
)
def test_untouched_elements_are_filled_and_no_others(
    statement: str, fills: list[tuple[str, str]] | None
) -> None:
    blocks = kernels("A[N=6]", statement)
    found = [
        (
            " ".join(f"{i.name}:{i.range}" for i in b.indices),
            ", ".join(str(a) for a in b.refinements[-1].access),
        )
        for b in blocks
        if "init" in b.tags
    ]
    if fills is None:  # two triangles
        assert len(found) == 2
    else:
        assert found == fills
    assert "contraction" in blocks[-1].tags


def test_a_fill_from_a_default() -> None:
    fill, _ = kernels("A[N=6], D[M=9]: i8", "O[i : 9] = >(A[i]) default D;")
    assert body(fill).splitlines()[1:3] == ["in<[0]> D[6 + i] i8(1:1)", "out<[0]> O[6 + i]:assign fp32(1:1)"]
    assert [type(s).__name__ for s in fill.statements] == ["Load", "Intrinsic", "Store"]
    assert fill.name == "kernel_0_init"


@pytest.mark.parametrize(
    ("statement", "tags"),
    [
        ("O[i : N] = +(A[i] * B[i]);", "agg_op_add comb_op_mul contraction kernel"),
        ("O[i : N] = *(A[i] + B[i]);", "agg_op_mul comb_op_add contraction kernel"),
        ("O[i : N] = >(A[i]);", "agg_op_max agg_op_max_no_comb_op contraction kernel"),
        ("O[i : N] = <(A[i] == B[i]);", "agg_op_min comb_op_eq contraction kernel"),
        ("O[i : N] = =(A[i] == B[i] ? A[i]);", "agg_op_assign comb_op_cond contraction kernel"),
        ("O = A + B;", "eltwise eltwise_add kernel"),
        ("O = A < B;", "eltwise eltwise_cmp_lt kernel"),
        ("O = relu(A);", "eltwise eltwise_relu kernel"),
        ("O = zelu(A);", "eltwise eltwise_zelu kernel"),
        ("O = as_int(A, 8);", "eltwise eltwise_cast kernel"),
        ("O = index(A, 0);", "eltwise eltwise_index kernel"),
        ("O = reshape(A, 2, 3);", "kernel reshape"),
        ("O = shape(A);", "kernel shape"),
        ("O = gather(A, as_int(B, 32));", "gather kernel special"),
        ("[[conv]] O = A + B;", "conv eltwise eltwise_add kernel"),
    ],
)
def test_tags(statement: str, tags: str) -> None:
    assert " ".join(kernels("A[N=6], B[N]", statement)[-1].tags) == tags


def test_attributes() -> None:
    first, second = kernels("A[N=6]", "[[pid(add1)]] [[x(a, B)]] [[y]] O = exp(A + 1);")
    assert (first.name, second.name) == ("kernel_0", "add1")
    assert second.tags.get("pid") == "add1" and "add1" not in second.tags
    assert "pid" not in first.tags
    for block in (first, second):
        assert block.tags.get("x") == "a,B" and "y" in block.tags


def test_attributes_of_library_functions() -> None:
    blocks = kernels("A[N=6, M=4]", "[[pid(soft)]] [[act]] O = builtin_softmax(A, N, M);")
    assert [b.name for b in blocks] == ["kernel_0", "kernel_1", "kernel_2", "kernel_3", "soft"]
    assert all("act" in b.tags for b in blocks)


def test_comments_show_the_line() -> None:
    blocks = kernels("A[N=6], B[N]", "C[i:N]=+(A[i]*B[j]); O = (C + 0.5) * -B;")
    assert [b.comments for b in blocks] == [
        ("C[i : N] = +(A[i] * B[j])",), ("O_0 = C + 0.5",), ("O_1 = -B",), ("O = O_0 * O_1",),
    ]  # fmt: skip


def test_the_ternary() -> None:
    (block,) = kernels("A[N=6]: i8, B[N], C[N]: i32", "O[] = +(A[i] == B[i] ? C[i]);")
    assert body(block).splitlines()[1:] == [
        "in<[0]> A[i] i8(1:1)",
        "in<[0]> B[i] fp32(1:1)",
        "in<[0]> C[i] i32(1:1)",
        "out<[0]> O[]:add fp32()",
        ") {",
        "0: $A = load(A)",
        "1: $A_0 = cast($A, fp32)",
        "2: $B = load(B)",
        "3: $eq = cmp_eq($A_0, $B)",
        "4: $C = load(C)",
        "5: $C_0 = cast($C, fp32)",
        "6: $c = (fp32)0.0",
        "7: $O = cond($eq, $C_0, $c)",
        "8: O = store($O)",
        "}",
    ]


def test_one_tensor_twice() -> None:
    (square,) = kernels("A[N=6]", "O = A * A;")
    assert [ref.name for ref in square.refinements] == ["A", "O"]
    (product,) = kernels("A[N=6, M=6]", "O[i, j : N, M] = +(A[i, k] * A[k, j]);")
    assert [(ref.name, ref.source) for ref in product.refinements] == [("A", "A"), ("A_0", "A"), ("O", "O")]


def test_reshapes_stay_affine_where_they_can() -> None:
    (merge,) = kernels("A[N=6, M=4]", "O = reshape(A, 24);")
    assert [[str(a) for a in ref.access] for ref in merge.refinements] == [["i1", "i2"], ["4*i1 + i2"]]
    (mixed,) = kernels("A[N=6, M=4]", "O = reshape(A, 4, 6);")
    assert any("floor" in str(a) for ref in mixed.refinements for a in ref.access)


def test_allocations() -> None:
    made = load("tile/lowering/allocations")
    assert [(ref.name, " ".join(ref.words)) for ref in made.entry.refinements] == [
        ("A", "user"), ("O", "user"), ("P", "user"), ("B", "tmp"),
    ]  # fmt: skip
    assert [(ref.name, ref.dir.value) for ref in made.main.refinements] == [
        ("A", "in"), ("O", "out"), ("P", "out"), ("B", "inout"),
    ]  # fmt: skip
    assert [ref.name for ref in made.inputs] == ["A"]
    assert [ref.name for ref in made.outputs] == ["O", "P"]


def test_huge_sizes_are_exact() -> None:
    (block,) = kernels("A[N=4611686018427387904]: i8", "O[i : 3] = +(A[i + 4611686018427387901]);")
    assert str(block.refinements[0].access[0]) == "4611686018427387901 + i"


def test_renaming_outputs_that_are_read_takes_one_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each output that is also read costs nothing but its copy, however many there are."""
    calls: list[object] = []

    def counting(op: Op, renames: Mapping[str, str]) -> Op:
        calls.append(op)
        return rename_tensors(op, renames)

    monkeypatch.setattr("stripe.tile.lower_program.rename_tensors", counting)
    names = [f"T{number}" for number in range(20)]
    chain = "".join(f"{new} = {old} + 1.0;" for old, new in zip(["A", *names], names, strict=False))
    compile_tile(f"function (A[N=4]) -> ({', '.join(names)}) {{ {chain} }}")
    assert len(calls) == 20
