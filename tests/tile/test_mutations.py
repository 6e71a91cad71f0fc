"""Whatever stands in a file, the answer is a valid program or an error with a place and a hint."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from stripe.ir import StripeError, verify_structural
from stripe.tile import compile_tile

SOURCES = [
    path.read_text("utf-8") for path in sorted((Path(__file__).parents[2] / "examples").glob("*.tile"))
]
SOURCES.append("""function (A[M=4, N=6], I[K=3]: i32, S[P=3, Q=2048]: u32) -> (O, W) {
  T = tuple(A, 3); B = element(T, 0); G = gather(B, I); R = prng_step(S, 4, 6); V = prng_value(R);
  Z = builtin_softmax(B + V, M, N); O = log(Z) < 0 ? quantize(A) : as_int(A, 8) << 2;
  W[i, 2*j : M, 3*N] = >(Z[i, j/2] == A[i, j] ? V[i, j]), i + j < 7 no_defract; E = reshape(O, 2, 12);
}""")
PIECES = (
    "A B M N i j k 0 1 2 3 99999999 9223372036854775807 + - * / ( ) [ ] [[ ]] , ; : ? = == < > <= << >> & | ^ ~ exp "
    "max reshape index tuple element gather prng_step builtin_softmax as_int mod 0.5 1e300 # $ ' _ "
    "default no_defract fp32 { } -> function // \n \0 é"
).split(" ")


def mutated(source: str, chance: random.Random) -> str:
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(source))
        end = start + chance.randint(1, 6)
        piece = chance.choice([*PIECES, "", source[start:end] * 2])
        source = source[:start] + piece + source[start if chance.random() < 0.3 else end :] or " "
    return source


@pytest.mark.parametrize("seed", range(4))
def test_any_text_gets_an_answer(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(200):
        source = mutated(chance.choice(SOURCES), chance)
        try:
            program = compile_tile(source, "m.tile")
        except StripeError as error:
            assert error.hint, source
            assert error.line is not None or "binary" in error.reason, source
            assert error.reason in str(error)
        else:
            assert verify_structural(program) == [], source


@pytest.mark.parametrize(
    "text", ["(" * 190 + "A" + ")" * 190, "-" * 190 + "A", "A ? A : " * 190 + "A", "A" + " + A" * 3000]
)
def test_deep_and_long_expressions_compile(text: str) -> None:
    program = compile_tile(f"function (A[M=4]) -> (O) {{ O = {text}; }}", "m.tile")
    assert verify_structural(program) == []
