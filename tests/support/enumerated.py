"""What a program does, by walking through every point: operations, bytes moved, distinct elements of leaf blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from stripe.ir import Agg, Block, Intrinsic, Load, Program, Store

Elements = frozenset[tuple[int, ...]]
Place = tuple[str, tuple[int, ...]]
"""The name of an allocation and the element of it at which a view begins."""


@dataclass
class Done:
    """Totals over a run of the program."""

    operations: Counter[str] = field(default_factory=Counter[str])
    moved: Counter[str] = field(default_factory=Counter[str])
    """Bytes by transfer block."""
    read: Counter[str] = field(default_factory=Counter[str])
    """Bytes by buffer, each distinct element once in each run of the leaf block that reads it."""
    written: Counter[str] = field(default_factory=Counter[str])


def walk_program(program: Program) -> Done:
    """Runs through every point of the program."""
    done = Done()
    _run(program.entry, {}, {}, done)
    return done


def _points(block: Block, outer: Mapping[str, int]) -> Iterator[dict[str, int]]:
    passed = {i.name: i.affine.evaluate(outer) for i in block.indices if i.affine is not None}
    own = [i for i in block.indices if i.affine is None]
    for values in product(*(range(i.range) for i in own)):
        env = {**passed, **{i.name: v for i, v in zip(own, values, strict=True)}}
        if all(c.affine.evaluate(env) >= 0 for c in block.constraints):
            yield env


def _run(block: Block, outer: Mapping[str, int], views: Mapping[str, Place], done: Done) -> None:
    transfer = block.tags.has_any(("cache_load", "cache_store", "swap_in", "swap_out"))
    touched: dict[bool, set[tuple[str, tuple[int, ...]]]] = {False: set(), True: set()}
    sizes: dict[str, int] = {}
    for env in _points(block, outer):
        here: dict[str, Place] = {}
        for ref in block.refinements:
            at = tuple(a.evaluate(env) for a in ref.access)
            if ref.is_alloc:
                here[ref.name] = (ref.name, at)
            else:
                name, base = views[ref.source]
                here[ref.name] = (name, tuple(b + a for b, a in zip(base, at, strict=True)))
            sizes[here[ref.name][0]] = ref.dtype.bytes
        for statement in block.statements:
            match statement:
                case Block():
                    _run(statement, env, here, done)
                case Load(_, ref):
                    touched[False].add(here[ref])
                case Store(ref, _):
                    touched[True].add(here[ref])
                    if transfer:
                        done.moved[block.name] += block.ref(ref).dtype.bytes
                    elif block.ref(ref).agg is not Agg.ASSIGN:
                        done.operations["add"] += 1
                case Intrinsic(_, op):
                    done.operations[op] += 1
                case _:
                    pass
    if not transfer:
        for name, _ in touched[False]:
            done.read[name] += sizes[name]
        for name, _ in touched[True]:
            done.written[name] += sizes[name]


def transferred(kernel: object, name: str) -> Iterator[tuple[tuple[int, ...], Elements]]:
    """For each point of a kernel in order: where the view of the transfer `name` begins, and what it moves."""
    assert isinstance(kernel, Block)
    (transfer,) = (block for block in kernel.blocks if block.name == name)
    far = next(ref for ref in transfer.refinements if kernel.ref(ref.source).source)
    view = kernel.ref(far.source)
    for env in _points(kernel, {}):
        origin = tuple(a.evaluate(env) for a in view.access)
        moved = (tuple(a.evaluate(inner) for a in far.access) for inner in _points(transfer, env))
        yield origin, frozenset(tuple(o + e for o, e in zip(origin, at, strict=True)) for at in moved)
