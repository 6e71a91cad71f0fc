"""Every example against numpy, written without Tile and without loops over the index sets of its kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from stripe.exec.interp import interpret
from stripe.ir import parse_program, print_program, verify_structural
from stripe.tile import bind, lower, parse_tile, print_tile

Array = npt.NDArray[Any]
EXAMPLES = Path(__file__).parents[2] / "examples"


def _windows(
    image: Array, size: tuple[int, int], step: tuple[int, int] = (1, 1), gap: tuple[int, int] = (1, 1)
) -> Array:
    """image[n, y, x, c] as windows [n, y, x, j, i, c]."""
    taps = [(size[a] - 1) * gap[a] + 1 for a in (0, 1)]
    view = np.lib.stride_tricks.sliding_window_view(image, taps, axis=(1, 2))[:, :: step[0], :: step[1]]
    return np.moveaxis(view[..., :: gap[0], :: gap[1]], 3, -1)


def _pad(image: Array, value: float = 0) -> Array:
    return np.pad(image, [(0, 0), (1, 1), (1, 1), *[(0, 0)] * (image.ndim - 3)], constant_values=value)


def conv_bias_relu(i: Array, k: Array, b: Array) -> Array:
    return np.maximum(np.einsum("nyxjic,jico->nyxo", _windows(_pad(i[None]), (3, 3)), k)[0] + b, 0)


def conv_quantized(i: Array, k: Array, b: Array, s: Array) -> Array:
    sums = np.einsum("nyxjic,jico->nyxo", _windows(_pad(i[None]), (3, 3)), k)[0] + b
    return np.clip(np.round(sums * s), -128, 127)


def conv_strided(i: Array, k: Array) -> Array:
    return np.einsum("nyxjic,jico->nyxo", _windows(_pad(i), (3, 3), (2, 2)), k)


def conv_dilated(i: Array, k: Array) -> Array:
    return np.einsum("nyxjic,jico->nyxo", _windows(i, (3, 3), gap=(2, 3)), k)


def conv_grouped(i: Array, k: Array) -> Array:
    flat = i.reshape(*i.shape[:3], -1)
    windows = _windows(_pad(flat), (3, 3)).reshape(*i.shape[:3], 3, 3, *i.shape[3:])
    return np.einsum("nyxjigc,jigco->nyxgo", windows, k)


def conv_depthwise(i: Array, k: Array) -> Array:
    made = np.einsum("nyxjic,jicm->nyxcm", _windows(_pad(i), (3, 3)), k)
    return made.reshape(*made.shape[:3], -1)


def conv_transposed(i: Array, k: Array) -> Array:
    n, h, w, _ = i.shape
    out = np.zeros((n, 2 * h + 1, 2 * w + 1, k.shape[2]), np.float32)
    for j in range(3):
        for x in range(3):
            out[:, j : j + 2 * h : 2, x : x + 2 * w : 2] += np.einsum("nyxc,oc->nyxo", i, k[j, x])
    return out[:, 1 : 2 * h + 1, 1 : 2 * w + 1]


def max_pool(i: Array) -> Array:
    return _windows(_pad(i, -np.inf), (3, 3), (2, 2)).max(axis=(3, 4))


def average_pool(i: Array) -> Array:
    return np.nanmean(_windows(_pad(i, np.nan), (3, 3), (2, 2)), axis=(3, 4))


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x: Array, scale: Array, shift: Array) -> Array:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * scale + shift


def batch_norm(x: Array, mean: Array, variance: Array, scale: Array, shift: Array) -> Array:
    return (x - mean) / np.sqrt(variance + 1e-3) * scale + shift


def attention(q: Array, k: Array, v: Array) -> Array:
    return softmax(q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[2])) @ v


def argmax(x: Array) -> Array:
    return (x.shape[1] - 1 - x[:, ::-1].argmax(1)).astype(np.uint32)


def matmul(a: Array, b: Array) -> Array:
    return a @ b


def cumulative_sum(x: Array) -> Array:
    return x.cumsum(1)


def _wrapped(values: Array) -> Array:
    """What is left of whole numbers in 8 bits with a sign."""
    return (values + 128) % 256 - 128


def _conv_3x3(image: Array, weights: Array) -> Array:
    return _wrapped(np.einsum("nyxjic,jico->nyxo", _windows(_pad(image[None]), (3, 3)), weights)[0])


def network(i: Array, k1: Array, k2: Array, b: Array) -> Array:
    first = np.maximum(_conv_3x3(i, k1), 0)
    second = np.maximum(_wrapped(_conv_3x3(first, k2) + b), 0)
    summed = _wrapped(second + first)
    return summed.reshape(16, 2, 16, 2, -1).max((1, 3))


REFERENCES: dict[str, Callable[..., Array]] = {
    function.__name__: function
    for function in (
        matmul, conv_bias_relu, conv_strided, conv_dilated, conv_grouped, conv_depthwise, conv_transposed, max_pool,
        conv_quantized, average_pool, softmax, layer_norm, batch_norm, attention, argmax, cumulative_sum, network,
    )
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(REFERENCES))
def test_example_agrees_with_numpy(name: str) -> None:
    typed = bind(parse_tile((EXAMPLES / f"{name}.tile").read_text("utf-8")))
    program = lower(typed, name)
    generator = np.random.default_rng(3)
    low = 1 if name == "batch_norm" else -4
    arrays = {t.name: generator.integers(low, 5, t.sizes).astype(t.dtype.numpy()) for t in typed.inputs}
    (found,) = interpret(program, arrays).values()
    wide = [array.astype(np.float64) for array in arrays.values()]
    np.testing.assert_allclose(found, REFERENCES[name](*wide), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.tile")), ids=lambda path: path.stem)
def test_example_round_trips(path: Path) -> None:
    function = parse_tile(path.read_text("utf-8"))
    assert parse_tile(print_tile(function)) == function
    program = lower(bind(function), path.stem)
    assert verify_structural(program) == []
    assert parse_program(print_program(program)) == program


def test_every_example_has_a_reference() -> None:
    names = {path.stem for path in EXAMPLES.glob("*.tile")}
    assert names == {*REFERENCES, "slides_layer"}
