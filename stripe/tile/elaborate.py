"""Turns the statements of a Tile function into single typed operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn, cast

from stripe.ir.dtypes import BOOL, DTYPES, common_type_of
from stripe.ir.errors import StripeError, did_you_mean
from stripe.ir.intrinsics import INTRINSICS
from stripe.ir.span import Span
from stripe.poly.index_sets import Range
from stripe.tile import ast, fold
from stripe.tile.builtins import call
from stripe.tile.calls import operand_text
from stripe.tile.diagnostics import CalledError, SourceText
from stripe.tile.inputs import Bindings, bind_inputs, check_outputs, check_sizes
from stripe.tile.library import library
from stripe.tile.operations import BINARY_OPS, UNARY_OPS, OperandError, broadcast, result_dtype
from stripe.tile.polynomials import FailedAssertion, Poisoned, polynomial
from stripe.tile.printer import print_statement
from stripe.tile.shapes import Binding, TensorShape, sizes_text
from stripe.tile.typed import (
    Const,
    ContractionOp,
    ElementwiseOp,
    Op,
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


@dataclass(slots=True)
class Expansion:
    """What the functions of one binding make together: operations, the names of tensors, and the arguments of each
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


@dataclass(frozen=True, slots=True)
class CallSite:
    """The call in whose place the statements of a function stand: the name of its result, the attributes of its
    statement, its place, and the functions around it.
    """

    result: str
    attributes: tuple[ast.Attribute, ...]
    span: Span
    stack: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Elaborator(Bindings):
    """The state of one function: the main one, or one that is called at `site`."""

    function: ast.Function
    made: Expansion = field(default_factory=Expansion)
    site: CallSite | None = None
    tensors: dict[str, str] = field(default_factory=dict[str, str])
    """The tensor that a statement of a called function makes, by its target."""
    failed_assertions: dict[str, StripeError] = field(default_factory=dict[str, StripeError])
    """By the name that the statement defines."""
    output_sizes: dict[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])

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

    def call(
        self, function: ast.Function, node: ast.Call, values: Sequence[Value], statement: ast.Stmt, name: str
    ) -> Value:
        """The value of a function, whose statements take the place of the call: that of its output, or a tuple."""
        stack = (*(self.site.stack if self.site is not None else ()), function.name)
        self._check_call(function, node, stack)
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

    def _check_call(self, function: ast.Function, node: ast.Call, stack: tuple[str, ...]) -> None:
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
            return fold.convert(value.value, DTYPES[item.dtype])
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

    def lookup(self, node: ast.Name) -> Value:
        """What a name stands for; raises StripeError when it is not defined (yet)."""
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
        check_sizes(self.source, tensor.name, tensor.sizes, tensor.dtype.bytes, span)
        return tensor

    def integer(self, expr: ast.Expr, what: str) -> int:
        """The value of an expression that must be a constant integer."""
        before = len(self.made.ops)
        value = Expressions(self, ast.Assignment("T", expr, (), expr.span), "T").value(expr, None)
        del self.made.ops[before:]
        if isinstance(value, Const) and not isinstance(value.value, float):
            return int(value.value)
        found = f"it is {value.value}" if isinstance(value, Const) else "it is a tensor"
        raise self.source.error(
            f"{what} must be a constant integer; {found}", expr.span, "use sizes and integers"
        )

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
        dtypes = [access.operand.dtype for access in inputs]
        dtype = BOOL if node.comb == "==" else common_type_of(dtypes)
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
            return tuple(self.integer(size, "a size") for size in node.sizes)
        if not node.output.indices:
            return ()
        if node.target in self.output_sizes:
            return self.output_sizes[node.target]
        hint = f"write {node.target}[… : N, …], a size for each index"
        raise self.source.error(f"the sizes of '{node.target}' are missing", node.target_span, hint)

    def _limit(self, bound: ast.Bound) -> int:
        limit = self.integer(bound.limit, "the limit of a constraint")
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

    def operand(self, value: Value, span: Span) -> Operand:
        """A value as an operand; raises StripeError for tuples and random states."""
        if isinstance(value, (Tensor, Const)):
            return value
        if isinstance(value, TupleValue):
            raise self.source.error("a tuple cannot be computed with", span, "take an element: element(T, 0)")
        raise self.source.error(
            "the result of prng_step cannot be computed with", span, "use prng_value(R) and prng_state(R)"
        )

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


@dataclass(frozen=True, slots=True)
class Expressions:
    """Evaluates the expressions of one statement, which makes the tensor `result`."""

    state: Elaborator
    statement: ast.Assignment
    result: str

    def value(self, expr: ast.Expr, target: str | None) -> Value:
        """The value of `expr`; a new tensor is called `target`, or by a fresh name where that is None."""
        match expr:
            case ast.IntLit(value):
                return fold.integer(value)
            case ast.FloatLit():
                return fold.float_(expr.value)
            case ast.Name():
                return self.state.lookup(expr)
            case ast.IndexName(name):
                raise self.error(
                    f"the index '{name}' cannot stand here", expr.span, "use index(X, dimension)"
                )
            case ast.Unary(op, operand):
                return self.operation(UNARY_OPS[op], [self.operand(operand)], expr.span, target)
            case ast.Chain():
                return self._chain(expr, target)
            case ast.Cond(condition, then, other):
                operands = [self.operand(part) for part in (condition, then, other)]
                return self.condition(operands, expr.span, target)
            case ast.Call():
                return call(self, expr, target)

    def operand(self, expr: ast.Expr) -> Operand:
        """The value of an expression that must be a tensor or a number."""
        return self.state.operand(self.value(expr, None), expr.span)

    def error(self, reason: str, span: Span, hint: str) -> StripeError:
        return self.state.source.error(reason, span, hint)

    def _chain(self, expr: ast.Chain, target: str | None) -> Operand:
        total = self.operand(expr.first)
        last = len(expr.rest) - 1
        for place, (op, part) in enumerate(expr.rest):
            operands = [total, self.operand(part)]
            total = self.operation(BINARY_OPS[op], operands, expr.span, target if place == last else None)
        return total

    def operation(self, op: str, operands: Sequence[Operand], span: Span, target: str | None) -> Operand:
        """One element-wise operation: folded when all operands are constants."""
        try:
            constants = [operand for operand in operands if isinstance(operand, Const)]
            if len(constants) == len(operands):
                folded = fold.fold(op, constants)
                if folded is not None:
                    return folded
            dtype = result_dtype(op, [operand.dtype for operand in operands])
            sizes = broadcast([operand.sizes for operand in operands])
        except OperandError as error:
            raise self.error(str(error), span, error.hint) from None
        for operand in operands:
            if (
                isinstance(operand, Const)
                and isinstance(operand.value, int)
                and operand.value.bit_length() > 63
            ):
                raise self.error("the constant does not fit 64 bits", span, "compute with smaller sizes")
        out = self.state.checked(Tensor(self.name(target), sizes, dtype), span)
        self.emit(
            ElementwiseOp(out, op, tuple(operands), self.origin(out.name, operation_text(op, operands), span))
        )
        return out

    def condition(self, operands: Sequence[Operand], span: Span, target: str | None) -> Operand:
        """`condition ? then : other`; of a constant condition only the branch that it takes is kept."""
        condition, *branches = operands
        if not isinstance(condition, Const) or all(isinstance(branch, Const) for branch in branches):
            return self.operation("cond", operands, span, target)
        taken = branches[0 if condition.value else 1]
        dtype = result_dtype("cond", [operand.dtype for operand in operands])
        try:
            sizes = broadcast([branch.sizes for branch in branches])
        except OperandError as error:
            raise self.error(str(error), span, error.hint) from None
        if (taken.dtype, taken.sizes) == (dtype, sizes):
            return taken
        out = self.state.checked(Tensor(self.name(target), sizes, dtype), span)
        self.emit(ElementwiseOp(out, "ident", (taken,), self.origin(out.name, operand_text(taken), span)))
        return out

    def function(self, name: str) -> ast.Function | None:
        """The function of the file, or of the library, that is called so."""
        return self.state.made.functions.get(name) or library().get(name)

    def expansion(
        self, function: ast.Function, node: ast.Call, values: Sequence[Value], target: str | None
    ) -> Value:
        return self.state.call(function, node, values, self.statement, self.name(target))

    def name(self, target: str | None) -> str:
        """The name of a new tensor: the target, or one derived from the target of the statement."""
        return target if target is not None else self.state.made.fresh(self.result)

    def origin(self, name: str, text: str, span: Span) -> Origin:
        """The origin of an operation of this statement; only the one that makes its target gets the kernel's name."""
        attributes = self.state.attributes(self.statement, whole=name == self.result)
        return Origin(f"{name} = {text}", attributes, self.state.place(span))

    def emit(self, op: Op) -> None:
        self.state.made.ops.append(op)

    @property
    def softmaxes(self) -> dict[str, tuple[Operand, ...]]:
        return self.state.made.softmaxes

    def integer(self, expr: ast.Expr, what: str) -> int:
        return self.state.integer(expr, what)

    def fresh(self, base: str) -> str:
        return self.state.made.fresh(base)

    def checked(self, tensor: Tensor, span: Span) -> Tensor:
        return self.state.checked(tensor, span)


def operation_text(op: str, operands: Sequence[Operand]) -> str:
    """One operation as a line of Tile shows it."""
    texts = [operand_text(operand) for operand in operands]
    symbol = INTRINSICS[op].symbol
    if symbol:
        return f"{texts[0]} {symbol} {texts[1]}" if len(texts) == 2 else symbol + texts[0]
    if op == "cond":
        return f"{texts[0]} ? {texts[1]} : {texts[2]}"
    return texts[0] if op == "ident" else f"{op}({', '.join(texts)})"
