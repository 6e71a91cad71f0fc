"""Whatever tensors, indices, scalars, blocks and comments are called, the C is valid and computes the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stripe.emit.c import emit_module
from stripe.emit.c.names import sanitize, sanitize_comment
from stripe.emit.loops.scope import Names
from stripe.exec.compile import CompileOptions, compile_program
from stripe.ir import (
    DTYPES,
    Affine,
    Agg,
    Block,
    Constant,
    Dim,
    Direction,
    Index,
    Intrinsic,
    Load,
    Program,
    Refinement,
    Role,
    Store,
    Tags,
)
from tests.support.compilers import BUILD_NAMES, BUILDS

F32 = DTYPES["fp32"]

HOSTILE = [
    "*/ int x; /*", 'a\\\n b"', "??/", "int", "st_max", "stripe_evil", "exp", "expf", "i", "I", "size_t", "_x", "__y",
    "9z", 'n"q', "A.b", "A_b", "A'b", "é漢", "", "NULL", "INT32_MAX", "uint8_t", "ws", "threads", "memset", "main",
    "kernel_evil", "linux", "_Bool", "x" * 5000, "#define A B", "%s", "\x00", "A[0]; abort(); A",
]  # fmt: skip


def tensor(name: str, direction: Direction, source: str, access: Affine, size: int) -> Refinement:
    return Refinement(name, direction, source, (access,), F32, (Dim(size, 1),))


def hostile_program() -> Program:
    allocs: list[Refinement] = []
    views: list[Refinement] = []
    kernels: list[Block] = []
    for name in HOSTILE:
        index = Affine.var(name)
        for direction, end in ((Direction.IN, ""), (Direction.OUT, "!")):
            alloc = tensor(name + end, Direction.NONE, "", Affine(), 4)
            allocs.append(replace(alloc, role=Role.USER))
            views.append(tensor(name + end, direction, name + end, Affine(), 4))
        refs = (
            tensor(f"in{name}", Direction.IN, name, index, 1),
            tensor(f"in{name}$", Direction.OUT, f"{name}!", index, 1),
        )
        body = (
            Load(name, f"in{name}"),
            Intrinsic(f"{name}2", "sqrt", (name,)),
            Store(f"in{name}$", f"{name}2"),
        )
        comments = (name, name + "\\", "// " + name, "/* " + name)
        kernels.append(Block(name, (Index(name, 4),), (), refs, body, comments=comments))
    main = Block(HOSTILE[0], (), (), tuple(views), tuple(kernels), comments=tuple(HOSTILE), is_main=True)
    return Program(Block(HOSTILE[1], (), (), tuple(allocs), (main,), tags=Tags.of("program")))


@pytest.mark.parametrize("options", BUILDS, ids=BUILD_NAMES)
def test_hostile_names(options: CompileOptions) -> None:
    options = replace(options, extra_flags=(*options.extra_flags, "-Wshadow", "-Wtrigraphs", "-Wcomment"))
    data = {name: np.arange(number, number + 4, dtype=np.float32) for number, name in enumerate(HOSTILE)}
    results = compile_program(hostile_program(), options).run(data)
    for name in HOSTILE:
        assert np.array_equal(results[f"{name}!"], np.sqrt(data[name])), name


def test_hostile_text_stays_in_comments() -> None:
    text = emit_module(hostile_program()).source
    for line in text.splitlines():
        code, _, comment = line.partition("//")
        assert line.isascii()
        assert not line.endswith("\\")
        assert "*/" not in line
        assert "??" not in line
        assert "abort();" not in code
        assert comment.isprintable()


@pytest.mark.parametrize(
    ("name", "expected"),
    [("A", "A"), ("x.o", "x_o"), ("A'", "A_"), ("_x", "v_x"), ("3d", "v_3d"), ("for", "for_"), ("logf", "logf_"),
     ("st_min", "v_st_min"), ("my_t", "v_my_t_"), ("INFINITY", "INFINITY_"), ("UINT8_MAX", "v_UINT8_MAX")],
)  # fmt: skip
def test_sanitize(name: str, expected: str) -> None:
    assert sanitize(name) == expected


def test_names_do_not_collide() -> None:
    names = Names(sanitize)
    assert [names.take("A.b"), names.take("A_b"), names.take("A'b")] == ["A_b", "A_b_2", "A_b_3"]
    inner = names.child()
    assert inner.take("x") == "x"
    assert names.take("x") == "x", "what an inner scope takes stays free outside"


def test_comments_are_one_plain_line() -> None:
    assert sanitize_comment("a\nb\\\n??/ */ é") == "a.b|.? ?/ * / ."


@pytest.mark.parametrize("depth", [60, 190])
def test_deep_nests(depth: int) -> None:
    """Compilers limit how deep braces nest (clang: 256), so that deep nests become several functions."""
    block = Block(
        "leaf",
        (Index("i", 2),),
        (),
        (replace(tensor("O", Direction.OUT, "O", Affine.var("i"), 1), agg=Agg.ADD),),
        (Constant("c", 1.0, F32), Store("O", "c")),
    )
    whole = tensor("O", Direction.OUT, "O", Affine(), 2)
    for level in range(depth):
        index = Index(f"i{level}", 2 if level < 8 else 1)
        block = Block(f"level_{level}", (index,), (), (whole,), (block,))
    main = Block("main", (), (), (whole,), (block,), is_main=True)
    alloc = replace(tensor("O", Direction.NONE, "", Affine(), 2), role=Role.USER)
    built = compile_program(Program(Block("deep", (), (), (alloc,), (main,))), CompileOptions())
    assert built.run({})["O"].tolist() == [256.0, 256.0]
