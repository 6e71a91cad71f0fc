"""The statements of one point: loads, stores, scalar operations."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stripe.emit.c.function import Function
from stripe.emit.c.helpers import Helpers
from stripe.emit.c.intrinsics import intrinsic, merge
from stripe.emit.c.scalars import from_memory, is_narrow, literal, scalar_type, to_memory
from stripe.emit.c.scope import Scope
from stripe.emit.c.specials import emit_special
from stripe.emit.loops.affines import c_affine
from stripe.emit.loops.leaf import Accumulator, element_text
from stripe.ir import (
    DTYPES,
    Agg,
    Block,
    Constant,
    DType,
    Intrinsic,
    Load,
    LoadIndex,
    ScalarStatement,
    Special,
    Store,
    result_dtype,
    scalar_defined,
    scalars_used,
)

_IN_PLACE = {Agg.ADD: "+=", Agg.MUL: "*="}


class StatementEmitter:
    """Emits the scalar statements and specials of `block`, each scalar as a `const` variable of its own."""

    def __init__(
        self, helpers: Helpers, scope: Scope, block: Block, accumulators: Mapping[int, Accumulator]
    ) -> None:
        self.helpers = helpers
        self.scope = scope
        self.block = block
        self.accumulators = accumulators
        self.scalars: dict[str, tuple[str, DType]] = {}

    def live(self) -> set[int]:
        """The numbers of the statements that some store needs: compilers warn of variables that nobody uses."""
        needed: set[str] = set()
        found: set[int] = set()
        for number in range(len(self.block.statements) - 1, -1, -1):
            statement = self.block.statements[number]
            defined = scalar_defined(statement)
            if defined is None or defined in needed:
                found.add(number)
                needed.update(scalars_used(statement))
        return found

    def emit(self, number: int, statement: ScalarStatement | Store | Special, function: Function) -> None:
        """Emits one statement, number `number` of the block."""
        match statement:
            case Store():
                self._store(number, statement, function)
            case Special():
                emit_special(statement, self.scope, function, self.helpers)
            case _:
                text, dtype = self._value(statement, function)
                self._mention(statement, text, function)
                name = self.scope.names.take(self._scalar_name(statement.into))
                self.scalars[statement.into] = (name, dtype)
                function.line(f"const {scalar_type(dtype)} {name} = {text};")

    def _mention(self, statement: ScalarStatement, text: str, function: Function) -> None:
        """Uses the operands that the expression `text` does without, such as those of `x < x`."""
        words = set(re.findall(r"\w+", text))
        for name in dict.fromkeys(self.scalars[used][0] for used in scalars_used(statement)):
            if name not in words:
                function.line(f"(void){name};")

    def _scalar_name(self, name: str) -> str:
        """Scalars are often called as the buffer that they come from, or with a leading underscore."""
        return f"{name}_v" if name in self.scope.views else name.lstrip("_") or name

    def _value(self, statement: ScalarStatement, function: Function) -> tuple[str, DType]:
        match statement:
            case Load(_, ref):
                view = self.scope.views[ref]
                dtype = view.buffer.dtype
                return from_memory(self._element(ref, function), dtype, self.helpers), dtype
            case LoadIndex(_, affine):
                value = self.scope.affine(affine)
                function.use_affine(value)
                return f"(int32_t)({c_affine(value, self.scope.intervals, self.helpers)})", DTYPES["i32"]
            case Constant(_, value, dtype):
                return self.helpers.literal(literal(value, dtype)), dtype
            case Intrinsic(_, op, inputs, target):
                names = [self.scalars[name][0] for name in inputs]
                dtypes = [self.scalars[name][1] for name in inputs]
                dtype = result_dtype(op, dtypes, target)
                return intrinsic(op, names, dtypes, dtype, self.helpers), dtype

    def _element(self, ref: str, function: Function, *, write: bool = False) -> str:
        return element_text(self.scope.views[ref], self.scope, function, self.helpers, write=write)

    def _store(self, number: int, statement: Store, function: Function) -> None:
        value, dtype = self.scalars[statement.value]
        agg = self.block.ref(statement.ref).agg
        if number in self.accumulators:
            self._accumulate(self.accumulators[number].name, value, agg, dtype, function)
            return
        element = self._element(statement.ref, function, write=True)
        if agg is Agg.ASSIGN:
            function.line(f"{element} = {to_memory(value, dtype, self.helpers)};")
        elif self._is_in_place(agg, dtype):
            function.line(f"{element} {_IN_PLACE[agg]} {value};")
        elif agg in _IN_PLACE:
            new = merge(agg, from_memory(element, dtype, self.helpers), value, dtype, self.helpers)
            function.line(f"{element} = {to_memory(new, dtype, self.helpers)};")
        else:
            old = self.scope.names.take(f"{statement.ref}_old")
            function.line(f"const {scalar_type(dtype)} {old} = {from_memory(element, dtype, self.helpers)};")
            new = self.scope.names.take(f"{statement.ref}_new")
            merged = merge(agg, old, value, dtype, self.helpers)
            function.line(f"const {scalar_type(dtype)} {new} = {merged};")
            function.line(f"{element} = {to_memory(new, dtype, self.helpers)};")

    def _accumulate(self, name: str, value: str, agg: Agg, dtype: DType, function: Function) -> None:
        if self._is_in_place(agg, dtype):
            function.line(f"{name} {_IN_PLACE[agg]} {value};")
        else:
            function.line(f"{name} = {merge(agg, name, value, dtype, self.helpers)};")

    @staticmethod
    def _is_in_place(agg: Agg, dtype: DType) -> bool:
        """Whether C's compound assignment does the same: not where the type is promoted or overflow is undefined."""
        exact = dtype.is_float and not is_narrow(dtype)
        return agg in _IN_PLACE and (exact or (dtype.kind == "uint" and dtype.bits >= 32))
