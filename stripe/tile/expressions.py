"""Expressions of Tile: their values, and the element-wise operations that make them."""

from __future__ import annotations

from collections.abc import Sequence

from stripe.ir.errors import StripeError
from stripe.ir.frozen import frozen
from stripe.ir.intrinsics import INTRINSICS
from stripe.ir.span import Span
from stripe.tile import ast, fold
from stripe.tile.builtins import call
from stripe.tile.calls import operand_text
from stripe.tile.library import library
from stripe.tile.operations import BINARY_OPS, UNARY_OPS, OperandError, broadcast, result_dtype
from stripe.tile.scope import FunctionScope
from stripe.tile.typed import Const, ElementwiseOp, Op, Operand, Origin, Tensor, Value


@frozen
class Expressions:
    """Evaluates the expressions of one statement, which makes the tensor `result`."""

    state: FunctionScope
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
                total = self.operand(expr.first)
                last = len(expr.rest) - 1
                for place, (op, part) in enumerate(expr.rest):
                    operands = [total, self.operand(part)]
                    name = target if place == last else None
                    total = self.operation(BINARY_OPS[op], operands, expr.span, name)
                return total
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
            if not isinstance(operand, Const) or not isinstance(operand.value, int):
                continue
            unsigned = operand.dtype.kind == "uint" and operand.value >= 0
            if operand.value.bit_length() > (64 if unsigned else 63):
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
        return integer(self.state, expr, what)

    def fresh(self, base: str) -> str:
        return self.state.made.fresh(base)

    def checked(self, tensor: Tensor, span: Span) -> Tensor:
        return self.state.checked(tensor, span)


def integer(state: FunctionScope, expr: ast.Expr, what: str) -> int:
    """The value of an expression that must be a constant integer."""
    before = len(state.made.ops)
    value = Expressions(state, ast.Assignment("T", expr, (), expr.span), "T").value(expr, None)
    del state.made.ops[before:]
    if isinstance(value, Const) and not isinstance(value.value, float):
        return int(value.value)
    found = f"it is {value.value}" if isinstance(value, Const) else "it is a tensor"
    raise state.source.error(
        f"{what} must be a constant integer; {found}", expr.span, "use sizes and integers"
    )


def operation_text(op: str, operands: Sequence[Operand]) -> str:
    """One operation as a line of Tile shows it."""
    texts = [operand_text(operand) for operand in operands]
    symbol = INTRINSICS[op].symbol
    if symbol:
        return f"{texts[0]} {symbol} {texts[1]}" if len(texts) == 2 else symbol + texts[0]
    if op == "cond":
        return f"{texts[0]} ? {texts[1]} : {texts[2]}"
    return texts[0] if op == "ident" else f"{op}({', '.join(texts)})"
