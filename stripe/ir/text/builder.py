"""Builds the IR from the parse tree of `grammar/stripe.lark`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

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
from stripe.ir.errors import closest
from stripe.ir.intrinsics import INTRINSICS, SPECIALS
from stripe.ir.location import Device, Location
from stripe.ir.program import ConstantBuffer
from stripe.ir.refinement import Agg, Dim, Direction, Refinement
from stripe.ir.tags import Tags, TagValue, check_field_word
from stripe.ir.text.names import RESERVED

if TYPE_CHECKING:
    from lark import Token, Tree

    Node: TypeAlias = Tree[Token]

_Part = TypeVar("_Part", bound=Statement | Index | Constraint | Refinement | ConstantBuffer)

Fail: TypeAlias = Callable[[str, Any, str], NoReturn]
"""Raises an error from a reason, the token where it arose and a hint."""


class IrBuilder:
    """One use builds one text; `spans` then holds line, column and length of each statement, index, constraint,
    refinement and constant by the id of its object.
    """

    def __init__(self, fail: Fail) -> None:
        self._fail = fail
        self.spans: dict[int, tuple[int, int, int]] = {}

    def program(self, tree: Node) -> tuple[Block, tuple[ConstantBuffer, ...]]:
        statements = [child for child in _trees(tree) if child.data == "statement"]
        entry = self.statement(statements[0])
        if not isinstance(entry, Block):
            self._fail(
                "the program is not a block", _first_token(tree), "begin with '0: #program block [] ('"
            )
        return entry, tuple(self._constant(child) for child in _trees(tree) if child.data == "constant")

    def statement(self, tree: Node) -> Statement:
        children = list(tree.children)
        number: Any = children[0]
        deps: tuple[int, ...] = ()
        tags: list[tuple[str, TagValue | None]] = []
        for child in _trees(tree):
            if child.data == "deps":
                deps = tuple(int(str(token)) for token in child.children)
            elif child.data.startswith("tag_"):
                tags.append(self._tag(child))
        body = _trees(tree)[-1]
        built = self._body(body, deps, Tags.from_pairs(tags))
        return self._at(number, built)

    def _at(self, token: Any, built: _Part) -> _Part:
        """`built`, with its place noted."""
        self.spans[id(built)] = (token.line, token.column, len(token))
        return built

    def _body(self, tree: Node, deps: tuple[int, ...], tags: Tags) -> Statement:
        if tree.data == "block":
            return self._block(tree, deps, tags)
        tokens: list[Any] = tree.children
        match tree.data:
            case "load":
                return Load(_scalar(tokens[0]), self._name(tokens[1]), deps, tags)
            case "store":
                return Store(self._name(tokens[0]), _scalar(tokens[1]), deps, tags)
            case "load_index":
                return LoadIndex(_scalar(tokens[0]), self.affine(tokens[1]), deps, tags)
            case "constant_statement":
                dtype = self._dtype(tokens[1])
                return Constant(
                    _scalar(tokens[0]), self._typed_literal(tokens[2], dtype, tokens[1]), dtype, deps, tags
                )
            case "cast":
                return Intrinsic(
                    _scalar(tokens[0]), "cast", (_scalar(tokens[1]),), self._dtype(tokens[2]), deps, tags
                )
            case "intrinsic":
                op = self._known(tokens[1], list(INTRINSICS), "intrinsic")
                return Intrinsic(_scalar(tokens[0]), op, tuple(map(_scalar, tokens[2:])), None, deps, tags)
            case _:
                return self._special(tokens, deps, tags)

    def _special(self, parts: list[Any], deps: tuple[int, ...], tags: Tags) -> Special:
        outputs, op, inputs = parts
        op = self._known(op, list(SPECIALS), "special")
        return Special(op, self._names(outputs), self._names(inputs), deps, tags)

    def _names(self, part: Any) -> tuple[str, ...]:
        return tuple(self._name(token) for token in getattr(part, "children", [part]))

    def _block(self, tree: Node, deps: tuple[int, ...], tags: Tags) -> Block:
        location = Location()
        indices: list[Index] = []
        statements: list[Statement] = []
        head: Any = None
        for child in _trees(tree):
            if child.data == "place":
                location = self.location(child.children[0])
            elif child.data.startswith("index_"):
                indices.append(self._index(child))
            elif child.data == "statement":
                self._check_number(child, len(statements))
                statements.append(self.statement(child))
            else:
                head = child
        name, comments, constraints, refinements = self._head(head)
        return Block(
            name, tuple(indices), constraints, refinements, tuple(statements), location, comments, deps
        ).with_words(tags)

    def _check_number(self, tree: Node, number: int) -> None:
        token: Any = tree.children[0]
        if int(token) != number:
            self._fail(f"statement {token} stands where {number} is due", token, f"number it {number}")

    def _head(self, tree: Any) -> tuple[str, tuple[str, ...], tuple[Constraint, ...], tuple[Refinement, ...]]:
        opening = str(tree.children[0])
        _, mark, name = opening.partition("//")
        comments: list[str] = []
        constraints: list[Constraint] = []
        refinements: list[Refinement] = []
        for child in _trees(tree):
            if child.data == "comment":
                comments.append(str(child.children[0])[2:].strip())
            elif child.data == "constraint":
                affine, zero = child.children
                if str(zero) != "0":
                    self._fail(f"a constraint compares with 0, not {zero}", zero, "write it as 'affine >= 0'")
                constraints.append(self._at(_first_token(affine), Constraint(self.affine(affine))))
            else:
                refinements.append(self._refinement(child))
        return name.strip() if mark else "", tuple(comments), tuple(constraints), tuple(refinements)

    def _index(self, tree: Node) -> Index:
        tags = Tags.from_pairs(self._tag(child) for child in _trees(tree) if _is_tag(child))
        name, last = [child for child in tree.children if not _is_tag(child)]
        if tree.data == "index_range":
            return self._at(name, Index(self._name(name), int(str(last)), None, tags))
        return self._at(name, Index(self._name(name), 1, self.affine(last), tags))

    def _refinement(self, tree: Node) -> Refinement:
        tags: list[tuple[str, TagValue | None]] = []
        tokens: list[Any] = []
        location, source, agg = Location(), None, Agg.ASSIGN
        offset: int | None = None
        access: tuple[Affine, ...] = ()
        dims: list[Dim] = []
        bank_dim: int | None = None
        for child in tree.children:
            data = getattr(child, "data", "")
            parts: list[Any] = getattr(child, "children", [])
            match data:
                case "":
                    tokens.append(child)
                case "new":
                    offset = int(str(parts[0]), 16)
                case "place":
                    location = self.location(parts[0])
                case "source":
                    source = self._name(parts[0])
                case "affines":
                    access = tuple(map(self.affine, parts))
                case "agg":
                    agg = Agg(self._known(parts[0], [member.value for member in Agg], "aggregation"))
                case "dim" | "bank_dim":
                    bank_dim = len(dims) if data == "bank_dim" else bank_dim
                    dims.append(Dim(int(parts[0]), int(parts[1])))
                case _:
                    tags.append(self._tag(child))
        direction, name, dtype = tokens
        source = "" if direction == "none" else (source or str(name))
        built = Refinement(
            self._name(name), Direction(str(direction)), source, access, self._dtype(dtype), tuple(dims), agg,
            location, offset, bank_dim,
        )  # fmt: skip
        try:
            built = built.with_words(Tags.from_pairs(tags))
        except ValueError as error:
            self._fail(str(error), name, "")
        return self._at(name, built)

    def location(self, tree: Any) -> Location:
        devices: list[Device] = []
        for child in tree.children:
            if child.data == "device_none":
                continue
            units: list[Any] = child.children[1].children if child.data == "device" else []
            devices.append(Device(str(child.children[0]), tuple(map(self.affine, units))))
        return Location(tuple(devices))

    def affine(self, tree: Any) -> Affine:
        parts = tree.children
        match tree.data:
            case "affine":
                total = self.affine(parts[0])
                for term in parts[1:]:
                    value = self.affine(term.children[0])
                    total = total + value if term.data == "plus_term" else total - value
                return total
            case "number":
                return Affine(int(parts[0]))
            case "variable":
                return Affine.var(self._name(parts[0]))
            case "negative":
                return -self.affine(parts[-1])
            case "product":
                return self.affine(parts[1]) * int(parts[0])
            case "modulo":
                return self.affine(parts[0]).mod(self._positive(parts[1]))
            case "floor_division":
                return self.affine(parts[0]).floordiv(self._positive(parts[1]))
            case _:
                return self.affine(parts[0])

    def _positive(self, token: Any) -> int:
        if int(token) == 0:
            self._fail("division by zero", token, "divide by a positive number")
        return int(token)

    def _tag(self, tree: Any) -> tuple[str, TagValue | None]:
        token = tree.children[0]
        word = str(token)
        value = self._literal(tree.children[1]) if tree.data == "tag_value" else None
        try:
            check_field_word(word, value)
        except ValueError as error:
            self._fail(str(error), token, "")
        return word, value

    def _literal(self, tree: Any) -> TagValue:
        text = "".join(str(token) for token in tree.children)
        match tree.data:
            case "true" | "false":
                return tree.data == "true"
            case "integer":
                return int(text)
            case "string":
                value = json.loads(text)
                assert isinstance(value, str)
                return value
            case "inf":
                return float("-inf" if text else "inf")
            case "nan":
                return float("nan")
            case _:
                return float(text)

    def _typed_literal(self, tree: Any, dtype: DType, token: Any) -> bool | int | float:
        value = self._literal(tree)
        fits = {"bool": isinstance(value, bool), "float": isinstance(value, float)}
        if isinstance(value, str) or not fits.get(
            dtype.kind, isinstance(value, int) and not isinstance(value, bool)
        ):
            kind = {"bool": "true or false", "float": "a number with a point"}.get(
                dtype.kind, "a whole number"
            )
            self._fail(f"the constant does not fit {dtype}", token, f"write {kind}")
        return value

    def _dtype(self, token: Any) -> DType:
        return DTYPES[self._known(token, list(DTYPES), "dtype")]

    def _known(self, token: Any, known: list[str], what: str) -> str:
        name = str(getattr(token, "children", [token])[0])
        if name not in known:
            near = closest(name, known)
            hint = f"did you mean '{near}'?" if near else f"known are {', '.join(known)}"
            self._fail(f"unknown {what} '{name}'", getattr(token, "children", [token])[0], hint)
        return name

    def _name(self, token: Any) -> str:
        if str(token) in RESERVED:
            self._fail(f"'{token}' is a word of the language and names nothing", token, "choose another name")
        return str(token)

    def _constant(self, tree: Node) -> ConstantBuffer:
        name, dtype, *sizes, data = tree.children
        try:
            contents = bytes.fromhex(json.loads(str(data)))
        except ValueError:
            self._fail("the contents of a constant are hexadecimal digits", data, "two digits a byte")
        built = ConstantBuffer(
            self._name(name), self._dtype(dtype), tuple(int(str(s)) for s in sizes), contents
        )
        return self._at(name, built)


def _trees(tree: Node) -> list[Any]:
    return [child for child in tree.children if hasattr(child, "data")]


def _is_tag(child: Any) -> bool:
    return str(getattr(child, "data", "")).startswith("tag_")


def _scalar(token: Any) -> str:
    return str(token)[1:]


def _first_token(tree: Node) -> Token | None:
    tokens: Iterator[Any] = tree.scan_values(lambda _: True)
    return next(tokens, None)
