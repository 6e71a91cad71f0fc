"""The operators of the library: templates of Tile functions, with attributes, types and constants as parameters."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import onnx
from onnx import NodeProto, TensorProto
from onnx.defs import OpSchema

from stripe.config.template import Parameter, TemplateFile
from stripe.frontends.onnx.control import Unsupported
from stripe.frontends.onnx.values import TensorType, TensorValue, Value, constant, element_name, stored
from stripe.ir import StripeError, fresh
from stripe.ir.package_data import data_dir
from stripe.tile import TensorShape, ast, bind
from stripe.tile.parser import parse_functions

_REFUSED = re.compile(r"^unsupported: (.*)$", re.MULTILINE)
"""A template that renders this line refuses the node."""

MAX_PARAMETER = 4096
"""Elements of a constant that a template sees."""

_DECLARED = re.compile(r"^## operators: (.*)$", re.MULTILINE)


@cache
def templates(folders: tuple[Path, ...] = ()) -> Mapping[str, Path]:
    """The template of each operator. Its first lines say which it defines: `## operators: Conv com.acme::Conv`.
    Earlier folders come before later ones, and all before `tilelib/onnx`.
    """
    found: dict[str, Path] = {}
    for folder in (*folders, data_dir("tilelib") / "onnx"):
        for path in sorted(folder.glob("*.tile.j2")):
            for names in _DECLARED.findall(path.read_text("utf-8")):
                for name in names.split():
                    found.setdefault(name, path)
    return found


@cache
def _template(path: Path, _: int) -> TemplateFile:
    """The compiled template of a file as it was written at some time."""
    return TemplateFile(path)


def qualified(node: NodeProto) -> str:
    """The operator of a node with its domain, which is left out for the standard one."""
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op_type}"


def tile_name(formal: str) -> str:
    """The name of a formal input or output as a name of Tile: it begins with a capital letter."""
    return formal[:1].upper() + formal[1:]


def formal_names(formals: Sequence[OpSchema.FormalParameter], count: int) -> list[str]:
    """A name for each of `count` inputs or outputs: of a variadic one `Inputs_0`, `Inputs_1`, …"""
    names: list[str] = []
    for formal in formals:
        if formal.option == OpSchema.FormalParameterOption.Variadic:
            name = tile_name(formal.name)
            names += [f"{name}_{number}" for number in range(count - len(names))]
        else:
            names.append(tile_name(formal.name))
    return names[:count]


def attributes(node: NodeProto, schema: OpSchema) -> dict[str, Parameter]:
    """The attributes of a node, defaults included, None where there is none; graphs and tensors are left out."""
    found = {name: _plain(declared.default_value) for name, declared in schema.attributes.items()}
    return found | {attribute.name: _plain(attribute) for attribute in node.attribute}


def _plain(attribute: onnx.AttributeProto) -> Parameter:
    match attribute.type:
        case onnx.AttributeProto.INT:
            return attribute.i
        case onnx.AttributeProto.FLOAT:
            return _number(attribute.f)
        case onnx.AttributeProto.STRING:
            return attribute.s.decode("utf-8", "replace")
        case onnx.AttributeProto.INTS:
            return list(attribute.ints)
        case onnx.AttributeProto.FLOATS:
            return list(map(_number, attribute.floats))
        case onnx.AttributeProto.STRINGS:
            return [text.decode("utf-8", "replace") for text in attribute.strings]
        case onnx.AttributeProto.TENSOR:
            data = onnx.numpy_helper.to_array(attribute.t)
            elements = _elements(constant(data, attribute.t.data_type))
            return None if elements is None else list(map(_number, elements))
        case _:
            return None


def _number(value: bool | float) -> bool | float | str:
    """A number; one that is not finite as its expression in Tile, with which a template cannot compute."""
    if math.isfinite(value):
        return value
    return (
        "(infinity() - infinity())" if math.isnan(value) else "infinity()" if value > 0 else "(-infinity())"
    )


def _not_finite(node: NodeProto) -> str | None:
    """The first attribute of a node that holds an infinity or NaN."""
    for attribute in node.attribute:
        if not all(map(math.isfinite, (attribute.f, *attribute.floats))):
            return attribute.name
    return None


@dataclass(frozen=True, slots=True)
class Operator:
    """A rendered operator: its function, and the text of the function and of the functions that it calls."""

    function: ast.Function
    text: str


@dataclass(slots=True)
class Library:
    """The operators that a model uses, each rendered once for all nodes with the same parameters."""

    folders: tuple[Path, ...] = ()
    _by_key: dict[str, Operator] = field(default_factory=dict[str, Operator])
    _by_text: dict[str, Operator] = field(default_factory=dict[str, Operator])
    _names: set[str] = field(default_factory=set[str])

    def has(self, node: NodeProto) -> bool:
        return qualified(node) in templates(self.folders)

    @property
    def text(self) -> str:
        """All functions."""
        return "\n".join(operator.text for operator in self._by_text.values())

    def operator(
        self, node: NodeProto, schema: OpSchema, inputs: Sequence[Value], outputs: Sequence[TensorType | None]
    ) -> Operator:
        """The function for a node, whose results have the types `outputs`: those of outputs that are left out, too.
        Raises Unsupported for a fault of its template, and where it gives other sizes.
        """
        parameters = _parameters(node, schema, inputs, outputs)
        key = json.dumps([qualified(node), parameters])
        if key not in self._by_key:
            try:
                rendered = self._rendered(node, parameters)
            except StripeError as error:
                raise self._fault(node, error) from None
            shapes = {
                name: TensorShape(value.type.sizes, value.type.dtype)
                for name, value in zip(formal_names(schema.inputs, len(inputs)), inputs, strict=True)
                if isinstance(value, TensorValue) and value.type.dtype is not None
            }
            wanted = dict(zip(formal_names(schema.outputs, len(outputs)), outputs, strict=True))
            self._by_key[key] = self._typed(rendered, shapes, wanted)
        return self._by_key[key]

    def _fault(self, node: NodeProto, error: StripeError) -> Unsupported:
        """The reason for which a node has no function: a number of its own, else a fault of its template."""
        if (name := _not_finite(node)) is not None:
            reason = f"its attribute '{name}' is not finite, and its template computes with it"
            return Unsupported(reason, "give the node a finite number")
        path = templates(self.folders)[qualified(node)]
        hint = error.hint or ""
        if path.parent not in self.folders:
            hint = (
                "check its inputs and attributes, cut a long sequence and carry its states over, or name a template of "
                "your own with --operators"
            )
        return Unsupported(f"its template fails: {error.place}: {error.reason}", hint)

    def _typed(
        self,
        operator: Operator,
        shapes: Mapping[str, TensorShape],
        wanted: Mapping[str, TensorType | None],
    ) -> Operator:
        """The operator with results of the types `wanted`: literals and indices in a template may widen its dtypes."""
        function = operator.function
        taken = [item.name for item in function.inputs]
        try:
            made = bind(function, {name: shapes[name] for name in taken if name in shapes})
        except StripeError:
            return operator  # binding the network finds it again, and names the node
        casts: dict[str, str] = {}
        for tensor in made.outputs:
            type = wanted.get(tensor.name)
            if type is None or type.dtype is None:
                continue
            if tensor.sizes != type.sizes:
                reason = f"its template gives '{tensor.name}' the sizes {tensor.sizes}, ONNX {type.sizes}"
                raise Unsupported(reason, "make the template give the sizes of `outputs`")
            if tensor.dtype != type.dtype:
                casts[tensor.name] = type.dtype.name
        if not casts:
            return operator
        inputs, outputs = ", ".join(taken), [item.name for item in function.outputs]
        whole = fresh("Results", {*outputs, *taken})
        lines = [f"  {whole} = {function.name}({inputs});"]
        for place, name in enumerate(outputs):
            result = f"element({whole}, {place})" if len(outputs) > 1 else whole
            lines.append(f"  {name} = {f'as_{casts[name]}({result})' if name in casts else result};")
        body = "\n".join([f"({inputs}) -> ({', '.join(outputs)}) {{", *lines, "}", ""])
        if body not in self._by_text:
            name = self._name("_as_".join((function.name, *dict.fromkeys(casts.values()))))
            text = f"function {name}{body}"
            functions = {each.name: each for each in parse_functions(operator.text + text)}
            self._by_text[body] = Operator(functions[name], text)
        return self._by_text[body]

    def _name(self, wanted: str) -> str:
        """A name like `wanted` that no function has, taken from now on."""
        name, number = wanted, 1
        while name in self._names:
            number += 1
            name = f"{wanted}_{number}"
        self._names.add(name)
        return name

    def _rendered(self, node: NodeProto, parameters: dict[str, Parameter]) -> Operator:
        path = templates(self.folders)[qualified(node)]
        template = _template(path, path.stat().st_mtime_ns)
        neutral = template.render({**parameters, "name": "f"})
        if (refused := _REFUSED.search(neutral)) is not None:
            raise Unsupported(refused[1])
        if neutral not in self._by_text:
            name = self._name(f"op_{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', node.op_type).lower()}")
            lines = template.render({**parameters, "name": name}).splitlines()
            text = "".join(f"{line.rstrip()}\n" for line in lines if line.strip())
            functions = {function.name: function for function in parse_functions(text, str(path))}
            self._by_text[neutral] = Operator(functions[name], text)
        return self._by_text[neutral]


def _parameters(
    node: NodeProto, schema: OpSchema, inputs: Sequence[Value], outputs: Sequence[TensorType | None]
) -> dict[str, Parameter]:
    found = attributes(node, schema)
    found |= {"op": node.op_type, "version": schema.since_version}
    listed: list[Parameter] = []
    given = [*inputs, *(None for _ in schema.inputs)]
    last = [formal.option for formal in schema.inputs][-1:]
    variadic = last == [OpSchema.FormalParameterOption.Variadic]
    names = formal_names(schema.inputs, len(inputs) if variadic else len(schema.inputs))
    for name, value in zip(names, given, strict=False):
        described: dict[str, Parameter] = {"present": False, "value": None}
        if isinstance(value, TensorValue):
            described = {**_described(value.type), "name": name, "value": _finite(_elements(value))}
        listed.append(described)
        found[name] = described
    found["inputs"] = listed
    found["outputs"] = [
        {"present": False, "name": name}
        if type is None
        else {**_described(type), "name": name, "present": output != ""}
        for name, type, output in zip(
            formal_names(schema.outputs, len(outputs)), outputs, node.output, strict=True
        )
    ]
    return found


def _described(type: TensorType) -> dict[str, Parameter]:
    dtype = type.dtype
    return {
        "present": True, "rank": len(type.sizes), "sizes": list(type.sizes), "dtype": dtype.name if dtype else "",
        "is_float": dtype is not None and dtype.is_float, "is_narrow": dtype is not None and dtype.is_narrow,
        "count": type.count,
        "element": element_name(type.element),
    }  # fmt: skip


def _elements(value: TensorValue) -> list[bool | int | float] | None:
    """The elements of a small constant in order; None for others."""
    if value.data is None or value.data.size > MAX_PARAMETER or value.type.element == TensorProto.STRING:
        return None
    kind = value.type.dtype.kind if value.type.dtype is not None else "float"
    wide = {"bool": "bool", "int": "int64", "uint": "uint64", "float": "float64"}[kind]
    return [item.item() for item in stored(value.data, value.type.element).astype(wide).reshape(-1)]


def _finite(elements: list[bool | int | float] | None) -> Parameter:
    """The elements of a constant where a template can compute with all of them, else None."""
    return list(elements) if elements is not None and all(map(math.isfinite, elements)) else None
