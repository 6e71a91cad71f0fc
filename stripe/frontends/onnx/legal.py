"""Values of attributes that have a meaning in ONNX: the onnx package checks some of them, and fails on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import AttributeProto, NodeProto
from onnx.defs import OpSchema
from onnx.helper import get_all_tensor_dtypes

from stripe.frontends.onnx.control import Unsupported

_WINDOWS = "NOTSET SAME_UPPER SAME_LOWER VALID"
_GATES = "forward reverse bidirectional"
_POSITIONS = "half_pixel pytorch_half_pixel align_corners asymmetric tf_crop_and_resize"
_WORDS: Mapping[str, Sequence[tuple[int, str]]] = {
    **{f"{op}.auto_pad": [(1, _WINDOWS)] for op in (
        "AveragePool", "Conv", "ConvInteger", "ConvTranspose", "LpPool", "MaxPool", "QLinearConv")},
    **{f"{op}.direction": [(1, _GATES)] for op in ("GRU", "LSTM", "RNN")},
    **{f"{op}.reduction": [(16, "none add mul"), (18, "none add mul max min")]
       for op in ("ScatterElements", "ScatterND")},
    "BitShift.direction": [(11, "LEFT RIGHT")], "DepthToSpace.mode": [(11, "DCR CRD")],
    "SpaceToDepth.mode": [(28, "DCR CRD")], "Gelu.approximate": [(20, "none tanh")],
    "GridSample.mode": [(16, "bilinear nearest bicubic"), (20, "linear nearest cubic")],
    "GridSample.padding_mode": [(16, "zeros border reflection")], "Momentum.mode": [(1, "nesterov standard")],
    "Pad.mode": [(1, "constant reflect edge"), (19, "constant reflect edge wrap")],
    "Resize.coordinate_transformation_mode": [
        (11, f"{_POSITIONS} tf_half_pixel_for_nn"), (13, _POSITIONS), (19, f"{_POSITIONS} half_pixel_symmetric")],
    "Resize.keep_aspect_ratio_policy": [(18, "stretch not_larger not_smaller")],
    "Resize.mode": [(10, "nearest linear"), (11, "nearest linear cubic")],
    "Resize.nearest_mode": [(11, "round_prefer_floor round_prefer_ceil floor ceil")],
    "RoiAlign.coordinate_transformation_mode": [(16, "half_pixel output_half_pixel")],
    "RoiAlign.mode": [(10, "avg max")], "TensorScatter.mode": [(24, "linear circular")],
    "Upsample.mode": [(1, "nearest bilinear"), (7, "nearest linear")],
}  # fmt: skip
"""The words of an attribute of an operator, since a version."""

_FLAGS = frozenset(
    """
    align_corners allowzero antialias ceil_mode center_point_box count_include_pad detect_negative detect_positive
    exclude_outside exclusive fmod input_forget inverse keepdims largest layout linear_before_reset new_axis
    noop_with_empty_axes onesided reverse select_last_index storage_order training_mode transA transB upper
    """.split()
)
_LEAST: Mapping[str, int] = {
    **dict.fromkeys(
        "group offset_group blocksize num_groups size output_height output_width hidden_size num_outputs p strides "
        "dilations kernel_shape".split(), 1),
    **dict.fromkeys(("batch_dims", "block_size", "sampling_ratio"), 0),
}  # fmt: skip
"""The least value of an integer, or of each of a list."""

_AXIS = frozenset(
    """
    ArgMax ArgMin Compress Concat Gather GatherElements Hardmax LayerNormalization LogSoftmax LpNormalization
    RMSNormalization Scatter ScatterElements Softmax Split TensorScatter TopK
    """.split()
)
"""Operators whose `axis` is a dimension of their first input."""


_NEEDED: Mapping[str, Sequence[str]] = dict.fromkeys(("GRU", "LSTM", "RNN"), ("hidden_size",))
"""Attributes without a default on which the sizes of results depend."""


_TYPES = frozenset(("to", "dtype", "output_datatype"))
_ANY = 1 << 16
"""More inputs than a node has."""
_ELEMENTS = frozenset(get_all_tensor_dtypes())


_DIMENSIONS = frozenset(("axis", "axes", "batch_axis", "time_axis", "perm"))
_MOST_AXIS = 1 << 31
"""The inference of onnx adds ranks to axes without a look at their size."""


def has_auto_pad(node: NodeProto) -> bool:
    """Whether a node says how it pads by a word, and not by widths."""
    return any(item.name == "auto_pad" and item.s not in (b"", b"NOTSET") for item in node.attribute)


def check_attributes(node: NodeProto, schema: OpSchema, rank: int | None) -> None:
    """Raises Unsupported for an attribute whose value means nothing; `rank` is that of the first input."""
    if schema.domain != "":
        return
    given = {attribute.name for attribute in node.attribute}
    for name in _NEEDED.get(schema.name, ()):
        if name not in given:
            raise Unsupported(f"its attribute '{name}' is missing", "give it to the node")
    if "is_test" in schema.attributes and not any(
        item.name == "is_test" and item.i for item in node.attribute
    ):
        raise Unsupported("its attribute 'is_test' is 0, as in training", "give it the value 1")
    if schema.name == "BatchNormalization" and any(
        item.name == "spatial" and not item.i for item in node.attribute
    ):
        raise Unsupported(
            "its attribute 'spatial' is 0", "convert the model to opset 9, which has no such form"
        )
    pads = next((item.ints for item in node.attribute if item.name == "pads"), ())
    if any(pads) and has_auto_pad(node):
        raise Unsupported("it has both 'pads' and 'auto_pad'", "leave one of them out")
    for attribute in node.attribute:
        name = attribute.name
        numbers = [attribute.i] if attribute.type == AttributeProto.INT else list(attribute.ints)
        versions = [
            words for least, words in _WORDS.get(f"{schema.name}.{name}", ()) if schema.since_version >= least
        ]
        if versions and (word := attribute.s.decode("utf-8", "replace")) not in (
            words := versions[-1].split()
        ):
            raise Unsupported(f"its attribute '{name}' is '{word}'", f"it may be {', '.join(words)}")
        allowed = (
            (1, 2) if f"{schema.name}.{name}" == "LpNormalization.p" else (0, 1) if name in _FLAGS else None
        )
        if allowed and any(number not in allowed for number in numbers):
            raise Unsupported(
                f"its attribute '{name}' is {numbers[0]}", f"it may be {allowed[0]} or {allowed[1]}"
            )
        if name in _TYPES and any(number not in _ELEMENTS for number in numbers):
            raise Unsupported(f"its attribute '{name}' is {numbers[0]}, which is no type of elements")
        if name in _LEAST and min(numbers, default=_LEAST[name]) < _LEAST[name]:
            raise Unsupported(
                f"its attribute '{name}' holds {min(numbers)}", f"it is at least {_LEAST[name]}"
            )
        if name in _DIMENSIONS and any(abs(number) >= _MOST_AXIS for number in numbers):
            raise Unsupported(
                f"its attribute '{name}' is no dimension", "count dimensions from 0, or from the end"
            )
        if name == "axis" and rank is not None and schema.name in _AXIS:
            _check_axis(attribute.i, rank)


def require_inputs(node: NodeProto, schema: OpSchema) -> None:
    """Raises Unsupported for a node with more or fewer inputs than its operator takes, or without a needed one."""
    count = len(node.input)
    if not schema.min_input <= count <= schema.max_input:
        most = "more" if schema.max_input > _ANY else str(schema.max_input)
        takes = (
            str(schema.min_input) if schema.min_input == schema.max_input else f"{schema.min_input} to {most}"
        )
        raise Unsupported(f"it has {count} inputs, and takes {takes}")
    for formal, name in zip(schema.inputs, node.input, strict=False):
        if not name and formal.option == OpSchema.FormalParameterOption.Single:
            raise Unsupported(f"its input '{formal.name}' is left out", "give it to the node")


def _check_axis(axis: int, rank: int) -> None:
    if not -max(rank, 1) <= axis < max(rank, 1):
        reason = f"its axis {axis} is none of a tensor of rank {rank}"
        raise Unsupported(reason, f"it lies between {-rank} and {rank - 1}")


def require_sizes(node: NodeProto, schema: OpSchema, sizes: Sequence[Sequence[int] | None]) -> None:
    """Raises Unsupported for inputs whose sizes contradict each other, where the inference of onnx takes them."""
    given = {item.name: item for item in node.attribute}
    groups = given["group"].i if "group" in given else 1
    filters = {"Conv": 1, "ConvInteger": 1, "DeformConv": 1, "QLinearConv": 3}.get(schema.name)
    x = sizes[0] if sizes else None
    w = sizes[filters] if filters is not None and len(sizes) > filters else None
    if x and w and len(x) > 1 and len(w) > 1 and (x[1] != w[1] * groups or w[0] % groups):
        reason = f"{x[1]} channels and filters of sizes {list(w)} in {groups} groups do not fit"
        raise Unsupported(reason, "make the channels those of the filters, times the groups")
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}.get(schema.name)
    if gates is not None and len(sizes) > 2:
        directions = (
            2 if given.get("direction") is not None and given["direction"].s == b"bidirectional" else 1
        )
        hidden = given["hidden_size"].i if "hidden_size" in given else 0
        last = sizes[0][-1] if sizes[0] else 0
        wanted = [directions, gates * hidden, last], [directions, gates * hidden, hidden]
        for name, found, size in zip("WR", sizes[1:3], wanted, strict=True):
            if found is not None and list(found) != size:
                raise Unsupported(
                    f"its weights {name} have the sizes {list(found)}, not {size}", "check hidden_size"
                )
    if schema.name in ("GatherElements", "ScatterElements") and len(sizes) > 1 and sizes[0] and sizes[1]:
        axis = (given["axis"].i if "axis" in given else 0) % len(sizes[0])
        pairs = enumerate(zip(sizes[0], sizes[1], strict=False))
        if any(index > size for place, (size, index) in pairs if place != axis):
            reason = f"indices of sizes {list(sizes[1])} reach beyond data of sizes {list(sizes[0])}"
            raise Unsupported(reason, f"indices are at most as long as the data but for the dimension {axis}")
