"""Blocks that several tests use."""

from __future__ import annotations

from stripe.ir import Block, parse_program

CONV = """
0: #program block [] ( // conv
    #user none new@0x00000000 I[0, 0, 0] i8(16:512, 16:32, 32:1)
    #user none new@0x00000000 K[0, 0, 0, 0] i8(3:768, 3:256, 32:8, 8:1)
    #user none new@0x00000000 O[0, 0, 0] i8(16:128, 16:8, 8:1)
    #tmp none new@0x00000000 T[0, 0, 0] i8(16:128, 16:8, 8:1)
) {
  0: #main block [] ( // main
      in I[0, 0, 0] i8(16:512, 16:32, 32:1)
      in K[0, 0, 0, 0] i8(3:768, 3:256, 32:8, 8:1)
      out O[0, 0, 0]:assign i8(16:128, 16:8, 8:1)
      inout T[0, 0, 0]:assign i8(16:128, 16:8, 8:1)
  ) {
    0: #kernel block [ci:32, co:8, kx:3, ky:3, x:16, y:16] ( // conv
        -1 + kx + x >= 0
        16 - kx - x >= 0
        -1 + ky + y >= 0
        16 - ky - y >= 0
        in I[-1 + kx + x, -1 + ky + y, ci] i8(1:512, 1:32, 1:1)
        in K[kx, ky, ci, co] i8(1:768, 1:256, 1:8, 1:1)
        out T[x, y, co]:add i8(1:128, 1:8, 1:1)
    ) {
      0: $I = load(I)
      1: $K = load(K)
      2: $P = mul($I, $K)
      3: T = store($P)
    }
    1: #kernel block [c:8, x:16, y:16] ( // relu
        in T[x, y, c] i8(1:128, 1:8, 1:1)
        out O[x, y, c]:assign i8(1:128, 1:8, 1:1)
    ) {
      0: $T = load(T)
      1: $O = relu($T)
      2: O = store($O)
    }
  }
}
"""


def conv() -> Block:
    """The main block of a 3x3 convolution with a relu after it."""
    return parse_program(CONV, "conv.stripe").main
