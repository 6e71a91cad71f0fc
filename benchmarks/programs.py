"""Tile programs of any number of kernels: chains of layers as networks have them.

One kernel of a program is one statement of its Tile function, and one block of its Stripe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle

from stripe.ir import Program
from stripe.tile import compile_tile

IMAGE = "I0[H=16, W=16, C=16]: i8"
MATRIX = "M0[ROWS=64, WIDTH=64]: i8"


@dataclass(slots=True)
class Chain:
    """A function under construction: its parameters, its statements, and the last activations."""

    parameters: list[str]
    last: str
    statements: list[str] = field(default_factory=list[str])
    skip: str = ""

    def weights(self, shape: str) -> str:
        """A new parameter of that shape."""
        name = f"W{len(self.parameters)}"
        self.parameters.append(f"{name}[{shape}]: i8")
        return name

    def add(self, expression: str) -> None:
        """A statement that makes the new last activations out of an expression in which `@` stands for the old."""
        name = f"T{len(self.statements)}"
        left, _, right = expression.rpartition(" := ")
        self.statements.append(f"  {name}{left} = {right.replace('@', self.last)};")
        self.last = name

    def text(self) -> str:
        """The Tile function."""
        body = "\n".join(self.statements)
        return f"function ({', '.join(self.parameters)}) -> ({self.last}) {{\n{body}\n}}\n"


def _conv3x3(chain: Chain) -> None:
    first = len(chain.parameters) == 1
    kernel = chain.weights("KH=3, KW=3, C, C" if first else "KH, KW, C, C")
    chain.add(f"[x, y, co : H, W, C] := +(@[x + i - 1, y + j - 1, ci] * {kernel}[i, j, ci, co])")


def _conv1x1(chain: Chain) -> None:
    chain.add(f"[x, y, co : H, W, C] := +(@[x, y, ci] * {chain.weights('C, C')}[ci, co])")


def _image_bias(chain: Chain) -> None:
    chain.add(f"@ + {chain.weights('C')}")


def _relu(chain: Chain) -> None:
    chain.add("relu(@)")
    chain.skip = chain.skip or chain.last


def _residual(chain: Chain) -> None:
    chain.add(f"@ + {chain.skip}")
    chain.skip = ""


def _matmul(chain: Chain) -> None:
    chain.add(f"[i, j : ROWS, WIDTH] := +(@[i, k] * {chain.weights('WIDTH, WIDTH')}[k, j])")


def _row_bias(chain: Chain) -> None:
    chain.add(f"@ + {chain.weights('WIDTH')}")


Layer = Callable[[Chain], None]

CONVOLUTIONS: tuple[Layer, ...] = (
    _conv3x3, _image_bias, _relu,
    _conv3x3, _image_bias, _residual, _relu,
    _conv1x1, _image_bias, _relu,
)  # fmt: skip
"""Ten kernels: a plain layer, a residual one, and a 1x1 convolution."""

MATMULS: tuple[Layer, ...] = (_matmul, _row_bias, _relu)
"""Three kernels: a dense layer."""


def convolutions(kernels: int) -> str:
    """Tile text of a chain of convolutions with bias, ReLU and residual additions, `kernels` statements long."""
    return _text(Chain([IMAGE], "I0"), CONVOLUTIONS, kernels)


def matmuls(kernels: int) -> str:
    """Tile text of a chain of dense layers, `kernels` statements long."""
    return _text(Chain([MATRIX], "M0"), MATMULS, kernels)


def training(layers: int) -> str:
    """Tile text of one step of training: convolutions with a scale, a bias and a ReLU, their gradients, and the
    parameters after a step of gradient descent with momentum.
    """
    inputs, outputs, forward, backward = (
        ["T0[H=56, W=56, C=64]", "LABEL[H, W, C]"],
        list[str](),
        list[str](),
        list[str](),
    )
    for n in range(layers):
        k = 3 if n % 2 else 1
        inputs += [f"W{n}[K{n}={k}, K{n}, C, C]", f"G{n}[C]", f"B{n}[C]", f"M{n}[K{n}, K{n}, C, C]"]
        outputs += [f"M{n}_N", f"W{n}_N", f"G{n}_N", f"B{n}_N"]
        at = f"y + i - {k // 2}, x + j - {k // 2}"
        forward += [
            f"C{n}[y, x, o : H, W, C] = +(T{n}[{at}, c] * W{n}[i, j, c, o])",
            f"S{n} = C{n} * G{n} + B{n}", f"T{n + 1} = relu(S{n})",
        ]  # fmt: skip
        backward[:0] = [
            f"DS{n} = S{n} < 0.0 ? 0.0 : DT{n + 1}", f"DB{n}[o : C] = +(DS{n}[y, x, o])",
            f"DG{n}[o : C] = +(DS{n}[y, x, o] * C{n}[y, x, o])", f"DC{n} = DS{n} * G{n}",
            f"DW{n}[i, j, c, o : K{n}, K{n}, C, C] = +(T{n}[{at}, c] * DC{n}[y, x, o])",
            f"DT{n}[{at}, c : H, W, C] = +(DC{n}[y, x, o] * W{n}[i, j, c, o])",
            f"M{n}_N = 0.9 * M{n} + 0.1 * DW{n}", f"W{n}_N = W{n} - 0.01 * M{n}_N",
            f"G{n}_N = G{n} - 0.01 * DG{n}", f"B{n}_N = B{n} - 0.01 * DB{n}",
        ]  # fmt: skip
    body = [*forward, f"DT{layers} = 2.0 * (T{layers} - LABEL)", *backward]
    lines = "".join(f"  {statement};\n" for statement in body)
    return f"function ({', '.join(inputs)}) -> ({', '.join(outputs)}) {{\n{lines}}}\n"


def lowered(text: str) -> Program:
    """The program that a generated text denotes."""
    return compile_tile(text, "<generated>", {})


def _text(chain: Chain, layers: tuple[Layer, ...], kernels: int) -> str:
    rest: Iterator[Layer] = cycle(layers)
    for _ in range(kernels):
        next(rest)(chain)
    return chain.text()


CONV56 = """\
function (I[H=56, W=56, CI=64], K[KH=3, KW=3, CI, CO=64]) -> (O) {
  O[x, y, co : H, W, CO] = +(I[x + i - 1, y + j - 1, ci] * K[i, j, ci, co]);
}
"""
"""A 3x3 convolution of 115.6 million multiply-adds in single precision."""


def matmul(size: int) -> str:
    """Tile text of one square product in single precision."""
    return (
        f"function (A[M={size}, K={size}], B[K, N={size}]) -> (C) {{\n"
        "  C[i, j : M, N] = +(A[i, k] * B[k, j]);\n}\n"
    )


def matmul_transposed(size: int) -> str:
    """Tile text of one square product whose second operand lies transposed, in single precision."""
    return (
        f"function (A[M={size}, K={size}], B[N={size}, K]) -> (C) {{\n"
        "  C[i, j : M, N] = +(A[i, k] * B[j, k]);\n}\n"
    )


def matrix_vector(size: int) -> str:
    """Tile text of a square matrix times a vector, in single precision."""
    return f"function (A[M={size}, K={size}], B[K]) -> (C) {{\n  C[i : M] = +(A[i, k] * B[k]);\n}}\n"
