"""Programs that between them use every feature of the IR, each with inputs and results computed by plain numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stripe.ir import Program
from tests.support.exec_programs import checked, program

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Sample:
    """A program, data for it, and what it must compute."""

    name: str
    program: Program
    inputs: Arrays
    expected: Arrays


def integers(*shape: int, dtype: str = "float32", seed: int = 0) -> npt.NDArray[Any]:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def matmul() -> Sample:
    body = """0: #kernel block [i:8, j:5, k:6] ( // matmul
        // C[i, j] = +(A[i, k] * B[k, j])
        in<[0]> A[i, k] fp32(1:6, 1:1)
        in<[0]> B[k, j] fp32(1:5, 1:1)
        out<[0]> C[i, j]:add fp32(1:5, 1:1)
    ) {
      0: $A = load(A)
      1: $B = load(B)
      2: $C = mul($A, $B)
      3: C = store($C)
    }"""
    inputs = {"A": ((8, 6), "fp32"), "B": ((6, 5), "fp32")}
    a, b = integers(8, 6), integers(6, 5, seed=1)
    built = program(body, inputs=inputs, outputs={"C": ((8, 5), "fp32")})
    return Sample("matmul", built, {"A": a, "B": b}, {"C": a @ b})


def convolution() -> Sample:
    """A 3x3 window with a halo; the summing loops inside have bounds that depend on the pixel."""
    body = """0: #kernel block [x:7, y:6, kx:3, ky:3] ( // convolution
        -1 + kx + x >= 0
        7 - kx - x >= 0
        -1 + ky + y >= 0
        6 - ky - y >= 0
        in<[0]> I[-1 + kx + x, -1 + ky + y] i32(1:6, 1:1)
        in<[0]> K[kx, ky] i32(1:3, 1:1)
        out<[0]> O[x, y]:add i32(1:6, 1:1)
    ) {
      0: $i = load(I)
      1: $k = load(K)
      2: $o = mul($i, $k)
      3: O = store($o)
    }"""
    image, kernel = integers(7, 6, dtype="int32"), integers(3, 3, dtype="int32", seed=1)
    padded = np.pad(image, 1)
    want = sum(kernel[a, b] * padded[a : a + 7, b : b + 6] for a in range(3) for b in range(3))
    built = program(body, inputs={"I": ((7, 6), "i32"), "K": ((3, 3), "i32")}, outputs={"O": ((7, 6), "i32")})
    return Sample("convolution", built, {"I": image, "K": kernel}, {"O": np.asarray(want)})


def constraints() -> Sample:
    """Bounds with coefficients, floors of what may be negative, and a test that no bound can express."""
    body = """0: #kernel block [i:20, j:9] ( // constraints
        17 - 2*i - 3*j >= 0
        -4 + 3*i + j >= 0
        1 - (i + 2*j) mod 3 >= 0
        3 - floor((-5 + i - j)/4) >= 0
        2 + floor((-5 + i - j)/4) >= 0
        in<[0]> A[(i + 30 - 2*j) mod 7, 2 + floor((i - j)/3)] i32(1:9, 1:1)
        out<[0]> O[i, j]:add i32(1:9, 1:1)
    ) {
      0: $a = load(A)
      1: $i = load_index(100 + floor((i - 3*j)/2))
      2: $o = add($a, $i)
      3: O = store($o)
    }"""
    a, want = integers(7, 9, dtype="int32"), np.zeros((20, 9), np.int32)
    for i in range(20):
        for j in range(9):
            low = (-5 + i - j) // 4
            if 2 * i + 3 * j <= 17 and 3 * i + j >= 4 and (i + 2 * j) % 3 <= 1 and -2 <= low <= 3:
                want[i, j] = a[(i + 30 - 2 * j) % 7, 2 + (i - j) // 3] + 100 + (i - 3 * j) // 2
    built = program(body, inputs={"A": ((7, 9), "i32")}, outputs={"O": ((20, 9), "i32")})
    return Sample("constraints", built, {"A": a}, {"O": want})


def empty_domain() -> Sample:
    body = """0: #kernel block [i:4] ( // nothing
        -4 + i >= 0
        out<[0]> O[i]:max fp32(1:1)
    ) {
      0: $c = (fp32)1.0
      1: O = store($c)
    }
    1: #kernel block [i:4] ( // writes_nothing
        in<[0]> A[i] fp32(1:1)
    ) {
      0: $a = load(A)
    }"""
    built = program(body, inputs={"A": ((4,), "fp32")}, outputs={"O": ((4,), "fp32")})
    return Sample("empty", built, {"A": integers(4)}, {"O": np.full(4, -np.inf, np.float32)})


def tiles(tag: str = "", buffer: str = "16:16, 16:1") -> Sample:
    """A tile loop with a fresh local buffer of each kind: summed into, and only assigned."""
    words = f"#{tag} " if tag else ""
    body = f"""0: {words}#kernel block [x:3, y:4] ( // tiles
        in<[0]> A[8*x, 4*y] i64(8:16, 4:1)
        out<[0]> O[8*x, 4*y]:assign i64(8:16, 4:1)
        none new@0x00000000<[0]> S[0, 0] i64({buffer})
        none new@0x00000000<[0]> T[0] i64(4:1)
    ) {{
      0: block [i:8, j:4, r:3, x = x] ( // sum
          23 - 8*x - i - r >= 0
          in<[0]> A[i, j] i64(1:16, 1:1)
          out<[0]> S[i, j]:add i64(1:{buffer.split(",")[0].split(":")[1]}, 1:1)
          out<[0]> T[j]:assign i64(1:1)
      ) {{
        0: $a = load(A)
        1: S = store($a)
      }}
      1: block [i:8, j:4] ( // back
          in<[0]> S[i, j] i64(1:{buffer.split(",")[0].split(":")[1]}, 1:1)
          out<[0]> O[i, j]:assign i64(1:16, 1:1)
      ) {{
        0: $s = load(S)
        1: O = store($s)
      }}
    }}"""
    a = integers(24, 16, dtype="int64")
    want = np.zeros_like(a)
    for x in range(24):
        want[x] = a[x] * sum(x + r < 24 for r in range(3))
    built = program(body, inputs={"A": ((24, 16), "i64")}, outputs={"O": ((24, 16), "i64")})
    return Sample(f"tiles {tag} {buffer}", built, {"A": a}, {"O": want})


def specials() -> list[Sample]:
    body = """0: #kernel block [] ( // gather
        in<[0]> D[0, 0] fp16(5:3, 3:1)
        in<[0]> I[0, 0] i8(2:2, 2:1)
        out<[0]> O[0, 0, 0]:assign fp16(2:6, 2:3, 3:1)
    ) {
      0: O = gather(D, I)
    }"""
    data, index = integers(5, 3, dtype="float16"), np.array([[-3, 0], [4, 100]], np.int8)
    built = program(
        body,
        inputs={"D": ((5, 3), "fp16"), "I": ((2, 2), "i8")},
        outputs={"O": ((2, 2, 3), "fp16")},
    )
    found = [Sample("gather", built, {"D": data, "I": index}, {"O": data[np.clip(index, 0, 4)]})]
    body = """0: #kernel block [] ( // scatter
        in<[0]> E[0, 0] i32(6:2, 2:1)
        in<[0]> I[0] u64(6:1)
        in<[0]> V[0] i32(4:1)
        out<[0]> O[0, 0]:assign i32(4:2, 2:1)
    ) {
      0: O = scatter(E, I, V)
    }"""
    updates, rows = integers(6, 2, dtype="int32"), np.array([0, 3, 3, 1 << 63, 4, 0], np.uint64)
    want = np.zeros((4, 2), np.int32)
    for row, update in zip(rows.tolist(), updates, strict=True):
        if row < 4:
            want[row] += update
    built = program(
        body,
        inputs={"E": ((6, 2), "i32"), "I": ((6,), "u64"), "V": ((4,), "i32")},
        outputs={"O": ((4, 2), "i32")},
    )
    inputs = {"E": updates, "I": rows, "V": np.zeros(4, np.int32)}
    return [*found, Sample("scatter", built, inputs, {"O": want}), generator()]


def generator() -> Sample:
    """Seven numbers out of a state with three columns: the last round steps one column only."""
    body = """0: #kernel block [] ( // generator
        in<[0]> S[0, 0] u32(3:3, 3:1)
        out<[0]> N[0, 0]:assign u32(3:3, 3:1)
        out<[0]> V[0, 0]:assign fp32(7:1, 1:1)
    ) {
      0: (N, V) = prng_step(S)
    }"""
    state = np.random.default_rng(3).integers(16, 1 << 32, (3, 3), np.uint32)
    after, numbers = state.astype(object), []
    for number in range(7):
        s1, s2, s3 = (int(word) for word in after[:, number % 3])
        s1 = ((s1 & 4294967294) << 12 & 0xFFFFFFFF) ^ (((s1 << 13 & 0xFFFFFFFF) ^ s1) >> 19)
        s2 = ((s2 & 4294967288) << 4 & 0xFFFFFFFF) ^ (((s2 << 2 & 0xFFFFFFFF) ^ s2) >> 25)
        s3 = ((s3 & 4294967280) << 17 & 0xFFFFFFFF) ^ (((s3 << 3 & 0xFFFFFFFF) ^ s3) >> 11)
        after[:, number % 3] = (s1, s2, s3)
        numbers.append(np.float32(s1 ^ s2 ^ s3) * np.float32(2.0**-32))
    built = program(
        body, inputs={"S": ((3, 3), "u32")}, outputs={"N": ((3, 3), "u32"), "V": ((7, 1), "fp32")}
    )
    expected = {"N": after.astype(np.uint32), "V": np.array(numbers, np.float32).reshape(7, 1)}
    return Sample("generator", built, {"S": state}, expected)


def strided() -> Sample:
    """User tensors with gaps and in column order, a constant with strides, a tensor that is read and written."""
    built = checked("""0: #program block [] ( // strided
        #user none new@0x00000000<[0]> A[0, 0] i16(3:1, 4:5)
        #const none new@0x00000000<[0]> W[0, 0] i16(3:8, 4:2)
        #user none new@0x00000000<[0]> X[0] i16(4:3)
        #user none new@0x00000000<[0]> O[0, 0] i16(3:10, 4:2)
    ) {
      0: #main block [] ( // main
          in<[0]> A[0, 0] i16(3:1, 4:5)
          in<[0]> W[0, 0] i16(3:8, 4:2)
          inout<[0]> X[0]:assign i16(4:3)
          out<[0]> O[0, 0]:assign i16(3:10, 4:2)
      ) {
        0: #kernel block [i:3, j:4] ( // scale
            in<[0]> A[i, j] i16(1:1, 1:5)
            in<[0]> W[i, j] i16(1:8, 1:2)
            out<[0]> O[i, j]:add i16(1:10, 1:2)
        ) {
          0: $a = load(A)
          1: $w = load(W)
          2: $o = mul($a, $w)
          3: O = store($o)
        }
        1: #kernel block [j:4] ( // count
            inout<[0]> X[j]:assign i16(1:3)
        ) {
          0: $x = load(X)
          1: $y = add($x, $x)
          2: X = store($y)
        }
      }
    }
    const W i16(3, 4) = "0100020003000400fffffefffdfffcff64006500660067ff"
    """)
    weights = np.frombuffer(bytes.fromhex("0100020003000400fffffefffdfffcff64006500660067ff"), "<i2").reshape(
        3, 4
    )
    a, x = integers(3, 4, dtype="int16"), integers(4, dtype="int16", seed=1)
    return Sample("strided", built, {"A": a, "X": x}, {"X": x + x, "O": a * weights})


def tagged() -> Sample:
    """Hints for the C compiler, which change nothing; and sums over points that threads must not share."""
    body = """0: #vector #kernel block [i:9, j:11] ( // vectors
        in<[0]> A[i, j] fp64(1:11, 1:1)
        out<[0]> O[i, j]:assign fp64(1:11, 1:1)
    ) {
      0: $a = load(A)
      1: $o = mul($a, $a)
      2: O = store($o)
    }
    1: #unroll=4 #kernel block [j:11, i:9] ( // unrolled
        in<[0]> A[i, j] fp64(1:11, 1:1)
        out<[0]> S[j]:add fp64(1:1)
    ) {
      0: $a = load(A)
      1: S = store($a)
    }
    2: #parallel #kernel block [i:9, j:11] ( // parallel
        in<[0]> A[i, j] fp64(1:11, 1:1)
        out<[0]> M[j]:max fp64(1:1)
    ) {
      0: $a = load(A)
      1: M = store($a)
    }
    3: #parallel #kernel block [i:9] ( // shared
        in<[0]> A[i, 0] fp64(1:11, 1:1)
        out<[0]> T[0]:add fp64(1:1)
    ) {
      0: $a = load(A)
      1: T = store($a)
    }"""
    a = integers(9, 11, dtype="float64")
    outputs = {"O": ((9, 11), "fp64"), "S": ((11,), "fp64"), "M": ((11,), "fp64"), "T": ((1,), "fp64")}
    built = program(body, inputs={"A": ((9, 11), "fp64")}, outputs=outputs)
    expected = {"O": a * a, "S": a.sum(0), "M": a.max(0), "T": a[:, 0].sum(keepdims=True)}
    return Sample("tagged", built, {"A": a}, expected)


def samples() -> list[Sample]:
    """All of them; `placed` programs are apart, as they cannot be merged with others."""
    large = "8:2048, 4:1"
    return [
        matmul(), convolution(), constraints(), empty_domain(), tiles(), tiles(buffer=large), tiles("thread"),
        tiles("thread", buffer=large), *specials(), strided(), tagged(),
    ]  # fmt: skip
