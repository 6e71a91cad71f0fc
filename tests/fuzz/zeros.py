"""Zeros of both signs as inputs of programs that divide: the sign of an infinity tells that of a zero."""

from __future__ import annotations

from stripe.ir import Agg, Intrinsic, Program, walk
from stripe.verify.assumptions import Assumption
from stripe.verify.proof.running import DataSet, data_sets


def signed_zeros(program: Program) -> DataSet | None:
    """Inputs of which many are 0.0 and -0.0; nothing for a program without a quotient of floats."""
    if not any(_divides(statement) for _, block in walk(program.entry) for statement in block.statements):
        return None
    return next((data for data in data_sets(program) if data.breaks is Assumption.ZERO_SIGN), None)


def in_any_order(program: Program) -> bool:
    """Whether no order of merges decides the sign of a zero, as it does of minima and maxima."""
    merges = {(ref.agg, ref.dtype.is_float) for _, block in walk(program.entry) for ref in block.outputs}
    return not {(Agg.MIN, True), (Agg.MAX, True)} & merges


def _divides(statement: object) -> bool:
    return isinstance(statement, Intrinsic) and statement.op == "div"
