"""A program with every kind of node, in every form that the text can hold."""

from __future__ import annotations

EVERYTHING = """\
0: #program block [] ( // every kind
    #user none new@0x00000000<DRAM[0]> I[0] i32(8:1)
    #user none new@0x00000000<DRAM[0]> D[0] fp32(8:1)
    #const none new@0x00000000<DRAM[0]> T[0] fp32(2:1)
    #user none new@0x00000040<A[1]/B[2, 3]> O[0] fp32(8:1)
    #user none new@0x00000000<DRAM[0]> G[0] fp32(8:1)
) {
  0: #main block [] ( // main
      in<DRAM[0]> I[0] i32(8:1)
      in<DRAM[0]> D[0] fp32(8:1)
      in<DRAM[0]> T[0] fp32(2:1)
      out<A[1]/B[2, 3]> O[0]:assign fp32(8:1)
      out<DRAM[0]> G[0]:assign fp32(8:1)
  ) {
    0: #kernel #scale=0.5 #pid="x \\"y\\"" block [i:8, #hot j:2] ( // kernel_0
        // a comment
        1 - j >= 0
        in<DRAM[0]> T[floor(i/4)] fp32(1:1)
        out<A[1]/B[2, 3]> O[4*(i mod 2) + floor(i/2)]:max fp32({1:1})
    ) {
      0: block [k = 2*i + j] ( // inner
          in<DRAM[0]> T[0] fp32(1:1)
          out<A[1]/B[2, 3]> O[0]:max fp32({1:1})
      ) {
        0: $t = load(T)
        1: $i = load_index(k)
        2: $f = cast($i, fp32)
        3: $n = (fp32)-inf
        4[0, 3]: #fast $m = max($t, $n)
        5: O = store($m)
      }
    }
    1[0]: G = gather(D, I)
  }
}
const T fp32(2) = "0000803f00000040"
"""
