"""Layers alike but for names are one kind; all else tells them apart, and tiles are those of a search of its own."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Any

import pytest

import stripe
from stripe.ir import Program, content_key, print_program
from stripe.passes.autotile.autotile import Autotile
from stripe.passes.base import PassContext
from stripe.rewrite.excerpt import unnamed
from stripe.tile import compile_tile

LAYERS = """\
function (I[H=12, W=12, C=8], K[KH=3, KW=3, C, C], L[KH, KW, C, C], B[C]) -> (O) {
  S[x, y, co : H, W, C] = +(I[x + i - 1, y + j - 1, ci] * K[i, j, ci, co]);
  T[x, y, co : H, W, C] = +(S[x + i - 1, y + j - 1, ci] * L[i, j, ci, co]);
  U[x, y, co : H, W, C] = +(T[x + i - 2, y + j - 1, ci] * L[i, j, ci, co]);
  O = U + B;
}
"""


def _program(text: str = LAYERS) -> Program:
    return compile_tile(text, "layers.tile", {})


def test_alike_layers_are_one_kind_and_others_are_not() -> None:
    first, second, shifted, bias = (content_key(unnamed(block)) for block in _program().main.blocks)
    assert first == second
    assert len({first, shifted, bias}) == 3


def test_tags_that_name_a_statement_make_no_kinds_unless_a_list_names_them() -> None:
    tagged = LAYERS
    for name in "ST":
        tagged = tagged.replace(
            f"\n  {name}[", f"\n  [[node_{name.lower()}]] [[pid({name.lower()})]] {name}["
        )
    first, second, *_ = _program(tagged).main.blocks
    assert first.tags != second.tags
    assert content_key(unnamed(first)) == content_key(unnamed(second))
    kept = frozenset({"node_s"})
    assert content_key(unnamed(first, kept)) != content_key(unnamed(second, kept))


def test_what_was_found_for_one_layer_is_what_each_would_find() -> None:
    tile = Autotile.model_validate({"reqs": ["contraction"], "max_total_size": 600})
    both = tile.run(_program(), PassContext())
    remarks: list[str] = []
    tile.run(_program(), PassContext(listener=lambda remark: remarks.append(str(remark))))
    applied = [text.partition("kernel_")[2][3:] for text in remarks if text.startswith("applied")]
    assert len(applied) == 3
    assert applied[0] == applied[1]
    reordered = "\n".join(line for line in LAYERS.splitlines() if not line.strip().startswith("S["))
    alone = tile.run(_program(reordered.replace("= +(S[", "= +(I[").replace(", K[KH=3, KW=3, C, C], L[KH, KW", ", L[KH=3, KW=3")), PassContext())  # fmt: skip  # noqa: E501
    blocks = list(both.main.blocks)
    assert [index.range for index in blocks[1].indices] == [
        index.range for index in next(alone.main.blocks).indices
    ]
    assert print_program(both) == print_program(tile.run(_program(), PassContext()))


CHAIN = """\
function (A[M=64, K=64], B[K, K]) -> (O) {
%s}
"""


def _work_on(layers: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The numbers of searches, of compiles for a price and of descriptions, for products that follow one another."""
    found = {"searches": 0, "prices": 0, "descriptions": 0}

    def count(place: str, name: str, what: str) -> None:
        module, _, attribute = place.rpartition(".")
        owner = getattr(import_module(module), attribute)
        original = getattr(owner, name)

        def counted(*args: Any, **options: Any) -> Any:
            found[what] += 1
            return original(*args, **options)

        monkeypatch.setattr(owner, name, counted)

    names = ["A", *(f"T{number}" for number in range(1, layers)), "O"]
    lines = (f"  {made}[m, n : M, K] = +({used}[m, k] * B[k, n]);\n" for used, made in pairwise(names))
    program = _program(CHAIN % "".join(lines))
    count("stripe.passes.autotile.search.TileSearch", "run", "searches")
    count("stripe.pipeline.manager.PassManager", "run", "prices")
    count("stripe.passes.autotile.tiling.Tiling", "describe", "descriptions")
    stripe.run_passes(program, "dsp_conv", NUM_SRAM=1)
    monkeypatch.undo()
    return found


def test_equal_layers_cost_no_work_of_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    three = _work_on(3, monkeypatch)
    assert three["descriptions"] == 1
    assert three == _work_on(6, monkeypatch)
    assert three["searches"] > 0 < three["prices"]
