"""Builds the IR from the rules of `grammar/stripe.lark`, each method as soon as its rule is complete."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeAlias, TypeVar

from stripe.ir.affine import Affine
from stripe.ir.block import (
    Block,
    Constant,
    Constraint,
    Index,
    Intrinsic,
    Load,
    LoadIndex,
    Special,
    Statement,
    Store,
)
from stripe.ir.dtypes import DTYPES, DType
from stripe.ir.errors import did_you_mean
from stripe.ir.index_map import IndexMap, PhysicalLayout
from stripe.ir.intrinsics import INTRINSICS, SPECIALS
from stripe.ir.location import Device, Location
from stripe.ir.program import ConstantBuffer
from stripe.ir.refinement import Agg, Dim, Direction, Refinement
from stripe.ir.tags import FIELD_WORDS, Tags, TagValue, require_field_word
from stripe.ir.text.lalr import Action, Word
from stripe.ir.text.names import RESERVED

_Part = TypeVar("_Part", bound=Statement | Index | Constraint | Refinement | ConstantBuffer)

Parts: TypeAlias = list[Any]
"""The values of the parts of a rule, in the order of the grammar; None for an option that is left out."""

Fail: TypeAlias = Callable[[str, Word, str], NoReturn]
"""Raises an error from a reason, the word where it arose and a hint."""

_AGGREGATIONS = {agg.value: agg for agg in Agg}
_DIRECTIONS = {direction.value: direction for direction in Direction}
_NO_TAGS = Tags()


class IrBuilder:
    """Each builder builds one text; `places` then holds the offset and length of each statement, index, constraint,
    refinement and constant by the id of its object.
    """

    def __init__(self, fail: Fail) -> None:
        self._fail = fail
        self.places: dict[int, tuple[int, int]] = {}

    @property
    def actions(self) -> dict[str, Action]:
        """The method for each rule of the grammar, which has its name."""
        rules = (name for name in vars(IrBuilder) if not name.startswith("_") and name != "actions")
        return {name: getattr(self, name) for name in rules}

    def start(self, parts: Parts, begin: int, _: int) -> tuple[Block, tuple[ConstantBuffer, ...]]:
        (_, entry), *constants = parts
        if not isinstance(entry, Block):
            self._fail("the program is not a block", ("", begin), "begin with '0: #program block [] ('")
        return entry, tuple(constants)

    @staticmethod
    def affine_only(parts: Parts, _: int, __: int) -> Any:
        return parts[0]

    location_only = place = agg = op = plus_term = group = affine_only

    def statement(self, parts: Parts, begin: int, _: int) -> tuple[Word, Statement]:
        """The number and the statement: `body` is a class with its fields but dependences and tags."""
        number, deps, tags, body = parts
        kind: Any = body[0]
        fields: Parts = [*body[1:], deps or (), tags]
        if kind is not Block:
            built: Statement = kind(*fields)
        elif FIELD_WORDS.isdisjoint(tags):
            built = Block(*fields)
        else:
            built = Block(*fields[:-1]).with_words(tags)
        return number, self._at(begin, len(number[0]), built)

    @staticmethod
    def deps(parts: Parts, _: int, __: int) -> tuple[int, ...]:
        return tuple([int(word) for word, _ in parts])

    sizes = deps

    @staticmethod
    def tags(parts: Parts, _: int, __: int) -> Tags:
        return Tags.from_pairs(parts) if parts else _NO_TAGS

    def tag_word(self, parts: Parts, _: int, __: int) -> tuple[str, TagValue | None]:
        word = parts[0]
        value = parts[1] if len(parts) == 2 else None
        try:
            require_field_word(word[0], value)
        except ValueError as error:
            self._fail(str(error), word, "")
        return word[0], value

    tag_value = tag_word

    def block(self, parts: Parts, _: int, __: int) -> Parts:
        location, indices, (name, comments, constraints, refinements), *numbered = parts
        for due, (word, _) in enumerate(numbered):
            if int(word[0]) != due:
                self._fail(f"statement {word[0]} stands where {due} is due", word, f"number it {due}")
        statements = tuple([statement for _, statement in numbered])
        place = location or Location()
        return [Block, name, indices, constraints, refinements, statements, place, comments]

    @staticmethod
    def head(parts: Parts, _: int, __: int) -> Parts:
        """Name, comments, constraints and refinements."""
        opening, *items = parts
        name = opening[0].partition("//")[2].strip()
        comments = tuple([item for item in items if isinstance(item, str)])
        constraints = tuple([item for item in items if isinstance(item, Constraint)])
        refinements = tuple([item for item in items if isinstance(item, Refinement)])
        return [name, comments, constraints, refinements]

    @staticmethod
    def comment(parts: Parts, _: int, __: int) -> str:
        return parts[0][0][2:].strip()

    def constraint(self, parts: Parts, begin: int, _: int) -> Constraint:
        affine, zero = parts
        if zero[0] != "0":
            self._fail(f"a constraint compares with 0, not {zero[0]}", zero, "write it as 'affine >= 0'")
        return self._at(begin, 1, Constraint(affine))

    @staticmethod
    def indices(parts: Parts, _: int, __: int) -> tuple[Any, ...]:
        return tuple(parts)

    affines = indices

    def index_range(self, parts: Parts, _: int, __: int) -> Index:
        tags, name, size = parts
        return self._at(name[1], len(name[0]), Index(self._name(name), int(size[0])).with_words(tags))

    def index_passed(self, parts: Parts, _: int, __: int) -> Index:
        tags, name, affine = parts
        return self._at(name[1], len(name[0]), Index(self._name(name), 1, affine).with_words(tags))

    def refinement(self, parts: Parts, _: int, __: int) -> Refinement:
        tags, direction, offset, location, name, source, access, agg, dtype, (dims, bank_dim), layout = parts
        if agg is not None and agg[0] not in _AGGREGATIONS:
            self._unknown(agg, _AGGREGATIONS, "aggregation")
        way = _DIRECTIONS[direction[0]]
        built = Refinement(
            self._name(name), way, "" if way is Direction.NONE else source or name[0], access, self._dtype(dtype),
            dims, Agg.ASSIGN if agg is None else _AGGREGATIONS[agg[0]], location or Location(), offset or None,
            bank_dim, tags, layout=layout,
        )  # fmt: skip
        if not FIELD_WORDS.isdisjoint(tags):
            try:
                built = built.with_words(tags)
            except ValueError as error:
                self._fail(str(error), name, "")
        return self._at(name[1], len(name[0]), built)

    @staticmethod
    def new(parts: Parts, _: int, __: int) -> int:
        return int(parts[0][0], 16)

    def source(self, parts: Parts, _: int, __: int) -> str:
        return self._name(parts[0])

    @staticmethod
    def dims(parts: Parts, _: int, __: int) -> tuple[tuple[Dim, ...], int | None]:
        """The dimensions, and the number of the last in braces."""
        banks = [place for place, (_, is_bank) in enumerate(parts) if is_bank]
        return tuple([dim for dim, _ in parts]), banks[-1] if banks else None

    @staticmethod
    def dim(parts: Parts, _: int, __: int) -> tuple[Dim, bool]:
        return Dim(int(parts[0][0]), int(parts[1][0])), False

    @staticmethod
    def bank_dim(parts: Parts, _: int, __: int) -> tuple[Dim, bool]:
        return Dim(int(parts[0][0]), int(parts[1][0])), True

    @staticmethod
    def layout(parts: Parts, _: int, __: int) -> PhysicalLayout:
        logical, axes, pad = parts
        results = tuple([result for axis in axes for result in axis])
        index_map = IndexMap(tuple([name for name, _ in logical]), results, tuple(map(len, axes)))
        return PhysicalLayout(index_map, tuple([size for _, size in logical]), pad)

    logical = axes = indices

    def size(self, parts: Parts, _: int, __: int) -> tuple[str, int]:
        return self._name(parts[0]), int(parts[1][0])

    def load(self, parts: Parts, _: int, __: int) -> Parts:
        return [Load, parts[0][0][1:], self._name(parts[1])]

    @staticmethod
    def load_index(parts: Parts, _: int, __: int) -> Parts:
        return [LoadIndex, parts[0][0][1:], parts[1]]

    def constant_statement(self, parts: Parts, _: int, __: int) -> Parts:
        into, word, value = parts
        dtype = self._dtype(word)
        kinds = {"bool": (bool, "true or false"), "float": (float, "a number with a point")}
        kind, hint = kinds.get(dtype.kind, (int, "a whole number"))
        if type(value) is not kind:
            self._fail(f"the constant does not fit {dtype}", word, f"write {hint}")
        return [Constant, into[0][1:], value, dtype]

    def cast(self, parts: Parts, _: int, __: int) -> Parts:
        into, value, dtype = parts
        return [Intrinsic, into[0][1:], "cast", (value[0][1:],), self._dtype(dtype)]

    def intrinsic(self, parts: Parts, _: int, __: int) -> Parts:
        into, op, *inputs = parts
        if op[0] not in INTRINSICS:
            self._unknown(op, INTRINSICS, "intrinsic")
        return [Intrinsic, into[0][1:], op[0], tuple([word[0][1:] for word in inputs]), None]

    def store(self, parts: Parts, _: int, __: int) -> Parts:
        return [Store, self._name(parts[0]), parts[1][0][1:]]

    def special_one(self, parts: Parts, begin: int, end: int) -> Parts:
        return self.special_many([(self._name(parts[0]),), *parts[1:]], begin, end)

    def special_many(self, parts: Parts, _: int, __: int) -> Parts:
        outputs, op, inputs = parts
        if op[0] not in SPECIALS:
            self._unknown(op, SPECIALS, "special")
        return [Special, op[0], outputs, inputs]

    def names(self, parts: Parts, _: int, __: int) -> tuple[str, ...]:
        return tuple(map(self._name, parts))

    @staticmethod
    def location(parts: Parts, _: int, __: int) -> Location:
        return Location(tuple([device for device in parts if device is not None]))

    @staticmethod
    def device(parts: Parts, _: int, __: int) -> Device:
        return Device(parts[0][0], parts[1] if len(parts) == 2 else ())

    device_any = device

    @staticmethod
    def device_none(_: Parts, __: int, ___: int) -> None:
        return None

    @staticmethod
    def affine(parts: Parts, _: int, __: int) -> Affine:
        return Affine.sum(parts)

    @staticmethod
    def negative(parts: Parts, _: int, __: int) -> Affine:
        return -parts[0]

    minus_term = negative

    @staticmethod
    def number(parts: Parts, _: int, __: int) -> Affine:
        return Affine(int(parts[0][0]))

    @staticmethod
    def product(parts: Parts, _: int, __: int) -> Affine:
        return parts[1] * int(parts[0][0])

    def modulo(self, parts: Parts, _: int, __: int) -> Affine:
        return parts[0].mod(self._positive(parts[1]))

    def variable(self, parts: Parts, _: int, __: int) -> Affine:
        return Affine.var(self._name(parts[0]))

    def floor_division(self, parts: Parts, _: int, __: int) -> Affine:
        return parts[0].floordiv(self._positive(parts[1]))

    def constant(self, parts: Parts, _: int, __: int) -> ConstantBuffer:
        name, dtype, sizes, data = parts
        try:
            contents = bytes.fromhex(json.loads(data[0]))
        except ValueError:
            self._fail("the contents of a constant are hexadecimal digits", data, "two digits a byte")
        built = ConstantBuffer(self._name(name), self._dtype(dtype), sizes, contents)
        return self._at(name[1], len(name[0]), built)

    @staticmethod
    def true(_: Parts, __: int, ___: int) -> bool:
        return True

    @staticmethod
    def false(_: Parts, __: int, ___: int) -> bool:
        return False

    @staticmethod
    def integer(parts: Parts, _: int, __: int) -> int:
        return -int(parts[1][0]) if parts[0] else int(parts[1][0])

    def float(self, parts: Parts, _: int, __: int) -> builtins.float:
        value = float(parts[1][0])
        if value == float("inf"):
            self._fail(
                "the number is too large", parts[1], "the largest is about 1.79e308; infinity is 'inf'"
            )
        return -value if parts[0] else value

    @staticmethod
    def inf(parts: Parts, _: int, __: int) -> builtins.float:
        return float("-inf" if parts[0] else "inf")

    @staticmethod
    def nan(_: Parts, __: int, ___: int) -> builtins.float:
        return float("nan")

    @staticmethod
    def string(parts: Parts, _: int, __: int) -> str:
        return json.loads(parts[0][0])

    def _at(self, begin: int, length: int, built: _Part) -> _Part:
        """`built`, with its place noted."""
        self.places[id(built)] = (begin, length)
        return built

    def _positive(self, word: Word) -> int:
        if int(word[0]) == 0:
            self._fail("division by zero", word, "divide by a positive number")
        return int(word[0])

    def _dtype(self, word: Word) -> DType:
        return DTYPES.get(word[0]) or self._unknown(word, DTYPES, "dtype")

    def _unknown(self, word: Word, known: Iterable[str], noun: str) -> NoReturn:
        names = list(known)
        hint = did_you_mean(word[0], names, f"known are {', '.join(names)}")
        self._fail(f"unknown {noun} '{word[0]}'", word, hint)

    def _name(self, word: Word) -> str:
        if word[0] in RESERVED:
            self._fail(
                f"'{word[0]}' is a word of the language and names nothing", word, "choose another name"
            )
        return word[0]
