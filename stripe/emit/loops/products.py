"""Products that sums take: of floats, rounded together with their sum, and of bytes, which instructions sum."""

from __future__ import annotations

from collections import Counter

from stripe.ir import DTYPES, Agg, Block, Intrinsic, Load, Store, scalars_used


def products(block: Block) -> dict[str, tuple[str, str]]:
    """The products that a sum by aggregation alone uses, with their factors: each may be rounded together with it."""
    uses = Counter(name for statement in block.statements for name in scalars_used(statement))
    sums = {
        ref.name
        for ref in block.refinements
        if ref.agg is Agg.ADD and ref.dtype.is_float and not ref.dtype.is_narrow
    }
    summed = {s.value for s in block.statements if isinstance(s, Store) and s.ref in sums}
    return {
        statement.into: (statement.inputs[0], statement.inputs[1])
        for statement in block.statements
        if isinstance(statement, Intrinsic)
        and statement.op == "mul"
        and statement.into in summed
        and uses[statement.into] == 1
    }


def dot_factors(block: Block) -> tuple[str, str] | None:
    """The refinements of the factors, where a block does nothing but load two integers of 8 bits, widen them to the 32
    bits of a sum, and add their product to it."""
    loads: dict[str, str] = {}
    casts: dict[str, str] = {}
    products: dict[str, tuple[str, str]] = {}
    sums = 0
    for statement in block.statements:
        match statement:
            case Load(into, ref) if block.ref(ref).dtype == DTYPES["i8"]:
                loads[into] = ref
            case Intrinsic(into, "cast", (value,), dtype) if dtype == DTYPES["i32"] and value in loads:
                casts[into] = value
            case Intrinsic(into, "mul", (first, second)) if {first, second} == casts.keys():
                products[into] = loads[casts[first]], loads[casts[second]]
            case Store(ref, value) if value in products:
                view = block.ref(ref)
                sums += view.agg is Agg.ADD and view.dtype == DTYPES["i32"]
            case _:
                return None
    whole = (len(loads), len(casts), len(products), sums, len(block.statements)) == (2, 2, 1, 1, 6)
    return next(iter(products.values())) if whole and len(set(casts.values())) == 2 else None
