"""Sizes of results that the inference of onnx leaves open, or gives in another way than the specification of ONNX."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import AttributeProto, NodeProto

from stripe.frontends.onnx.control import Unsupported

Sizes = tuple[int, ...]


def result_sizes(node: NodeProto, sizes: Sequence[Sizes | None]) -> Sizes | None:
    """The sizes of the results of a node by those of its inputs; None for those that onnx infers."""
    given = {attribute.name: attribute for attribute in node.attribute}
    if not sizes or (first := sizes[0]) is None:
        return None
    match node.op_type:
        case "GroupNormalization" | "MeanVarianceNormalization":
            return first
        case "MaxPool" | "AveragePool" | "LpPool" if "ceil_mode" in given and given["ceil_mode"].i:
            return _pooled(first, given)
        case "ConvTranspose" if _text(given, "auto_pad").startswith("SAME") and "output_shape" not in given:
            steps = _numbers(given, "strides", len(first) - 2, 1)
            filters = sizes[1] if len(sizes) > 1 else None
            if filters is None or len(filters) < 2 or len(steps) != len(first) - 2:
                return None
            groups = given["group"].i if "group" in given else 1
            wide = (size * step for size, step in zip(first[2:], steps, strict=True))
            return (first[0], filters[1] * groups, *wide)
        case "Slice" if "starts" in given and "ends" in given:
            starts, ends = list(given["starts"].ints), list(given["ends"].ints)
            axes = list(given["axes"].ints) if "axes" in given else list(range(len(starts)))
            if not len(starts) == len(ends) == len(axes) or any(
                not -len(first) <= a < len(first) for a in axes
            ):
                return None
            found = list(first)
            for axis, start, end in zip(axes, starts, ends, strict=True):
                found[axis] = len(range(first[axis])[start:end])
            return tuple(found)
        case "GatherND":
            places = sizes[1] if len(sizes) > 1 else None
            batch = given["batch_dims"].i if "batch_dims" in given else 0
            if not places or not 0 <= batch < len(places) or not 0 < places[-1] <= len(first) - batch:
                return None
            if places[:batch] != first[:batch]:
                raise Unsupported(
                    f"its batches are {places[:batch]} and {first[:batch]}",
                    "give the indices the batches of the data",
                )
            return (*places[:-1], *first[batch + places[-1] :])
        case _:
            return None


def _pooled(sizes: Sizes, given: dict[str, AttributeProto]) -> Sizes | None:
    """The last window is one that begins in the image or in the padding before it."""
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
        if rest < 0:
            return None
        count = -(-rest // steps[d]) + 1
        found.append(count - ((count - 1) * steps[d] >= size + before))
    return (*sizes[:2], *found)


def _numbers(given: dict[str, AttributeProto], name: str, count: int, default: int) -> list[int]:
    return list(given[name].ints) if name in given and given[name].ints else [default] * count


def _text(given: dict[str, AttributeProto], name: str) -> str:
    return given[name].s.decode("utf-8", "replace") if name in given else ""
