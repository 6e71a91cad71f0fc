"""From the graph of a model to a Tile file: nodes in order, each folded, unrolled, expanded, or called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import onnx
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TypeProto
from onnx.defs import OpSchema

from stripe.frontends.onnx.control import HANDLERS, Unsupported, stack
from stripe.frontends.onnx.definitions import definition
from stripe.frontends.onnx.fold import (
    MAX_FOLDED,
    RANDOM,
    evaluate,
    find_schema,
    infer,
    is_evaluated,
    one_line,
)
from stripe.frontends.onnx.graphs import names_used, node_text, printable_name
from stripe.frontends.onnx.legal import check_attributes, require_inputs
from stripe.frontends.onnx.operators import Library, Operator, formal_names
from stripe.frontends.onnx.sizes import result_sizes
from stripe.frontends.onnx.tile_file import TileFile, plain_name
from stripe.frontends.onnx.values import (
    AbsentValue,
    Array,
    TensorType,
    TensorValue,
    UnknownValue,
    Value,
    constant,
    element_name,
    static_type,
)
from stripe.ir.errors import did_you_mean
from stripe.tile.printer import tensor_id

MAX_GRAPHS = 20_000
"""Rounds of all loops, and branches, of a model."""
MODERN = {"": 21}
"""The opset of nodes that the importer makes itself."""


@dataclass(frozen=True, slots=True)
class Network:
    """A model as Tile: its text, the contents of the inputs that are constants, and the names of inputs and outputs by
    those of the model. `fixed` are outputs of the model that need no program, having no elements.
    """

    text: str
    constants: Mapping[str, Array]
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    fixed: Mapping[str, Array]
    nodes: Mapping[int, str]
    """The node of each call by its line in the text."""
    elements: Mapping[str, int]
    """The element types of inputs and outputs as ONNX numbers them."""


@dataclass(slots=True)
class GraphScope:
    """A graph or the body of a function: values by name, opsets, and the prefix of the names of its nodes."""

    writer: TileFile
    opsets: Mapping[str, int]
    env: dict[str, Value]
    prefix: str = ""
    declared: Mapping[str, TypeProto] = field(default_factory=dict[str, TypeProto])
    reserved: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names in Tile that outputs of the model have."""
    used: frozenset[str] | None = None
    """The values that some node or output of the model needs, where they are known."""
    attributes: Mapping[str, onnx.AttributeProto] = field(default_factory=dict[str, onnx.AttributeProto])
    """Of the node whose operator's body this is."""

    def run(self, nodes: Sequence[NodeProto]) -> None:
        """Imports nodes in order."""
        for node in nodes:
            inputs = [self.env[name] if name else AbsentValue() for name in node.input]
            for name, value in zip(node.output, self.node(node, inputs), strict=False):
                if name:
                    self.env[name] = value

    def subgraph(self, graph: GraphProto, inputs: Sequence[Value]) -> list[Value]:
        """The outputs of a graph that a node holds, which sees the values around it."""
        named, count = f"its graph '{graph.name}'", len(graph.input)
        if count != len(inputs):
            raise Unsupported(f"{named} takes {count} values, and gets {len(inputs)}")
        if graph.sparse_initializer:
            raise Unsupported(f"{named} has sparse initializers", "make them dense")
        self.writer.graphs += 1
        if self.writer.graphs > MAX_GRAPHS:
            raise Unsupported(f"loops and branches of the model take more than {MAX_GRAPHS} rounds")
        # An initializer with the name of an input is its default, and each input is given.
        defaults = {tensor.name: constant(onnx.numpy_helper.to_array(tensor)) for tensor in graph.initializer}
        given = {info.name: value for info, value in zip(graph.input, inputs, strict=True)}
        if shadowing := next((name for name in defaults if name in self.env.keys() - given.keys()), None):
            reason = f"{named} has an initializer '{shadowing}', and so is called a value around it"
            raise Unsupported(reason, "rename one of them: ONNX has one name for one value")
        env = {**self.env, **defaults, **given}
        inner = GraphScope(
            self.writer, self.opsets, env, f"{self.prefix}{graph.name}_", attributes=self.attributes
        )
        inner.declared = {info.name: info.type for info in (*graph.value_info, *graph.output)}
        inner.run(graph.node)
        return [inner.env[info.name] for info in graph.output]

    def emit(self, op: str, inputs: Sequence[Value], **attributes: int) -> Value:
        """The output of a node that is not in the model."""
        if op == "ConcatFromSequence":
            return stack(self, inputs, attributes["axis"], attributes["new_axis"])
        if any(isinstance(value, UnknownValue) for value in inputs):
            return UnknownValue()
        names = [f"i{place}" for place in range(len(inputs))]
        node = onnx.helper.make_node(op, names, [f"{self.prefix}{op}"])
        node.attribute.extend(onnx.helper.make_attribute(name, value) for name, value in attributes.items())
        return GraphScope(self.writer, MODERN, {}, self.prefix).node(node, inputs)[0]

    def name(self, node: NodeProto) -> str:
        """The name of a node: its own, else the name of its first output."""
        return self.prefix + (node.name or next(iter(node.output), "") or node.op_type)

    def node(self, node: NodeProto, inputs: Sequence[Value]) -> Sequence[Value]:
        """The outputs of a node."""
        schema = find_schema(node, self.opsets)
        if schema is None:
            self.writer.refuse(node, self.name(node), *_unknown(node, self.opsets))
            return [UnknownValue()] * len(node.output)
        if any(isinstance(value, UnknownValue) for value in inputs):
            return [UnknownValue()] * len(node.output)
        node = self._with_attributes(node)
        try:
            require_inputs(node, schema)
            return self._outputs(node, schema, inputs)
        except Unsupported as problem:
            self.writer.refuse(node, self.name(node), problem.reason, problem.hint)
        # outputs of a node that is refused, so that the nodes behind it are checked as well
        try:
            types = self._types(node, schema, inputs)
        except Unsupported:
            return [UnknownValue()] * len(node.output)
        return [
            TensorValue(type, "refused") if name and type is not None else AbsentValue()
            for name, type in zip(node.output, types, strict=True)
        ]

    def _with_attributes(self, node: NodeProto) -> NodeProto:
        """The node of a body with the attributes of the node that calls it."""
        if not any(attribute.ref_attr_name for attribute in node.attribute):
            return node
        found = NodeProto()
        found.CopyFrom(node)
        del found.attribute[:]
        for attribute in node.attribute:
            if not attribute.ref_attr_name:
                found.attribute.append(attribute)
            elif (given := self.attributes.get(attribute.ref_attr_name)) is not None:
                found.attribute.add().CopyFrom(given)
                found.attribute[-1].name = attribute.name
        return found

    def _outputs(self, node: NodeProto, schema: OpSchema, inputs: Sequence[Value]) -> Sequence[Value]:
        if schema.domain == "" and node.op_type in HANDLERS:
            return HANDLERS[node.op_type](self, node, inputs)
        constant = node.op_type not in RANDOM and all(
            isinstance(value, AbsentValue) or (isinstance(value, TensorValue) and value.data is not None)
            for value in inputs
        )
        has_template = self.writer.library.has(node)
        empty = any(isinstance(value, TensorValue) and value.type.count == 0 for value in inputs[:1])
        arrays = [value.data if isinstance(value, TensorValue) else None for value in inputs]
        if constant:
            check_attributes(node, schema, None if not arrays or arrays[0] is None else np.ndim(arrays[0]))
        if constant and (not has_template or empty or is_evaluated(node, schema, arrays)):
            try:
                return self._folded(node, schema, inputs)
            except Unsupported:  # a form that the evaluator lacks
                if not has_template and definition(node, schema, inputs, self.opsets) is None:
                    raise
        types = self._types(node, schema, inputs)
        wanted = [type if name else None for name, type in zip(node.output, types, strict=True)]
        if all(type is None or type.count == 0 for type in wanted):
            return [AbsentValue() if type is None else _empty(type) for type in wanted]
        if has_template:
            return self._called(node, schema, inputs, types)
        if (body := definition(node, schema, inputs, self.opsets)) is not None:
            return self._expanded(node, body, inputs)
        reason = f"the library has {'no' if schema.deprecated else 'not'} this operator"
        raise Unsupported(
            reason, "write it as a template, NAME.tile.j2, and name its folder with --operators"
        )

    def _folded(self, node: NodeProto, schema: OpSchema, inputs: Sequence[Value]) -> Sequence[Value]:
        arrays = [value.data if isinstance(value, TensorValue) else None for value in inputs]
        try:
            types = [static_type(proto) for proto in infer(node, schema, inputs, self.opsets)]
        except Unsupported:  # the evaluator accepts more, such as a Range of vectors of one element
            types = [None] * len(node.output)
        if sum(type.count for type in types if type is not None) > MAX_FOLDED:
            raise Unsupported(f"its constant has more than {MAX_FOLDED} elements")
        try:
            results = evaluate(node, arrays, self.opsets)
        except Exception as error:  # noqa: BLE001 - the evaluator raises anything
            raise Unsupported(f"its constant inputs cannot be evaluated: {one_line(error)}") from None
        found: list[Value] = []
        for result, type in zip(results, types, strict=True):
            if result is None:
                found.append(AbsentValue())
            elif isinstance(result, (np.ndarray, np.generic)):
                given = cast("Array", result)
                array = np.ascontiguousarray(given).reshape(np.shape(given))
                if type is not None and array.shape != type.sizes:
                    raise Unsupported(f"its constant has the sizes {array.shape}, and onnx infers {type}")
                if type is not None:
                    array = array.astype(onnx.helper.tensor_dtype_to_np_dtype(type.element), copy=False)
                found.append(constant(array, type.element if type else None))
            else:
                raise Unsupported("its constant is no tensor")
        return found

    def _types(self, node: NodeProto, schema: OpSchema, inputs: Sequence[Value]) -> list[TensorType | None]:
        """The types of the outputs, None for unknown ones of those that are left out or that nothing reads."""
        found: list[TensorType | None] = []
        for name, proto in zip(node.output, infer(node, schema, inputs, self.opsets), strict=True):
            if not name:
                found.append(static_type(proto))
                continue
            said = static_type(self.declared.get(name))
            type = static_type(proto) or said
            if (
                type is not None
                and said is not None
                and type != said
                and not self._is_misled(node, schema, inputs, said)
            ):
                reason = f"its output '{printable_name(name)}' is {type}, and the model says {said}"
                raise Unsupported(reason, "export the network again, or leave the shapes of values out")
            if type is None and self.used is not None and name not in self.used:
                found.append(None)
                continue
            if type is None and not schema.has_type_and_shape_inference_function:
                reason = f"the shape of its output '{printable_name(name)}' is unknown: onnx infers none"
                raise Unsupported(reason, "convert the model to a newer opset, or give the type of the value")
            if type is None:
                reason = f"the shape of its output '{printable_name(name)}' depends on data"
                hint = "give the inputs that hold sizes as constants, or bind dimensions: --dim N=1"
                raise Unsupported(reason, hint)
            if any(size < 0 for size in type.sizes):
                reason = f"its output '{printable_name(name)}' would have the sizes {list(type.sizes)}"
                raise Unsupported(reason, "check the sizes that its inputs and attributes give")
            _require_dtype(type)
            found.append(type)
        return found

    def _is_misled(
        self, node: NodeProto, schema: OpSchema, inputs: Sequence[Value], said: TensorType | None
    ) -> bool:
        """Whether the model has sizes that onnx infers against the specification, here or in a node before."""
        if not self.writer.misled and result_sizes(node, inputs) is not None:
            plain = infer(node, schema, inputs, self.opsets, plainly=True)
            self.writer.misled = any(static_type(proto) == said for proto in plain)
        return self.writer.misled

    def _called(
        self, node: NodeProto, schema: OpSchema, inputs: Sequence[Value], types: Sequence[TensorType | None]
    ) -> Sequence[Value]:
        """The outputs of a function of the library."""
        operator = self.writer.library.operator(node, schema, inputs, types)
        name = self.name(node)
        plain = plain_name(name)
        tags = f"[[op_{plain_name(node.op_type)}]] [[node_{plain}]] [[pid({tensor_id(plain)})]]"
        call = f"{operator.function.name}({', '.join(self._arguments(node, schema, inputs, operator))})"
        results: list[Value] = []
        formal = formal_names(schema.outputs, len(node.output))
        made = [output.name for output in operator.function.outputs]
        whole = self.writer.fresh(f"{name}_outputs") if len(made) > 1 else ""
        self.writer.nodes[len(self.writer.statements)] = node_text(node, name)
        if whole:
            self.writer.statements.append(f"{tags} {tensor_id(whole)} = {call};")
        for output, type, formal_name in zip(node.output, types, formal, strict=True):
            if not output or type is None:
                results.append(AbsentValue())
                continue
            if type.count == 0:
                results.append(_empty(type))
                continue
            if formal_name not in made:
                raise Unsupported(f"its output '{formal_name}' has no counterpart")
            target = self.reserved.get(output) or self.writer.fresh(self.prefix + output)
            value = f"element({tensor_id(whole)}, {made.index(formal_name)})" if whole else call
            head = "" if whole else f"{tags} "
            self.writer.statements.append(f"{head}{tensor_id(target)} = {value};")
            results.append(TensorValue(type, target))
        return results

    def _arguments(
        self, node: NodeProto, schema: OpSchema, inputs: Sequence[Value], operator: Operator
    ) -> list[str]:
        places = {name: place for place, name in enumerate(formal_names(schema.inputs, len(inputs)))}
        found: list[str] = []
        for item in operator.function.inputs:
            value = inputs[places[item.name]] if item.name in places else AbsentValue()
            if not isinstance(value, TensorValue):
                reason = "is left out" if isinstance(value, AbsentValue) else "is no tensor"
                raise Unsupported(f"its input '{item.name}' {reason}", "give the node a tensor for it")
            _require_dtype(value.type)
            hint = self.prefix + (node.input[places[item.name]] or f"{self.name(node)}_{item.name}")
            found.append(tensor_id(self.writer.hold(value, hint)))
        return found

    def _expanded(self, node: NodeProto, body: FunctionProto, inputs: Sequence[Value]) -> Sequence[Value]:
        """The outputs of an operator that its definition writes as a graph."""
        given = [*inputs, *(AbsentValue() for _ in range(len(body.input) - len(inputs)))]
        env: dict[str, Value] = dict(zip(body.input, given, strict=True))
        defaults = {attribute.name: attribute for attribute in body.attribute_proto}
        schema = find_schema(node, self.opsets)
        for name, declared in schema.attributes.items() if schema is not None else ():
            if declared.default_value.type != onnx.AttributeProto.UNDEFINED:
                defaults.setdefault(name, declared.default_value)
        attributes = {**defaults, **{attribute.name: attribute for attribute in node.attribute}}
        own = {item.domain: item.version for item in body.opset_import}
        opsets = {**MODERN, **self.opsets, **own}
        inner = GraphScope(self.writer, opsets, env, f"{self.name(node)}_", attributes=attributes)
        for formal, name in zip(body.output, node.output, strict=False):
            if name in self.reserved:
                inner.reserved = {**inner.reserved, formal: self.reserved[name]}
            if name in self.declared:
                inner.declared = {**inner.declared, formal: self.declared[name]}
        inner.run(body.node)
        return [inner.env[name] if wanted else AbsentValue()
                for name, wanted in zip(body.output, node.output, strict=False)]  # fmt: skip


def _require_dtype(type: TensorType) -> None:
    if type.dtype is None:
        raise Unsupported(f"elements of type {element_name(type.element)} have no counterpart")


def _empty(type: TensorType) -> Value:
    """A tensor without elements is a constant."""
    if type.count or type.dtype is None:
        return TensorValue(type)
    return TensorValue(type, data=np.zeros(type.sizes, type.dtype.numpy()))


def _unknown(node: NodeProto, opsets: Mapping[str, int]) -> tuple[str, str]:
    """Why a node has no schema, and a hint."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    if domain not in opsets:
        imported = ", ".join(name or "ai.onnx" for name in opsets) or "none"
        return f"the model does not import its domain '{printable_name(domain)}'", f"it imports {imported}"
    same = {schema.name for schema in onnx.defs.get_all_schemas_with_history() if schema.domain == domain}
    if not same:
        return f"the domain '{printable_name(domain)}' is unknown", "export the model with standard operators"
    if node.op_type in same:
        return f"opset {opsets[domain]} has no such operator", "convert the model to another opset"
    hint = did_you_mean(node.op_type, sorted(same), "export the model with standard operators")
    return "the operator is unknown", hint


def import_graph(
    model: ModelProto,
    path: str,
    inputs: Mapping[str, TensorType],
    given: Mapping[str, TensorValue],
    library: Library,
) -> Network:
    """The network of a checked model. `inputs` are the types of its inputs, `given` the values of its constants.

    Raises StripeError with all nodes that cannot be imported.
    """
    graph, writer = model.graph, TileFile(path, library)
    opsets = {"" if item.domain == "ai.onnx" else item.domain: item.version for item in model.opset_import}
    env: dict[str, Value] = dict(given)
    names: dict[str, str] = {}
    for name, type in inputs.items():
        if type.count == 0:
            env[name] = _empty(type)
            continue
        names[name] = writer.fresh(name)
        writer.types[names[name]] = type
        env[name] = TensorValue(type, names[name])
    produced = {name for node in graph.node for name in node.output}
    outputs = {info.name: writer.fresh(info.name if info.name in produced else f"{info.name}_output")
               for info in graph.output}  # fmt: skip
    declared = {info.name: info.type for info in (*graph.value_info, *graph.output)}
    used = frozenset(outputs).union(*map(names_used, graph.node))
    scope = GraphScope(writer, opsets, env, declared=declared, reserved=outputs, used=used)
    scope.run(graph.node)
    writer.raise_problems()
    fixed = writer.results(scope.env, outputs)
    text, begin = writer.text(target for name, target in outputs.items() if name not in fixed)
    return Network(
        text, writer.constants, names, {name: tile for name, tile in outputs.items() if name not in fixed}, fixed,
        {begin + place: node for place, node in writer.nodes.items()},
        {
            **{name: type.element for name, type in inputs.items()},
            **{name: value.type.element for name in outputs if isinstance(value := scope.env[name], TensorValue)},
        },
    )  # fmt: skip
