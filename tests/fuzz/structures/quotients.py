"""Quotients by reductions of data with zeros of both signs: the sign of an infinity tells that of a zero."""

from __future__ import annotations

from dataclasses import replace

from stripe.ir import DTYPES, Affine, Agg, Direction, Index, Intrinsic, Role, Store, Tags
from tests.fuzz.structures.draft import Draft, Group, Scope
from tests.fuzz.structures.scalars import Body


def quotient(draft: Draft, scope: Scope) -> Group:
    """A reduction of some elements of an input, and a number divided by each of its results."""
    random = draft.random
    group = Group(draft)
    dtype = DTYPES[random.choice(("fp32", "fp32", "fp16", "fp64", "bf16"))]
    rows, terms = random.randint(1, 4), random.choice((1, 1, 2, 3))
    data = group.buffer("ZI", dtype, (rows, terms), role=Role.USER)
    total = group.buffer("Z", dtype, (rows,), role=Role.TEMPORARY)
    result = group.buffer("ZO", dtype, (rows,), role=Role.USER)
    rows_index, terms_index = Index("i0", rows), Index("k", terms)
    at, term = Affine.var("i0"), Affine.var("k")
    agg = random.choice((Agg.ADD, Agg.ADD, Agg.ADD, Agg.MIN, Agg.MAX, Agg.MUL))
    total = replace(total, agg=agg)
    body = Body(random, (rows_index, terms_index), {}, draft.defined)
    body.read(data, [at, term])
    if random.random() < 0.4:
        body.read(data, [at, term])
    value, *others = [name for name, _ in body.values]
    for other in others:
        value, first = body.scalar(dtype), value
        body.code.append(Intrinsic(value, "mul", (first, other)))
    body.code.append(Store(body.view(total, Direction.OUT, [at], agg).name, value))
    tags = Tags.of("kernel", "contraction", f"agg_op_{agg.value}")
    group.statements.append(body.block(f"kernel_{next(draft.numbers)}", (), tags))
    divided = Body(random, (rows_index,), {}, draft.defined)
    divided.read(total, [at])
    divisor = divided.values[0][0]
    if random.random() < 0.5:
        divided.read(data, [at, Affine()])
        number = divided.values[-1][0]
    else:
        number = divided.constant(random.choice((1.0, -1.0, 3.0)), dtype)
    quotient = divided.scalar(dtype)
    divided.code.append(Intrinsic(quotient, "div", (number, divisor)))
    divided.code.append(Store(divided.view(result, Direction.OUT, [at]).name, quotient))
    group.statements.append(divided.block(f"kernel_{next(draft.numbers)}", (), Tags.of("kernel", "eltwise")))
    draft.defined.update(("ZI", "Z"))
    group.seen["Z"] = total
    return group
