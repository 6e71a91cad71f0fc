"""ONNX's backend interface: models run by the emitted C, or by the interpreter.

`onnx.backend.test.BackendTest(stripe.onnx_backend, __name__)` runs the conformance suite of onnx on it. The device is
`CPU` for C, `CPU:1` for the interpreter. A model with open sizes is compiled when these are known, and inputs that a
shape depends on, such as the sizes of a Reshape, are its constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto
from onnx.backend.base import Backend, BackendRep
from typing_extensions import override

from stripe.exec.arith import Array
from stripe.frontends.frontend import ReadOptions
from stripe.frontends.onnx.graphs import sizing_inputs
from stripe.frontends.onnx.importer import Network
from stripe.frontends.onnx.model import open_sizes, parse_model
from stripe.frontends.onnx.reader import import_model, program
from stripe.frontends.onnx.values import restored, stored
from stripe.ir import StripeError
from stripe.pipeline.engines import Runner, parse_engine

NAME = "<model>"


@dataclass(frozen=True, slots=True)
class CompiledNetwork:
    """A network that an engine has loaded."""

    network: Network
    runner: Runner | None

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Outputs by the names of the model."""
        elements = self.network.elements
        given = {
            tile: stored(np.asarray(inputs[name]), elements[name])
            for name, tile in self.network.inputs.items()
        }
        found = {} if self.runner is None else self.runner.run(given)
        named = {name: restored(found[tile], elements[name]) for name, tile in self.network.outputs.items()}
        return {**named, **self.network.fixed}


def compile_model(
    model: ModelProto, engine: str = "c", inputs: Mapping[str, Array] | None = None
) -> CompiledNetwork:
    """The model, ready to run. With `inputs` it is that for inputs of their sizes, and inputs on which shapes and
    structure may depend become constants. Raises StripeError.
    """
    sizes, values = (_sizes(model, inputs), _values(model, inputs)) if inputs else ({}, {})
    options = ReadOptions(dims=tuple(sizes.items()))
    network = import_model(parse_model(model.SerializeToString(), NAME), NAME, options, values)
    if not network.outputs:
        return CompiledNetwork(network, None)
    return CompiledNetwork(network, parse_engine(engine).load(program(network, "model"), reorder=True))


@dataclass(slots=True)
class StripeRep(BackendRep):
    """A prepared model."""

    model: ModelProto
    engine: str
    _static: CompiledNetwork | None = None
    _outputs: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._outputs = [info.name for info in self.model.graph.output]
        try:
            self._static = compile_model(self.model, self.engine)
        except StripeError:
            self._static = None

    @override
    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        constants = {tensor.name for tensor in self.model.graph.initializer}
        names = [info.name for info in self.model.graph.input if info.name not in constants]
        given = dict(zip(names, map(np.asarray, inputs), strict=False))
        compiled = self._static
        if compiled is None:
            compiled = compile_model(self.model, self.engine, given)
        found = compiled.run(given)
        return tuple(found[name] for name in self._outputs)


def _values(model: ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """The inputs on which shapes and structure may depend: small ones of integers and bools, scalars, and scales."""
    sizing = set[str]().union(*map(sizing_inputs, model.graph.node))
    return {
        name: array for name, array in inputs.items()
        if (array.dtype.kind in "iub" and array.size <= 64) or array.size <= 1 or name in sizing
    }  # fmt: skip


def _sizes(model: ModelProto, inputs: Mapping[str, Array]) -> dict[str, int]:
    """The sizes of inputs that the model leaves open, by their symbols."""
    return {
        symbol: size
        for info in model.graph.input
        if info.name in inputs
        for symbol, size in zip(open_sizes(info), inputs[info.name].shape, strict=False)
        if symbol is not None
    }


class StripeBackend(Backend):
    """The functions that onnx asks of a backend."""

    @classmethod
    @override
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        return cls.supports_device(device)

    @classmethod
    @override
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> StripeRep:
        return StripeRep(model, "interp" if device == "CPU:1" else "c")

    @classmethod
    @override
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device).run(inputs)

    @classmethod
    @override
    def supports_device(cls, device: str) -> bool:
        return device in ("CPU", "CPU:1")


is_compatible = StripeBackend.is_compatible
prepare = StripeBackend.prepare
run_model = StripeBackend.run_model
supports_device = StripeBackend.supports_device
