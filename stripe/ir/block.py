"""Blocks: sets of index points with refinements and the statements that run at each point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from typing_extensions import override

from stripe.ir.affine import Affine, Interval
from stripe.ir.dtypes import DType, value_key
from stripe.ir.frozen import HashedOnce, frozen, replace
from stripe.ir.location import Location
from stripe.ir.printable import Printable
from stripe.ir.refinement import Direction, Refinement
from stripe.ir.stage import Stage
from stripe.ir.tags import BLOCK_WORDS, INDEX_WORDS, Tags, TagValue, require_field_word

_STENCIL = "stencil_"


@frozen
class Index:
    """An index that runs over [0, range); or, with `affine`, one value passed in from the indices outside. The points
    of a spatial index run at the same time on units of their own. `stencil` is the index of a stencil that this one
    runs through, "" for none."""

    name: str
    range: int = 1
    affine: Affine | None = None
    tags: Tags = Tags()
    is_spatial: bool = False
    stencil: str = ""

    @property
    def is_passed(self) -> bool:
        return self.affine is not None

    @property
    def words(self) -> Tags:
        """The tags, and the words of the text for a spatial index and for the index of a stencil."""
        spatial = ("spatial",) if self.is_spatial else ()
        return self.tags.add(*spatial, *(("stencil", f"{_STENCIL}{self.stencil}") if self.stencil else ()))

    def with_words(self, words: Tags) -> Index:
        """The index with the fields and tags that `words` denote; ValueError for a word with a value that takes
        none."""
        for word in INDEX_WORDS:
            require_field_word(word, words.get(word))
        spelled = [word for word in words if word.startswith(_STENCIL)] if "stencil" in words else []
        if len(spelled) > 1:
            raise ValueError(
                f"'{self.name}' is {' and '.join(spelled)}: it runs through one index of a stencil"
            )
        return replace(
            self,
            tags=words.remove(*INDEX_WORDS, *(("stencil", *spelled) if spelled else ())),
            is_spatial="spatial" in words,
            stencil=spelled[0].removeprefix(_STENCIL) if spelled else "",
        )


@frozen
class Constraint:
    """The block runs only where `affine >= 0`."""

    affine: Affine

    def __str__(self) -> str:
        return f"{self.affine} >= 0"


@frozen
class Load(Printable):
    """`$into = load(ref)`: the element at the origin of the view."""

    into: str
    ref: str
    deps: tuple[int, ...] = ()
    tags: Tags = Tags()


@frozen
class Store(Printable):
    """`ref = store($value)`: merges the value into the element at the origin of the view by its aggregation."""

    ref: str
    value: str
    deps: tuple[int, ...] = ()
    tags: Tags = Tags()


@frozen
class LoadIndex(Printable):
    """`$into = load_index(affine)`: the value of an affine over the block's indices, as i32."""

    into: str
    affine: Affine
    deps: tuple[int, ...] = ()
    tags: Tags = Tags()


@frozen
class Constant(Printable):
    """`$into = (dtype)value`. Two are equal where their values are; 0.0 and -0.0 are two values, nan is one."""

    into: str
    value: bool | int | float
    dtype: DType
    deps: tuple[int, ...] = ()
    tags: Tags = Tags()

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self._key == other._key

    @override
    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        return (self.into, value_key(self.value), self.dtype, self.deps, self.tags)


@frozen
class Intrinsic(Printable):
    """`$into = op($a, $b)`: a scalar operation of `stripe.ir.intrinsics`; `dtype` is given for `cast` alone."""

    into: str
    op: str
    inputs: tuple[str, ...]
    dtype: DType | None = None
    deps: tuple[int, ...] = ()
    tags: Tags = Tags()


@frozen
class Special(Printable):
    """`(o1, o2) = op(i1, i2)`: an opaque operation on whole refinements (`stripe.ir.intrinsics`)."""

    op: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    deps: tuple[int, ...] = ()
    tags: Tags = Tags()


@frozen
class Block(Printable, HashedOnce):
    """For each point of `indices` that satisfies `constraints`, in any order: build the refinements, run the
    statements.

    Only the block's own indices and refinements are visible inside it. `is_main` holds for the block of the entry that
    is the program's body; `stage` is the progress of its statements towards the machine, and that of main the stage of
    the program; `pipeline_depth` is the number of tiles in flight that the buffers inside have copies for.
    """

    name: str
    indices: tuple[Index, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    refinements: tuple[Refinement, ...] = ()
    statements: tuple[Statement, ...] = ()
    location: Location = Location()
    comments: tuple[str, ...] = ()
    deps: tuple[int, ...] = ()
    tags: Tags = Tags()
    is_main: bool = False
    stage: Stage = Stage.TILED
    pipeline_depth: int | None = None

    @override
    def __repr__(self) -> str:
        """The block without its contents, which the text has."""
        return f"<Block {self.name} [{', '.join(f'{index.name}:{index.range}' for index in self.indices)}]>"

    @property
    def words(self) -> Tags:
        """The words by which passes select: the tags, and those of the text for `main`, the stage and the pipeline
        depth."""
        words: list[tuple[str, TagValue | None]] = []
        if self.is_main:
            words.append(("main", None))
        if self.stage is not Stage.TILED:
            words.append((self.stage.word, None))
        if self.pipeline_depth is not None:
            words.append(("pipeline_depth", self.pipeline_depth))
        return Tags.from_pairs([*self.tags.entries, *words]) if words else self.tags

    def with_words(self, words: Tags) -> Block:
        """The block with the fields and tags that `words` denote; ValueError for a word with a wrong value."""
        for word in words:
            require_field_word(word, words.get(word))
        depth = words.get("pipeline_depth")
        assert depth is None or isinstance(depth, int)
        return replace(
            self, tags=words.remove(*BLOCK_WORDS), is_main="main" in words,
            stage=max(stage for stage in Stage if stage is Stage.TILED or stage.word in words), pipeline_depth=depth,
        )  # fmt: skip

    def find_index(self, name: str) -> Index | None:
        return next((index for index in self.indices if index.name == name), None)

    def find_ref(self, name: str) -> Refinement | None:
        return next((ref for ref in self.refinements if ref.name == name), None)

    def index(self, name: str) -> Index:
        """The index called `name`; KeyError when there is none."""
        found = self.find_index(name)
        if found is None:
            raise KeyError(name)
        return found

    def ref(self, name: str) -> Refinement:
        """The refinement called `name`; KeyError when there is none."""
        found = self.find_ref(name)
        if found is None:
            raise KeyError(name)
        return found

    @property
    def iterated(self) -> tuple[Index, ...]:
        """The indices that run: all but the passed ones."""
        return tuple(index for index in self.indices if index.affine is None)

    @property
    def passed(self) -> tuple[Index, ...]:
        return tuple(index for index in self.indices if index.affine is not None)

    @property
    def points(self) -> int:
        """Product of the index ranges (constraints not counted)."""
        count = 1
        for index in self.indices:
            count *= index.range
        return count

    def intervals(self, outer: dict[str, Interval] | None = None) -> dict[str, Interval]:
        """The inclusive interval of each index; a passed one follows from the intervals of the block outside."""
        return {
            index.name: (0, index.range - 1) if index.affine is None else index.affine.bounds(outer or {})
            for index in self.indices
        }

    @property
    def blocks(self) -> Iterator[Block]:
        """The blocks among the statements."""
        return (statement for statement in self.statements if isinstance(statement, Block))

    @property
    def inputs(self) -> tuple[Refinement, ...]:
        return tuple(ref for ref in self.refinements if ref.dir is Direction.IN)

    @property
    def outputs(self) -> tuple[Refinement, ...]:
        """The written views: out and inout."""
        return tuple(ref for ref in self.refinements if ref.dir.writes)

    @property
    def allocs(self) -> tuple[Refinement, ...]:
        return tuple(ref for ref in self.refinements if ref.is_alloc)


Statement: TypeAlias = Load | Store | LoadIndex | Constant | Intrinsic | Special | Block
ScalarStatement: TypeAlias = Load | LoadIndex | Constant | Intrinsic
"""The statements that define a scalar, in their field `into`."""
