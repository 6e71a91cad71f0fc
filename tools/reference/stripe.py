"""Regions of docs/stripe.md: intrinsics, specials, aggregations, words of fields, tags of lowering."""

from __future__ import annotations

import re
from collections.abc import Callable

from stripe.ir import Agg, Block, walk
from stripe.ir.dtypes import FP32, I8, DType
from stripe.ir.intrinsics import INTRINSICS, SPECIALS
from stripe.ir.tags import BLOCK_WORDS, INDEX_WORDS, REFINEMENT_WORDS
from stripe.passes.registry import BUILTIN
from stripe.tile import compile_tile
from tools.reference.markdown import code, table

_OPERANDS = {
    "any": "any",
    "number": "integers and floats",
    "integer": "integers and bool",
    "float": "floats",
}
_RESULTS = {
    "same": "that of the operands",
    "bool": "bool",
    "cast": "the named dtype",
    "cond": "that of the last two",
}

WORDS: dict[str, tuple[str, str, str]] = {
    "allocation user": (
        "`role`",
        "an input or output: the caller owns its contents, before and after a run",
        "lowering",
    ),
    "allocation const": (
        "`role`",
        "its contents are part of the program, in the `const` lines at the end",
        "constant_fold",
    ),
    "allocation tmp": (
        "`role`",
        "a temporary of the program: it lives between the statements that use it",
        "lowering",
    ),
    "allocation placed": (
        "`offset`",
        "it has an address, which may be 0; an address other than 0 shows by itself",
        "memory_placement, schedule",
    ),
    "allocation buffers": (
        "`copies`",
        "number of instances that lie behind each other, for tiles in flight and for units that share a block",
        "memory_placement, schedule",
    ),
    "allocation pitch": (
        "`pitch`",
        "bytes from one instance to the next, where that is more than an instance takes",
        "memory_placement, schedule",
    ),
    "block main": ("`is_main`", "the block of the program's body", "lowering"),
    "block located": ("`stage`", "its statements and buffers have locations", "—"),
    "block scheduled": (
        "`stage`",
        "dependences and places of its statements are those of a schedule",
        "schedule",
    ),
    "block placed": ("`stage`", "besides, all its buffers have addresses", "memory_placement"),
    "index spatial": ("`is_spatial`", "its points run at the same time, on units of their own", "map"),
    "block pipeline_depth": (
        "`pipeline_depth`",
        "number of tiles in flight that the buffers inside have copies for",
        "schedule",
    ),
}
"""Field, meaning and setters of each word that spells a field."""

LOWERED: tuple[tuple[str, str], ...] = (
    ("program", "the entry, which holds all tensors"),
    ("kernel", "each statement of Tile"),
    ("contraction", "a contraction"),
    ("agg_op_NAME", "its aggregation: `add`, `mul`, `min`, `max`, `assign`"),
    ("comb_op_NAME", "its combination: `add`, `mul`, `eq`, `cond`"),
    ("agg_op_NAME_no_comb_op", "a contraction of one operand"),
    ("widening", "a sum of products of integers, each of a quarter of the bits of the sum or fewer"),
    ("init", "fills the elements that a contraction leaves untouched"),
    ("eltwise", "an element-wise operation"),
    ("eltwise_NAME", "its operation, an intrinsic, or `index`"),
    ("special", "an operation on whole tensors"),
    ("gather", "the special of that name"),
    ("scatter", "the special of that name"),
    ("prng_step", "the special of that name"),
    ("reshape", "a change of sizes"),
    ("shape", "the sizes of a tensor"),
)
"""Tags of blocks; NAME stands for the name of an operation."""

_SAMPLE = """
function (X[N=4, M=6]: fp32, Y[N, M]: fp32, V[N]: i32, U[N]: i8, S[P=3, Q=2048]: u32)
  -> (A, B, C, D, E, F, G, H, J, K, L, O, R, T, W) {
  A[n : N] = +(X[n, m]);
  B[n, k : N, N] = *(X[n, m] * Y[k, m]);
  C[n, k : N, N] = >(X[n, m] + Y[k, m]);
  D[n : N] = <(X[n, m] == Y[n, m] ? X[n, m]);
  E[n, m : N, M] = +(X[n, m] == Y[n, m]);
  F[2 * n : 8] = =(X[n, 0]);
  G = X + Y;
  H = index(X, 0);
  J = gather(X, V);
  K[n : N]: i32 = +(U[n] * U[n]);
  L = scatter(X, V, Y);
  Z = prng_step(S, N);
  O = prng_value(Z);
  R = reshape(X, M, N);
  T = shape(X);
  W = relu(X);
}
"""


def lowered_tags() -> set[str]:
    """The tags that lowering gives to the blocks of a program with all kinds of statements."""
    entry = compile_tile(_SAMPLE, "sample").entry
    return {word for _, block in walk(entry) if isinstance(block, Block) for word in block.tags}


def _intrinsics() -> str:
    groups: dict[tuple[int, str, str], list[str]] = {}
    for spec in INTRINSICS.values():
        groups.setdefault((spec.arity, _OPERANDS[spec.operands], _RESULTS[spec.result]), []).append(spec.name)
    rows = [
        (code(names), str(arity), operands, result) for (arity, operands, result), names in groups.items()
    ]
    return table(("intrinsics", "operands", "of dtype", "dtype of the result"), rows)


def _specials() -> str:
    rows = [(f"`{spec.name}`", code(spec.outputs), code(spec.inputs)) for spec in SPECIALS.values()]
    return table(("special", "outputs", "inputs"), rows)


def _aggregations() -> str:
    rows = [(f"`{agg.value}`", _identity(agg, FP32), _identity(agg, I8)) for agg in Agg]
    return table(("aggregation", "identity in fp32", "identity in i8"), rows)


def _identity(agg: Agg, dtype: DType) -> str:
    return "none" if agg is Agg.ASSIGN else str(agg.identity(dtype))


def _words() -> str:
    words = {
        f"{kind} {word}": (f"`#{word}`", kind)
        for kind, words in (("allocation", REFINEMENT_WORDS), ("block", BLOCK_WORDS), ("index", INDEX_WORDS))
        for word in words
    }
    if WORDS.keys() != words.keys():
        raise ValueError(
            f"words without a row, or rows without a word: {sorted(WORDS.keys() ^ words.keys())}"
        )
    rows = [(*words[key], *WORDS[key][:2], _setters(WORDS[key][2])) for key in words]
    return table(("word", "on", "field", "meaning", "set by"), rows)


def _setters(names: str) -> str:
    """Passes as links, and other words as they are."""
    return ", ".join(
        f"[`{name}`](passes.md#{name})" if name in BUILTIN else name for name in names.split(", ")
    )


def _lowered() -> str:
    found = lowered_tags()
    patterns = [re.escape(name).replace("NAME", "[a-z0-9]+(_[a-z]+)?") for name, _ in LOWERED]
    strange = [word for word in found if not any(re.fullmatch(pattern, word) for pattern in patterns)]
    missing = [
        name
        for (name, _), p in zip(LOWERED, patterns, strict=True)
        if not any(re.fullmatch(p, w) for w in found)
    ]
    if strange or missing:
        raise ValueError(f"tags of lowering without a row: {strange}; rows without a tag: {missing}")
    return table(("tag", "of blocks for"), ((f"`#{name}`", meaning) for name, meaning in LOWERED))


REGIONS: dict[str, Callable[[], str]] = {
    "intrinsics": _intrinsics,
    "specials": _specials,
    "aggregations": _aggregations,
    "words": _words,
    "lowering": _lowered,
}
"""The regions of the page."""
