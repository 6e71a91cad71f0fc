"""Random kernels with a sum of products beside element-wise chains, of which a compiler may contract the sum alone.

Each sum has one product that is not 0, and none is too small for its dtype: no order and no contraction of a
sum changes its bits.
"""

from __future__ import annotations

from random import Random

import numpy as np

import stripe
from stripe.ir import Program

ELEMENTS = 48
_INPUTS = ("A", "B", "C", "D")
_TERMS = 3
_SIMPLE = ("add", "add", "add", "sub", "sub", "neg", "max", "min", "relu", "cond", "ident", "cast", "select")
_ALL = (*_SIMPLE, "div", "abs", "floor", "sqrt", "index")
_CONSTANTS = ("2.0", "0.25", "-1.0", "4.0", "0.5", "1.0", "3.0e38", "1.0e-40", "0.0", "-0.0", "0.1")


def extremes(seed: int) -> dict[str, np.ndarray]:
    """The largest, the smallest and usual numbers, often the same in several inputs."""
    random = np.random.default_rng(seed)
    largest = float(np.finfo(np.float32).max)
    special = [
        largest,
        largest / 2,
        3e38,
        2e38,
        1.2e-38,
        1e-38,
        1e-45,
        3e-45,
        5e-44,
        0.0,
        1.0,
        0.1,
        1 / 3,
        7.5,
    ]
    shape = (len(_INPUTS), ELEMENTS)
    drawn = random.choice(np.array(special, np.float32), shape) * random.choice([-1, 1], shape)
    scale = random.choice([1e38, 1e-44, 1.0], (1, ELEMENTS))
    drawn = np.where(random.random(shape) < 0.5, random.standard_normal(shape) * scale, drawn)
    drawn = np.clip(drawn, -largest, largest).astype(np.float32)
    one_hot = np.zeros((ELEMENTS, _TERMS), np.float32)
    one_hot[np.arange(ELEMENTS), random.integers(0, _TERMS, ELEMENTS)] = random.choice([1, -1], ELEMENTS)
    usual = random.uniform(0.5, 2.0, (2, ELEMENTS)).astype(np.float32)
    return {**dict(zip(_INPUTS, drawn, strict=True)), "G": usual[0], "H": usual[1], "M": one_hot}


class _Body:
    """The statements of a kernel while they are drawn: the names of values and what the locals hold."""

    def __init__(self, random: Random, ops: tuple[str, ...]) -> None:
        self.random, self.ops = random, ops
        self.lines: list[str] = []
        self.values: list[str] = []
        self._count = 0

    def let(self, text: str) -> str:
        name = f"$v{self._count}"
        self._count += 1
        self.lines.append(f"{name} = {text}")
        return name

    def value(self) -> str:
        """A value, of which the last ones are the most likely."""
        return self.random.choice([*self.values, *self.values[-3:]])

    def value_or_constant(self) -> str:
        if self.random.random() < 0.15:
            return self.let(f"(fp32) {self.random.choice(_CONSTANTS)}")
        return self.value()

    def operation(self) -> None:
        op = self.random.choice(self.ops)
        match op:
            case "add" | "sub" | "max" | "min" | "div":
                made = f"{op}({self.value()}, {self.value_or_constant()})"
            case "cond" | "select":
                test = self.let(
                    f"{self.random.choice(['cmp_lt', 'cmp_ge'])}({self.value()}, {self.value_or_constant()})"
                )
                made = f"cond({test}, {self.value_or_constant()}, {self.value()})"
                if op == "select":  # the same condition again
                    self.values.append(self.let(made))
                    made = f"cond({test}, {self.value()}, {self.value()})"
            case "cast":
                other = self.random.choice(["fp64", "bf16", "fp16", "i32"])
                made = f"cast({self.let(f'cast({self.value()}, {other})')}, fp32)"
            case "index":
                number = self.let(f"cast({self.let('load_index(i)')}, fp32)")
                test = self.let(f"cmp_lt({number}, {self.let('(fp32) 20.0')})")
                large, small = (self.let(f"(fp32) {self.random.choice(_CONSTANTS)}") for _ in range(2))
                made = f"cond({test}, {large}, {small})"
            case _:
                made = f"{op}({self.value()})"
        self.values.append(self.let(made))


def _nested(number: int) -> list[str]:
    """A sum over an index of its own, of which one term is not 0."""
    return [
        f"block [k:{_TERMS}] ( // terms",
        f"in<[0]> X = {'AB'[number % 2]}v[0] fp32(1:1)",
        "in<[0]> W = Mv[0, k] fp32(1:3, 1:1)",
        "out<[0]> Q = S[0]:add fp32(1:1)",
        ") {",
        "0: $x = load(X)",
        "1: $w = load(W)",
        "2: $p = mul($x, $w)",
        "3: Q = store($p)",
        "}",
    ]


def _kernel(number: int, random: Random) -> list[str]:
    body = _Body(random, random.choice([_SIMPLE, _SIMPLE, _ALL]))
    body.values = [body.let(f"load({name}v)") for name in (*_INPUTS, "E")]
    body.lines += ["$g = load(Gv)", "$h = load(Hv)", "$w = load(Wv)"]
    body.values += ["$g", "$h"]
    for _ in range(random.randint(0, 4)):
        body.operation()
    if random.random() < 0.5:
        body.lines += ["\n".join(_nested(random.randint(0, 1)))]
    else:
        factors = random.choice([(body.value(), "$w"), ("$g", "$h"), ("$g", "$g")])
        product = body.let(f"mul({', '.join(factors)})")
        body.lines.append(f"S = store({product})")
    body.values.append(body.let("load(S)"))
    for _ in range(random.randint(2, 9)):
        body.operation()
        if random.random() < 0.2:
            local = random.choice(["L0", "L1"])
            if f"{local} = " not in "\n".join(body.lines):
                body.lines.append(f"{local} = store({body.value()})")
                body.values.append(body.let(f"load({local})"))
    body.lines.append(f"Ov = store({body.values[-1]})")
    locals_ = [name for name in ("L0", "L1") if f"{name} = " in "\n".join(body.lines)]
    return [
        f"{number}: #kernel block [i:{ELEMENTS}] ( // k{number}",
        *(f"in<[0]> {name}v = {name}[i] fp32(1:1)" for name in (*_INPUTS, "G", "H")),
        f"in<[0]> Wv = M[i, {random.randint(0, 2)}] fp32(1:3, 1:1)",
        f"in<[0]> Ev = {random.choice(['A2', 'B'])}[i] fp32(1:1)",
        "in<[0]> Mv = M[i, 0] fp32(1:3, 3:1)",
        "none new@0x00000000<[0]> S[0]:add fp32(1:1)",
        *(f"none new@0x00000000<[0]> {name}[0]:assign fp32(1:1)" for name in locals_),
        f"out<[0]> Ov = O{number}[i]:assign fp32(1:1)",
        ") {",
        *(f"{place}: {line}" for place, line in enumerate(body.lines)),
        "}",
    ]


def contracted_kernels(seed: int, count: int) -> Program:
    """A program of `count` kernels, each with an output."""
    random = Random(seed)
    users = [
        *(f"{name}[0] fp32({ELEMENTS}:1)" for name in (*_INPUTS, "G", "H", *(f"O{n}" for n in range(count)))),
        f"M[0, 0] fp32({ELEMENTS}:3, 3:1)",
    ]
    views = [
        *(f"in<[0]> {name}[0] fp32({ELEMENTS}:1)" for name in (*_INPUTS, "G", "H")),
        f"in<[0]> A2 = A[0] fp32({ELEMENTS}:1)",
        f"in<[0]> M[0, 0] fp32({ELEMENTS}:3, 3:1)",
        *(f"out<[0]> O{number}[0]:assign fp32({ELEMENTS}:1)" for number in range(count)),
    ]
    lines = [
        "0: #program block [] ( // contracted",
        *(f"#user none new@0x00000000<[0]> {user}" for user in users),
        ") {",
        "0: #main block [] ( // main",
        *views,
        ") {",
        *(line for number in range(count) for line in _kernel(number, random)),
        "}",
        "}",
    ]
    return stripe.parse("\n".join(lines), name=f"contracted{seed}.stripe")
