"""The kind of contraction that a block is: matrix product, convolution (and which), pooling, reduction.

Indices are distinguished by the views that they move: x is in the output and the data, k in the data and the weights;
where both meet in one dimension of the data, that dimension is a *window*, k walks the kernel and the factor of x is
the stride.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from stripe.ir import Affine, Agg, Block, Constant, Intrinsic, Load, Refinement, Store, indices_of
from stripe.rewrite.refusal import Refusal


@dataclass(frozen=True, slots=True)
class ContractionKind:
    """Tags that classify a contraction, and attributes with their values."""

    tags: tuple[str, ...]
    values: Mapping[str, int | str] = field(default_factory=dict[str, int | str])


@dataclass(frozen=True, slots=True)
class _Extent:
    """One spatial dimension: elements of the kernel, stride, dilation."""

    size: int = 1
    stride: int = 1
    dilation: int = 1


def classify(block: Block) -> ContractionKind | Refusal:
    """The kind of contraction that a block is."""
    operands = _operands(block)
    if isinstance(operands, Refusal):
        return operands
    inputs, output = operands
    if output.agg is Agg.ASSIGN:
        return Refusal("it aggregates nothing")
    if any(not affine.is_linear for ref in (*inputs, output) for affine in ref.access):
        return Refusal("an access has a floor or a remainder")
    ranges = {index.name: index.range for index in block.iterated if index.range > 1}
    if len(inputs) == 1:
        return _of_one(inputs[0], output, ranges)
    if output.agg is not Agg.ADD:
        return Refusal(f"it aggregates products by {output.agg.value}")
    return _of_two(inputs[0], inputs[1], output, ranges)


def _operands(block: Block) -> tuple[tuple[Refinement, ...], Refinement] | Refusal:
    """The views of the factors of a product, or of an only operand, and of the result; casts do not matter."""
    origin: dict[str, tuple[str, ...]] = {}
    for statement in block.statements:
        match statement:
            case Load(into, ref):
                origin[into] = (ref,)
            case Intrinsic(into, "cast" | "ident", (operand,)):
                origin[into] = origin.get(operand, ())
            case Intrinsic(into, "mul", (first, second)):
                origin[into] = (*origin.get(first, ("",)), *origin.get(second, ("",)))
            case Intrinsic(into) | Constant(into):
                origin[into] = ("",)
            case Store(ref, value):
                names = origin.get(value, ("",))
                if len(names) not in (1, 2) or "" in names:
                    return Refusal("its stored value is neither a load nor a product of two")
                return tuple(block.ref(name) for name in names), block.ref(ref)
            case _:
                return Refusal("it holds more than scalar statements")
    return Refusal("it stores nothing")


def _names(ref: Refinement, ranges: Mapping[str, int]) -> frozenset[str]:
    """The indices that move a view."""
    return indices_of(ref.access) & ranges.keys()


def _of_one(data: Refinement, output: Refinement, ranges: Mapping[str, int]) -> ContractionKind | Refusal:
    kept, walked = _names(output, ranges), _names(data, ranges)
    summed = walked - kept
    if not ranges.keys() - kept:
        return Refusal("it accumulates over no index")
    windows = [
        window
        for affine in data.access
        if (window := _window(affine, kept & walked, summed, ranges)) is not None
    ]
    if not windows:
        return ContractionKind(("reduction", f"{output.agg.value}_reduction"))
    verb = "sum" if output.agg is Agg.ADD else output.agg.value
    values = _attributes(windows)
    return ContractionKind(
        ("pooling", f"{verb}_pool", f"window_{values['window']}", *_flags(windows)), values
    )


def _of_two(
    first: Refinement, second: Refinement, output: Refinement, ranges: Mapping[str, int]
) -> ContractionKind | Refusal:
    for data, weights in ((first, second), (second, first)):
        roles = _Roles.of(data, weights, output, ranges)
        windows = roles.windows()
        if any(window is not None for window in windows):
            return roles.convolution(roles.spatial(windows))
        transposed = roles.transposed_windows()
        if transposed:
            return roles.convolution(transposed, "conv_transposed")
    roles = _Roles.of(first, second, output, ranges)
    if not roles.contracted:
        return Refusal("it contracts no index")
    for data, weights in ((first, second), (second, first)):
        found = _Roles.of(data, weights, output, ranges).pointwise()
        if found is not None:
            return found
    tags = ["matmul" if roles.data_free and roles.weights_free else "matvec" if roles.free else "dot"]
    return ContractionKind((*tags, "batched") if roles.shared else tuple(tags))


@dataclass(frozen=True, slots=True)
class _Roles:
    """The indices of a product of `data` and `weights` by who uses them."""

    data: Refinement
    weights: Refinement
    output: Refinement
    ranges: Mapping[str, int]
    shared: frozenset[str]
    contracted: frozenset[str]
    data_free: frozenset[str]
    weights_free: frozenset[str]

    @staticmethod
    def of(data: Refinement, weights: Refinement, output: Refinement, ranges: Mapping[str, int]) -> _Roles:
        a, b, o = (_names(ref, ranges) for ref in (data, weights, output))
        return _Roles(data, weights, output, ranges, a & b & o, (a & b) - o, (a & o) - b, (b & o) - a)

    @property
    def free(self) -> frozenset[str]:
        return self.data_free | self.weights_free

    def windows(self) -> list[_Extent | None]:
        """The window of each dimension of the data; None where there is none."""
        return [_window(a, self.data_free, self.contracted, self.ranges) for a in self.data.access]

    def transposed_windows(self) -> list[_Extent]:
        """The windows of a convolution that scatters: where the kernel's indices move the output."""
        found = (_window(a, self.data_free, self.weights_free, self.ranges) for a in self.output.access)
        return [window for window in found if window is not None]

    def spatial(self, windows: Sequence[_Extent | None]) -> list[_Extent]:
        """The windows, with those of one element that the weights' constant dimensions stand for.

        These belong to the last dimensions of the data in which the output moves alone: batches stand first.
        """
        missing = self._constant_dims()
        chosen: dict[int, _Extent] = {n: window for n, window in enumerate(windows) if window is not None}
        for number in reversed(range(len(windows))):
            names = self.data.access[number].names() & self.ranges.keys()
            if missing and number not in chosen and names and names <= self.data_free:
                chosen[number] = _Extent(1, _step(self.data.access[number], names))
                missing -= 1
        return [chosen[number] for number in sorted(chosen)]

    def _constant_dims(self) -> int:
        return sum(1 for affine in self.weights.access if not affine.names() & self.ranges.keys())

    def pointwise(self) -> ContractionKind | None:
        """A convolution with a kernel of one element; None where this is a matrix product and no more.

        Told by weights that have constant dimensions, by data that is walked in steps, or by three free dimensions of
        the data: one batch, two of space.
        """
        steps = [
            _step(affine, names)
            for affine in self.data.access
            if (names := affine.names() & self.ranges.keys()) and names <= self.data_free
        ]
        spaced = self._constant_dims() > 0 and len(self.data.access) > 2
        if not self.weights_free or not (spaced or any(step > 1 for step in steps) or len(steps) > 2):
            return None
        spatial = self.spatial([None] * len(self.data.access)) or [_Extent(1, step) for step in steps[-2:]]
        return self.convolution(spatial, "matmul") if spatial else None

    def convolution(self, windows: Sequence[_Extent], *more: str) -> ContractionKind:
        values = _attributes(windows)
        tags = ["conv", *more, f"conv_{values['window']}", *_flags(windows)]
        if self.shared:
            kernel = {
                name
                for affine, window in zip(self.data.access, self.windows(), strict=True)
                if window is not None
                for name in affine.names()
            }
            tags.append("grouped" if self.contracted - kernel else "depthwise")
            values["groups"] = prod(self.ranges[name] for name in self.shared)
        return ContractionKind(tuple(tags), values)


def _window(
    affine: Affine, moving: frozenset[str], walking: frozenset[str], ranges: Mapping[str, int]
) -> _Extent | None:
    """The window in one dimension: an index of `moving` carries it, indices of `walking` run inside."""
    steps = [abs(affine.coeff(name)) for name in affine.names() & moving]
    inside = sorted(affine.names() & walking)
    if not steps or not inside:
        return None
    size = prod(ranges[name] for name in inside)
    return _Extent(size, min(steps), min(abs(affine.coeff(name)) for name in inside))


def _step(affine: Affine, names: frozenset[str]) -> int:
    return min(abs(affine.coeff(name)) for name in names)


def _flags(windows: Sequence[_Extent]) -> list[str]:
    strided = any(window.stride > 1 for window in windows)
    dilated = any(window.dilation > 1 for window in windows)
    return ["strided"] * strided + ["dilated"] * dilated


def _attributes(windows: Sequence[_Extent]) -> dict[str, int | str]:
    numbers = {
        "window": [window.size for window in windows],
        "stride": [window.stride for window in windows],
        "dilation": [window.dilation for window in windows],
    }
    return {name: "x".join(map(str, values)) for name, values in numbers.items()}
