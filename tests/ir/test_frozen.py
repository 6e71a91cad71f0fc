"""Frozen classes of the IR behave as frozen slotted dataclasses."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, field, fields
from dataclasses import replace as replaced_by_dataclasses

import pytest

from stripe.ir.frozen import HashedOnce, frozen, replace
from tests.support.programs import load


@frozen
class Point:
    """A point with a note that does not count."""

    x: int
    y: int = 0
    note: str = field(default="", compare=False)


@frozen
class Tree(HashedOnce):
    """A class whose objects are hashed once."""

    children: tuple[Tree, ...] = ()


def test_fields_cannot_be_set_or_deleted() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError, match="'x'"):
        point.x = 2  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(FrozenInstanceError, match="'y'"):
        del point.y  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(point, "__dict__")


def test_equality_hash_and_text_are_those_of_a_dataclass() -> None:
    assert Point(1, 2, "a") == Point(1, 2, "b") != Point(1, 3)
    assert hash(Point(1, 2, "a")) == hash(Point(1, 2, "b"))
    assert Point(1) != (1, 0)
    assert repr(Point(1)) == "Point(x=1, y=0, note='')"
    assert [each.name for each in fields(Point)] == ["x", "y", "note"]
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_replace_keeps_the_other_fields_and_refuses_unknown_ones() -> None:
    assert replace(Point(1, 2, "a"), x=3) == Point(3, 2)
    assert replaced_by_dataclasses(Point(1, 2), x=3) == Point(3, 2)
    with pytest.raises(TypeError, match="z"):
        replace(Point(1), z=3)


def test_objects_survive_pickle_and_copy() -> None:
    program = load("passes/chain")
    hash(program)
    for made in (pickle.loads(pickle.dumps(program)), copy.deepcopy(program), copy.copy(program)):
        assert made == program
        assert hash(made) == hash(program)


def test_a_hash_is_that_of_the_fields() -> None:
    tree = Tree((Tree(), Tree((Tree(),))))
    assert hash(tree) == hash(tree) == hash(Tree((Tree(), Tree((Tree(),)))))
    assert hash(replace(tree, children=())) == hash(Tree())
