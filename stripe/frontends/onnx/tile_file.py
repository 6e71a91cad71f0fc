"""The Tile file that a network becomes: names, constants, statements, and the nodes that could not be imported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from onnx import NodeProto

from stripe.frontends.onnx.graphs import node_text, printable_name
from stripe.frontends.onnx.operators import Library
from stripe.frontends.onnx.values import Array, TensorType, TensorValue, Value, stored
from stripe.ir import fresh
from stripe.ir.errors import StripeError, combine
from stripe.tile.printer import tensor_id


def plain_name(name: str) -> str:
    """The name with a `_` for each character that no name of Tile has."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)[:80] or "_"
    return f"_{plain}" if plain[0].isdigit() else plain


@dataclass(slots=True)
class TileFile:
    """The Tile file under construction, and the nodes that could not be imported."""

    path: str
    library: Library
    statements: list[str] = field(default_factory=list[str])
    nodes: dict[int, str] = field(default_factory=dict[int, str])
    """By the position of the statement that calls for them."""
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    types: dict[str, TensorType] = field(default_factory=dict[str, TensorType])
    """Of inputs and constants."""
    problems: dict[str, StripeError] = field(default_factory=dict[str, StripeError])
    """By the name of the node."""
    misled: bool = False
    """Whether the model says sizes that onnx infers against the specification; those behind them follow."""
    graphs: int = 0
    """Graphs inside of nodes that were imported, each round of a loop by itself."""
    _held: dict[tuple[int, TensorType], tuple[Array, str]] = field(
        default_factory=dict[tuple[int, TensorType], tuple[Array, str]]
    )
    """The name of each array that the program holds. The arrays stay alive with it: an `id` is that of one array only
    as long as the array lives."""
    _taken: set[str] = field(default_factory=set[str])

    def fresh(self, wanted: str) -> str:
        """A name in Tile that nothing else has, and that no word of Stripe's text is."""
        base = name = fresh(plain_name(wanted), ())
        number = 1
        while name.lower() in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name.lower())
        return name

    def hold(self, value: TensorValue, wanted: str) -> str:
        """The name of a value in the program, which gets the elements of a constant."""
        if value.data is None:
            return value.name
        key = (id(value.data), value.type)
        if key not in self._held:
            name = self.fresh(wanted)
            self._held[key] = (value.data, name)
            self.constants[name] = stored(value.data, value.type.element)
            self.types[name] = value.type
        _, name = self._held[key]
        return name

    def refuse(self, node: NodeProto, name: str, reason: str, hint: str = "") -> None:
        """Notes a node that cannot be imported."""
        where = node_text(node, name)
        self.problems.setdefault(name, StripeError(reason, path=self.path, where=where, hint=hint or None))

    def raise_problems(self) -> None:
        """Raises StripeError with all nodes that could not be imported."""
        if self.problems:
            raise combine(self.problems.values())

    def results(self, env: Mapping[str, Value], outputs: Mapping[str, str]) -> dict[str, Array]:
        """Writes the outputs that no call makes; gives the outputs without elements. Raises StripeError for outputs
        that are no tensors.
        """
        fixed: dict[str, Array] = {}
        for name, target in outputs.items():
            value = env[name]
            if not isinstance(value, TensorValue):
                reason = f"the output '{printable_name(name)}' is no tensor"
                raise StripeError(reason, path=self.path, hint="return its elements one by one")
            if value.data is not None and (value.type.count == 0 or value.type.dtype is None):
                fixed[name] = value.data
            elif (held := self.hold(value, f"{name}_value")) != target:
                self.statements.append(f"{tensor_id(target)} = {tensor_id(held)};")
        return fixed

    def text(self, outputs: Iterable[str]) -> tuple[str, int]:
        """The whole file, whose function gives `outputs`, and the line of its first statement. A dimension has the name
        of its size, and a number behind it where a value has that name.
        """
        inputs: list[str] = []
        sizes = dict.fromkeys(size for type in self.types.values() for size in type.sizes)
        names = {size: self.fresh(f"N{size}") for size in sizes}
        for name, type in self.types.items():
            dims = ", ".join(f"{names[size]}={size}" for size in type.sizes)
            inputs.append(f"{tensor_id(name)}[{dims}]: {type.dtype}")
        joined = ",\n    ".join(inputs)
        head = f"{self.library.text}\nfunction main(\n    {joined}\n) -> ({', '.join(map(tensor_id, outputs))}) {{\n"
        return head + "".join(f"  {statement}\n" for statement in self.statements) + "}\n", head.count(
            "\n"
        ) + 1
