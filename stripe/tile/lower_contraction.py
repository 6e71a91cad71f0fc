"""Lowering of a contraction: its exact index set, a kernel for its points, and kernels that fill untouched elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stripe.ir import INTRINSICS, Affine, Agg, Block
from stripe.ir.dtypes import BOOL, DType, common_type
from stripe.ir.errors import StripeError
from stripe.poly.coverage import find_collision, uncovered
from stripe.poly.index_sets import EmptyDomain, IndexSet, Range, UnboundedIndex, solve
from stripe.poly.lattice import Polynomial
from stripe.poly.limits import PolyLimit
from stripe.tile.diagnostics import SourceText
from stripe.tile.kernel import Kernel, Scalar, kernel_name, tile_index_names
from stripe.tile.typed import Const, ContractionOp, Operand, Origin

AGGREGATIONS: dict[str, Agg] = {agg.symbol: agg for agg in Agg}
COMBINATIONS: dict[str, str] = {"+": "add", "*": "mul", "==": "eq", "?": "cond"}


def lower_contraction(
    op: ContractionOp, name: str, tensor_names: dict[str, str], source: SourceText
) -> tuple[Block, ...]:
    """The kernel, after the kernels that fill the untouched elements.

    Raises StripeError for an unbounded index, an empty index set, an aggregation that does not take the dtype, and an
    assignment that writes an element twice.
    """
    agg = AGGREGATIONS[op.agg]
    if not agg.takes(op.out.dtype):
        reason = f"'{op.agg}' does not aggregate {op.out.dtype}"
        raise source.error(reason, op.origin.span, "cast the operands, or aggregate by another operator")
    index_set = _index_set(op, source)
    access = tuple(map(index_set.affine, op.output))
    try:
        if op.agg == "=":
            _check_assign(op, index_set, access, source)
        # a name for each dimension of the output: its index where it is a plain one
        names: list[str] = []
        for place, polynomial in enumerate(op.output):
            plain = polynomial.single_name
            names.append(plain if plain is not None and plain not in names else f"i{place + 1}")
        distinct = len(set(names)) == len(names)
        coordinates = (
            tuple(tile_index_names(names).values())
            if distinct
            else tuple(f"i{n + 1}" for n in range(len(names)))
        )
        missing = uncovered(index_set.domain, access, op.out.sizes, coordinates)
    except PolyLimit:
        raise _too_complex(op, source) from None
    # elements that no point touches get 0, or those of the default tensor
    default: Operand = op.default if op.default is not None else Const(0, op.out.dtype)
    origin = Origin("untouched elements of: " + op.origin.text, (), op.origin.span)
    filler = f"{kernel_name(name, op.origin)}_init"
    kernels: list[Block] = []
    for number, piece in enumerate(missing):
        values = dict(piece.values)
        element = tuple(values[coordinate] for coordinate in coordinates)
        kernel = Kernel(tensor_names)
        kernel.store(op.out, element, kernel.load(default, element, op.out.dtype))
        label = f"{filler}_{number}" if number else filler
        kernels.append(kernel.block(label, piece.indices, piece.domain.constraints, ("init",), origin))
    kernel = Kernel(tensor_names)
    kernel.store(op.out, access, kernel.cast(_combine(op, index_set, kernel), op.out.dtype), agg)
    comb = f"comb_op_{COMBINATIONS[op.comb]}" if op.comb else f"agg_op_{agg.value}_no_comb_op"
    words = ["contraction", f"agg_op_{agg.value}", comb]
    narrow = all(
        a.operand.dtype.is_integer and 4 * a.operand.dtype.bits <= op.out.dtype.bits for a in op.inputs
    )
    if narrow and op.out.dtype.is_integer and words[1:] == ["agg_op_add", "comb_op_mul"]:
        words.append("widening")
    kernels.append(kernel.block(name, index_set.indices, index_set.domain.constraints, words, op.origin))
    return tuple(kernels)


def _index_set(op: ContractionOp, source: SourceText) -> IndexSet:
    rename = tile_index_names(op.indices)
    demands = list(map(Range, op.output, op.out.sizes))
    for access in op.inputs:
        demands += map(Range, access.polynomials, access.operand.sizes)
    demands += op.bounds
    ranges: dict[Range, None] = {}  # without repetition, in order
    for item in demands:
        terms = {rename[name]: value for name, value in item.polynomial.terms}
        ranges[Range(Polynomial.of(terms, item.polynomial.offset), item.size)] = None
    try:
        found = solve(tuple(rename.values()), tuple(ranges))
    except UnboundedIndex as error:
        name = next(index for index, local in rename.items() if local == error.name)
        hint = f"use '{name}' alone in an access, or add a constraint such as '{name} < N'"
        raise source.error(f"the index '{name}' is not bounded", op.origin.span, hint) from None
    except EmptyDomain as error:
        cause = "" if error.cause is None else f": {polynomial_text(error.cause)} never fits"
        fractional = any(item.polynomial.denominator() > 1 for item in demands)
        extra = "; a fractional access needs exact divisibility" if fractional else ""
        reason = f"no point satisfies all accesses and constraints{cause}"
        hint = f"check the offsets against the sizes{extra}"
        raise source.error(reason, op.origin.span, hint) from None
    except PolyLimit:
        raise _too_complex(op, source) from None
    back = {local: index for index, local in rename.items()}
    return replace(found, values=tuple((back[name], value) for name, value in found.values))


def polynomial_text(polynomial: Polynomial) -> str:
    """A rational polynomial as Tile writes it."""
    parts = [str(polynomial.offset)] if polynomial.offset or polynomial.is_constant else []
    parts += [name if value == 1 else f"{value}*{name}" for name, value in polynomial.terms]
    return " + ".join(parts).replace("+ -", "- ")


def _too_complex(op: ContractionOp, source: SourceText) -> StripeError:
    return source.error(
        "the index set is too complex to compute", op.origin.span, "split the contraction into simpler ones"
    )


def _check_assign(
    op: ContractionOp, index_set: IndexSet, access: Sequence[Affine], source: SourceText
) -> None:
    collision = find_collision(index_set.domain, access)
    if collision is None:
        return
    element = f"{op.out.name}[{', '.join(map(str, collision.element))}]"
    points: list[str] = []
    for point in (collision.first, collision.second):
        values = {name: affine.evaluate(point) for name, affine in index_set.values}
        points.append(", ".join(f"{name}={value}" for name, value in values.items()))
    reason = f"'=' assigns {element} more than once: at {points[0]} and at {points[1]}"
    raise source.error(
        reason, op.origin.span, "aggregate with + * > or <, or add a constraint that leaves one point"
    )


def _combine(op: ContractionOp, index_set: IndexSet, kernel: Kernel) -> Scalar:
    """The scalar that a point contributes."""

    def load(place: int, dtype: DType = op.out.dtype) -> Scalar:
        item = op.inputs[place]
        return kernel.load(item.operand, tuple(map(index_set.affine, item.polynomials)), dtype)

    base = kernel.tensor_names[op.out.name]
    if op.comb == "":
        return load(0)
    if op.comb in ("==", "?"):
        common = common_type(op.inputs[0].operand.dtype, op.inputs[1].operand.dtype)
        name = base if op.comb == "==" else "eq"
        equal = kernel.intrinsic(name, "cmp_eq", [load(0, common), load(1, common)], BOOL)
        if op.comb == "==":
            return equal
        chosen = load(2)
        zero = kernel.constant(Const(op.out.dtype.numpy().type(0).item(), op.out.dtype))
        return kernel.intrinsic(base, "cond", [equal, chosen, zero], op.out.dtype)
    intrinsic = INTRINSICS[COMBINATIONS[op.comb]].on(op.out.dtype)
    return kernel.intrinsic(base, intrinsic, [load(0), load(1)], op.out.dtype)
