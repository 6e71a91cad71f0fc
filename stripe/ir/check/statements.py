"""Checks of the statements of a block: directions, scalars, specials, dependences and aggregations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from stripe.ir.block import Block, Constant, Intrinsic, Load, LoadIndex, Special, Statement, Store
from stripe.ir.check.diagnostic import CheckedBlock, Diagnostic, nearest
from stripe.ir.dtypes import DTYPES, FP32, U32, DType
from stripe.ir.intrinsics import SPECIALS, result_dtype
from stripe.ir.refinement import Agg, Direction, Refinement
from stripe.ir.text.printer import print_statement
from stripe.ir.uses import aggregations, reads_of, scalar_defined, scalars_used, writes_of


def check_directions(scope: CheckedBlock) -> Iterator[Diagnostic]:
    """Statements read and write refinements as their directions allow."""
    for number, statement in enumerate(scope.block.statements):
        if isinstance(statement, Block):
            continue  # its views are checked with the block
        for names, verb in ((reads_of(statement), "read"), (writes_of(statement), "written")):
            for name in names:
                ref = scope.refs.get(name)
                if ref is None:
                    yield scope.say(f"unknown refinement '{name}'", nearest(name, scope.refs), number)
                elif (verb == "read" and ref.dir is Direction.OUT) or (
                    verb == "written" and ref.dir is Direction.IN
                ):
                    yield scope.say(f"'{name}' is {verb} and its direction is {ref.dir.value}", number=number)


def check_scalars(scope: CheckedBlock) -> Iterator[Diagnostic]:
    """Scalars are defined once, before their use, and typed as the intrinsics demand."""
    types: dict[str, DType] = {}
    for number, statement in enumerate(scope.block.statements):
        missing = [name for name in scalars_used(statement) if name not in types]
        for name in missing:
            yield scope.say(f"scalar '${name}' is used before its definition", nearest(name, types), number)
        defined = scalar_defined(statement)
        if missing:
            if defined is not None:
                types[defined] = DTYPES["fp32"]
            continue
        try:
            dtype = _statement_dtype(scope.refs, statement, types)
        except ValueError as error:
            yield scope.say(f"{print_statement(statement)}: {error}", number=number)
            dtype = DTYPES["fp32"]
        if defined is not None and dtype is not None:
            types[defined] = dtype


def _statement_dtype(
    refs: Mapping[str, Refinement], statement: Statement, types: Mapping[str, DType]
) -> DType | None:
    match statement:
        case Load(_, ref):
            found = refs.get(ref)
            return found.dtype if found else None
        case Store(ref, value):
            found = refs.get(ref)
            if found is not None and found.dtype != types[value]:
                raise ValueError(f"stores {types[value]} into {found.dtype}")
            return None
        case LoadIndex():
            return DTYPES["i32"]
        case Constant(_, _, dtype):
            return dtype
        case Intrinsic(_, op, inputs, dtype):
            if dtype is not None and op != "cast":
                raise ValueError("only cast names a dtype")
            return result_dtype(op, [types[name] for name in inputs], dtype)
        case _:
            return None


def check_specials(scope: CheckedBlock) -> Iterator[Diagnostic]:
    """Specials are known, and their operands fit together."""
    for number, statement in enumerate(scope.block.statements):
        if not isinstance(statement, Special):
            continue
        spec = SPECIALS.get(statement.op)
        if spec is None:
            yield scope.say(f"unknown special '{statement.op}'", nearest(statement.op, SPECIALS), number)
        elif (len(statement.outputs), len(statement.inputs)) != (len(spec.outputs), len(spec.inputs)):
            yield scope.say(
                f"'{spec.name}' takes ({', '.join(spec.inputs)}) and gives ({', '.join(spec.outputs)})",
                number=number,
            )
        elif all(name in scope.refs for name in (*statement.outputs, *statement.inputs)):
            operands = [scope.refs[name] for name in (*statement.outputs, *statement.inputs)]
            if reason := _MISFITS[spec.name](*operands):
                yield scope.say(f"'{spec.name}' {reason}", number=number)


def _gather_misfit(out: Refinement, data: Refinement, index: Refinement) -> str:
    if not index.dtype.is_integer or not data.sizes:
        return f"takes integers as indices of the first dimension, not {_type(index)} of {_type(data)}"
    if (out.dtype, out.sizes) != (data.dtype, index.sizes + data.sizes[1:]):
        return f"of {_type(data)} at {_type(index)} does not give {_type(out)}"
    return ""


def _scatter_misfit(out: Refinement, updates: Refinement, index: Refinement, _: Refinement) -> str:
    if not index.dtype.is_integer or not out.sizes:
        return f"takes integers as indices of the first dimension, not {_type(index)} of {_type(out)}"
    if (updates.dtype, updates.sizes) != (out.dtype, index.sizes + out.sizes[1:]):
        return f"into {_type(out)} at {_type(index)} does not take {_type(updates)}"
    return ""


def _prng_misfit(after: Refinement, value: Refinement, state: Refinement) -> str:
    for ref in (state, after):
        if (ref.dtype, ref.sizes[:1], len(ref.sizes)) != (U32, (3,), 2):
            return f"takes and gives a state of three rows of u32, not {_type(ref)}"
    if after.sizes != state.sizes or value.dtype != FP32:
        return f"gives {_type(state)} and fp32 for {_type(state)}, not {_type(after)} and {_type(value)}"
    return ""


def _type(ref: Refinement) -> str:
    return f"{ref.dtype}({', '.join(map(str, ref.sizes))})"


_MISFITS: dict[str, Callable[..., str]] = {
    "gather": _gather_misfit, "scatter": _scatter_misfit, "prng_step": _prng_misfit,
}  # fmt: skip
"""By special, why its outputs and inputs do not fit together, or nothing."""


def check_deps(scope: CheckedBlock) -> Iterator[Diagnostic]:
    """Dependences name earlier statements, each once, in order."""
    for number, statement in enumerate(scope.block.statements):
        deps = statement.deps
        if any(not 0 <= dep < number for dep in deps):
            yield scope.say(f"depends on {list(deps)}", "a statement depends on earlier ones only", number)
        elif list(deps) != sorted(set(deps)):
            yield scope.say(f"dependences {list(deps)} are not in order", number=number)


def check_aggregations(scope: CheckedBlock) -> Iterator[Diagnostic]:
    """An aggregation takes the dtype of its view; an allocation is written with at most one other than assign."""
    for ref in scope.block.refinements:
        if not ref.agg.takes(ref.dtype):
            yield scope.say(f"'{ref.name}' is {ref.dtype}, which '{ref.agg.value}' does not take", about=ref)
    allocs = scope.block.allocs
    written = aggregations(scope.block, {ref.name for ref in allocs}) if allocs else {}
    for ref in allocs:
        aggs = sorted(agg.value for agg in written.get(ref.name, ()) if agg is not Agg.ASSIGN)
        if len(aggs) > 1:
            yield scope.say(
                f"'{ref.name}' is written with {' and '.join(aggs)}", "use a buffer for each", about=ref
            )
