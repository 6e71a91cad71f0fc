"""Values of a network: tensors with static types, constants, sequences, and their dtypes in ONNX."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, TypeProto

from stripe.ir.dtypes import DTYPES, DType

Array: TypeAlias = npt.NDArray[np.generic]

_NAMES: dict[int, str] = {
    TensorProto.BOOL: "bool", TensorProto.INT8: "i8", TensorProto.INT16: "i16", TensorProto.INT32: "i32",
    TensorProto.INT64: "i64", TensorProto.UINT8: "u8", TensorProto.UINT16: "u16", TensorProto.UINT32: "u32",
    TensorProto.UINT64: "u64", TensorProto.FLOAT16: "fp16", TensorProto.BFLOAT16: "bf16", TensorProto.FLOAT: "fp32",
    TensorProto.DOUBLE: "fp64",
}  # fmt: skip
_STORED: dict[int, str] = {
    TensorProto.INT4: "i8", TensorProto.UINT4: "u8", TensorProto.INT2: "i8", TensorProto.UINT2: "u8",
    TensorProto.FLOAT8E4M3FN: "u8", TensorProto.FLOAT8E4M3FNUZ: "u8", TensorProto.FLOAT8E5M2: "u8",
    TensorProto.FLOAT8E5M2FNUZ: "u8", TensorProto.FLOAT8E8M0: "u8", TensorProto.FLOAT4E2M1: "u8",
}  # fmt: skip
"""Types of less than a byte, and floats of a byte, lie in bytes: integers by their value, floats by their bits. Casts
and quantisation, the only operators that compute with them, know their formats.
"""


def element_name(element: int) -> str:
    """The name of an element type of ONNX."""
    known = element in TensorProto.DataType.values()
    return TensorProto.DataType.Name(element).lower() if known else str(element)


@dataclass(frozen=True, slots=True)
class TensorType:
    """Sizes and the element type as ONNX numbers it; `dtype` is None for elements that Stripe lacks, as texts."""

    sizes: tuple[int, ...]
    element: int

    @property
    def dtype(self) -> DType | None:
        """The element type; None where Stripe lacks it."""
        name = _NAMES.get(self.element) or _STORED.get(self.element)
        return None if name is None else DTYPES[name]

    @property
    def count(self) -> int:
        """The number of elements."""
        return prod(self.sizes)

    def proto(self) -> TypeProto:
        return onnx.helper.make_tensor_type_proto(self.element, self.sizes)

    def __str__(self) -> str:
        sizes = "x".join(map(str, self.sizes)) or "scalar"
        return f"{sizes}:{self.dtype or element_name(self.element)}"


@dataclass(frozen=True, slots=True)
class TensorValue:
    """A tensor. `name` is that in Tile, empty for a constant that the program does not hold yet; `data` are the
    elements of a constant.
    """

    type: TensorType
    name: str = ""
    data: Array | None = None


@dataclass(frozen=True, slots=True)
class SequenceValue:
    """A sequence with a known number of values."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class UnknownValue:
    """A value whose node cannot be imported, or that is made from such a value."""


@dataclass(frozen=True, slots=True)
class AbsentValue:
    """An optional value that is left out, or an empty optional."""


Value: TypeAlias = TensorValue | SequenceValue | UnknownValue | AbsentValue


def constant(data: Array, element: int | None = None) -> TensorValue:
    """The value of known elements."""
    if element is None:
        element = onnx.helper.np_dtype_to_tensor_dtype(data.dtype)
    return TensorValue(TensorType(tuple(map(int, data.shape)), element), data=data)


def stored(data: Array, element: int) -> Array:
    """The elements as the program holds them."""
    if element not in _STORED:
        return data
    target = np.dtype({"i8": "int8", "u8": "uint8"}[_STORED[element]])
    floats = element_name(element).startswith("float")
    return np.ascontiguousarray(data).view(target) if floats else data.astype(target)


def restored(data: Array, element: int) -> Array:
    """The elements of a program as the type of ONNX has them."""
    if element not in _STORED:
        return data
    target = onnx.helper.tensor_dtype_to_np_dtype(element)
    return data.view(target) if element_name(element).startswith("float") else data.astype(target)


def static_type(proto: TypeProto | None) -> TensorType | None:
    """The type of a tensor whose sizes are all known; None for anything else."""
    if proto is None or not proto.HasField("tensor_type") or not proto.tensor_type.HasField("shape"):
        return None
    dims = proto.tensor_type.shape.dim
    if not proto.tensor_type.elem_type or not all(dim.HasField("dim_value") for dim in dims):
        return None
    return TensorType(tuple(dim.dim_value for dim in dims), proto.tensor_type.elem_type)
