"""Programs that between them use every feature of the IR, each with inputs and results computed by plain numpy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stripe.ir import Program
from tests.support.programs import build, load

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
    a, b = integers(8, 6), integers(6, 5, seed=1)
    built = load("c/matmul")
    return Sample("matmul", built, {"A": a, "B": b}, {"C": a @ b})


def convolution() -> Sample:
    """A 3x3 window with a halo; the summing loops inside have bounds that depend on the pixel."""
    image, kernel = integers(7, 6, dtype="int32"), integers(3, 3, dtype="int32", seed=1)
    padded = np.pad(image, 1)
    want = sum(kernel[a, b] * padded[a : a + 7, b : b + 6] for a in range(3) for b in range(3))
    built = load("c/convolution")
    return Sample("convolution", built, {"I": image, "K": kernel}, {"O": np.asarray(want)})


def constraints() -> Sample:
    """Bounds with coefficients, floors of what may be negative, and a test that no bound can express."""
    a, want = integers(7, 9, dtype="int32"), np.zeros((20, 9), np.int32)
    for i in range(20):
        for j in range(9):
            low = (-5 + i - j) // 4
            if 2 * i + 3 * j <= 17 and 3 * i + j >= 4 and (i + 2 * j) % 3 <= 1 and -2 <= low <= 3:
                want[i, j] = a[(i + 30 - 2 * j) % 7, 2 + (i - j) // 3] + 100 + (i - 3 * j) // 2
    built = load("c/constraints")
    return Sample("constraints", built, {"A": a}, {"O": want})


def empty_domain() -> Sample:
    built = load("c/empty_domain")
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
    built = build("in A i64(24 16); out O i64(24 16)", body)
    return Sample(f"tiles {tag} {buffer}", built, {"A": a}, {"O": want})


def specials() -> list[Sample]:
    data, index = integers(5, 3, dtype="float16"), np.array([[-3, 0], [4, 100]], np.int8)
    built = load("c/gather")
    found = [Sample("gather", built, {"D": data, "I": index}, {"O": data[np.clip(index, 0, 4)]})]
    updates, rows = integers(6, 2, dtype="int32"), np.array([0, 3, 3, 1 << 63, 4, 0], np.uint64)
    want = np.zeros((4, 2), np.int32)
    for row, update in zip(rows.tolist(), updates, strict=True):
        if row < 4:
            want[row] += update
    built = load("c/scatter")
    inputs = {"E": updates, "I": rows, "V": np.zeros(4, np.int32)}
    found += [Sample("scatter", built, inputs, {"O": want}), generator()]
    single = {"E": np.array([5, 7], np.int32), "I": np.array([2, -1], np.int8)}
    expected = {"S": np.array([0, 0, 5, 0, 0, 0], np.int32), "G": np.array([7, 5], np.int32)}
    return [*found, Sample("single elements", load("c/single_elements"), single, expected)]


def generator() -> Sample:
    """Seven numbers out of a state with three columns: the last round steps one column only."""
    state = np.random.default_rng(3).integers(16, 1 << 32, (3, 3), np.uint32)
    after, numbers = state.astype(object), []
    for number in range(7):
        s1, s2, s3 = (int(word) for word in after[:, number % 3])
        s1 = ((s1 & 4294967294) << 12 & 0xFFFFFFFF) ^ (((s1 << 13 & 0xFFFFFFFF) ^ s1) >> 19)
        s2 = ((s2 & 4294967288) << 4 & 0xFFFFFFFF) ^ (((s2 << 2 & 0xFFFFFFFF) ^ s2) >> 25)
        s3 = ((s3 & 4294967280) << 17 & 0xFFFFFFFF) ^ (((s3 << 3 & 0xFFFFFFFF) ^ s3) >> 11)
        after[:, number % 3] = (s1, s2, s3)
        numbers.append(np.float32(s1 ^ s2 ^ s3) * np.float32(2.0**-32))
    built = load("c/generator")
    expected = {"N": after.astype(np.uint32), "V": np.array(numbers, np.float32).reshape(7, 1)}
    return Sample("generator", built, {"S": state}, expected)


def strided() -> Sample:
    """User tensors with gaps and in column order, a constant with strides, a tensor that is read and written."""
    built = load("c/strided")
    weights = np.frombuffer(bytes.fromhex("0100020003000400fffffefffdfffcff64006500660067ff"), "<i2").reshape(
        3, 4
    )
    a, x = integers(3, 4, dtype="int16"), integers(4, dtype="int16", seed=1)
    return Sample("strided", built, {"A": a, "X": x}, {"X": x + x, "O": a * weights})


def tagged() -> Sample:
    """Hints for the C compiler, which change nothing; and sums over points that threads must not share."""
    a = integers(9, 11, dtype="float64")
    built = load("c/tagged")
    expected = {"O": a * a, "S": a.sum(0), "M": a.max(0), "T": a[:, 0].sum(keepdims=True)}
    return Sample("tagged", built, {"A": a}, expected)


def samples() -> list[Sample]:
    """All of them; `placed` programs are apart, as they cannot be merged with others."""
    large = "8:2048, 4:1"
    return [
        matmul(), convolution(), constraints(), empty_domain(), tiles(), tiles(buffer=large), tiles("thread"),
        tiles("thread", buffer=large), *specials(), strided(), tagged(),
    ]  # fmt: skip
