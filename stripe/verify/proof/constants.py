"""Constant buffers as terms: one number where all elements are equal, else an array known by its contents."""

from __future__ import annotations

import hashlib

import numpy as np

from stripe.ir import Buffer, DType, Program
from stripe.verify.proof.terms import Leaf, Number, number


def constant_terms(program: Program, buffer: Buffer, dtype: DType) -> Leaf | Number | None:
    """The term of an element of a constant buffer; None when the buffer is none."""
    if buffer.path != (0,):
        return None
    found = next((constant for constant in program.constants if constant.name == buffer.name), None)
    if found is None:
        return None
    values = np.frombuffer(found.data, dtype=dtype.numpy())
    if len(values) and found.data == found.data[: dtype.bytes] * len(values):
        return number(values[0].item(), dtype)
    digest = hashlib.sha256(found.data + repr(found.sizes).encode()).hexdigest()[:12]
    return Leaf(f"const:{digest}", len(found.sizes), dtype)
