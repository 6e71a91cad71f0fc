"""Types of the outputs of a node, and the values of nodes whose inputs are constants: both by the onnx package."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from ml_dtypes import iinfo
from onnx import ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TypeProto, helper
from onnx.checker import ValidationError
from onnx.defs import OpSchema
from onnx.reference import ReferenceEvaluator
from onnx.reference.ops.op_batch_normalization import BatchNormalization_14
from onnx.shape_inference import InferenceError

from stripe.frontends.onnx.control import Unsupported
from stripe.frontends.onnx.legal import check_attributes, has_auto_pad, require_sizes
from stripe.frontends.onnx.sizes import result_sizes
from stripe.frontends.onnx.values import Array, TensorValue, Value

MAX_FOLDED = 1 << 28
"""Elements that folding may make of smaller constants."""
_MAX_SEEN = 1 << 14
"""Elements of a constant that the inference of shapes sees."""

EVALUATED = frozenset(
    """
    Abs Add And BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Clip Compress
    Concat Constant ConstantOfShape Cos CumSum DequantizeLinear Div Equal Exp Expand Flatten Floor Gather
    GatherND Greater GreaterOrEqual Identity Less LessOrEqual Log MatMul Max Min Mod Mul Neg NonMaxSuppression
    NonZero Not Or Pow QuantizeLinear Range Reciprocal ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Relu
    Reshape Round Sigmoid Sign Sin Slice Split Sqrt Squeeze Sub Tanh Tile Transpose Trilu Unsqueeze Where Xor
    """.split()
)
"""Operators that the evaluator of onnx computes as their templates do, some on a range of elements. It computes others
in another way: those that normalise, pool, resize, contract or recur have options that it leaves out."""
_INTEGERS = frozenset(
    helper.tensor_dtype_to_np_dtype(element)
    for name, element in TensorProto.DataType.items() if name.startswith(("INT", "UINT"))
)  # fmt: skip
_ALIGNED = 7
"""The opset since which operands broadcast from their last dimensions; the evaluator knows nothing else."""
_FORMS = {"DequantizeLinear": 21, "QuantizeLinear": 21}
"""Operators whose older forms the evaluator lacks, and the opset of a form that computes the same."""
RANDOM = frozenset(
    ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli")
)


def find_schema(node: NodeProto, opsets: Mapping[str, int]) -> OpSchema | None:
    """The schema of a node's operator in the opset of its domain; None when there is none."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    if domain not in opsets:
        return None
    try:
        return onnx.defs.get_schema(node.op_type, opsets[domain], domain)
    except onnx.defs.SchemaError:
        return None


def infer(
    node: NodeProto,
    schema: OpSchema,
    inputs: Sequence[Value],
    opsets: Mapping[str, int],
    *,
    plainly: bool = False,
) -> list[TypeProto | None]:
    """The types of the outputs, None where they do not follow from the inputs' types and from constants; `plainly` as
    onnx infers them, right or not.

    Raises Unsupported for inputs that contradict the operator.
    """
    plain = _completed(node, schema)
    types: dict[str, TypeProto] = {}
    data: dict[str, onnx.TensorProto] = {}
    for name, value in zip(plain.input, inputs, strict=True):
        if isinstance(value, TensorValue):
            types[name] = value.type.proto()
            if value.data is not None and value.data.size <= _MAX_SEEN and value.type.element:
                data[name] = onnx.numpy_helper.from_array(np.asarray(value.data), name)
        elif name:
            types[name] = TypeProto()
    versions = [OperatorSetIdProto(domain=domain, version=version) for domain, version in opsets.items()]
    first = next((value.type for value in inputs if isinstance(value, TensorValue)), None)
    check_attributes(node, schema, None if first is None else len(first.sizes))
    if schema.domain == "":
        sizes = [value.type.sizes if isinstance(value, TensorValue) else None for value in inputs]
        require_sizes(node, schema, sizes)
    known = result_sizes(node, inputs) if schema.domain == "" and not plainly else None
    inferring = _with_inference(schema)
    try:
        found = (
            dict[str, TypeProto]()
            if schema.deprecated and known is not None
            else onnx.shape_inference.infer_node_outputs(
                inferring, plain, types, data, opset_imports=versions
            )
        )
    except (InferenceError, ValidationError) as error:
        if inferring is not schema:
            return [None] * len(plain.output)
        raise Unsupported(one_line(error), "shapes and types of its inputs contradict it") from None
    if known is not None:
        for name in plain.output:
            element = (
                found[name].tensor_type.elem_type if name in found else types["i0"].tensor_type.elem_type
            )
            found[name] = onnx.helper.make_tensor_type_proto(element, known)
    return [found.get(name) for name in plain.output]


def _completed(node: NodeProto, schema: OpSchema) -> NodeProto:
    """The node as inference understands it, with all attributes and outputs."""
    plain = renamed(node)
    # Outputs that are left out have a type as well: a template may ask for it.
    plain.output[:] = [f"o{place}" for place in range(len(plain.output))]
    if has_auto_pad(plain):  # widths are 0 then, and inference would take them before the word
        del plain.attribute[:]
        plain.attribute.extend(item for item in node.attribute if item.name != "pads")
    # The inference of STFT takes another default than its schema says.
    written = {attribute.name for attribute in plain.attribute}
    plain.attribute.extend(
        declared.default_value
        for name, declared in schema.attributes.items()
        if name not in written and declared.default_value.type != onnx.AttributeProto.UNDEFINED
    )
    return plain


def _with_inference(schema: OpSchema) -> OpSchema:
    """The schema of an operator, or of its next version where this one infers no types."""
    later = schema
    while not later.has_type_and_shape_inference_function:
        newer = (
            each for each in onnx.defs.get_all_schemas_with_history()
            if (each.domain, each.name) == (later.domain, later.name) and each.since_version > later.since_version
        )  # fmt: skip
        found = min(newer, key=lambda each: each.since_version, default=None)
        if found is None:
            return schema
        later = found
    return later


def one_line(error: Exception) -> str:
    """The message of an error of onnx, without the operator, which stands beside it anyway."""
    text = " ".join(str(error).split())
    return re.sub(r"^\[\w+\] ?(\(op_type:[^)]*\):? ?)?", "", text)[:300] or type(error).__name__


def renamed(node: NodeProto) -> NodeProto:
    """The node with plain names for its domain, inputs and outputs."""
    plain = NodeProto()
    plain.CopyFrom(node)
    plain.domain = "" if node.domain == "ai.onnx" else node.domain
    del plain.input[:], plain.output[:]
    plain.input.extend(f"i{place}" if name else "" for place, name in enumerate(node.input))
    plain.output.extend(f"o{place}" if name else "" for place, name in enumerate(node.output))
    return plain


def is_evaluated(node: NodeProto, schema: OpSchema, inputs: Sequence[Array | None]) -> bool:
    """Whether the evaluator of onnx computes a node on constants as the library does."""
    aligned = schema.since_version >= _ALIGNED or "broadcast" not in schema.attributes
    known = schema.domain == "" and node.op_type in EVALUATED and aligned
    given = [array for array in inputs if array is not None]
    return known and (node.op_type not in _IN_RANGE or _IN_RANGE[node.op_type](node, *given))


def _cast_fits(node: NodeProto, data: Array, like: Array | None = None) -> bool:
    """Whether no float lies beyond an integer type, and none is rounded twice by a program, by way of fp32."""
    to = next((item.i for item in node.attribute if item.name == "to"), TensorProto.UNDEFINED)
    target = helper.tensor_dtype_to_np_dtype(to) if like is None else like.dtype
    if target in _INTEGERS and data.dtype not in _INTEGERS and data.dtype.kind in "fV":
        whole, ends = np.trunc(data.astype(np.float64)), iinfo(target.name)
        return bool(np.all((whole >= float(ends.min)) & (whole < float(int(ends.max) + 1))))
    if data.dtype.kind in "fiu" and target.itemsize < 4 and target.kind in "fV" and target not in _INTEGERS:
        return np.array_equal(data.astype(np.float32).astype(data.dtype), data, equal_nan=True)
    return True


def _quotient_fits(node: NodeProto, data: Array, scale: Array, *_: Array) -> bool:
    """Whether a quotient has the type fp32, and lies in 32 bits."""
    wide = all(item.i in (0, TensorProto.FLOAT) for item in node.attribute if item.name == "precision")
    if not wide or not data.dtype == scale.dtype == np.float32 or not np.isfinite(data).all():
        return False
    least = np.abs(scale).min(initial=np.inf)
    return bool(np.abs(data).max(initial=0) < least * 2.0**31)


def _power_fits(_: NodeProto, base: Array, exponent: Array) -> bool:
    """Whether powers of integers are those of doubles."""
    if base.dtype.kind not in "iu":
        return True
    ends = iinfo(base.dtype.name)
    powers = np.power(base.astype(np.float64), exponent.astype(np.float64))
    return bool(np.all((powers >= max(ends.min, -(2**53))) & (powers <= min(ends.max, 2**53))))


_IN_RANGE: Mapping[str, Callable[..., bool]] = {
    "Cast": _cast_fits, "CastLike": _cast_fits, "QuantizeLinear": _quotient_fits, "Pow": _power_fits,
}  # fmt: skip
"""Whether elements are in the range in which an operator is computed alike: elsewhere the evaluator wraps, and
programs saturate."""


class BatchNormalization(BatchNormalization_14):
    """As before opset 14. Wherever it has a momentum, which is always, the evaluator of onnx would train."""

    def _run(self, *inputs: Array, epsilon: float, momentum: float, **_: object) -> tuple[Array, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return super()._run(*inputs, epsilon=epsilon, momentum=momentum, training_mode=0)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportArgumentType, reportCallIssue]


def reference(model: ModelProto) -> ReferenceEvaluator:
    """The reference evaluator of onnx for a model."""
    opset = next((item.version for item in model.opset_import if item.domain in ("", "ai.onnx")), 14)
    return ReferenceEvaluator(model, new_ops=[BatchNormalization] if 7 <= opset < 14 else None)


def evaluate(node: NodeProto, inputs: Sequence[Array | None], opsets: Mapping[str, int]) -> list[object]:
    """The outputs of a node on constants by the reference evaluator of onnx, with its exceptions."""
    plain = renamed(node)
    names = [name for name in plain.input if name]
    graph = onnx.helper.make_graph(
        [plain], "folded", [onnx.helper.make_value_info(name, TypeProto()) for name in names],
        [onnx.helper.make_value_info(name, TypeProto()) for name in plain.output if name],
    )  # fmt: skip
    least = {"": _FORMS.get(node.op_type, 0)}
    imports = [
        onnx.helper.make_opsetid(domain, max(version, least.get(domain, 0)))
        for domain, version in opsets.items()
    ]
    model = onnx.helper.make_model(graph, opset_imports=imports)
    feeds = {name: array for name, array in zip(plain.input, inputs, strict=True) if name}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = list(reference(model).run(None, feeds))  # pyright: ignore[reportUnknownMemberType]
    results = iter(found)
    return [next(results) if name else None for name in plain.output]
