"""The front end `onnx`: its reader, and references to compare with."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import onnx
from onnx import ModelProto

from stripe.frontends.frontend import Loaded, ReadOptions, Source
from stripe.frontends.onnx.graphs import location, tensors
from stripe.frontends.onnx.importer import Network, import_graph
from stripe.frontends.onnx.model import (
    input_types,
    parse_model,
    read_constants,
    read_inner_tensors,
    with_layers,
)
from stripe.frontends.onnx.operators import Library
from stripe.frontends.onnx.values import Array, TensorValue, constant
from stripe.ir import Program, StripeError
from stripe.ir.errors import combine
from stripe.tile import CalledError, lower, program_name, typed_function

if TYPE_CHECKING:
    from stripe.frontends.frontend import Arrays

MAX_MESSAGE = (1 << 31) - 1
"""Bytes of a message of protobuf."""


def load(source: Source, options: ReadOptions) -> Loaded:
    """The program of a model. Raises StripeError with all nodes that cannot be imported."""
    return Loaded(program(network(source, options), source.name))


def program(found: Network, name: str) -> Program:
    """The program of a network, constants included. Raises StripeError, with the node where it is known."""
    if not found.outputs:
        reason = "no output of the model has elements: there is nothing to compute"
        raise StripeError(reason, path=name, hint="give the model an output with elements")
    try:
        function = typed_function(found.text, f"{name} (as Tile)")
        return lower(function, program_name(name), found.constants)
    except StripeError as error:
        raise _of_nodes(error, found, name) from None


def _of_nodes(error: StripeError, found: Network, name: str) -> StripeError:
    """Errors in calls as errors of their nodes."""
    placed: list[StripeError] = []
    for one in (error, *error.others):
        line = one.call.line if isinstance(one, CalledError) else one.line
        where = None if line is None else _node_at(found, line)
        text = f"{one.reason}: {one.source.strip()}" if one.source else one.reason
        placed.append(StripeError(text, path=name, where=where, hint=one.hint))
    return combine(placed)


def _node_at(found: Network, line: int) -> str | None:
    """The node of a line of the Tile text: that of the statement, or the first that calls the function around it."""
    if line in found.nodes:
        return found.nodes[line]
    lines = found.text.splitlines()
    head = next((text for text in reversed(lines[:line]) if text.startswith("function ")), "")
    call = f" {head.removeprefix('function ').partition('(')[0]}("
    behind = (number for number, text in enumerate(lines, 1) if number > line and call in text)
    return next((node for number in behind if (node := _node_at(found, number))), None)


def as_tile(source: Source, options: ReadOptions) -> str:
    """The model as a Tile file, without the contents of its constants."""
    return network(source, options).text


def files_beside(source: Source) -> tuple[Path, ...]:
    """The files with contents of the model's tensors, those that are there. Raises StripeError for no model."""
    model = parse_model(source.data, source.name)
    folder = Path(source.name).parent
    found = {folder / place for tensor in tensors(model.graph) if (place := location(tensor)) is not None}
    return tuple(sorted(file for file in found if file.is_file()))


def network(source: Source, options: ReadOptions) -> Network:
    """The model as Tile. Raises StripeError, ConfigError for a wrong --dim."""
    return import_model(_model(source, options), source.name, options)


def _model(source: Source, options: ReadOptions) -> ModelProto:
    model = parse_model(source.data, source.name)
    return with_layers(model) if options.layers else model


def import_model(
    model: ModelProto, name: str, options: ReadOptions, values: Mapping[str, Array] | None = None
) -> Network:
    """A checked model as Tile; inputs in `values` become constants. `name` is the file's. Contents of other files
    and drawn ones are in the model afterwards.
    """
    folder = None if name.startswith("<") else Path(name).parent
    given = read_constants(model.graph, name, folder, random=options.random_weights)
    read_inner_tensors(model.graph, name, folder)
    types = input_types(model.graph, name, dict(options.dims))
    bound: dict[str, TensorValue] = {}
    for outer, array in (values or {}).items():
        bound[outer] = constant(np.asarray(array), types.pop(outer).element)
    library = Library(tuple(map(Path, options.operators)))
    return import_graph(model, name, types, {**given, **bound}, library)


def evaluate(source: Source, options: ReadOptions, inputs: Arrays) -> Arrays:
    """The outputs by ONNX Runtime where it is installed, else by the reference evaluator of onnx."""
    model = _model(source, options)
    found = import_model(model, source.name, options)  # puts external data and drawn weights into the model
    outside = {outer: np.asarray(inputs[tile]) for outer, tile in found.inputs.items()}
    results = run_model(model, outside, list(found.outputs))
    return {found.outputs[name]: np.asarray(array) for name, array in results.items()}


def run_model(model: ModelProto, inputs: Mapping[str, Array], outputs: list[str]) -> dict[str, Array]:
    """Outputs of a model by another implementation."""
    try:
        import onnxruntime  # pyright: ignore[reportMissingImports]
    except ImportError:
        from stripe.frontends.onnx.fold import reference

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = cast("list[Array]", reference(model).run(outputs, dict(inputs)))  # pyright: ignore[reportUnknownMemberType]
    else:
        with tempfile.TemporaryDirectory(prefix="stripe-onnx-") as folder:
            given: bytes | str = ""
            if model.ByteSize() <= MAX_MESSAGE:
                given = model.SerializeToString()
            else:
                given = str(Path(folder) / "model.onnx")
                onnx.save(model, given, save_as_external_data=True, location="weights")  # pyright: ignore[reportUnknownMemberType]
            session = onnxruntime.InferenceSession(given)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            results = cast("list[Array]", session.run(outputs, dict(inputs)))  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return dict(zip(outputs, results, strict=True))
