"""Indices from outside that are beyond 2^31 and near 2^62: passes and C compute what the interpreter does."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import stripe
from stripe.exec.compile import CompileOptions, compile_program
from stripe.exec.errors import ExecutionError
from stripe.exec.interp import interpret
from stripe.ir import Program, StripeError

_ENTRIES = (
    "thread{reqs=[kernel],threads=4}",
    "vectorize{reqs=[kernel],vector_bytes=16}",
    "hoist{reqs=[outer]}",
    "hoist{reqs=[kernel]}",
    "unroll{reqs=[kernel]}",
    "peel{reqs=[kernel]}",
    "reduce_constraints",
    "prune_indexes",
    "fix_strides",
    "autotile{reqs=[kernel],fixed={j:4},outer_set=[tile],inner_set=[inner]},peel{reqs=[tile]}",
    "autotile{reqs=[kernel],fixed={j:3},outer_set=[tile],inner_set=[inner]},reduce_constraints,unroll{reqs=[inner]}",
    "cache{reqs=[kernel]}",
    "split_reduction{reqs=[kernel],vector_bytes=16}",
    "localize,scalarize,dce",
    "transpose{reqs=[kernel]}",
)
_VALUES = (2**31 - 1, 2**31, 2**31 + 5, 2**32, 2**40 + 3, 2**53 + 1, 2**60 + 3)


def _program(seed: int) -> Program:
    """A kernel whose index `p` comes from a block with one point, far out; of it views take remainders and floors."""
    random = Random(seed)
    value = random.choice(_VALUES)
    scale, offset = random.choice([(1, 0), (-1, 0), (1, 7), (-1, -9), (2, 1) if value < 2**58 else (1, 1)])
    passed = f"{offset} + x" if scale == 1 else f"{offset} - x" if scale == -1 else f"{offset} + {scale}*x"
    p = scale * value + offset
    step, near = random.choice([3, 7, 8, 1000, 2**31, 2**33]), random.randint(0, 3)
    inner = random.choice(
        [
            f"p mod {random.choice([2, 3, 5])}",
            f"floor((p + j + {-p + near * step})/{step})",
            f"p + {-p + near}",
            f"(p + j) mod {random.choice([2, 3, 7])}",
            f"floor(p/{step}) + {near - p // step}",
        ]
    )
    bound = random.choice(
        [f"p + j + {-p - random.randint(-2, 3)} >= 0", f"{p + random.randint(2, 9)} - p - j >= 0"]
    )
    text = f"""0: #program block [] ( // vast
        #user none new@0x00000000<[0]> A[0, 0] fp32(16:8, 8:1)
        #user none new@0x00000000<[0]> O[0] fp32(8:1)
    ) {{
      0: #main block [] ( // main
          in<[0]> A[0, 0] fp32(16:8, 8:1)
          out<[0]> O[0]:assign fp32(8:1)
      ) {{
        0: #outer block [x:{value + 1}] ( // outer
            {-value} + x >= 0
            in<[0]> A[0, 0] fp32(16:8, 8:1)
            out<[0]> O[0]:add fp32(8:1)
        ) {{
          0: #kernel block [j:8, k:2, p = {passed}] ( // inner
              {bound}
              in<[0]> A[{inner}, j] fp32(1:8, 1:1)
              out<[0]> O[j]:add fp32(1:1)
          ) {{
            0: $a = load(A)
            1: $n = load_index({random.choice(["p mod 5 + k", "j + k", "floor((p + j)/3) mod 4"])})
            2: $f = cast($n, fp32)
            3: $s = mul($a, $f)
            4: O = store($s)
          }}
        }}
      }}
    }}"""
    return stripe.parse(text.replace("+ -", "- "), name=f"vast{seed}.stripe")


def check(seed: int) -> bool:
    """Whether the program of a seed is valid; a pass and C make the same of it as the interpreter."""
    try:
        program = _program(seed)
    except StripeError:  # an access that may leave 2^62
        return False
    data = {"A": np.random.default_rng(seed).integers(-9, 10, (16, 8)).astype(np.float32)}
    try:
        wanted = interpret(program, data)["O"]
    except ExecutionError:
        return False
    entry = _ENTRIES[seed % len(_ENTRIES)]
    changed = stripe.run_passes(program, entry)
    assert np.array_equal(interpret(changed, data)["O"], wanted), (seed, entry)
    built = compile_program(changed, CompileOptions(level="O2"))
    assert np.array_equal(built.run(data)["O"], wanted), (seed, entry, "C")
    return True


@pytest.mark.long
def test_passes_and_code_compute_with_vast_indices() -> None:
    assert sum(map(check, range(255, 285))) > 20


@pytest.mark.slow
def test_many_vast_indices() -> None:
    assert sum(map(check, range(1000, 2500))) > 1000
