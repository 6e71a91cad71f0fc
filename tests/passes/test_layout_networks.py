"""Packed and unpacked versions of the examples and of all layers of ResNet-50 are proved equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripe.cli.start import opt
from tests.support.compiled import EXAMPLES, of

LAYERS = (
    (7, 2, 3, 64, 112), (1, 1, 64, 64, 56), (3, 1, 64, 64, 56), (1, 1, 64, 256, 56), (1, 1, 256, 64, 56),
    (1, 1, 256, 128, 56), (3, 2, 128, 128, 28), (1, 1, 128, 512, 28), (1, 2, 256, 512, 28), (1, 1, 512, 128, 28),
    (3, 1, 128, 128, 28), (1, 1, 512, 256, 28), (3, 2, 256, 256, 14), (1, 1, 256, 1024, 14), (1, 2, 512, 1024, 14),
    (1, 1, 1024, 256, 14), (3, 1, 256, 256, 14), (1, 1, 1024, 512, 14), (3, 2, 512, 512, 7), (1, 1, 512, 2048, 7),
    (1, 2, 1024, 2048, 7), (1, 1, 2048, 512, 7), (3, 1, 512, 512, 7),
)  # fmt: skip
"""Filter, stride, channels in, channels out, and output of the convolutions of ResNet-50 that differ."""

Capture = pytest.CaptureFixture[str]


def proved(source: Path, passes: str, capsys: Capture) -> None:
    status = opt([str(source), "--passes", passes, "--verify", "exact", "--verify-unknown", "fail"])
    assert status == 0, capsys.readouterr().err[-2000:]


@pytest.mark.parametrize("example", [of(path) for path in EXAMPLES])
@pytest.mark.parametrize("options", ["", ",interface=true,pad=0"])
def test_examples(example: Path, options: str, capsys: Capture) -> None:
    proved(example, f"layout{{block={{0=4}}{options}}},unfold", capsys)


@pytest.mark.long
@pytest.mark.parametrize("options", ["", ",interface=true,pad=0"])
def test_layers_of_resnet50(options: str, tmp_path: Path, capsys: Capture) -> None:
    tensors: list[str] = []
    kernels: list[str] = []
    for n, (size, stride, inner, outer, out) in enumerate(LAYERS):
        tensors += [
            f"X{n}[H{n}={stride * out}, V{n}={stride * out}, I{n}={inner}]: i8",
            f"W{n}[R{n}={size}, S{n}={size}, I{n}, O{n}={outer}]: i8",
        ]
        at = [f"{stride}*{index} - {size // 2}" for index in "yx"]
        kernels.append(
            f"Y{n}[y, x, o : {out}, {out}, O{n}] = +(X{n}[{at[0]} + i, {at[1]} + j, c] * W{n}[i, j, c, o]);"
        )
    results = ", ".join(f"Y{n}" for n in range(len(LAYERS)))
    source = tmp_path / "layers.tile"
    source.write_text(f"function ({', '.join(tensors)}) -> ({results}) {{ {' '.join(kernels)} }}")

    forms = {"X": "HWC16c", "Y": "HWC16c", "W": '"HWIO -> OIHW8i16o"'}
    packed = [
        f"layout{{refs=[{','.join(f'{kind}{n}' for n in range(len(LAYERS)))}],map={form}{options}}}"
        for kind, form in forms.items()
    ]
    proved(source, ",".join([*packed, "unfold"]), capsys)
