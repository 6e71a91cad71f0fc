"""The content of blocks: equal layers have one content, whatever their names."""

from __future__ import annotations

from stripe.ir import Block, content_key
from stripe.tile import compile_tile

LAYERS = """\
function (I[H=12, W=12, C=8], K[KH=3, KW=3, C, C], L[KH, KW, C, C], B[C]) -> (O) {
  S[x, y, co : H, W, C] = +(I[x + i - 1, y + j - 1, ci] * K[i, j, ci, co]);
  T[x, y, co : H, W, C] = +(S[x + i - 1, y + j - 1, ci] * L[i, j, ci, co]);
  U[x, y, co : H, W, C] = +(T[x + i - 2, y + j - 1, ci] * L[i, j, ci, co]);
  O = U + B;
}
"""


def _blocks(text: str) -> list[Block]:
    return list(compile_tile(text, "layers.tile", {}).main.blocks)


def test_names_do_not_count_and_accesses_do() -> None:
    first, second, shifted, bias = map(content_key, _blocks(LAYERS))
    assert first == second
    assert len({first, shifted, bias}) == 3


def test_views_of_one_source_are_told_from_views_of_two() -> None:
    (product,) = _blocks("function (A[N=4], B[N]) -> (C) { C = A * B; }")
    (square,) = _blocks("function (A[N=4]) -> (C) { C = A * A; }")
    assert content_key(product) != content_key(square)
