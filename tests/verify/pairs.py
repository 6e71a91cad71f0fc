"""Programs before and after a rewrite, written by hand: each pair must prove equal."""

from __future__ import annotations

from dataclasses import dataclass

from stripe.ir import Program, parse_program


@dataclass(frozen=True)
class Pair:
    """A correct rewrite."""

    name: str
    before: Program
    after: Program


def program(tensors: str, kernels: str, name: str = "test") -> Program:
    """A program from lines `dir NAME dims` (dir `in`, `out`, or `tmp` for a buffer between kernels; dtype fp32)
    and kernels."""
    allocations: list[str] = []
    views: list[str] = []
    for line in tensors.strip().splitlines():
        direction, buffer, dims = line.split(maxsplit=2)
        dtype, _, sizes = dims.partition("(") if "(" in dims else ("fp32", "", dims)
        strides = _dims(tuple(int(size) for size in sizes.rstrip(")").split()))
        zeros = ", ".join("0" for _ in strides.split(","))
        tag = "#tmp" if direction == "tmp" else "#user"
        allocations.append(f"    {tag} none new@0x00000000 {buffer}[{zeros}] {dtype}({strides})")
        agg = "" if direction == "in" else ":assign"
        word = "inout" if direction == "tmp" else direction
        views.append(f"      {word} {buffer}[{zeros}]{agg} {dtype}({strides})")
    text = "\n".join([
        f"0: #program block [] ( // {name}", *allocations, ") {",
        "  0: #main block [] ( // main", *views, "  ) {", kernels, "  }", "}",
    ])  # fmt: skip
    return parse_program(text, f"{name}.stripe")


def _dims(sizes: tuple[int, ...]) -> str:
    stride = 1
    found: list[str] = []
    for size in reversed(sizes):
        found.append(f"{size}:{stride}")
        stride *= size
    return ", ".join(reversed(found))


MATMUL_TENSORS = "in A 8 12\nin B 12 10\nout C 8 10"
MATMUL = """
    0: #kernel block [i:8, j:10, k:12] ( // matmul
        in A[i, k] fp32(1:12, 1:1)
        in B[k, j] fp32(1:10, 1:1)
        out C[i, j]:add fp32(1:10, 1:1)
    ) {
      0: $A = load(A)
      1: $B = load(B)
      2: $P = mul($A, $B)
      3: C = store($P)
    }
"""
MATMUL_TILED = """
    0: #kernel block [i:2, j:3, k:3] ( // matmul
        in A[4*i, 4*k] fp32(4:12, 4:1)
        in B[4*k, 4*j] fp32(4:10, 4:1)
        out C[4*i, 4*j]:add fp32(4:10, 4:1)
    ) {
      0: block [i:4, j:4, k:4, jo=j] ( // inner
          9 - j - 4*jo >= 0
          in A[i, k] fp32(1:12, 1:1)
          in B[k, j] fp32(1:10, 1:1)
          out C[i, j]:add fp32(1:10, 1:1)
      ) {
        0: $A = load(A)
        1: $B = load(B)
        2: $P = mul($A, $B)
        3: C = store($P)
      }
    }
"""
MATMUL_INTERLEAVED = """
    0: #kernel block [i:4, j:5, k:4] ( // matmul
        in A[i, k] fp32(5:12, 9:1)
        in B[k, j] fp32(9:10, 6:1)
        out C[i, j]:add fp32(5:10, 6:1)
    ) {
      0: block [i:2, j:2, k:3] ( // inner
          in A[4*i, 4*k] fp32(1:12, 1:1)
          in B[4*k, 5*j] fp32(1:10, 1:1)
          out C[4*i, 5*j]:add fp32(1:10, 1:1)
      ) {
        0: $A = load(A)
        1: $B = load(B)
        2: $P = mul($A, $B)
        3: C = store($P)
      }
    }
"""
MATMUL_ACCUMULATED = """
    0: #kernel block [i:8, j:10, k:3] ( // matmul
        in A[i, 4*k] fp32(1:12, 4:1)
        in B[4*k, j] fp32(4:10, 1:1)
        out C[i, j]:add fp32(1:10, 1:1)
        none new@0x00000000 L[0, 0] fp32(1:1, 1:1)
    ) {
      0: block [k:4] ( // partial
          in A[0, k] fp32(1:12, 1:1)
          in B[k, 0] fp32(1:10, 1:1)
          out L[0, 0]:add fp32(1:1, 1:1)
      ) {
        0: $A = load(A)
        1: $B = load(B)
        2: $P = mul($A, $B)
        3: L = store($P)
      }
      1: block [] ( // flush
          in L[0, 0] fp32(1:1, 1:1)
          out C[0, 0]:add fp32(1:10, 1:1)
      ) {
        0: $L = load(L)
        1: C = store($L)
      }
    }
"""
MATMUL_CACHED = """
    0: #kernel block [i:4, j:5] ( // matmul
        in A[2*i, 0] fp32(2:12, 12:1)
        in B[0, 2*j] fp32(12:10, 2:1)
        out C[2*i, 2*j]:add fp32(2:10, 2:1)
        none new@0x00000000 AL[0, 0] fp32(2:12, 12:1)
        none new@0x00000000 BL[0, 0] fp32(12:2, 2:1)
        none new@0x00000000 CL[0, 0] fp32(2:2, 2:1)
    ) {
      0: block [r:2, k:12] ( // load_A
          in A[r, k] fp32(1:12, 1:1)
          out AL[r, k]:assign fp32(1:12, 1:1)
      ) {
        0: $A = load(A)
        1: AL = store($A)
      }
      1: block [c:2, k:12] ( // load_B
          in B[k, c] fp32(1:10, 1:1)
          out BL[k, c]:assign fp32(1:2, 1:1)
      ) {
        0: $B = load(B)
        1: BL = store($B)
      }
      2: block [c:2, k:12, r:2] ( // compute
          in AL[r, k] fp32(1:12, 1:1)
          in BL[k, c] fp32(1:2, 1:1)
          out CL[r, c]:add fp32(1:2, 1:1)
      ) {
        0: $A = load(AL)
        1: $B = load(BL)
        2: $P = mul($A, $B)
        3: CL = store($P)
      }
      3: block [c:2, r:2] ( // write_back
          in CL[r, c] fp32(1:2, 1:1)
          out C[r, c]:assign fp32(1:10, 1:1)
      ) {
        0: $C = load(CL)
        1: C = store($C)
      }
    }
"""

BLUR_TENSORS = "in I 20\nin K 3\nout O 20\ntmp T 20"
BLUR = """
    0: #kernel block [k:3, x:20] ( // blur
        -1 + k + x >= 0
        20 - k - x >= 0
        in I[-1 + k + x] fp32(1:1)
        in K[k] fp32(1:1)
        out T[x]:add fp32(1:1)
    ) {
      0: $I = load(I)
      1: $K = load(K)
      2: $P = mul($I, $K)
      3: T = store($P)
    }
    1: #kernel block [x:20] ( // relu
        in T[x] fp32(1:1)
        out O[x]:assign fp32(1:1)
    ) {
      0: $T = load(T)
      1: $O = relu($T)
      2: O = store($O)
    }
"""
BLUR_FUSED = """
    0: #kernel block [x:5] ( // fused
        in I[-1 + 4*x] fp32(6:1)
        in K[0] fp32(3:1)
        out O[4*x]:assign fp32(4:1)
        none new@0x00000000 T[0] fp32(4:1)
    ) {
      0: block [k:3, xi:4, xo=x] ( // blur
          -1 + k + xi + 4*xo >= 0
          20 - k - xi - 4*xo >= 0
          in I[k + xi] fp32(1:1)
          in K[k] fp32(1:1)
          out T[xi]:add fp32(1:1)
      ) {
        0: $I = load(I)
        1: $K = load(K)
        2: $P = mul($I, $K)
        3: T = store($P)
      }
      1: block [xi:4] ( // relu
          in T[xi] fp32(1:1)
          out O[xi]:assign fp32(1:1)
      ) {
        0: $T = load(T)
        1: $O = relu($T)
        2: O = store($O)
      }
    }
"""
BLUR_HALO_CACHE = """
    0: #kernel block [x:5] ( // blur
        in I[-1 + 4*x] fp32(6:1)
        in K[0] fp32(3:1)
        out T[4*x]:add fp32(4:1)
        none new@0x00000000 L[0] fp32(6:1)
    ) {
      0: block [h:6, xo=x] ( // transfer
          -1 + h + 4*xo >= 0
          20 - h - 4*xo >= 0
          in I[h] fp32(1:1)
          out L[h]:assign fp32(1:1)
      ) {
        0: $I = load(I)
        1: L = store($I)
      }
      1: block [k:3, xi:4, xo=x] ( // inner
          -1 + k + xi + 4*xo >= 0
          20 - k - xi - 4*xo >= 0
          in L[k + xi] fp32(1:1)
          in K[k] fp32(1:1)
          out T[xi]:add fp32(1:1)
      ) {
        0: $I = load(L)
        1: $K = load(K)
        2: $P = mul($I, $K)
        3: T = store($P)
      }
    }
    1: #kernel block [x:20] ( // relu
        in T[x] fp32(1:1)
        out O[x]:assign fp32(1:1)
    ) {
      0: $T = load(T)
      1: $O = relu($T)
      2: O = store($O)
    }
"""
BLUR_PEELED = """
    0: #kernel block [k:3, x:18] ( // interior
        in I[k + x] fp32(1:1)
        in K[k] fp32(1:1)
        out T[1 + x]:add fp32(1:1)
    ) {
      0: $I = load(I)
      1: $K = load(K)
      2: $P = mul($I, $K)
      3: T = store($P)
    }
    1: #kernel block [k:2] ( // left
        in I[k] fp32(1:1)
        in K[1 + k] fp32(1:1)
        out T[0]:add fp32(1:1)
    ) {
      0: $I = load(I)
      1: $K = load(K)
      2: $P = mul($I, $K)
      3: T = store($P)
    }
    2: #kernel block [k:2] ( // right
        in I[18 + k] fp32(1:1)
        in K[k] fp32(1:1)
        out T[19]:add fp32(1:1)
    ) {
      0: $I = load(I)
      1: $K = load(K)
      2: $P = mul($I, $K)
      3: T = store($P)
    }
    3: #kernel block [x:20] ( // relu
        in T[x] fp32(1:1)
        out O[x]:assign fp32(1:1)
    ) {
      0: $T = load(T)
      1: $O = relu($T)
      2: O = store($O)
    }
"""
BLUR_UNROLLED = """
    0: #kernel block [x:20] ( // blur
        in I[-1 + x] fp32(3:1)
        in K[0] fp32(3:1)
        out T[x]:add fp32(1:1)
    ) {
      0: block [xo=x] ( // k0
          -1 + xo >= 0
          in I[0] fp32(1:1)
          in K[0] fp32(1:1)
          out T[0]:add fp32(1:1)
      ) {
        0: $I = load(I)
        1: $K = load(K)
        2: $P = mul($I, $K)
        3: T = store($P)
      }
      1: block [xo=x] ( // k1
          in I[1] fp32(1:1)
          in K[1] fp32(1:1)
          out T[0]:add fp32(1:1)
      ) {
        0: $I = load(I)
        1: $K = load(K)
        2: $P = mul($I, $K)
        3: T = store($P)
      }
      2: block [xo=x] ( // k2
          18 - xo >= 0
          in I[2] fp32(1:1)
          in K[2] fp32(1:1)
          out T[0]:add fp32(1:1)
      ) {
        0: $I = load(I)
        1: $K = load(K)
        2: $P = mul($I, $K)
        3: T = store($P)
      }
    }
    1: #kernel block [x:20] ( // relu
        in T[x] fp32(1:1)
        out O[x]:assign fp32(1:1)
    ) {
      0: $T = load(T)
      1: $O = relu($T)
      2: O = store($O)
    }
"""

CHAIN_TENSORS = "in A 6 8\nin S 8\nout O 6 8\ntmp T 6 8"
CHAIN = """
    0: #kernel block [x:6, y:8] ( // scale
        in A[x, y] fp32(1:8, 1:1)
        in S[y] fp32(1:1)
        out T[x, y]:assign fp32(1:8, 1:1)
    ) {
      0: $A = load(A)
      1: $S = load(S)
      2: $T = sub($A, $S)
      3: T = store($T)
    }
    1: #kernel block [x:6, y:8] ( // square
        in T[x, y] fp32(1:8, 1:1)
        in A[x, y] fp32(1:8, 1:1)
        out O[x, y]:assign fp32(1:8, 1:1)
    ) {
      0: $T = load(T)
      1: $A = load(A)
      2: $R = relu($T)
      3: $O = sub($R, $A)
      4: O = store($O)
    }
"""
CHAIN_LOCALIZED = """
    0: #kernel block [x:6, y:8] ( // both
        in A[x, y] fp32(1:8, 1:1)
        in S[y] fp32(1:1)
        out O[x, y]:assign fp32(1:8, 1:1)
        none new@0x00000000 T[0, 0] fp32(1:1, 1:1)
    ) {
      0: block [] ( // scale
          in A[0, 0] fp32(1:8, 1:1)
          in S[0] fp32(1:1)
          out T[0, 0]:assign fp32(1:1, 1:1)
      ) {
        0: $A = load(A)
        1: $S = load(S)
        2: $T = sub($A, $S)
        3: T = store($T)
      }
      1: block [] ( // square
          in T[0, 0] fp32(1:1, 1:1)
          in A[0, 0] fp32(1:8, 1:1)
          out O[0, 0]:assign fp32(1:8, 1:1)
      ) {
        0: $T = load(T)
        1: $A = load(A)
        2: $R = relu($T)
        3: $O = sub($R, $A)
        4: O = store($O)
      }
    }
"""
CHAIN_SCALARIZED = """
    0: #kernel block [x:6, y:8] ( // both
        in A[x, y] fp32(1:8, 1:1)
        in S[y] fp32(1:1)
        out O[x, y]:assign fp32(1:8, 1:1)
    ) {
      0: $A = load(A)
      1: $S = load(S)
      2: $T = sub($A, $S)
      3: $R = relu($T)
      4: $O = sub($R, $A)
      5: O = store($O)
    }
"""
CHAIN_TRANSPOSED = """
    0: #kernel block [x:6, y:8] ( // scale
        in A[x, y] fp32(1:8, 1:1)
        in S[y] fp32(1:1)
        out U[y, x]:assign fp32(1:6, 1:1)
    ) {
      0: $A = load(A)
      1: $S = load(S)
      2: $T = sub($A, $S)
      3: U = store($T)
    }
    1: #kernel block [x:6, y:8] ( // square
        in U[y, x] fp32(1:6, 1:1)
        in A[x, y] fp32(1:8, 1:1)
        out O[x, y]:assign fp32(1:8, 1:1)
    ) {
      0: $T = load(U)
      1: $A = load(A)
      2: $R = relu($T)
      3: $O = sub($R, $A)
      4: O = store($O)
    }
"""
CHAIN_PACKED = """
    0: #kernel block [x:6, y:8] ( // scale
        in A[x, y] fp32(1:8, 1:1)
        in S[y] fp32(1:1)
        out U[floor(y/4), x, y mod 4]:assign fp32(1:24, 1:4, 1:1)
    ) {
      0: $A = load(A)
      1: $S = load(S)
      2: $T = sub($A, $S)
      3: U = store($T)
    }
    1: #kernel block [x:6, yi:4, yo:2] ( // square
        in U[yo, x, yi] fp32(1:24, 1:4, 1:1)
        in A[x, 4*yo + yi] fp32(1:8, 1:1)
        out O[x, 4*yo + yi]:assign fp32(1:8, 1:1)
    ) {
      0: $T = load(U)
      1: $A = load(A)
      2: $R = relu($T)
      3: $O = sub($R, $A)
      4: O = store($O)
    }
"""
BLUR_PADDED_TENSORS = "in I 20\nin K 3\nout O 20\ntmp T 20\ntmp P 22"
BLUR_PADDED = """
    0: #kernel block [x:20] ( // copy
        in I[x] fp32(1:1)
        out P[1 + x]:assign fp32(1:1)
    ) {
      0: $I = load(I)
      1: P = store($I)
    }
    1: #kernel block [e:2] ( // border
        out P[21*e]:assign fp32(1:1)
    ) {
      0: $Z = (fp32)0.0
      1: P = store($Z)
    }
    2: #kernel block [k:3, x:20] ( // blur
        in P[k + x] fp32(1:1)
        in K[k] fp32(1:1)
        out T[x]:add fp32(1:1)
    ) {
      0: $I = load(P)
      1: $K = load(K)
      2: $P = mul($I, $K)
      3: T = store($P)
    }
    3: #kernel block [x:20] ( // relu
        in T[x] fp32(1:1)
        out O[x]:assign fp32(1:1)
    ) {
      0: $T = load(T)
      1: $O = relu($T)
      2: O = store($O)
    }
"""

SCATTER_TENSORS = "in A 7\nout O 16"
SCATTER = """
    0: #kernel block [i:7] ( // spread
        in A[i] fp32(1:1)
        out O[2*i]:add fp32(1:1)
    ) {
      0: $A = load(A)
      1: O = store($A)
    }
    1: #init #kernel block [i:9] ( // fill_even
        6 - i >= 0
        out O[1 + 2*i]:assign fp32(1:1)
    ) {
      0: $Z = (fp32)0.5
      1: O = store($Z)
    }
    2: #init #kernel block [i:2] ( // fill_end
        out O[14 + i]:assign fp32(1:1)
    ) {
      0: $Z = (fp32)0.5
      1: O = store($Z)
    }
"""
SCATTER_MERGED = """
    0: #init #kernel block [i:16] ( // fill
        -14 + i + 15*(i mod 2) >= 0
        out O[i]:assign fp32(1:1)
    ) {
      0: $Z = (fp32)0.5
      1: O = store($Z)
    }
    1: #kernel block [i:13] ( // spread
        0 - (i mod 2) >= 0
        in A[floor(i/2)] fp32(1:1)
        out O[i]:add fp32(1:1)
    ) {
      0: $A = load(A)
      1: O = store($A)
    }
"""

SOFTMAX_TENSORS = "in X 4 9\nout O 4 9\ntmp M 4\ntmp E 4 9\ntmp S 4"
SOFTMAX = """
    0: #kernel block [i:4, j:9] ( // largest
        in X[i, j] fp32(1:9, 1:1)
        out M[i]:max fp32(1:1)
    ) {
      0: $X = load(X)
      1: M = store($X)
    }
    1: #kernel block [i:4, j:9] ( // shifted
        in X[i, j] fp32(1:9, 1:1)
        in M[i] fp32(1:1)
        out E[i, j]:assign fp32(1:9, 1:1)
    ) {
      0: $X = load(X)
      1: $M = load(M)
      2: $D = sub($M, $X)
      3: $E = relu($D)
      4: E = store($E)
    }
    2: #kernel block [i:4, j:9] ( // total
        in E[i, j] fp32(1:9, 1:1)
        out S[i]:add fp32(1:1)
    ) {
      0: $E = load(E)
      1: S = store($E)
    }
    3: #kernel block [i:4, j:9] ( // scaled
        in E[i, j] fp32(1:9, 1:1)
        in S[i] fp32(1:1)
        out O[i, j]:assign fp32(1:9, 1:1)
    ) {
      0: $E = load(E)
      1: $S = load(S)
      2: $O = add($E, $S)
      3: O = store($O)
    }
"""
SOFTMAX_ROWS = """
    0: #kernel block [i:4] ( // rows
        in X[i, 0] fp32(1:9, 9:1)
        out O[i, 0]:assign fp32(1:9, 9:1)
        none new@0x00000000 ML[0] fp32(1:1)
        none new@0x00000000 SL[0] fp32(1:1)
    ) {
      0: block [jo:3] ( // largest
          in X[0, 3*jo] fp32(1:9, 3:1)
          out ML[0]:max fp32(1:1)
      ) {
        0: block [ji:3] ( // inner
            in X[0, ji] fp32(1:9, 1:1)
            out ML[0]:max fp32(1:1)
        ) {
          0: $X = load(X)
          1: ML = store($X)
        }
      }
      1: block [j:9] ( // total
          in X[0, j] fp32(1:9, 1:1)
          in ML[0] fp32(1:1)
          out SL[0]:add fp32(1:1)
      ) {
        0: $X = load(X)
        1: $M = load(ML)
        2: $D = sub($M, $X)
        3: $E = relu($D)
        4: SL = store($E)
      }
      2: block [j:9] ( // scaled
          in X[0, j] fp32(1:9, 1:1)
          in ML[0] fp32(1:1)
          in SL[0] fp32(1:1)
          out O[0, j]:assign fp32(1:9, 1:1)
      ) {
        0: $X = load(X)
        1: $M = load(ML)
        2: $S = load(SL)
        3: $D = sub($M, $X)
        4: $E = relu($D)
        5: $O = add($E, $S)
        6: O = store($O)
      }
    }
"""

REPEAT_TENSORS = "in A 5\nout O 5"
REPEAT = """
    0: #kernel block [i:5, k:6] ( // repeated
        in A[i] fp32(1:1)
        out O[i]:add fp32(1:1)
    ) {
      0: $A = load(A)
      1: O = store($A)
    }
"""
REPEAT_TILED = """
    0: #kernel block [i:5, ko:2] ( // repeated
        in A[i] fp32(1:1)
        out O[i]:add fp32(1:1)
    ) {
      0: block [ki:4, ko=ko] ( // inner
          5 - ki - 4*ko >= 0
          in A[0] fp32(1:1)
          out O[0]:add fp32(1:1)
      ) {
        0: $A = load(A)
        1: O = store($A)
      }
    }
"""

POOL_TENSORS = "in I 12\nout O 6\ntmp T 12"
POOL = """
    0: #kernel block [x:12] ( // negate
        in I[x] fp32(1:1)
        out T[x]:assign fp32(1:1)
    ) {
      0: $I = load(I)
      1: $N = neg($I)
      2: T = store($N)
    }
    1: #kernel block [k:3, x:6] ( // pool
        -1 + k + 2*x >= 0
        12 - k - 2*x >= 0
        in T[-1 + k + 2*x] fp32(1:1)
        out O[x]:max fp32(1:1)
    ) {
      0: $T = load(T)
      1: O = store($T)
    }
"""
POOL_RECOMPUTED = """
    0: #kernel block [x:3] ( // fused
        in I[-1 + 4*x] fp32(5:1)
        out O[2*x]:max fp32(2:1)
        none new@0x00000000 T[0] fp32(5:1)
    ) {
      0: block [h:5, xo=x] ( // negate
          -1 + h + 4*xo >= 0
          in I[h] fp32(1:1)
          out T[h]:assign fp32(1:1)
      ) {
        0: $I = load(I)
        1: $N = neg($I)
        2: T = store($N)
      }
      1: block [k:3, xi:2, xo=x] ( // pool
          -1 + k + 2*xi + 4*xo >= 0
          in T[k + 2*xi] fp32(1:1)
          out O[xi]:max fp32(1:1)
      ) {
        0: $T = load(T)
        1: O = store($T)
      }
    }
"""


def pairs() -> list[Pair]:
    """All correct rewrites."""
    rows = [
        ("tile", MATMUL_TENSORS, MATMUL, MATMUL_TENSORS, MATMUL_TILED),
        ("interleave", MATMUL_TENSORS, MATMUL, MATMUL_TENSORS, MATMUL_INTERLEAVED),
        ("accumulate", MATMUL_TENSORS, MATMUL, MATMUL_TENSORS, MATMUL_ACCUMULATED),
        ("cache", MATMUL_TENSORS, MATMUL, MATMUL_TENSORS, MATMUL_CACHED),
        ("fuse", BLUR_TENSORS, BLUR, BLUR_TENSORS.replace("\ntmp T 20", ""), BLUR_FUSED),
        ("cache_halo", BLUR_TENSORS, BLUR, BLUR_TENSORS, BLUR_HALO_CACHE),
        ("peel", BLUR_TENSORS, BLUR, BLUR_TENSORS, BLUR_PEELED),
        ("unroll", BLUR_TENSORS, BLUR, BLUR_TENSORS, BLUR_UNROLLED),
        ("pad", BLUR_TENSORS, BLUR, BLUR_PADDED_TENSORS, BLUR_PADDED),
        ("localize", CHAIN_TENSORS, CHAIN, CHAIN_TENSORS.replace("\ntmp T 6 8", ""), CHAIN_LOCALIZED),
        ("scalarize", CHAIN_TENSORS, CHAIN, CHAIN_TENSORS.replace("\ntmp T 6 8", ""), CHAIN_SCALARIZED),
        ("transpose", CHAIN_TENSORS, CHAIN, CHAIN_TENSORS.replace("T 6 8", "U 8 6"), CHAIN_TRANSPOSED),
        ("pack", CHAIN_TENSORS, CHAIN, CHAIN_TENSORS.replace("T 6 8", "U 2 6 4"), CHAIN_PACKED),
        ("reshape_init", SCATTER_TENSORS, SCATTER, SCATTER_TENSORS, SCATTER_MERGED),
        ("fuse_rows", SOFTMAX_TENSORS, SOFTMAX, "in X 4 9\nout O 4 9", SOFTMAX_ROWS),
        ("tile_repeated", REPEAT_TENSORS, REPEAT, REPEAT_TENSORS, REPEAT_TILED),
        ("recompute", POOL_TENSORS, POOL, "in I 12\nout O 6", POOL_RECOMPUTED),
    ]
    return [Pair(name, program(t, k, name), program(u, m, name)) for name, t, k, u, m in rows]
