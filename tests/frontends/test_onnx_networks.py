"""Networks of published kinds, made small, against the reference of onnx."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from stripe.onnx_backend import compile_model
from tests.support.tiers import some
from tools import networks

SMALL: dict[str, ModelProto] = {
    "mobilenet_v2": networks.mobilenet_v2(32),
    "bert": networks.bert_base(1, 6, 64, 20),
    "gpt2": networks.gpt2_step(1, 3, 64, 20),
    "vit": networks.vit_small(1, 32, 64),
    "unet": networks.unet(8, 2, 2),
    "lstm": networks.lstm_tagger(3, 4, 5, 9, 4),
    "resnet18_int8": networks.resnet18_int8(32),
    "resnet50": networks.resnet50(32, folded=True, widths=(4, 4, 4, 4)),
}


def inputs(model: ModelProto) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(3)
    found: dict[str, np.ndarray] = {}
    for info in model.graph.input:
        sizes = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        floats = info.type.tensor_type.elem_type == 1
        values = generator.standard_normal(sizes) if floats else generator.integers(0, 9, sizes)
        found[info.name] = values.astype(np.float32 if floats else np.int64)
    return found


@pytest.mark.parametrize("name", some(SMALL, every=3))
def test_small_networks(name: str) -> None:
    model = SMALL[name]
    given = inputs(model)
    found = compile_model(model, "c{cflags=-O1}").run(given)
    expected = ReferenceEvaluator(model).run(None, given)
    for info, array in zip(model.graph.output, expected, strict=True):
        scale = max(1.0, float(np.abs(array).max()))
        assert np.allclose(found[info.name], array, rtol=1e-3, atol=1e-4 * scale), info.name
