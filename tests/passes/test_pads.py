"""Pads of `layout` and `pad`: what kernels compute stays, on zeros of both signs, infinities, NaN and large numbers."""

from __future__ import annotations

from functools import partial
from math import prod
from random import Random

import numpy as np
import pytest

import stripe
from stripe.exec.arith import Array
from stripe.exec.exactness import best_magnitude, order_free
from stripe.ir import DTYPES, Agg, DType, Program, StripeError, print_program, verify_structural
from stripe.passes.base import PassContext
from stripe.passes.registry import find_pass
from stripe.verify.assumptions import Assumption
from stripe.verify.proof.running import DataSet, difference

_GROUPS = 3
_KINDS = ("fp32", "fp32", "fp32", "fp16", "bf16", "fp8e4m3", "fp8e5m2", "i8", "u8", "i32")
_NARROW = ("fp16", "bf16", "fp8e4m3", "fp8e5m2", "i8", "fp32")
_LITERALS = ("0.3", "-0.0", "0.0", "17.0", "500.0", "inf", "-inf", "1.0", "-1.0")
_MERGES = (Agg.ADD, Agg.ADD, Agg.MAX, Agg.MIN, Agg.MUL)
_PADS: tuple[float | int, ...] = (0, 0, 0, -0.0, -0.0, 1, 0.5, float("inf"), float("-inf"))
_LISTS = (("pad",), ("layout",), ("pad", "layout"), ("layout", "layout"), ("layout", "layout", "pad"))


class _Text:
    """A program of independent groups of kernels, over tensors and dtypes of their own."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.entry: list[str] = []
        self.views: list[str] = []
        self.kernels: list[str] = []
        self.types: dict[str, tuple[DType, str]] = {}

    def tensor(self, name: str, dtype: DType, sizes: tuple[int, ...], role: str, way: str) -> str:
        """The name of a new tensor, which kernels use `way`."""
        strides = [prod(sizes[place + 1 :]) for place in range(len(sizes))]
        dims = ", ".join(f"{size}:{stride}" for size, stride in zip(sizes, strides, strict=True))
        zeros = ", ".join("0" * len(sizes))
        self.entry.append(f"#{role} none new@0x00000000<[0]> {name}[{zeros}] {dtype}({dims})")
        self.views.append(f"{way}<[0]> {name}[{zeros}]:assign {dtype}({dims})")
        ones = ", ".join(f"1:{stride}" for stride in strides)
        self.types[name] = dtype, f"{dtype}({ones})"
        return name

    def kernel(
        self, target: str, agg: Agg, indices: str, reads: list[str], constraints: tuple[str, ...] = ()
    ) -> None:
        """Stores a chain on what is read: `target` and `reads` are accesses such as T[i]."""
        lines = [f"#kernel #contraction block [{indices}] ( // kernel", *(f"{c} >= 0" for c in constraints)]
        code: list[str] = []
        values: list[tuple[str, DType]] = []
        for place, access in enumerate(reads):
            dtype, dims = self.types[access.split("[")[0]]
            lines.append(f"in<[0]> V{place} = {access} {dims}")
            code.append(f"$v{place} = load(V{place})")
            values.append((f"$v{place}", dtype))
        dtype, dims = self.types[target.split("[")[0]]
        lines.append(f"out<[0]> O = {target}:{agg.value} {dims}")
        value = self.chain(code, values, dtype)
        code.append(f"O = store({value})")
        body = [f"{place}: {line}" for place, line in enumerate(code)]
        self.kernels.append("\n".join([*lines, ") {", *body, "}"]))

    def chain(self, code: list[str], values: list[tuple[str, DType]], target: DType) -> str:
        """Casts, literals and operations on the values, and the result as a `target`."""
        random = self.random

        def let(text: str, dtype: DType) -> str:
            values.append((f"$v{len(code)}", dtype))
            code.append(f"$v{len(code)} = {text}")
            return values[-1][0]

        def cast(value: tuple[str, DType], dtype: DType) -> str:
            return value[0] if value[1] == dtype else let(f"cast({value[0]}, {dtype})", dtype)

        def literal(dtype: DType) -> str:
            number = random.choice(_LITERALS) if dtype.is_float else str(random.choice((0, 1, 2, 7)))
            return let(f"({dtype}) {number}", dtype)

        read = list(values)
        for _ in range(random.choice((0, 0, 0, 0, 1, 2))):
            if not values:
                break
            name, dtype = random.choice(values)
            op = random.choice(("cast", "cast", "add", "mul", "mul", "sub", "max", "min", "div", "cond"))
            if op == "cast":
                cast((name, dtype), DTYPES[random.choice(_NARROW)])
            elif op == "div":
                if dtype.is_float:
                    let(f"div({name}, {literal(dtype)})", dtype)
            elif op == "cond":
                test = let(f"cmp_lt({name}, {literal(dtype)})", DTYPES["bool"])
                values.pop()
                let(f"cond({test}, {name}, {literal(dtype)})", dtype)
            else:
                other = cast(random.choice(values), dtype) if random.random() < 0.5 else literal(dtype)
                let(f"{op}({name}, {other})", dtype)
        result = cast(values[-1] if values else (literal(target), target), target)
        for value in read[1:]:  # a product of all that is read, as of a contraction
            if random.random() < 0.7:
                result = let(f"mul({result}, {cast(value, target)})", target)
        return result

    def program(self, name: str) -> Program:
        lines = [
            "0: #program block [] ( // p",
            *self.entry,
            ") {",
            "0: #main block [] ( // main",
            *self.views,
            ") {",
        ]
        kernels = [f"{number}: {kernel}" for number, kernel in enumerate(self.kernels)]
        return stripe.parse("\n".join([*lines, *kernels, "}", "}"]), name=name)


def _group(text: _Text, number: int) -> None:
    """A temporary that is filled, made from an input, framed or updated in place; a reduction that reads it; results
    that are inputs, too."""
    random = text.random
    n, m = random.randint(2, 7), random.randint(2, 6)
    first, second = (DTYPES[random.choice(_KINDS)] for _ in range(2))
    a = text.tensor(f"A{number}", first, (n, m), "user", "in")
    b = text.tensor(f"B{number}", random.choice((first, second)), (m,), "user", "in")
    t = text.tensor(f"T{number}", random.choice((first, second)), (n + 2, m), "tmp", "inout")
    r = text.tensor(f"R{number}", second, (n,), "user", "inout")
    text.kernel(f"{t}[i, j]", Agg.ASSIGN, f"i:{n + 2}, j:{m}", [])
    middle = random.choice(([f"{a}[i, j]"], [f"{a}[i, j]", f"{b}[j]"], []))
    if middle:
        text.kernel(f"{t}[i + 1, j]", Agg.ASSIGN, f"i:{n}, j:{m}", middle)
    if random.random() < 0.2:
        text.kernel(
            f"{t}[i, j]", Agg.ASSIGN, f"i:{n + 2}, j:{m}", [f"{t}[i, j]", *random.choice(([], [f"{b}[j]"]))]
        )
    if random.random() < 0.65:  # else the reduction updates an input
        text.kernel(f"{r}[i]", Agg.ASSIGN, f"i:{n}", [f"{a}[i, 0]"])
    window = ("i + k - 1", f"{n} - i - k")
    choices = (
        (a, "i", ()),
        (t, "i + 1", ()),
        (t, "i + k", window),
        (a, "i + k - 1", window),
        (a, "i + k - 1", window),
    )
    source, row, edges = random.choice(choices)
    edges = (*edges, "i - j") if random.random() < 0.15 else edges
    factor = [f"{b}[j]"] if random.random() < 0.4 else []
    indices = f"i:{n}, j:{m}, k:3" if "k" in row else f"i:{n}, j:{m}"
    text.kernel(f"{r}[i]", random.choice(_MERGES), indices, [f"{source}[{row}, j]", *factor], edges)
    if random.random() < 0.5:
        o = text.tensor(f"O{number}", second, (n, m), "user", "out")
        text.kernel(
            f"{o}[i, j]",
            Agg.ASSIGN,
            f"i:{n}, j:{m}",
            random.choice(([f"{r}[i]", f"{t}[i, j]"], [f"{a}[i, j]"])),
        )


def _data(program: Program, random: Random) -> dict[str, Array]:
    """Small numbers, zeros of both signs, infinities and NaN; the ends of the dtypes where no sum of floats rounds."""
    generator = np.random.default_rng(random.randrange(2**32))
    found: dict[str, Array] = {}
    most, takes_any = min(3, best_magnitude(program)), order_free(program, None)
    for ref in program.inputs:
        dtype, array = ref.dtype, ref.dtype.numpy()
        signed = ((-most, most), (-most, -1), (1, most))
        low, high = random.choice(signed if dtype.kind != "uint" else ((0, most), (1, most)))
        values = generator.integers(low, high + 1, ref.logical_sizes).astype(array)
        if dtype.is_float:
            special = [0.0, -0.0, np.nan, *([np.inf, -np.inf] if dtype.has_infinity else [])]
            special += [dtype.largest, -dtype.largest] if takes_any else []
        else:
            special = [0, *([dtype.min_value, dtype.max_value] if takes_any else [])]
        share = random.choice((0.0, 0.2, 0.5))
        chosen = np.array(special).astype(array)[generator.integers(0, len(special), ref.logical_sizes)]
        found[ref.name] = np.where(generator.random(ref.logical_sizes) < share, chosen, values).astype(array)
    return found


def _padded(program: Program, random: Random) -> tuple[Program, list[str]]:
    """The program after some passes with pads, and these."""
    ran: list[str] = []
    for name in random.choice(_LISTS):
        if name == "pad":
            options: dict[str, object] = {
                "reqs": ["kernel"], "prime_threshold": random.choice((0, 0, 2)),
                "multiple_of": random.choice((2, 4, 8)), "max_growth": 9.0,
            }  # fmt: skip
        else:
            share = random.choice((0.5, 1.0, 1.0))
            names = [ref.name for ref in program.entry.allocs if random.random() < share]
            blocks = {str(random.choice((0, 0, 1))): random.randint(2, 5)}
            options = {"refs": names, "block": blocks, "pad": random.choice(_PADS)}
            options["interface"] = random.random() < 0.7
        try:
            result = find_pass(name).model_validate(options).run(program, PassContext())
        except StripeError:
            continue
        assert verify_structural(result) == [], print_program(result)
        ran += [f"{name}{options}"] if result is not program else []
        program = result
    return program, ran


def check(seed: int) -> bool:
    """Whether passes with pads changed the program of a seed; its results are the same on special values."""
    random = Random(seed)
    text = _Text(random)
    for number in range(_GROUPS):
        _group(text, number)
    program = text.program(f"pads{seed}.stripe")
    after, ran = _padded(program, random)
    if after is program:
        return False
    for _ in range(2):
        data = DataSet("specials", partial(dict, _data(program, random)))
        with np.errstate(all="ignore"):
            found = difference(program, after, data)
            if found:
                granted = frozenset({Assumption.ZERO_SIGN, Assumption.FLOAT_ORDER})
                found = difference(program, after, data, granted)
        assert not found, f"{seed}: {ran}\n{found}\n{print_program(program)}\n{print_program(after)}"
    return True


def test_pads_keep_what_kernels_compute() -> None:
    assert sum(map(check, range(16))) > 10


@pytest.mark.slow
def test_many_pads_keep_what_kernels_compute() -> None:
    for seed in range(1000, 1300):
        check(seed)
