"""A second, naive execution of programs: one point after the other in a random order, elements in dictionaries.

It shares nothing with the interpreter, so that the two check each other. It knows integers and the statements that the
property tests generate; a wrong access raises KeyError.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import product

from stripe.ir import (
    Affine,
    Agg,
    Block,
    Constant,
    FloorDiv,
    Intrinsic,
    Load,
    LoadIndex,
    Program,
    Store,
    beginnings,
)

Elements = dict[tuple[int, ...], int]
View = tuple[Elements, tuple[int, ...]]


def run(program: Program, inputs: Mapping[str, Elements], seed: int) -> dict[str, Elements]:
    """The outputs; elements that nobody wrote are missing in them."""
    order = random.Random(seed)
    entry = program.entry
    views = {
        ref.name: (inputs.get(ref.name) or _fresh(entry, ref.name), (0,) * ref.rank)
        for ref in entry.refinements
    }
    for statement in entry.blocks:
        _block(statement, {}, views, order)
    return {ref.name: views[ref.name][0] for ref in program.outputs}


def _fresh(block: Block, name: str) -> Elements:
    agg, ref = beginnings(block)[name], block.ref(name)
    if agg is Agg.ASSIGN:
        return {}
    identity = int(agg.identity(ref.dtype))
    return dict.fromkeys(product(*(range(size) for size in ref.sizes)), identity)


def _value(affine: Affine, env: Mapping[str, int]) -> int:
    total = affine.offset
    for atom, coefficient in affine.terms:
        if isinstance(atom, str):
            total += coefficient * env[atom]
        elif isinstance(atom, FloorDiv):
            total += coefficient * (_value(atom.arg, env) // atom.divisor)
        else:
            total += coefficient * (_value(atom.arg, env) % atom.modulus)
    return total


def _block(block: Block, outer: Mapping[str, int], outside: Mapping[str, View], order: random.Random) -> None:
    ranges = [
        range(index.range) if index.affine is None else [_value(index.affine, outer)]
        for index in block.indices
    ]
    points = list(product(*ranges))
    order.shuffle(points)
    for point in points:
        env = {index.name: value for index, value in zip(block.indices, point, strict=True)}
        if all(_value(constraint.affine, env) >= 0 for constraint in block.constraints):
            _point(block, env, outside, order)


def _point(block: Block, env: Mapping[str, int], outside: Mapping[str, View], order: random.Random) -> None:
    views: dict[str, View] = {}
    for ref in block.refinements:
        if ref.is_alloc:
            views[ref.name] = (_fresh(block, ref.name), (0,) * ref.rank)
        else:
            elements, origin = outside[ref.source]
            step = [_value(affine, env) for affine in ref.access]
            views[ref.name] = (elements, tuple(o + s for o, s in zip(origin, step, strict=True)))
    scalars: dict[str, int] = {}
    for statement in block.statements:
        match statement:
            case Block():
                _block(statement, env, views, order)
            case Load(into, name):
                elements, origin = views[name]
                scalars[into] = elements[origin]
            case LoadIndex(into, affine):
                scalars[into] = _value(affine, env)
            case Constant(into, value):
                scalars[into] = int(value)
            case Intrinsic(into, op, (a, b)):
                scalars[into] = _wrapped(scalars[a] + scalars[b] if op == "add" else scalars[a] * scalars[b])
            case Store(name, value):
                elements, origin = views[name]
                elements[origin] = _merged(block.ref(name).agg, elements.get(origin, 0), scalars[value])
            case _:
                raise NotImplementedError(statement)


def _merged(agg: Agg, old: int, new: int) -> int:
    match agg:
        case Agg.ASSIGN:
            return new
        case Agg.ADD:
            return _wrapped(old + new)
        case Agg.MUL:
            return _wrapped(old * new)
        case Agg.MIN:
            return min(old, new)
        case Agg.MAX:
            return max(old, new)


def _wrapped(value: int) -> int:
    """As an i32 holds it."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)
