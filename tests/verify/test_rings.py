"""A buffer that is used again, written by hand: what goes wrong with rings is seen, for each aggregation and dtype."""

from __future__ import annotations

import pytest

from stripe.ir import Program
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Different, Equal
from stripe.verify.soundness import check_soundness
from tests.support.programs import build
from tests.support.running import run_both

WHOLE = """
    0: #kernel block [k:2, x:7, y:3] ( // produce
        in A[x + k, y] fp32(1:3, 1:1)
        out T[x, y]:add fp32(1:3, 1:1)
    ) {
      0: $A = load(A)
      1: T = store($A)
    }
    1: #kernel block [x:6, y:3] ( // consume
        in T[x, y] fp32(1:3, 1:1)
        in N = T[1 + x, y] fp32(1:3, 1:1)
        out O[x, y]:assign fp32(1:3, 1:1)
    ) {
      0: $T = load(T)
      1: $N = load(N)
      2: $O = sub($T, $N)
      3: O = store($O)
    }"""
RING = """
    0: #kernel block [y:3] ( // steps
        in A[0, y] fp32(8:3, 1:1)
        out O[0, y]:assign fp32(6:3, 1:1)
        none new@0x00000000 R[0] fp32(4:1)
    ) {
      0: block [k:2, x:4] ( // produce_x0
          in A[x + k, 0] fp32(1:3, 1:1)
          out R[x]:add fp32(1:1)
      ) {
        0: $A = load(A)
        1: R = store($A)
      }
      1: block [x:3] ( // consume_x0
          in R[x] fp32(1:1)
          in N = R[1 + x] fp32(1:1)
          out O[x, 0]:assign fp32(1:3, 1:1)
      ) {
        0: $T = load(R)
        1: $N = load(N)
        2: $O = sub($T, $N)
        3: O = store($O)
      }
      2: #init block [x:3] ( // clear
          out R[x]:assign fp32(1:1)
      ) {
        0: $c = (fp32)IDENTITY
        1: R = store($c)
      }
      3: block [k:2, x:3] ( // produce_x4
          in A[4 + x + k, 0] fp32(1:3, 1:1)
          out R[x]:add fp32(1:1)
      ) {
        0: $A = load(A)
        1: R = store($A)
      }
      4: block [x:3] ( // consume_x3
          in R[(3 + x) mod 4] fp32(1:1)
          in N = R[x] fp32(1:1)
          out O[3 + x, 0]:assign fp32(1:3, 1:1)
      ) {
        0: $T = load(R)
        1: $N = load(N)
        2: $O = sub($T, $N)
        3: O = store($O)
      }
    }"""
CLEAR = RING[RING.index("      2: #init") : RING.index("      3: block [k:2, x:3]")]
AFTER = RING[RING.index("      3: block [k:2, x:3]") :]
IDENTITIES = [
    ("add", "fp32", "0.0"),
    ("add", "fp16", "0.0"),
    ("add", "i8", "0"),
    ("mul", "fp32", "1.0"),
    ("max", "fp32", "-inf"),
    ("max", "i8", "-128"),
    ("max", "u8", "0"),
    ("min", "fp32", "inf"),
    ("min", "u8", "255"),
]


def tensors(dtype: str) -> str:
    return f"in A {dtype}(8 3)\nout O {dtype}(6 3)"


def written(text: str, agg: str = "add", dtype: str = "fp32", identity: str = "0.0") -> Program:
    """The program with another aggregation, dtype and identity."""
    buffers = tensors(dtype) + (f"\ntmp T {dtype}(7 3)" if text == WHOLE else "")
    text = text.replace(":add", f":{agg}").replace("fp32", dtype).replace("IDENTITY", identity)
    return build(buffers, text)


@pytest.mark.parametrize(("agg", "dtype", "identity"), IDENTITIES)
def test_a_ring_is_cleared_to_the_identity_of_its_merge(agg: str, dtype: str, identity: str) -> None:
    before, after = written(WHOLE, agg, dtype), written(RING, agg, dtype, identity)
    assert check_soundness(after) == []
    assert prove_equal(before, after) == prove_equal(after, before) == Equal()
    assert run_both(before, after) == ""
    wrong = written(RING, agg, dtype, "3" if dtype[0] in "iu" else "3.0")
    assert isinstance(prove_equal(before, wrong), Different)
    assert run_both(before, wrong, (0, 1, 2, 3, 4, 5)) != ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mod 4", "mod 3"),
        ("#init block [x:3]", "#init block [x:2]"),
        ("#init block [x:3]", "#init block [x:4]"),
        ("out R[x]:assign", "out R[1 + x]:assign"),
        ("in N = R[x]", "in N = R[(2 + x) mod 4]"),
        ("A[4 + x + k, 0]", "A[3 + x + k, 0]"),
        ("block [k:2, x:3]", "block [k:1, x:3]"),
        (CLEAR, ""),
        (CLEAR + AFTER, AFTER[:-5] + CLEAR + "    }"),
        ("none new@0x00000000 R[0] fp32(4:1)", "none new@0x00000000 R[0] fp32(3:1)"),
    ],
)
def test_what_goes_wrong_with_a_ring(old: str, new: str) -> None:
    assert RING.count(old) == 1
    text = RING.replace(old, new)
    numbers = iter(range(9))  # statements of the steps, numbered again
    lines = [
        f"      {next(numbers)}:{line[8:]}" if line[:6] == " " * 6 and line[6:7].isdigit() else line
        for line in text.splitlines()
    ]
    before, after = written(WHOLE), written("\n".join(lines))
    assert isinstance(prove_equal(before, after), Different)
    assert run_both(before, after, (0, 1, 2, 3, 4, 5)) != ""
