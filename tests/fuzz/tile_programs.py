"""Random Tile programs of one to six statements, statement by statement; what the compiler refuses is left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from stripe.ir import StripeError
from stripe.tile import ast, compile_tile
from stripe.tile.printer import print_polynomial
from tests.tile.random_polynomials import anchor, polynomials

INDICES = ("i", "j", "k", "l")
PLAIN_NAME = re.compile(r"\b[ijklmnpqrso]\b|\bc[0-9]\b")
TAKEN_NAMES = (
    "e0",
    "e1",
    "d0",
    "d1",
    "q0",
    "q1",
    "u0",
    "bank",
    "x",
    "c",
    "v0",
    "r0",
    "i0",
    "arena",
    "conv_inner",
)
"""Words of the analyses, of passes and of emitted C: as names of indices they mean nothing."""
DTYPES = ("fp32", "fp32", "fp32", "i32", "i8", "u8", "fp16", "bf16", "fp64", "i64", "u32", "i16")
AGGREGATIONS = "+ + + * > < =".split()
COMBINATIONS = ["", "", "*", "*", "*", "+", "==", "?"]
CASTS = (
    "as_float({}, 16)", "as_float({}, 32)", "as_float({}, 64)", "as_int({}, 8)", "as_int({}, 32)",
    "as_uint({}, 8)", "as_int({}, 64)", "as_bool({})",
)  # fmt: skip
UNARY = (
    "relu({})",
    "zelu({})",
    "abs({})",
    "-{}",
    "{} + 1",
    "{} * 2",
    "{} - 3",
    "2 - {}",
    "{} / 2",
    "floor({})",
)
CURVED = ("tanh({})", "exp({})", "sigmoid({})", "sqrt(abs({}))")
BINARY = ("{} + {}", "{} - {}", "{} * {}", "max({}, {})", "min({}, {})", "{} < {}", "{} == {}")
SIZES = st.sampled_from([1, 2, 3, 4, 4, 5, 6, 6, 7, 8])
BITWISE = ("{} & {}", "{} | {}", "{} ^ {}", "{} << 1", "{} >> 1", "~{}")


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor that later statements may read."""

    name: str
    sizes: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Source:
    """A Tile function in pieces."""

    inputs: tuple[Tensor, ...]
    statements: tuple[str, ...]

    def text(self, outputs: Sequence[str]) -> str:
        given = ", ".join(
            f"{t.name}[{', '.join(f'{t.name}{n}={size}' for n, size in enumerate(t.sizes))}]: {t.dtype}"
            for t in self.inputs
        )
        body = "".join(f"  {statement};\n" for statement in self.statements)
        return f"function ({given}) -> ({', '.join(outputs)}) {{\n{body}}}\n"


@st.composite
def tile_programs(draw: st.DrawFn) -> str:
    """The text of a Tile function, which may be one that the compiler refuses or crashes on (both rarely)."""
    inputs = tuple(_input(draw, f"A{n}") for n in range(draw(st.integers(1, 3))))
    tensors = list(inputs)
    source = Source(inputs, ())
    words = draw(st.permutations(TAKEN_NAMES)) if draw(st.integers(0, 2)) == 0 else ()
    wanted = draw(st.integers(1, 6))
    for _ in range(2 * wanted):
        if len(source.statements) == wanted:
            break
        name = f"T{len(source.statements)}"
        statement = _attributed(draw, _renamed(_statement(draw, name, tensors), words))
        longer = Source(inputs, (*source.statements, statement))
        try:
            made = compile_tile(longer.text([name]), "fuzz.tile").outputs[0]
        except StripeError:
            continue
        except Exception:  # noqa: BLE001 - the check of the case meets it again and reports it
            return longer.text([name])
        source = longer
        tensors.append(Tensor(name, made.sizes, made.dtype.name))
    made_names = [tensor.name for tensor in tensors[len(inputs) :]]
    if not made_names:
        return Source(inputs, (f"T0 = {inputs[0].name}",)).text(["T0"])
    if draw(st.integers(0, 7)) == 0:  # the last, as its inexact results would be told apart by what follows
        curved = draw(st.sampled_from(CURVED)).format(made_names[-1])
        source = Source(inputs, (*source.statements, f"CURVED = {curved}"))
        made_names.append("CURVED")
    outputs = {made_names[-1], *draw(st.lists(st.sampled_from(made_names), max_size=2))}
    return source.text(sorted(outputs))


def _renamed(statement: str, words: Sequence[str]) -> str:
    """The statement with other names of its indices, as many as there are words."""
    plain = dict.fromkeys(PLAIN_NAME.findall(statement))
    names = dict(zip(plain, words, strict=False))
    return PLAIN_NAME.sub(lambda found: names.get(found[0], found[0]), statement)


def _input(draw: st.DrawFn, name: str) -> Tensor:
    rank = draw(st.sampled_from([0, 1, 1, 2, 2, 2, 3, 3]))
    sizes = [draw(SIZES) for _ in range(rank)]
    return Tensor(name, tuple(sizes), draw(st.sampled_from(DTYPES)))


def _attributed(draw: st.DrawFn, statement: str) -> str:
    return (
        f"[[pid({draw(st.sampled_from(['conv', 'act']))})]] {statement}"
        if draw(st.integers(0, 5)) == 0
        else statement
    )


def _statement(draw: st.DrawFn, name: str, tensors: list[Tensor]) -> str:
    kind = draw(st.sampled_from("contraction contraction layer eltwise eltwise tensor".split()))
    if kind == "contraction":
        return _contraction(draw, name, tensors)
    if kind == "layer":
        return _layer(draw, name, tensors)
    return _elementwise(draw, name, tensors) if kind == "eltwise" else _tensor_operation(draw, name, tensors)


def _late(draw: st.DrawFn, tensors: Sequence[Tensor]) -> Tensor:
    """A tensor, the last one most often, so that statements build on one another."""
    return tensors[-1] if draw(st.booleans()) else draw(st.sampled_from(tensors))


def _contraction(draw: st.DrawFn, name: str, tensors: list[Tensor]) -> str:
    """Any accesses: halos, strides, fractions, negative signs, diagonals, constants."""
    comb = draw(st.sampled_from(COMBINATIONS))
    sources = [_late(draw, tensors) for _ in range({"": 1, "?": 3}.get(comb, 2))]
    indices = INDICES[: draw(st.integers(1, 3))]

    def place(plain: int) -> ast.Expr:
        """Mostly a polynomial of one index; of several in one of `plain` cases."""
        if draw(st.integers(0, plain)):
            return anchor(draw, draw(st.sampled_from(indices)))
        return draw(polynomials(indices))

    accesses = [[place(3) for _ in source.sizes] for source in sources]
    output = [place(3) for _ in range(draw(st.sampled_from([0, 1, 2, 2, 3])))]
    texts = [f"{s.name}[{_polynomials(a)}]" for s, a in zip(sources, accesses, strict=True)]
    bounds = [f"{index} < {draw(st.integers(1, 5))}" for index in indices if draw(st.integers(0, 3)) == 0]
    if draw(st.integers(0, 5)) == 0:
        bounds.append(f"{print_polynomial(draw(polynomials(indices)))} < {draw(st.integers(1, 6))}")
    target = f"{name}[{_polynomials(output)}{_sizes(draw, len(output))}]"
    default = ""
    agg = draw(st.sampled_from(AGGREGATIONS))
    body = {"": "{}", "?": "{} == {} ? {}"}.get(comb, f"{{}} {comb} {{}}").format(*texts)
    extra = " no_defract" if draw(st.integers(0, 5)) == 0 else ""
    if output and draw(st.integers(0, 5)) == 0:
        like = _late(draw, tensors)
        target = f"{name}[{_polynomials((output * 3)[: len(like.sizes)])}{_literal_sizes(like.sizes)}]"
        default = f" default {like.name}" if like.sizes else ""
    return f"{target} = {agg}({body}){''.join(f', {b}' for b in bounds)}{extra}{default}"


def _polynomials(indices: Sequence[ast.Expr]) -> str:
    return ", ".join(map(print_polynomial, indices))


def _sizes(draw: st.DrawFn, rank: int) -> str:
    return _literal_sizes([draw(SIZES) for _ in range(rank)])


def _literal_sizes(sizes: Sequence[int]) -> str:
    return f" : {', '.join(map(str, sizes))}" if sizes else ""


def _layer(draw: st.DrawFn, name: str, tensors: list[Tensor]) -> str:
    """What networks are made of: products, convolutions with strides and halos, poolings, copies."""
    a, b = _late(draw, tensors), draw(st.sampled_from(tensors))
    agg = draw(st.sampled_from(AGGREGATIONS))
    stride, dilation, pad = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(0, 2))
    window = f"{stride}*i + {dilation}*k - {pad}"
    others = [f"c{n}" for n in range(len(a.sizes) - 1)]
    first = f"{a.name}[{', '.join([window, *others][: len(a.sizes)])}]"
    size = draw(SIZES)
    form = draw(st.sampled_from("product convolution pooling reduction copy upsampling".split()))
    if form == "convolution" and a.sizes and b.sizes:
        second = f"{b.name}[{', '.join(['k', *others, 'o', 'o2'][: len(b.sizes)])}]"
        kept = "o" if len(b.sizes) > len(a.sizes) else ""
        sizes = [size, b.sizes[len(a.sizes)]] if kept else [size]
        return f"{name}[{', '.join(filter(None, ['i', kept]))}{_literal_sizes(sizes)}] = {agg}({first} * {second})"
    if form == "pooling" and a.sizes:
        return (
            f"{name}[{', '.join(['i', *others])}{_literal_sizes([size, *a.sizes[1:]])}] = {agg}({first}), "
            f"k < {draw(st.integers(1, 3))}"
        )
    if form == "product" and a.sizes and b.sizes:
        left = [*"mnp"[: len(a.sizes) - 1], "k"]
        right = ["k", *"qrs"[: len(b.sizes) - 1]]
        kept_indices, sizes = left[:-1] + right[1:], [*a.sizes[:-1], *b.sizes[1:]]
        body = f"{a.name}[{', '.join(left)}] * {b.name}[{', '.join(right)}]"
        wide = draw(st.sampled_from(["", "", ": i32", ": fp32", ": i64"]))
        return f"{name}[{', '.join(kept_indices)}{_literal_sizes(sizes)}]{wide} = {agg}({body})"
    if form == "upsampling" and a.sizes:
        factor = draw(st.integers(2, 3))
        return f"{name}[{factor}*i + {pad} : {draw(st.integers(3, 12))}] = {agg}({a.name}[{', '.join(['i', *others])}])"
    indices = list(INDICES[: len(a.sizes)])
    kept_dims = draw(st.permutations(range(len(indices))))
    if form == "reduction":
        kept_dims = kept_dims[: draw(st.integers(0, max(0, len(indices) - 1)))]
    sizes = _literal_sizes([a.sizes[d] for d in kept_dims])
    return (
        f"{name}[{', '.join(indices[d] for d in kept_dims)}{sizes}] = {agg}({a.name}[{', '.join(indices)}])"
    )


def _elementwise(draw: st.DrawFn, name: str, tensors: list[Tensor]) -> str:
    base = _late(draw, tensors)
    fitting = [tensor for tensor in tensors if _broadcasts(tensor.sizes, base.sizes)]

    def operand(depth: int) -> str:
        if depth == 0 or draw(st.booleans()):
            return draw(st.sampled_from([t.name for t in fitting])) if draw(st.integers(0, 4)) else base.name
        return f"({expression(depth - 1)})"

    def expression(depth: int) -> str:
        kind = draw(st.sampled_from("unary unary binary binary binary cast cond bit".split()))
        if kind == "cond":
            return f"({operand(depth)} < {operand(depth)}) ? {operand(depth)} : {operand(0)}"
        forms = {"unary": UNARY, "binary": BINARY, "cast": CASTS, "bit": BITWISE}[kind]
        form = draw(st.sampled_from(forms))
        return form.format(*[operand(depth) for _ in range(form.count("{}"))])

    return f"{name} = {expression(draw(st.integers(0, 2)))}"


def _broadcasts(first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    pairs = zip(reversed(first), reversed(second), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def _tensor_operation(draw: st.DrawFn, name: str, tensors: list[Tensor]) -> str:
    base = _late(draw, tensors)
    kind = draw(st.sampled_from("reshape index gather scatter reduce".split()))
    if kind == "index" and base.sizes:
        return f"{name} = index({base.name}, {draw(st.integers(0, len(base.sizes) - 1))})"
    if kind == "gather":
        return f"{name} = gather({base.name}, {draw(st.sampled_from(tensors)).name})"
    if kind == "scatter":
        other = draw(st.sampled_from(tensors)).name
        return f"{name} = scatter({base.name}, {other}, {draw(st.sampled_from(tensors)).name})"
    count = 1
    for size in base.sizes:
        count *= size
    factor = draw(st.sampled_from([n for n in range(1, count + 1) if count % n == 0]))
    return f"{name} = reshape({base.name}, {factor}, {count // factor})"
