"""Tensors between their logical shape and the memory of a buffer, and whether inputs fit a program."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from stripe.exec.arith import Array
from stripe.exec.errors import ExecutionError
from stripe.ir import ConstantBuffer, Program, Refinement, closest


def check_inputs(program: Program, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The inputs of `program`, in its order, as arrays of the right dtype and shape.

    Raises ExecutionError for a missing or unknown name, another shape, or another dtype.
    """
    wanted = {ref.name: ref for ref in program.inputs}
    for name in inputs:
        if name not in wanted:
            near = closest(name, wanted)
            known = f"did you mean '{near}'?" if near else f"the inputs are {', '.join(wanted) or 'none'}"
            raise ExecutionError(f"the program has no input '{name}'", hint=known)
    found: dict[str, Array] = {}
    for name, ref in wanted.items():
        shape = ", ".join(map(str, ref.sizes))
        if inputs.get(name) is None:
            raise ExecutionError(f"input '{name}' is missing", hint=f"it is {ref.dtype}[{shape}]")
        array = found[name] = np.asarray(inputs[name])
        if array.dtype != ref.dtype.numpy():
            raise ExecutionError(
                f"input '{name}' has dtype {array.dtype}, the program takes {ref.dtype}",
                hint=f"convert it with .astype({ref.dtype.numpy().name!r}) if that is what you mean",
            )
        if array.shape != ref.sizes:
            given = ", ".join(map(str, array.shape))
            raise ExecutionError(f"input '{name}' has the shape [{given}], the program takes [{shape}]")
    return found


def logical_view(ref: Refinement, flat: Array) -> Array:
    """The elements of an allocation in logical shape, without copying; `flat` has its `span` elements."""
    size = flat.strides[0]
    return as_strided(flat, ref.sizes, [stride * size for stride in ref.strides])


def to_flat(ref: Refinement, array: Array) -> Array:
    """A new flat array of `ref.span` elements with `array` at its strides and zeros in the gaps."""
    flat = np.zeros(ref.span, ref.dtype.numpy())
    logical_view(ref, flat)[...] = array
    return flat


def from_flat(ref: Refinement, flat: Array) -> Array:
    """A new array in logical shape, C-contiguous."""
    return np.array(logical_view(ref, flat), order="C")


def constant_array(buffer: ConstantBuffer) -> Array:
    """The contents of a constant in logical shape, read-only. Its bytes are little-endian."""
    dtype = buffer.dtype.numpy()
    if dtype.byteorder != "|" and buffer.dtype.name != "bf16":
        dtype = dtype.newbyteorder("<")
    flat = np.frombuffer(buffer.data, dtype, prod(buffer.sizes))
    return flat.astype(buffer.dtype.numpy(), copy=False).reshape(buffer.sizes)
