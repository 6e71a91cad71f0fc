"""Turns the statements of a Tile function into single typed operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, cast

from typing_extensions import override

from stripe.ir.dtypes import BOOL, DTYPES, DType, common_type, common_type_of
from stripe.ir.errors import StripeError
from stripe.poly.index_sets import Range
from stripe.tile import ast, fold
from stripe.tile.diagnostics import CalledError, FailedAssertion, Poisoned, SourceText
from stripe.tile.expressions import Expressions, integer
from stripe.tile.inputs import bind_inputs, check_outputs
from stripe.tile.polynomials import polynomial
from stripe.tile.printer import print_statement
from stripe.tile.scope import CallSite, FunctionScope
from stripe.tile.shapes import Binding, TensorShape, sizes_text
from stripe.tile.typed import (
    Const,
    ContractionOp,
    Operand,
    Origin,
    RandomValue,
    Tensor,
    TupleValue,
    TypedAccess,
    Value,
)

MAX_CALLS = 100_000
"""Calls of functions in one binding."""

MAX_DEPTH = 60
"""Calls inside of each other."""


@dataclass(slots=True, kw_only=True)
class Elaborator(FunctionScope):
    """Makes operations of the statements of one function."""

    def run(self) -> None:
        """Elaborates all statements; errors and failed assertions are collected."""
        for node in self.function.statements:
            self._statement(node)

    def _statement(self, node: ast.Stmt) -> None:
        if node.target in self.defined_at:
            first = self.defined_at[node.target]
            hint = f"it is defined in line {first.line}; a name is given once, so choose another"
            reason = f"'{node.target}' is defined twice"
            self.errors.append(self.source.error(reason, node.target_span, hint))
            return
        self.defined_at[node.target] = node.target_span
        before = len(self.made.ops)
        name = self.tensors.get(node.target, node.target)
        try:
            if isinstance(node, ast.Contraction):
                self.env[node.target] = self.contraction(node, name)
            else:
                self.env[node.target] = Expressions(self, node, name).value(node.value, name)
        except FailedAssertion as failure:
            del self.made.ops[before:]
            self.env[node.target] = None
            self.failed_assertions[node.target] = failure.error
        except StripeError as error:
            del self.made.ops[before:]
            self.env[node.target] = None
            if not isinstance(error, Poisoned):
                self.errors.append(error)

    @override
    def call(
        self, function: ast.Function, node: ast.Call, values: Sequence[Value], statement: ast.Stmt, name: str
    ) -> Value:
        """The value of a function, whose statements take the place of the call: that of its output, or a tuple."""
        stack = (*(self.site.stack if self.site is not None else ()), function.name)
        self.made.calls += 1
        if function.name in stack[:-1]:
            chain = " -> ".join(stack[stack.index(function.name) :])
            hint = "functions are inlined, so none can contain itself"
            raise self.source.error(f"'{function.name}' calls itself: {chain}", node.span, hint)
        if len(stack) > MAX_DEPTH or self.made.calls > MAX_CALLS:
            limit = (
                f"{MAX_DEPTH} calls inside of each other" if len(stack) > MAX_DEPTH else f"{MAX_CALLS} calls"
            )
            raise self.source.error(f"the program has more than {limit}", node.span, "call fewer functions")
        attributes = self.attributes(statement, whole=True)
        inner = Elaborator(
            SourceText(function.source), function=function, made=self.made,
            site=CallSite(name, attributes, self.place(node.span), stack),
        )  # fmt: skip
        outputs = [output.name for output in function.outputs]
        for target in dict.fromkeys(item.target for item in function.statements):
            alone = outputs == [target]
            inner.tensors[target] = name if alone else self.made.fresh(f"{name}_{target}")
        inner.bind_arguments(values)
        check_outputs(inner, function)
        inner.run()
        needed = ast.names_needed(function)
        for target, error in inner.failed_assertions.items():
            if target in needed:
                inner.errors.append(error)
            else:
                self.failed_assertions[f"{name}.{target}"] = error
        if inner.errors:
            self._fail(inner, node)
        results = [cast(Value, inner.env[output]) for output in outputs]
        return results[0] if len(results) == 1 else TupleValue(tuple(results))

    def bind_arguments(self, values: Sequence[Value]) -> None:
        """Defines inputs and dimensions by the values that a call passes."""
        given = dict(zip((item.name for item in self.function.inputs), values, strict=True))
        numbers = {name: value for name, value in given.items() if isinstance(value, (Tensor, Const))}
        shapes: dict[str, Binding] = {
            name: TensorShape(value.sizes, value.dtype) if isinstance(value, Tensor) else value.value
            for name, value in numbers.items()
        }
        plain = tuple(item for item in self.function.inputs if item.name in numbers)
        bind_inputs(self, replace(self.function, inputs=plain), shapes)
        for item in self.function.inputs:
            value = given[item.name]
            if item.name in self.env and self.env[item.name] is None:
                continue
            self.env[item.name] = self._argument(item, value)
            self.defined_at[item.name] = item.span

    def _argument(self, item: ast.Input, value: Value) -> Value | None:
        """The value for an input, checked against the sizes and the dtype that stand in place."""
        if isinstance(value, (TupleValue, RandomValue)):
            if item.dims is None and item.dtype is None:
                return value
            self.errors.append(self.source.error(f"'{item.name}' is no tensor", item.span, "pass a tensor"))
            return None
        for dim, size in zip(item.dims or (), value.sizes, strict=False):
            if dim.size not in (None, size):
                reason = f"the dimension '{dim.name}' is {dim.size} here, and the call passes {size}"
                self.errors.append(
                    self.source.error(reason, dim.span, "pass another tensor, or leave the size out")
                )
        if item.dtype is None or item.dtype == value.dtype.name:
            return value
        if isinstance(value, Const):
            return fold.cast(value.value, DTYPES[item.dtype])
        reason = f"'{item.name}' is {item.dtype}, and the call passes {value.dtype}"
        self.errors.append(
            self.source.error(reason, item.dtype_span, f"cast the argument with as_{item.dtype}(…)")
        )
        return None

    def _fail(self, inner: Elaborator, node: ast.Call) -> NoReturn:
        """Raises the errors of a called function: at their places in this text, or at the call."""
        name = inner.function.name
        if inner.function.source != self.function.source:
            first = inner.errors[0]
            raise self.source.error(
                f"in '{name}': {first.reason}", node.span, first.hint or "check the arguments"
            )
        self.errors += [CalledError(error, name, node.span) for error in inner.errors]
        raise Poisoned

    def contraction(self, node: ast.Contraction, name: str) -> Tensor:
        """The tensor that a contraction makes, called `name`."""
        sizes = self._sizes(node)
        output = tuple(polynomial(index, self.env, self.source) for index in node.output.indices)
        if len(output) != len(sizes):
            hint = f"write one size for each index: {node.target}[i, j : I, J]"
            raise self.source.error(
                f"'{node.target}' has {len(output)} indices and {len(sizes)} sizes", node.target_span, hint
            )
        inputs = tuple(self._access(access) for access in node.inputs)
        dtype = self._result_dtype(node, inputs)
        out = self.checked(Tensor(name, sizes, dtype), node.target_span)
        bounds = tuple(
            Range(polynomial(bound.polynomial, self.env, self.source), self._limit(bound))
            for bound in node.bounds
        )
        default = self._default(node, out)
        text = print_statement(self._spelled(node, name), attributes=False)
        origin = Origin(text, self.attributes(node, whole=True), self.place(node.span))
        indices = [*node.output.indices, *(index for access in node.inputs for index in access.indices)]
        parts = ast.walk(*indices, *(bound.polynomial for bound in node.bounds))
        names = tuple(sorted({part.name for part in parts if isinstance(part, ast.IndexName)}))
        self.made.ops.append(
            ContractionOp(out, output, node.agg, node.comb, inputs, bounds, names, default, origin)
        )
        return out

    def _result_dtype(self, node: ast.Contraction, inputs: Sequence[TypedAccess]) -> DType:
        """The dtype that the contraction names, which must hold its operands; else their common type."""
        dtypes = [access.operand.dtype for access in inputs]
        common = BOOL if node.comb == "==" else common_type_of(dtypes)
        if node.dtype is None:
            return common
        named = DTYPES[node.dtype]
        if common_type(named, common) == named:
            return named
        reason = (
            f"a contraction of {' and '.join(dict.fromkeys(map(str, dtypes)))} cannot have the dtype {named}"
        )
        hint = (
            f"the dtype holds those of the operands, here at least {common}; cast the operands or the result"
        )
        raise self.source.error(reason, node.dtype_span, hint)

    def _spelled(self, node: ast.Contraction, name: str) -> ast.Contraction:
        """The contraction with the names of its tensors in the whole program."""

        def named(access: ast.TensorAccess) -> ast.TensorAccess:
            value = self.env.get(access.tensor)
            return replace(access, tensor=value.name) if isinstance(value, Tensor) else access

        if self.site is None:
            return node
        return replace(node, output=replace(node.output, tensor=name), inputs=tuple(map(named, node.inputs)))

    def _sizes(self, node: ast.Contraction) -> tuple[int, ...]:
        if node.sizes is not None:
            return tuple(integer(self, size, "a size") for size in node.sizes)
        if not node.output.indices:
            return ()
        if node.target in self.output_sizes:
            return self.output_sizes[node.target]
        hint = f"write {node.target}[… : N, …], a size for each index"
        raise self.source.error(f"the sizes of '{node.target}' are missing", node.target_span, hint)

    def _limit(self, bound: ast.Bound) -> int:
        limit = integer(self, bound.limit, "the limit of a constraint")
        if limit < 1:
            reason = f"no value satisfies this constraint: it means 0 <= … < {limit}"
            raise self.source.error(reason, bound.span, "the limit must be at least 1")
        return limit

    def _access(self, access: ast.TensorAccess) -> TypedAccess:
        operand = self.operand(self.lookup(ast.Name(access.tensor, access.span)), access.span)
        if len(operand.sizes) != len(access.indices):
            shape = f"rank {len(operand.sizes)} ({sizes_text(operand.sizes)})"
            reason = f"'{access.tensor}' has {shape} and is used with {len(access.indices)} indices"
            raise self.source.error(reason, access.span, "give one index polynomial for each dimension")
        polynomials = tuple(polynomial(index, self.env, self.source) for index in access.indices)
        return TypedAccess(operand, polynomials, access.span)

    def _default(self, node: ast.Contraction, out: Tensor) -> Operand | None:
        if node.default is None:
            return None
        default = self.operand(self.lookup(node.default), node.default.span)
        if isinstance(default, Tensor) and default.sizes != out.sizes:
            reason = f"'{node.default.name}' is {sizes_text(default.sizes)}, '{node.target}' is {sizes_text(out.sizes)}"
            raise self.source.error(
                reason, node.default.span, "the default tensor has the shape of the result"
            )
        return default
