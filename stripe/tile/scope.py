"""The names and the state of one function of a Tile file while its statements become operations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stripe.ir.errors import StripeError, did_you_mean
from stripe.ir.frozen import frozen
from stripe.ir.span import Span
from stripe.tile import ast
from stripe.tile.diagnostics import Poisoned
from stripe.tile.inputs import Bindings, require_sizes
from stripe.tile.typed import Const, Op, Operand, Tensor, TupleValue, Value


@dataclass(slots=True)
class Expansion:
    """The results of all functions of one binding: operations, the names of tensors, and the arguments of each
    tensor that a softmax made, for log(softmax(…)). `functions` are those that they may call.
    """

    functions: Mapping[str, ast.Function] = field(default_factory=dict[str, ast.Function])
    ops: list[Op] = field(default_factory=list[Op])
    taken: set[str] = field(default_factory=set[str])
    next_number: dict[str, int] = field(default_factory=dict[str, int])
    softmaxes: dict[str, tuple[Operand, ...]] = field(default_factory=dict[str, "tuple[Operand, ...]"])
    calls: int = 0

    def fresh(self, base: str) -> str:
        """A name that nothing else has: `base`, else the first free one of `base_0`, `base_1`, …"""
        if base not in self.taken:
            self.taken.add(base)
            return base
        number = self.next_number.get(base, 0)
        while f"{base}_{number}" in self.taken:
            number += 1
        self.next_number[base] = number + 1
        self.taken.add(f"{base}_{number}")
        return f"{base}_{number}"


@frozen
class CallSite:
    """The call in whose place the statements of a function stand: the name of its result, the attributes of its
    statement, its place, and the functions around it.
    """

    result: str
    attributes: tuple[ast.Attribute, ...]
    span: Span
    stack: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class FunctionScope(Bindings, ABC):
    """The state of one function: the main one, or one that is called at `site`."""

    function: ast.Function
    made: Expansion = field(default_factory=Expansion)
    site: CallSite | None = None
    tensors: dict[str, str] = field(default_factory=dict[str, str])
    """The tensor that a statement of a called function makes, by its target."""
    failed_assertions: dict[str, StripeError] = field(default_factory=dict[str, StripeError])
    """By the name that the statement defines."""
    output_sizes: dict[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])

    def attributes(self, node: ast.Stmt, *, whole: bool) -> tuple[ast.Attribute, ...]:
        """The attributes of a statement, those of the call around it included. Only the operation that makes the result
        gets its name as a kernel.
        """
        given = node.attributes if self.site is None else (*self.site.attributes, *node.attributes)
        whole = whole and (self.site is None or node.target == self.function.outputs[-1].name)
        return tuple(item for item in given if whole or item.name != "pid")

    def place(self, span: Span) -> Span:
        """The place of an operation in the main text: a built-in function has another, and its call stands for it."""
        return span if self.site is None or self.site.span.filename == span.filename else self.site.span

    @abstractmethod
    def call(
        self, function: ast.Function, node: ast.Call, values: Sequence[Value], statement: ast.Stmt, name: str
    ) -> Value:
        """The value of a function, whose statements take the place of the call: that of its output, or a tuple."""

    def lookup(self, node: ast.Name) -> Value:
        """The value of a name; raises StripeError where it is not defined (yet)."""
        if node.name not in self.env:
            known = [name for name in self.env if name != node.name]
            if any(node.name == statement.target for statement in self.function.statements):
                raise self.source.error(
                    f"'{node.name}' is used before it is defined",
                    node.span,
                    "move the statement that defines it up",
                )
            hint = did_you_mean(node.name, known, f"known here: {', '.join(known) or 'nothing'}")
            raise self.source.error(f"unknown name '{node.name}'", node.span, hint)
        value = self.env[node.name]
        if value is None:
            raise Poisoned
        return value

    def checked(self, tensor: Tensor, span: Span) -> Tensor:
        """The tensor, when its sizes are at least 1 and it has fewer than 2^63 bytes."""
        require_sizes(self.source, tensor.name, tensor.sizes, tensor.dtype.bytes, span)
        return tensor

    def operand(self, value: Value, span: Span) -> Operand:
        """A value as an operand; raises StripeError for tuples and random states."""
        if isinstance(value, (Tensor, Const)):
            return value
        if isinstance(value, TupleValue):
            raise self.source.error("a tuple cannot be computed with", span, "take an element: element(T, 0)")
        raise self.source.error(
            "the result of prng_step cannot be computed with", span, "use prng_value(R) and prng_state(R)"
        )
