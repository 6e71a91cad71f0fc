"""Points that a kernel may get in addition, so that constraints fall and prime ranges rise: exact, by integer sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stripe.ir import Affine, Agg, Block, Domain, Interval, Refinement
from stripe.ir.factors import is_prime
from stripe.ir.frozen import replace
from stripe.poly import Points, Relation, bounds, points_of, union
from stripe.rewrite.contribution import neutral_sets, output_of
from stripe.rewrite.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Margins:
    """Elements to add before and after a buffer, per dimension."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def any(self) -> bool:
        return any((*self.low, *self.high))

    def union(self, other: Margins) -> Margins:
        """The margins that hold both."""
        return Margins(
            tuple(map(max, self.low, other.low)),
            tuple(map(max, self.high, other.high)),
        )

    def sizes(self, sizes: Sequence[int]) -> tuple[int, ...]:
        return tuple(a + size + b for a, size, b in zip(self.low, sizes, self.high, strict=True))


@dataclass(frozen=True, slots=True)
class Growth:
    """A kernel with the index ranges and the constraints that it has in the end."""

    block: Block
    ranges: Mapping[str, int]
    kept: tuple[Affine, ...]

    @staticmethod
    def start(block: Block) -> Growth:
        """Nothing changed yet."""
        ranges = {index.name: index.range for index in block.iterated}
        return Growth(block, ranges, tuple(constraint.affine for constraint in block.constraints))

    def raised(self, name: str, size: int) -> Growth:
        return replace(self, ranges={**self.ranges, name: size})

    def without(self, constraint: Affine) -> Growth:
        return replace(self, kept=tuple(affine for affine in self.kept if affine is not constraint))

    @property
    def domain(self) -> Domain:
        return Domain.of({name: (0, size - 1) for name, size in self.ranges.items()}, self.kept)

    def added(self) -> Points:
        """The points that the kernel did not have."""
        return points_of(self.domain) - points_of(Growth.start(self.block).domain)

    def margins(self, ref: Refinement, sizes: Sequence[int]) -> Margins:
        """The elements that `ref` touches beyond a buffer of `sizes`."""
        found = [bounds(affine, self.domain) or (0, 0) for affine in ref.access]
        return Margins(
            tuple(max(0, -low) for low, _ in found),
            tuple(max(0, high - size + 1) for (_, high), size in zip(found, sizes, strict=True)),
        )


@dataclass(frozen=True, slots=True)
class Judge:
    """Decides whether a kernel may grow. `sizes` are the sizes of the buffer behind each refinement. `signed_holes`:
    those of the output, where they keep -0.0, which a sum with 0.0 does not."""

    block: Block
    sizes: Mapping[str, Sequence[int]]
    finite: frozenset[str]
    whole_output: bool
    signed_holes: Points | None

    def refusal(self, growth: Growth) -> Refusal | None:
        """The harm that an added point would do.

        An added point is harmless when it writes beyond the output, in a dimension that a raised range has made
        longer, or when the inputs that are beyond their buffers there make its contribution the identity.
        """
        output = output_of(self.block)
        assert isinstance(output, Refinement)
        added = growth.added()
        if added.is_empty:
            return None
        margins = growth.margins(output, self.sizes[output.name])
        if any(margins.low):
            return Refusal(f"it would write before the beginning of {output.name}")
        if margins.any and dict(growth.ranges) == dict(Growth.start(self.block).ranges):
            return Refusal(f"it would write beyond the end of {output.name}")
        if margins.any and output.agg is Agg.ASSIGN and not self.whole_output:
            return Refusal(f"{output.name} is not written as a whole")
        real = added & self._inside(output, added)
        if self.signed_holes and output.agg is Agg.ADD:
            places = Relation.function(real, dict(zip(self.signed_holes.names, output.access, strict=True)))
            if not places.into(self.signed_holes).is_empty:
                return Refusal(f"it would add 0.0 to holes of {output.name}, which its layout has at -0.0")
        harmful = (real - self._neutral(added, self.finite)).sample()
        if harmful is None:
            return None
        at = ", ".join(f"{name} = {value}" for name, value in harmful.items())
        if (real - self._neutral(added, frozenset(self.sizes))).is_empty:
            reason = f"at {at}, 0 would be multiplied by an element that may be infinite or NaN"
            return Refusal(f"{reason}; allow_nonfinite permits it")
        return Refusal(f"at {at}, it would contribute more than the identity of {output.agg.value}")

    def _inside(self, ref: Refinement, among: Points) -> Points:
        """The points at which `ref` lies inside its buffer."""
        sizes = self.sizes[ref.name]
        tests = [
            a for affine, size in zip(ref.access, sizes, strict=True) for a in (affine, size - 1 - affine)
        ]
        return among & Points.build(among.names, {}, tests)

    def _neutral(self, among: Points, finite: frozenset[str]) -> Points:
        """The points at which inputs that read padding make the contribution the identity."""

        def padded(names: Iterable[str]) -> Points:
            result = among
            for name in names:
                result = result - self._inside(self.block.ref(name), among)
            return result

        return union((padded(names) for names in neutral_sets(self.block, finite)), among.names)


def raised_ranges(growth: Growth, threshold: int, multiple: int) -> Iterator[tuple[str, int]]:
    """The indices whose range is a prime above `threshold` (none where that is 0), with the next multiple."""
    for name, size in growth.ranges.items():
        if 0 < threshold < size and is_prime(size):
            yield name, -(-size // multiple) * multiple


def border(sizes: Sequence[int], margins: Margins) -> Iterator[tuple[Interval, ...]]:
    """Disjoint boxes that make up the margins of a padded buffer, in its coordinates."""
    full = margins.sizes(sizes)
    core = [(low, low + size - 1) for low, size in zip(margins.low, sizes, strict=True)]
    for dim, (first, last) in enumerate(core):
        rest: list[Interval] = [(0, size - 1) for size in full[dim + 1 :]]
        if first > 0:
            yield (*core[:dim], (0, first - 1), *rest)
        if last < full[dim] - 1:
            yield (*core[:dim], (last + 1, full[dim] - 1), *rest)
