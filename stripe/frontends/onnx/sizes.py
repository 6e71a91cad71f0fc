"""Sizes of results that the inference of onnx leaves open, or gives in another way than the specification of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from onnx import AttributeProto, NodeProto

from stripe.frontends.onnx.control import Unsupported
from stripe.frontends.onnx.values import TensorValue, Value

Sizes: TypeAlias = tuple[int, ...]
Given: TypeAlias = Mapping[str, AttributeProto]


def result_sizes(node: NodeProto, inputs: Sequence[Value]) -> Sizes | None:
    """The sizes of the results of a node by its inputs; None for those that onnx infers."""
    rule = _RULES.get(node.op_type)
    if rule is None or not inputs or not isinstance(inputs[0], TensorValue):
        return None
    given = {attribute.name: attribute for attribute in node.attribute}
    return rule(inputs[0].type.sizes, given, inputs)


def _transposed(sizes: Sizes, given: Given, inputs: Sequence[Value]) -> Sizes | None:
    """Sizes of a `ConvTranspose` by `output_shape`, where it has less than the image, and by `SAME_UPPER` and
    `SAME_LOWER`, to which `output_padding` adds nothing.
    """
    rank = len(sizes) - 2
    steps, asked = _numbers(given, "strides", rank, 1), _numbers(given, "output_shape", 0, 0)
    filters = _sizes_of(inputs, 1)
    same = _text(given, "auto_pad").startswith("SAME")
    if not (asked or same) or filters is None or len(filters) < 2 or len(steps) != rank:
        return None
    if asked and (len(asked) != rank or min(asked) < 0):
        reason = f"its output_shape is {asked}, and its image has {rank} dimensions"
        raise Unsupported(reason, "give a size for each dimension of the image")
    groups = given["group"].i if "group" in given else 1
    spatial = asked or [size * step for size, step in zip(sizes[2:], steps, strict=True)]
    return (sizes[0], filters[1] * groups, *spatial)


def _sliced(sizes: Sizes, given: Given, _: Sequence[Value]) -> Sizes | None:
    """The form with attributes; bounds may lie beyond the tensor."""
    starts, ends = _numbers(given, "starts", 0, 0), _numbers(given, "ends", 0, 0)
    axes = _numbers(given, "axes", 0, 0) or list(range(len(starts)))
    legal = len(starts) == len(ends) == len(axes) and all(-len(sizes) <= axis < len(sizes) for axis in axes)
    if not starts or not legal:
        return None
    found = list(sizes)
    for axis, start, end in zip(axes, starts, ends, strict=True):
        found[axis] = len(range(sizes[axis])[start:end])
    return tuple(found)


def _squeezed(sizes: Sizes, given: Given, _: Sequence[Value]) -> Sizes | None:
    """The form with attributes, whose axes may count from the end before opset 11 too, as in ONNX Runtime."""
    rank, axes = len(sizes), _numbers(given, "axes", 0, 0)
    dropped = {axis % rank for axis in axes if -rank <= axis < rank}
    if not dropped or len(dropped) < len(axes) or any(sizes[axis] != 1 for axis in dropped):
        return None
    return tuple(size for axis, size in enumerate(sizes) if axis not in dropped)


def _unsqueezed(sizes: Sizes, given: Given, _: Sequence[Value]) -> Sizes | None:
    """As for `_squeezed`: axes are those of the result."""
    axes = _numbers(given, "axes", 0, 0)
    rank = len(sizes) + len(axes)
    added = {axis % rank for axis in axes if -rank <= axis < rank}
    if not added or len(added) < len(axes):
        return None
    rest = iter(sizes)
    return tuple(1 if axis in added else next(rest) for axis in range(rank))


def _gathered(sizes: Sizes, given: Given, inputs: Sequence[Value]) -> Sizes | None:
    places = _sizes_of(inputs, 1)
    batch = given["batch_dims"].i if "batch_dims" in given else 0
    if not places or not 0 <= batch < len(places) or not 0 < places[-1] <= len(sizes) - batch:
        return None
    if places[:batch] != sizes[:batch]:
        reason = f"its batches are {places[:batch]} and {sizes[:batch]}"
        raise Unsupported(reason, "give the indices the batches of the data")
    return (*places[:-1], *sizes[batch + places[-1] :])


def _unpooled(sizes: Sizes, _: Given, inputs: Sequence[Value]) -> Sizes | None:
    """The sizes that the last input names."""
    wanted = inputs[2] if len(inputs) > 2 else None
    if not isinstance(wanted, TensorValue) or wanted.data is None or wanted.data.size != len(sizes):
        return None
    return tuple(map(int, np.asarray(wanted.data).reshape(-1)))


def _pooled(sizes: Sizes, given: Given, _: Sequence[Value]) -> Sizes | None:
    """The last window is one that begins in the image or in the padding before it."""
    if "ceil_mode" not in given or not given["ceil_mode"].i:
        return None
    rank = len(sizes) - 2
    kernel = _numbers(given, "kernel_shape", rank, 1)
    steps, spread = _numbers(given, "strides", rank, 1), _numbers(given, "dilations", rank, 1)
    pads, how = _numbers(given, "pads", 2 * rank, 0), _text(given, "auto_pad")
    if any(len(each) != rank for each in (kernel, steps, spread)) or len(pads) != 2 * rank or min(steps) < 1:
        return None
    found: list[int] = []
    for d, size in enumerate(sizes[2:]):
        if how.startswith("SAME"):
            found.append(-(-size // steps[d]))
            continue
        before, behind = (0, 0) if how == "VALID" else (pads[d], pads[d + rank])
        rest = size + before + behind - (kernel[d] - 1) * spread[d] - 1
        if rest <= -steps[d]:
            return None
        count = -(-rest // steps[d]) + 1
        found.append(count - ((count - 1) * steps[d] >= size + before))
    return (*sizes[:2], *found)


def _resized(sizes: Sizes, given: Given, inputs: Sequence[Value]) -> Sizes | None:
    """Sizes times scales in fp32, as scales are: 30 elements times 0.7 are 21, and less with the digits of a double."""
    scales = list(given["scales"].floats) if "scales" in given else _floats(inputs, 2) or _floats(inputs, 1)
    axes = _numbers(given, "axes", 0, 0) or list(range(len(sizes)))
    others = len(inputs) > 3 and isinstance(inputs[3], TensorValue) and inputs[3].type.count > 0
    crops = _text(given, "coordinate_transformation_mode") == "tf_crop_and_resize"
    legal = (
        scales is not None and len(scales) == len(axes) and all(-len(sizes) <= a < len(sizes) for a in axes)
    )
    if scales is None or not legal or others or crops:
        return None
    found = list(sizes)
    for axis, scale in zip(axes, scales, strict=True):
        found[axis] = int(np.floor(np.float32(sizes[axis]) * np.float32(scale)))
    return tuple(found)


def _floats(inputs: Sequence[Value], place: int) -> list[float] | None:
    """The elements of an input that is a constant and has some."""
    value = inputs[place] if place < len(inputs) else None
    if not isinstance(value, TensorValue) or value.data is None or value.type.count == 0:
        return None
    return list(map(float, np.asarray(value.data).reshape(-1)))


def _numbers(given: Given, name: str, count: int, default: int) -> list[int]:
    return list(given[name].ints) if name in given and given[name].ints else [default] * count


def _text(given: Given, name: str) -> str:
    return given[name].s.decode("utf-8", "replace") if name in given else ""


def _sizes_of(inputs: Sequence[Value], place: int) -> Sizes | None:
    value = inputs[place] if place < len(inputs) else None
    return value.type.sizes if isinstance(value, TensorValue) else None


_RULES: Mapping[str, Callable[[Sizes, Given, Sequence[Value]], Sizes | None]] = {
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _pooled),
    **dict.fromkeys(("GroupNormalization", "MeanVarianceNormalization"), lambda sizes, _, __: sizes),
    "ConvTranspose": _transposed, "GatherND": _gathered, "MaxUnpool": _unpooled, "Slice": _sliced,
    "Squeeze": _squeezed, "Unsqueeze": _unsqueezed,
    **dict.fromkeys(("Resize", "Upsample"), _resized),
}  # fmt: skip
