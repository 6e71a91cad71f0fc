"""Every error that a Tile file can cause has a place, a reason and a suggestion."""
# ruff: noqa: E501 - one case a line

from __future__ import annotations

import re

import pytest

from stripe.ir import ConfigError, StripeError
from stripe.tile import TensorShape, bind, compile_tile, parse_shape, parse_tile

DEEP = 10_000


def body(text: str, inputs: str = "A[M=4, K=3]", outputs: str = "O") -> str:
    return f"function ({inputs}) -> ({outputs}) {{\n  {text}\n}}\n"


CASES: list[tuple[str, str, str, str]] = [
    # name, source, reason, hint
    ("empty file", "", "file is empty", "expected 'function'"),
    ("only blanks", " \n\n ", "file is empty", "expected 'function'"),
    ("no function", "foo", "unexpected 'foo'", "expected 'function'"),
    ("cut short", "function (A) -> (O) { O = A;", "ends too early", "expected"),
    ("no semicolon", body("O = A"), "unexpected '}'", "ends with ';'"),
    ("no semicolon between", body("P = A O = P;"), "unexpected 'O'", "ends with ';'"),
    ("lower-case tensor", body("O = a;"), "unexpected ';'", r"\(|expected"),
    ("lower-case input", "function (a) -> (O) { O = 1; }", "unexpected 'a'", "upper-case"),
    ("upper-case attribute", body("[[Conv]] O = A;"), "unexpected 'Conv'", "lower-case"),
    ("half a float", body("O = A + .5;"), "unexpected character '.'", "1.0, 0.5"),
    ("percent", body("O = A % 2;"), "unexpected character '%'", r"mod\(a, b\)"),
    ("logical and", body("O = A && A;"), "unexpected '&'", "there is no '&&'"),
    ("not", body("O = !A;"), "unexpected character '!'", "~x"),
    ("string", body('O = "x";'), "unexpected character", "no strings"),
    ("chained comparison", body("O = A < A < A;"), "unexpected '<'", "expected"),
    ("unclosed index", body("O[i : M = +(A[i, 0]);"), "unexpected '='", "']'"),
    ("unknown dtype", body("O = A;", "A[M=3]: fp33"), "unknown dtype 'fp33'", "did you mean 'fp32'"),
    ("unknown dtype of a contraction", body("O[]: i33 = +(A[i, j]);"), "unknown dtype 'i33'", "did you mean 'i3"),
    ("a dtype that holds no operand", body("O[]: i32 = +(A[i, j]);"), "a contraction of fp32 cannot have the dtype i32", "at least fp32"),
    ("a dtype that is too narrow", body("O[i : M]: i8 = +(A[i, j] * A[i, j]);", "A[M=4, K=3]: i16"), "of i16 cannot have the dtype i8", "cast"),
    ("huge integer", body("O = A + 99999999999999999999;"), "integer is too large", "9223372036854775807"),
    ("gigantic integer", body("O = A + " + "9" * 6000 + ";"), "integer is too large", "9223372036854775807"),
    ("huge float", body("O = A + 1e999;"), "number is too large", "1.79e308"),
    ("deep brackets", body("O = " + "(" * DEEP + "A" + ")" * DEEP + ";"), "nested too deeply", "200 deep"),
    ("deep minus", body("O = " + "-" * DEEP + "A;"), "nested too deeply", "200 deep"),
    ("deep not", body("O = " + "~" * DEEP + "A;"), "nested too deeply", "200 deep"),
    ("deep conditions", body("O = " + "A ? A : " * DEEP + "A;"), "nested too deeply", "200 deep"),
    ("deep calls", body("O = " + "exp(" * DEEP + "A" + ")" * DEEP + ";"), "nested too deeply", "200 deep"),
    ("deep polynomial", body("O[" + "(" * DEEP + "i" + ")" * DEEP + ": 3] = +(A[i, 0]);"), "nested too deeply", "200"),
    ("binary", body("O = A;") + "\0", "binary file", "text file"),
    ("unknown name", body("O = A + INPUT_A;", "INPUT_B[M=3], A[N=3]"), "unknown name 'INPUT_A'", "did you mean 'INPUT_B'"),
    ("unknown in contraction", body("O[i : M] = +(B[i, k]);"), "unknown name 'B'", "known here: A, M, K"),
    ("used too early", body("O = P + 1; P = A;"), "used before it is defined", "move the statement"),
    ("defined twice", body("O = A; O = A + 1;"), "'O' is defined twice", "line 2"),
    ("input redefined", body("A = 3; O = A;"), "'A' is defined twice", "line 1"),
    ("dimension redefined", body("M = 3; O = A;"), "'M' is defined twice", "line 1"),
    ("inputs twice", body("O = A;", "A[M=3], A[M]"), "'A' is defined twice", "rename"),
    ("tensor and dimension", body("O = A;", "A[M=3], M[K=3]"), "both a tensor and a dimension", "rename"),
    ("output is input", body("O = A;", "A[M=3]", "O, A"), "the output 'A' is an input", "copy it"),
    ("output twice", body("O = A;", outputs="O, O"), "named twice", "once"),
    ("output undefined", body("OUT = A;", outputs="OUR"), "no statement defines the output 'OUR'", "did you mean 'OUT'"),
    ("output is a tuple", body("O = tuple(A, A);"), "no tensor", "element"),
    ("sizes unknown", body("O = A;", "A[M, K]"), "size of dimension 'M' is not known", "--shape A=64x64"),
    ("shape unknown", body("O = A;", "A"), "shape of 'A' is not known", "--shape A="),
    ("sizes disagree", body("O = A;", "A[M=3], B[M=4]"), "'M' is 3 elsewhere and 4 here", "one name has one size"),
    ("rank", body("O[i : M] = +(A[i]);"), "rank 2 .*with 1 indices", "one index polynomial for each"),
    ("sizes and indices", body("O[i, k : M] = +(A[i, k]);"), "2 indices and 1 sizes", "one size for each index"),
    ("sizes missing", body("O[i] = +(A[i, k]);"), "sizes of 'O' are missing", "a size for each index"),
    ("size of a tensor", body("O[i : A] = +(A[i, k]);"), "must be a constant integer; it is a tensor", "sizes"),
    ("size is a float", body("O[i : M*0.5] = +(A[i, k]);"), "must be a constant integer; it is 2.0", "sizes"),
    ("size zero", body("O[i : M - 4] = +(A[i, k]);"), "size 0", "at least 1"),
    ("size negative", body("O[i : M - 9] = +(A[i, k]);"), "size -5", "at least 1"),
    ("input of size zero", body("O = A;", "A[M=0]"), "size 0", "at least 1"),
    ("too many elements", body("O[i, j : 4294967296, 4294967296] = +(A[i, j]);"), "2\\^63|more than an address", "2\\^63"),
    ("too many by broadcast", body("O = A + B;", "A[M=4294967296, K=1], B[N=4294967296]"), "more than an address", "2\\^63"),
    ("input too large", body("O = A;", "A[M=9223372036854775807]"), "more than an address", "2\\^63"),
    ("no broadcast", body("O = A + B;", "A[M=4, K=3], B[N=4, L=5]"), "4x3 and 4x5 do not broadcast: dimension -1 is 3 against 5", "are 1"),
    ("bits of floats", body("O = A & 1;"), "'&' does not take fp32", "as_int"),
    ("negated bool", body("O = -(A < 0);"), "'-' does not take bool", "as_int"),
    ("unbounded", body("O[i : M] = +(A[i, k + l]);"), "index '[kl]' is not bounded", "constraint such as"),
    ("empty", body("O[i : M] = +(A[i + 9, k]);"), "no point satisfies", "offsets"),
    ("empty by parity", body("O[i : M] = +(A[(2*i + 1)/2, k]);"), "no point satisfies", "exact divisibility"),
    ("empty constraint", body("O[i : M] = +(A[i, k]), k < 0;"), "no value satisfies this constraint", "at least 1"),
    ("assigned twice", body("O[i : M] = =(A[i, k]);"), r"assigns O\[0\] more than once: at i=0, k=0 and at i=0, k=1", "aggregate"),
    ("assigned twice apart", body("O[i + k : 9] = =(A[i, k]);"), r"assigns O\[1\] more than once", "aggregate"),
    ("product of indices", body("O[i : M] = +(A[i*k, k]);"), "product of two indices is not affine", "2\\*i"),
    ("divided by index", body("O[i : M] = +(A[i/k, k]);"), "division by an index is not affine", "2\\*i"),
    ("index divided by zero", body("O[i : M] = +(A[i/0, k]);"), "division by zero", "divisor"),
    ("size divided by zero", body("O[i : M/(K - 3)] = +(A[i, k]);"), "division by zero", "shapes"),
    ("tensor in polynomial", body("O[i : M] = +(A[i + A, k]);"), "'A' is a tensor", "integers and sizes"),
    ("unknown dimension", body("O[i : M] = +(A[i + N, k]);"), "unknown dimension 'N'", "indices are lower case"),
    ("default of other shape", body("O[i : M] = +(A[i, k]) default A;"), "'A' is 4x3, 'O' is 4", "shape of the result"),
    ("unknown function", body("O = sigmod(A);"), "unknown function 'sigmod'", "did you mean 'sigmoid'"),
    ("too few arguments", body("O = max(A);"), "'max' takes 2 arguments, not 1", "arguments"),
    ("too many arguments", body("O = exp(A, A);"), "'exp' takes 1 argument, not 2", "arguments"),
    ("no arguments", body("O = exp();"), "'exp' takes 1 argument, not 0", "arguments"),
    ("reshape", body("O = reshape(A, 5, 2);"), r"cannot reshape 4x3 \(12 elements\) to 5x2 \(10", "must stay"),
    ("reshape to tensor", body("O = reshape(A, A);"), "must be a constant integer", "sizes"),
    ("index axis", body("O = index(A, 2);"), "none numbered 2", "count from 0"),
    ("gather index", body("O = gather(A, A);"), "must be i32", "as_int"),
    ("gather from scalar", body("O = gather(S, I);", "S[], I[N=3]: i32"), "cannot gather from a scalar", "rank 1"),
    ("element of a tensor", body("O = element(A, 0);"), "'element' takes a tuple", "tuple"),
    ("element out of range", body("O = element(tuple(A, A), 2);"), "none numbered 2", "from 0"),
    ("tuple computed", body("O = tuple(A, A) + 1;"), "a tuple cannot be computed with", "element"),
    ("random state", body("O = prng_value(prng_step(A, 3));"), "state of the generator is 4x3:fp32", "3x2048:u32"),
    ("random value", body("O = prng_value(A);"), "takes the result of prng_step", "prng_step"),
    ("cast width", body("O = as_float(A, 8);"), "no width 8", "16, 32, 64"),
    ("match", body("N = match(M, K); O = A;"), "the sizes 4 and 3 differ", "equal"),
    ("broadcast sizes", body("N = broadcast(M, K); O = A;"), "the sizes 4 and 3 do not broadcast", "one 1"),
    ("assertion", body("N = assert_multiple(mod(M, K) == 0); O = A + N;"), "assertion 'assert_multiple' fails", "shapes"),
    ("assertion on tensor", body("N = assert_it(A); O = A;"), "checks constants", "sizes"),
    ("softmax sizes", body("O = builtin_softmax(A, K, M);"), "the argument is 4x3, the sizes 3 by 4", "reshape"),
    ("simple_reduce", body("O = simple_reduce(A, 2, 3);"), "cannot reduce 4x3 to 2x3", "become 1"),
    ("index in expression", body("O = A + index(B, 0);"), "unknown name 'B'", "known here"),
    ("constant too large", body("O = A + 4611686018427387904 * 16;"), "does not fit 64 bits", "smaller"),
    ("constant explodes", body("N = 1 << 200; O = A + N * N;"), "constant is too large|does not fit", "bits|smaller"),
    ("logarithm of a constant", body("O = A + log(0.0 - 1.0);"), "not a finite number", "constants"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "reason", "hint"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_error(source: str, reason: str, hint: str) -> None:
    with pytest.raises(StripeError) as caught:
        compile_tile(source, "bad.tile")
    error = caught.value
    assert re.search(reason, error.reason), error.reason
    assert error.hint is not None and re.search(hint, error.hint), error.hint
    assert error.path == "bad.tile"
    if "binary" not in error.reason:
        assert error.line is not None and error.col is not None and error.source is not None
        assert "^" in str(error)
    assert error.exit_status == 1


def test_all_errors_are_collected() -> None:
    source = body("P = A + X; Q = exp(A, A); R = P + 1; O[i : M] = +(Q[i]);", outputs="O, Z")
    with pytest.raises(StripeError) as caught:
        compile_tile(source, "bad.tile")
    reasons = [error.reason for error in (caught.value, *caught.value.others)]
    assert len(reasons) == 3, reasons  # what depends on a statement with an error says nothing
    assert str(caught.value).count(": error: ") == 3


def test_contraction_errors_are_collected() -> None:
    source = body("P[i : M] = =(A[i, k]); O[i : M] = +(A[i, k + l]);", outputs="O, P")
    with pytest.raises(StripeError) as caught:
        compile_tile(source, "bad.tile")
    assert len(caught.value.others) == 1


def test_the_caret_stands_under_the_place() -> None:
    with pytest.raises(StripeError) as caught:
        compile_tile("function (A[M=4]) -> (O) {\n  O = A + UNKNOWN;\n}\n", "dir/bad.tile")
    assert str(caught.value).splitlines()[:3] == [
        "dir/bad.tile:2:11: error: unknown name 'UNKNOWN'",
        "    O = A + UNKNOWN;",
        "            ^^^^^^^",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("A", "cannot read"), ("A=", "cannot read"), ("A=3x", "cannot read"), ("A=3:fp33", "unknown dtype"), ("3=A", "cannot read"),
     ("A=-3", "cannot read"), ("A==x", "cannot read"), ("A==--", "cannot read"), ("A=" + "9" * 50, "too large")],
)  # fmt: skip
def test_malformed_shapes(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        parse_shape(text)
    assert caught.value.hint


def test_shapes_that_do_not_fit() -> None:
    function = parse_tile(body("O = A;"), "f.tile")
    with pytest.raises(ConfigError, match="'B', which the function does not have"):
        bind(function, {"B": TensorShape((3,))})
    with pytest.raises(StripeError, match="rank 2, the shape given for it is 3"):
        bind(function, {"A": TensorShape((3,))})
    with pytest.raises(StripeError, match="a constant is given"):
        bind(function, {"A": 3})
    with pytest.raises(StripeError, match="'O' is 4x3; 5 is asked for"):
        bind(function, {"O": TensorShape((5,))})
