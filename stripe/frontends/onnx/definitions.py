"""Definitions of operators as graphs, which the stubs of onnx leave out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from onnx import FunctionProto, NodeProto
from onnx.defs import OpSchema

from stripe.frontends.onnx.values import TensorValue, Value


class _Defined(Protocol):
    """The members of a schema that tell its definition."""

    has_function: bool
    has_context_dependent_function: bool
    function_opset_versions: list[int]
    context_dependent_function_opset_versions: list[int]

    def get_function_with_opset_version(self, version: int, /) -> bytes | None: ...

    def get_context_dependent_function_with_opset_version(
        self, version: int, node: bytes, types: list[bytes], /
    ) -> bytes | None: ...


def definition(
    node: NodeProto, schema: OpSchema, inputs: Sequence[Value], opsets: Mapping[str, int]
) -> FunctionProto | None:
    """The definition of an operator as a graph, where it has one."""
    defined = cast(_Defined, cast(object, schema))
    most = opsets.get("", 1 << 30)

    def newest(versions: list[int]) -> int:
        return max([version for version in versions if version <= most] or versions)

    found = None
    if defined.has_context_dependent_function:
        types = [
            value.type.proto().SerializeToString() if isinstance(value, TensorValue) else b""
            for value in inputs
        ]
        version = newest(defined.context_dependent_function_opset_versions)
        found = defined.get_context_dependent_function_with_opset_version(
            version, node.SerializeToString(), types
        )
    elif defined.has_function:
        found = defined.get_function_with_opset_version(newest(defined.function_opset_versions))
    return FunctionProto.FromString(found) if found else None
