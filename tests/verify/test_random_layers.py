"""Random layers of small statements, instantiated on several arrays, and edited: all answers of the proof against the
enumeration. Layers share proofs, statements write parts of several buffers, some arrays hold one number."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from stripe.ir import DTYPES, ConstantBuffer, Program, Role
from stripe.verify.enumerated_cells import InvalidProgram
from stripe.verify.enumeration import decide
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.witness import Different, Equal, Unknown
from tests.support.programs import build

CONSTANTS = {"Z": [0, 0, 0, 0], "W": [1, 1, 1, 1], "K": [3, 1, 2, 0]}
ARRAYS = ("A", "B", *CONSTANTS)
LAYERS = 3


@dataclass(frozen=True)
class Operand:
    """Two elements of an array of the layer, from `start` on; a number where the array has none."""

    array: str
    start: int


@dataclass(frozen=True)
class Step:
    """`target[start:start + 2]` becomes, or receives, the operation on two operands; several steps are one kernel."""

    target: Operand
    op: str
    operands: tuple[Operand, Operand]
    agg: str
    joined: bool
    """Whether it belongs to the kernel of the step before."""


Layer = tuple[Step, ...]


def drawn_layer(chooser: random.Random) -> Layer:
    """Steps that write buffers T and U, and the result R, from parameters P and Q."""
    halves = [Operand(array, start) for array in ("T", "U", "R") for start in (0, 2)]
    chooser.shuffle(halves)
    order = [*halves, chooser.choice(halves)]
    steps: list[Step] = []
    for number, target in enumerate(order):
        written = [each for each in order[:number] if each.array != "R"]
        agg = "add" if target in order[:number] and chooser.random() < 0.7 else "assign"
        operands = (drawn_operand(chooser, written), drawn_operand(chooser, written))
        op = chooser.choice(("add", "mul", "mul", "sub"))
        steps.append(Step(target, op, operands, agg, number > 0 and chooser.random() < 0.4))
    return tuple(steps)


def drawn_operand(chooser: random.Random, written: Sequence[Operand]) -> Operand:
    if written and chooser.random() < 0.5:
        return chooser.choice(written)
    return Operand(chooser.choice(("P", "P", "P", "Q", "Q", "0")), chooser.choice((0, 2)))


def edited(chooser: random.Random, layer: Layer) -> Layer:
    """The layer with one change, which may or may not keep the meaning."""
    place = chooser.randrange(len(layer))
    step = layer[place]
    changed: Sequence[Step]
    match chooser.choice(("operand", "operand", "swap", "join", "commute", "move", "drop")):
        case "operand":
            operands = list(step.operands)
            written = [each.target for each in layer[:place] if each.target.array != "R"]
            operands[chooser.randrange(2)] = drawn_operand(chooser, written)
            changed = [replace(step, operands=(operands[0], operands[1]))]
        case "swap" if place > 0:
            before = layer[place - 1]
            return (
                *layer[: place - 1],
                replace(step, joined=before.joined),
                replace(before, joined=False),
                *layer[place + 1 :],
            )
        case "join":
            changed = [replace(step, joined=not step.joined and place > 0)]
        case "commute":
            changed = [replace(step, operands=step.operands[::-1])]
        case "move":
            changed = [replace(step, target=replace(step.target, start=2 - step.target.start))]
        case _:
            changed = []
    return (*layer[:place], *changed, *layer[place + 1 :])


def program_of(layers: Sequence[tuple[Layer, str, str]], versions: bool) -> Program:
    """The layers on their two arrays each; layer n writes Tn, Un (or the version Tn^0) and the output Rn."""
    kernels: list[str] = []
    for n, (layer, p, q) in enumerate(layers):
        names = {"P": p, "Q": q, "T": f"T{n}", "U": f"T{n}^0" if versions else f"U{n}", "R": f"R{n}"}
        groups: list[list[Step]] = []
        for step in layer:
            if step.joined and groups:
                groups[-1].append(step)
            else:
                groups.append([step])
        kernels += [kernel(group, names, len(kernels) + k) for k, group in enumerate(groups)]
    tensors = ["in A i32(4)", "in B i32(4)", *(f"tmp {name} i32(4)" for name in CONSTANTS)]
    for n in range(len(layers)):
        second = f"T{n}^0" if versions else f"U{n}"
        tensors += [f"tmp T{n} i32(4)", f"tmp {second} i32(4)", f"out R{n} i32(4)"]
    found = build("\n".join(tensors), "\n".join(kernels))
    refs = tuple(
        replace(r, role=Role.CONSTANT) if r.name in CONSTANTS else r for r in found.entry.refinements
    )
    i32 = DTYPES["i32"]
    constants = tuple(
        ConstantBuffer(name, i32, (4,), np.array(values, np.int32).tobytes())
        for name, values in CONSTANTS.items()
    )
    return Program(replace(found.entry, refinements=refs), constants)


def kernel(steps: Sequence[Step], names: dict[str, str], number: int) -> str:
    refs: list[str] = []
    lines: list[str] = []
    for s, step in enumerate(steps):
        for o, operand in enumerate(step.operands):
            if operand.array == "0":
                lines.append(f"$x{s}{o} = (i32)0")
            else:
                refs.append(f"in I{s}{o} = {names[operand.array]}[{operand.start} + j] i32(1:1)")
                lines.append(f"$x{s}{o} = load(I{s}{o})")
        refs.append(f"out O{s} = {names[step.target.array]}[{step.target.start} + j]:{step.agg} i32(1:1)")
        lines += [f"$y{s} = {step.op}($x{s}0, $x{s}1)", f"O{s} = store($y{s})"]
    body = "\n".join(f"{place}: {line}" for place, line in enumerate(lines))
    views = "\n".join(refs)
    return f"{number}: #kernel block [j:2] ( // k{number}\n{views}\n) {{\n{body}\n}}"


def drawn_pair(seed: int) -> tuple[Program, Program]:
    chooser = random.Random(seed)
    layer = drawn_layer(chooser)
    change = edited(chooser, layer)
    versions = chooser.random() < 0.3
    uses = [(chooser.choice(ARRAYS), chooser.choice(ARRAYS)) for _ in range(LAYERS)]
    whole = chooser.random() < 0.7
    edits = [whole or chooser.random() < 0.5 for _ in uses]
    before = program_of([(layer, p, q) for p, q in uses], versions)
    after = program_of(
        [(change if edit else layer, p, q) for edit, (p, q) in zip(edits, uses, strict=True)], versions
    )
    return before, after


def judged(seed: int) -> str:
    """The outcome of a pair. What is proved is equal by the enumeration too; a difference may be unconfirmed where
    constants have the numbers for it, and is then certain by neither.
    """
    before, after = drawn_pair(seed)
    try:
        enumerated = decide(before, after)
    except InvalidProgram:
        return "invalid"
    proved = prove_equal(before, after)
    if isinstance(proved, Unknown) or isinstance(enumerated, Unknown):
        return "unknown"
    if isinstance(proved, Different) and isinstance(enumerated, Equal):
        assert not proved.certain, f"seed {seed}\n{proved}"
        return "unconfirmed"
    assert type(proved) is type(enumerated), f"seed {seed}\n{proved}\n{enumerated}"
    return type(proved).__name__


def outcomes(seeds: Sequence[int]) -> Counter[str]:
    return Counter(judged(seed) for seed in seeds)


@pytest.mark.long
def test_random_layers() -> None:
    found = outcomes(range(48))
    assert found["Different"] >= 5
    assert found["Equal"] >= 20
    assert found["unknown"] + found["unconfirmed"] <= 4


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_many_random_layers(part: int) -> None:
    found = outcomes(range(1000 + 500 * part, 1500 + 500 * part))
    assert found["Different"] >= 50
    assert found["unknown"] + found["unconfirmed"] <= 40
