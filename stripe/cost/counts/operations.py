"""Operations of a block: how often each intrinsic runs, on which dtype. An aggregating store is an operation too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from stripe.ir import Agg, Block, Constant, DType, Intrinsic, Load, LoadIndex, Special, Store, result_dtype
from stripe.ir.dtypes import I32

FREE = frozenset({"ident"})
"""Intrinsics that compute nothing."""


@dataclass(frozen=True)
class Operations:
    """Numbers of operations by (intrinsic, dtype); `macs` of them are pairs of a multiply and the add of its result,
    by dtype of the multiply and of the add. These are among `counts` too."""

    counts: Mapping[tuple[str, DType], int]
    macs: Mapping[tuple[DType, DType], int]

    @property
    def total(self) -> int:
        """All operations; a multiply-accumulate is two of them."""
        return sum(self.counts.values())

    @property
    def mac_count(self) -> int:
        """Multiply-accumulates."""
        return sum(self.macs.values())

    @property
    def beside_macs(self) -> dict[tuple[str, DType], int]:
        """The numbers of operations that are no part of a multiply-accumulate."""
        left = Counter(self.counts)
        for (product, result), number in self.macs.items():
            left["mul", product] -= number
            left["add", result] -= number
        return {key: number for key, number in left.items() if number}

    @property
    def by_name(self) -> dict[str, int]:
        """The numbers of operations by `intrinsic:dtype`, in the order of these names."""
        found = {(op, dtype.name): number for (op, dtype), number in self.counts.items() if number}
        return {f"{op}:{dtype}": found[op, dtype] for op, dtype in sorted(found)}

    def times(self, factor: int) -> Operations:
        """The operations of `factor` equal points."""
        return Operations(
            {key: number * factor for key, number in self.counts.items()},
            {key: number * factor for key, number in self.macs.items()},
        )

    @staticmethod
    def sum(parts: Iterable[Operations]) -> Operations:
        """The operations of all parts together."""
        counts: Counter[tuple[str, DType]] = Counter()
        macs: Counter[tuple[DType, DType]] = Counter()
        for part in parts:
            counts.update(part.counts)
            macs.update(part.macs)
        return Operations(dict(counts), dict(macs))


def widenings(block: Block) -> tuple[Intrinsic, ...]:
    """The casts of loads to a wider dtype of their kind that holds every value."""
    loads = {s.into: block.ref(s.ref).dtype for s in block.statements if isinstance(s, Load)}
    return tuple(
        statement
        for statement in block.statements
        if isinstance(statement, Intrinsic) and statement.op == "cast" and statement.dtype is not None
        for source in [loads.get(statement.inputs[0])]
        if source is not None and statement.dtype.widens(source)
    )


def _narrow_factors(block: Block) -> dict[str, DType]:
    """The dtypes of loads that products take widened and add to a sum, by the widened scalars: a multiply-accumulate
    takes such loads as they are."""
    casts = {cast.into: cast.inputs[0] for cast in widenings(block)}
    if not casts:
        return {}
    loads = {s.into: block.ref(s.ref).dtype for s in block.statements if isinstance(s, Load)}
    added = {s.value for s in block.statements if isinstance(s, Store) and block.ref(s.ref).agg is Agg.ADD}
    intrinsics = [s for s in block.statements if isinstance(s, Intrinsic)]
    products = [s for s in intrinsics if s.op == "mul" and s.into in added and casts.keys() >= set(s.inputs)]
    others = {name for s in intrinsics if s not in products for name in s.inputs}
    taken = {name for s in products for name in s.inputs} - others - added
    return {name: loads[casts[name]] for name in taken}


def point_operations(block: Block) -> Operations:
    """The operations of the statements of one point of `block`, without those of blocks inside. A product of widened
    loads that is added to a sum counts in the dtype of the loads, and widening them is no operation."""
    narrow = _narrow_factors(block)
    counts: Counter[tuple[str, DType]] = Counter()
    macs: Counter[tuple[DType, DType]] = Counter()
    dtypes = scalar_dtypes(block)
    products: dict[str, DType] = {}
    for statement in block.statements:
        match statement:
            case Intrinsic(into, op, inputs):
                taken = [dtypes[name] for name in inputs]
                if into in narrow:
                    continue
                if op == "mul" and narrow.keys() >= set(inputs):
                    taken = [max((narrow[name] for name in inputs), key=lambda dtype: dtype.bits)]
                if op not in FREE:
                    counts[op, taken[-1]] += 1
                if op == "mul":
                    products[into] = taken[0]
                elif op in ("cast", "ident") and inputs[0] in products:
                    products[into] = products[inputs[0]]
            case Store(ref, value):
                view = block.ref(ref)
                if view.agg is not Agg.ASSIGN:
                    counts[view.agg.intrinsic(view.dtype), view.dtype] += 1
                    if view.agg is Agg.ADD and value in products:
                        macs[products[value], view.dtype] += 1
            case Special(op, outputs, inputs):
                name = outputs[-1]
                # each element of the result, or of the scattered input, is one step of the special
                views = [block.ref(name)] + ([block.ref(inputs[0])] if op == "scatter" else [])
                counts[op, views[0].dtype] += max(prod(view.sizes) for view in views)
            case Load() | LoadIndex() | Constant() | Block():
                pass
    return Operations(dict(counts), dict(macs))


def scalar_dtypes(block: Block) -> dict[str, DType]:
    """The dtype of each scalar that a statement of `block` defines."""
    found: dict[str, DType] = {}
    for statement in block.statements:
        match statement:
            case Load(into, ref):
                found[into] = block.ref(ref).dtype
            case LoadIndex(into):
                found[into] = I32
            case Constant(into, _, dtype):
                found[into] = dtype
            case Intrinsic(into, op, inputs, target):
                found[into] = result_dtype(op, [found[name] for name in inputs], target)
            case Store() | Special() | Block():
                pass
    return found
