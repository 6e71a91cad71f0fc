"""Lowers a contraction: its exact index set, one kernel for its points, and one that fills what no point touches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from stripe.ir import INTRINSICS, Affine, Agg, Block
from stripe.ir.dtypes import BOOL, common_type
from stripe.ir.errors import StripeError
from stripe.poly.coverage import find_collision, uncovered
from stripe.poly.index_sets import EmptyDomain, IndexSet, Range, UnboundedIndex, solve
from stripe.poly.lattice import Polynomial
from stripe.poly.limits import PolyLimit
from stripe.tile.diagnostics import SourceText
from stripe.tile.kernel import Kernel, Scalar, kernel_name, tile_index_names
from stripe.tile.typed import Const, ContractionOp, Operand, Origin, Tensor

AGGREGATIONS: dict[str, Agg] = {agg.symbol: agg for agg in Agg}
COMBINATIONS: dict[str, str] = {"+": "add", "*": "mul", "==": "eq", "?": "cond"}


def lower_contraction(
    op: ContractionOp, name: str, tensor_names: dict[str, str], source: SourceText
) -> tuple[Block, ...]:
    """The kernel, after the ones that fill the untouched elements.

    Raises StripeError for an unbounded index, an empty index set, and an assignment that writes an element twice.
    """
    index_set = _index_set(op, source)
    access = tuple(map(index_set.affine, op.output))
    try:
        if op.agg == "=":
            _check_assign(op, index_set, access, source)
        coordinates = _coordinate_names(op)
        missing = uncovered(index_set.domain, access, op.out.sizes, coordinates)
    except PolyLimit:
        raise _too_complex(op, source) from None
    filler = f"{kernel_name(name, op.origin)}_init"
    fills = tuple(
        _fill(op, piece, coordinates, f"{filler}_{number}" if number else filler, tensor_names)
        for number, piece in enumerate(missing)
    )
    return (*fills, _points(op, index_set, access, name, tensor_names))


def _index_set(op: ContractionOp, source: SourceText) -> IndexSet:
    rename = tile_index_names(op.indices)
    ranges: list[Range] = []
    seen: set[Range] = set()
    for item in _ranges(op):
        renamed = Range(_renamed(item.polynomial, rename), item.size)
        if renamed not in seen:
            ranges.append(renamed)
            seen.add(renamed)
    try:
        found = solve(tuple(rename.values()), tuple(ranges))
    except UnboundedIndex as error:
        name = next(index for index, local in rename.items() if local == error.name)
        hint = f"use '{name}' alone in an access, or add a constraint such as '{name} < N'"
        raise source.error(f"the index '{name}' is not bounded", op.origin.span, hint) from None
    except EmptyDomain as error:
        raise _empty(op, error, source) from None
    except PolyLimit:
        raise _too_complex(op, source) from None
    back = {local: index for index, local in rename.items()}
    return replace(found, values=tuple((back[name], value) for name, value in found.values))


def _ranges(op: ContractionOp) -> Iterator[Range]:
    yield from map(Range, op.output, op.out.sizes)
    for access in op.inputs:
        yield from map(Range, access.polynomials, access.operand.sizes)
    yield from op.bounds


def _renamed(polynomial: Polynomial, rename: dict[str, str]) -> Polynomial:
    if all(rename[name] == name for name in polynomial.names):
        return polynomial
    return Polynomial.of({rename[name]: value for name, value in polynomial.terms}, polynomial.offset)


def _empty(op: ContractionOp, error: EmptyDomain, source: SourceText) -> StripeError:
    cause = "" if error.cause is None else f": {polynomial_text(error.cause)} never fits"
    fractional = any(item.polynomial.denominator() > 1 for item in _ranges(op))
    extra = "; a fractional access needs exact divisibility" if fractional else ""
    reason = f"no point satisfies all accesses and constraints{cause}"
    return source.error(reason, op.origin.span, f"check the offsets against the sizes{extra}")


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


def _coordinate_names(op: ContractionOp) -> tuple[str, ...]:
    """A name for each dimension of the output: its index where it is a plain one."""
    names: list[str] = []
    for place, polynomial in enumerate(op.output):
        plain = polynomial.single_name
        names.append(plain if plain is not None and plain not in names else f"i{place + 1}")
    distinct = len(set(names)) == len(names)
    return (
        tuple(tile_index_names(names).values()) if distinct else tuple(f"i{n + 1}" for n in range(len(names)))
    )


def _fill(
    op: ContractionOp, piece: IndexSet, coordinates: Sequence[str], name: str, tensor_names: dict[str, str]
) -> Block:
    """Writes 0, or the default tensor, to elements that no point of the contraction touches."""
    values = dict(piece.values)
    access = tuple(values[coordinate] for coordinate in coordinates)
    kernel = Kernel(tensor_names)
    default: Operand = op.default if op.default is not None else Const(0, op.out.dtype)
    kernel.store(op.out, access, kernel.load(default, access, op.out.dtype))
    text = "untouched elements of: " + op.origin.text
    origin = Origin(text, (), op.origin.span)
    return kernel.block(name, piece.indices, piece.domain.constraints, ("init",), origin)


def _points(
    op: ContractionOp,
    index_set: IndexSet,
    access: tuple[Affine, ...],
    name: str,
    tensor_names: dict[str, str],
) -> Block:
    kernel = Kernel(tensor_names)
    value = _combine(op, index_set, kernel)
    agg = AGGREGATIONS[op.agg]
    kernel.store(op.out, access, kernel.cast(value, op.out.dtype), agg)
    comb = f"comb_op_{COMBINATIONS[op.comb]}" if op.comb else f"agg_op_{agg.value}_no_comb_op"
    words = ("contraction", f"agg_op_{agg.value}", comb)
    return kernel.block(name, index_set.indices, index_set.domain.constraints, words, op.origin)


def _combine(op: ContractionOp, index_set: IndexSet, kernel: Kernel) -> Scalar:
    def load(place: int, dtype: str | None = None) -> Scalar:
        item = op.inputs[place]
        target = op.out.dtype if dtype is None else compared
        return kernel.load(item.operand, tuple(map(index_set.affine, item.polynomials)), target)

    base = tensor_base(op.out, kernel)
    compared = common_type(op.inputs[0].operand.dtype, op.inputs[min(1, len(op.inputs) - 1)].operand.dtype)
    if op.comb == "":
        return load(0)
    if op.comb == "==":
        return kernel.intrinsic(base, "cmp_eq", [load(0, "compared"), load(1, "compared")], BOOL)
    if op.comb == "?":
        equal = kernel.intrinsic("eq", "cmp_eq", [load(0, "compared"), load(1, "compared")], BOOL)
        chosen = load(2)
        zero = kernel.constant(Const(op.out.dtype.numpy().type(0).item(), op.out.dtype))
        return kernel.intrinsic(base, "cond", [equal, chosen, zero], op.out.dtype)
    intrinsic = INTRINSICS[COMBINATIONS[op.comb]].on(op.out.dtype)
    return kernel.intrinsic(base, intrinsic, [load(0), load(1)], op.out.dtype)


def tensor_base(tensor: Tensor, kernel: Kernel) -> str:
    """The name for the scalar that goes into `tensor`."""
    return kernel.tensor_names[tensor.name]
