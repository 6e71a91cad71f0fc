"""Turns the statements of a Tile function into single typed operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from stripe.ir.dtypes import BOOL, common_type_of
from stripe.ir.errors import StripeError, did_you_mean
from stripe.ir.intrinsics import INTRINSICS
from stripe.ir.span import Span
from stripe.poly.index_sets import Range
from stripe.tile import ast, fold
from stripe.tile.builtins import call
from stripe.tile.calls import operand_text
from stripe.tile.diagnostics import SourceText
from stripe.tile.library import expand, library
from stripe.tile.operations import BINARY_OPS, UNARY_OPS, OperandError, broadcast, result_dtype
from stripe.tile.polynomials import FailedAssertion, Poisoned, polynomial
from stripe.tile.printer import print_statement
from stripe.tile.shapes import MAX_BYTES, sizes_text
from stripe.tile.typed import (
    Const,
    ContractionOp,
    ElementwiseOp,
    Op,
    Operand,
    Origin,
    Tensor,
    TupleValue,
    TypedAccess,
    Value,
)


@dataclass(slots=True)
class Elaborator:
    """The state of one binding: what each name means so far, the operations made, the errors found.

    A name that maps to None depends on a statement with an error; what uses it is skipped silently.
    """

    source: SourceText
    env: dict[str, Value | None] = field(default_factory=dict[str, "Value | None"])
    defined_at: dict[str, Span] = field(default_factory=dict[str, Span])
    taken: set[str] = field(default_factory=set[str])
    next_number: dict[str, int] = field(default_factory=dict[str, int])
    ops: list[Op] = field(default_factory=list[Op])
    errors: list[StripeError] = field(default_factory=list[StripeError])
    failed_assertions: dict[str, StripeError] = field(default_factory=dict[str, StripeError])
    """By the name that the statement defines."""
    output_sizes: dict[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])
    softmaxes: dict[str, tuple[Operand, ...]] = field(default_factory=dict[str, "tuple[Operand, ...]"])
    """The arguments of each tensor that a softmax made, for log(softmax(…))."""

    def statement(self, node: ast.Stmt) -> None:
        """Elaborates one statement; its errors are collected."""
        if node.target in self.defined_at:
            self.errors.append(self._redefined(node.target, node.target_span))
            return
        self.defined_at[node.target] = node.target_span
        before = len(self.ops)
        try:
            if isinstance(node, ast.Contraction):
                self.env[node.target] = self.contraction(node, node.target)
            else:
                scope = Expressions(self, node)
                self.env[node.target] = scope.value(node.value, node.target)
        except FailedAssertion as failure:
            del self.ops[before:]
            self.env[node.target] = None
            self.failed_assertions[node.target] = failure.error
        except StripeError as error:
            del self.ops[before:]
            self.env[node.target] = None
            if not isinstance(error, Poisoned):
                self.errors.append(error)

    def _redefined(self, name: str, span: Span) -> StripeError:
        first = self.defined_at[name]
        hint = f"it is defined in line {first.line}; a name is given once, so choose another"
        return self.source.error(f"'{name}' is defined twice", span, hint)

    def fresh(self, base: str) -> str:
        """A name that nothing else in the function has: `base`, else the first free one of `base_0`, `base_1`, …"""
        if base not in self.taken:
            self.taken.add(base)
            return base
        number = self.next_number.get(base, 0)
        while f"{base}_{number}" in self.taken:
            number += 1
        self.next_number[base] = number + 1
        self.taken.add(f"{base}_{number}")
        return f"{base}_{number}"

    def lookup(self, node: ast.Name) -> Value:
        """What a name stands for; raises StripeError when it is not defined (yet)."""
        if node.name not in self.env:
            known = [name for name in self.env if name != node.name]
            if node.name in self.taken:
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
        before = len(self.ops)
        value = Expressions(self, ast.Assignment("T", expr, (), expr.span)).value(expr, None)
        del self.ops[before:]
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
        origin = Origin(print_statement(node, attributes=False), node.attributes, node.span)
        self.ops.append(
            ContractionOp(
                out, output, node.agg, node.comb, inputs, bounds, _all_indices(node), default, origin
            )
        )
        return out

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

    def _access(self, access: ast.Access) -> TypedAccess:
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


def check_sizes(source: SourceText, name: str, sizes: tuple[int, ...], width: int, span: Span) -> None:
    """Raises StripeError for sizes below 1 and for tensors past 2^63 bytes."""
    for place, size in enumerate(sizes):
        if size < 1:
            reason = f"dimension {place} of '{name}' has size {size}"
            raise source.error(reason, span, "sizes are at least 1; check how this one is computed")
    count = width
    for size in sizes:
        count *= size
    if count > MAX_BYTES:
        reason = (
            f"'{name}' has {count // width} elements ({sizes_text(sizes)}), more than an address can reach"
        )
        raise source.error(reason, span, "a tensor has less than 2^63 bytes")


def _all_indices(node: ast.Contraction) -> tuple[str, ...]:
    polynomials = [*node.output.indices, *(index for access in node.inputs for index in access.indices)]
    polynomials += [bound.polynomial for bound in node.bounds]
    return tuple(sorted({part.name for part in ast.walk(*polynomials) if isinstance(part, ast.IndexName)}))


@dataclass(frozen=True, slots=True)
class Expressions:
    """Evaluates the expressions of one statement."""

    state: Elaborator
    statement: ast.Assignment

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

    def expansion(self, node: ast.Call, name: str, arguments: Sequence[Operand], target: str | None) -> Value:
        state, function, result = self.state, library()[name], self.name(target)
        actual = {
            item.name: _literal(operand, node)
            for item, operand in zip(function.inputs, arguments, strict=True)
        }
        visible = set(state.env)
        state.env.update({operand.name: operand for operand in arguments if isinstance(operand, Tensor)})
        for statement in expand(function, actual, result, state.fresh, node.span):
            last = (
                statement.target == self.statement.target
            )  # the one that gets the user's name of the kernel
            given = self.statement.attributes
            attributes = given if last else tuple(item for item in given if item.name != "pid")
            try:
                if isinstance(statement, ast.Contraction):
                    tagged = replace(statement, attributes=attributes)
                    state.env[statement.target] = state.contraction(tagged, statement.target)
                else:
                    inner = ast.Assignment(statement.target, statement.value, attributes, node.span)
                    made = Expressions(state, inner).value(statement.value, statement.target)
                    state.env[statement.target] = made
            except StripeError as error:
                reason, hint = f"in '{name}': {error.reason}", error.hint or "check the arguments"
                raise self.error(reason, node.span, hint) from None
        value = state.env[result]
        assert value is not None
        for inside in [known for known in state.env if known not in visible]:
            del state.env[inside]  # the rest of the file does not see the names of the expansion
        return value

    def name(self, target: str | None) -> str:
        """The name of a new tensor: the target, or one derived from the target of the statement."""
        return target if target is not None else self.state.fresh(self.statement.target)

    def origin(self, name: str, text: str, span: Span) -> Origin:
        """The origin of an operation of this statement; only the one that makes its target gets the kernel's name."""
        whole = name == self.statement.target
        attributes = tuple(item for item in self.statement.attributes if whole or item.name != "pid")
        return Origin(f"{name} = {text}", attributes, span)

    def emit(self, op: Op) -> None:
        self.state.ops.append(op)

    @property
    def softmaxes(self) -> dict[str, tuple[Operand, ...]]:
        return self.state.softmaxes

    def integer(self, expr: ast.Expr, what: str) -> int:
        return self.state.integer(expr, what)

    def fresh(self, base: str) -> str:
        return self.state.fresh(base)

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


def _literal(operand: Operand, node: ast.Call) -> ast.Expr:
    if isinstance(operand, Tensor):
        return ast.Name(operand.name, node.span)
    if isinstance(operand.value, float):
        return ast.FloatLit(repr(operand.value), node.span)
    return ast.IntLit(int(operand.value), node.span)
