"""Index maps: what they accept, and their properties as integer sets beside plain enumeration."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripe.ir import ConfigError
from stripe.ir.index_map import IndexMap
from stripe.ir.text.index_maps import named_index_map, parse_index_map
from stripe.poly.index_maps import collision, holes, inverse, physical_sizes, relation
from tests.support.index_maps import blocked_maps

TVM = [
    ("(m, n, p, q) -> (m, n, p, q)", (2, 3, 4, 8)),
    ("(m, n, p, q) -> (m, n | p, q)", (2, 3, 4, 8)),
    ("(m, n, p, q) -> (m | n, p | q)", (2, 3, 4, 8)),
    ("(m, n, p, q) -> (m, floor(q/4), n | p, q mod 4)", (2, 3, 4, 8)),
    ("(i, j, k) -> (64*i + j, floor(k/4), k mod 4)", (4, 64, 8)),
    ("(i, j, k) -> (floor(i/4), 128*j + k, i mod 4)", (8, 3, 128)),
    ("(i, j) -> (j, i)", (16, 64)),
    ("(n, h, w, c) -> (n, floor(c/4), h, w, c mod 4)", (2, 5, 6, 16)),
    ("(n, h, w, c) -> (n, floor(c/4), h | w, c mod 4)", (2, 5, 6, 16)),
]
"""The maps of the document that introduces layouts to TVM."""


@pytest.mark.parametrize(("text", "sizes"), TVM)
def test_the_maps_of_tvm(text: str, sizes: tuple[int, ...]) -> None:
    found = parse_index_map(text)
    assert str(found) == text
    assert collision(found, sizes) is None
    assert prod(physical_sizes(found, sizes)) == prod(sizes)
    assert holes(found, sizes).is_empty
    check_inverse(found, sizes)


def check_inverse(index_map: IndexMap, sizes: tuple[int, ...]) -> None:
    back = inverse(index_map, sizes)
    for point in product(*map(range, sizes)):
        place = index_map.evaluate(dict(zip(index_map.names, point, strict=True)))
        assert back.evaluate(dict(zip(back.names, place, strict=True))) == point


def test_physical_axes_have_a_shape() -> None:
    found = parse_index_map("(n, h, w, c) -> (n, floor(c/4), h | w, c mod 4)")
    assert found.axes == (3, 2)
    assert physical_sizes(found, (1, 8, 8, 10)) == (1, 3, 8, 8, 4)
    missing = holes(found, (1, 8, 8, 10)).box()
    assert missing == {"e%0": (0, 0), "e%1": (2, 2), "e%2": (0, 7), "e%3": (0, 7), "e%4": (2, 3)}


NAMED = [
    ("NHWC", "NHWC", "(n, h, w, c) -> (n, h, w, c)"),
    ("NCHW", "NHWC", "(n, h, w, c) -> (n, c, h, w)"),
    ("NCHW16c", "NCHW", "(n, c, h, w) -> (n, floor(c/16), h, w, c mod 16)"),
    (
        "NHWC8h8w32c",
        "NHWC",
        "(n, h, w, c) -> (n, floor(h/8), floor(w/8), floor(c/32), h mod 8, w mod 8, c mod 32)",
    ),
    (
        "OIHW8i32o4i",
        "OIHW",
        "(o, i, h, w) -> (floor(o/32), floor(i/32), h, w, (floor(i/4)) mod 8, o mod 32, i mod 4)",
    ),
    ("NCH|W4c", "NCHW", "(n, c, h, w) -> (n, floor(c/4), h | w, c mod 4)"),
]


@pytest.mark.parametrize(("layout", "logical", "text"), NAMED)
def test_named_layouts(layout: str, logical: str, text: str) -> None:
    found = named_index_map(layout, logical)
    assert str(found) == text
    check_inverse(found, (3, 7, 5, 9))


def test_two_elements_in_one_place_are_named() -> None:
    found = parse_index_map("(i) -> (i mod 2)")
    clash = collision(found, (4,))
    assert clash is not None
    assert clash.first != clash.second
    assert found.evaluate(clash.first) == found.evaluate(clash.second) == clash.element
    with pytest.raises(ConfigError, match=r"the elements \[\d\] and \[\d\] both lie at \[\d\]"):
        inverse(found, (4,))


def test_a_map_that_is_injective_on_small_tensors_alone() -> None:
    found = parse_index_map("(i, j) -> (8*i + j)")
    assert collision(found, (4, 8)) is None
    assert collision(found, (4, 9)) is not None


BAD = [
    ("(i, j) -> (i, k)", "uses the unknown index 'k'"),
    ("(i, i) -> (i)", "the index 'i' is there twice"),
    ("i -> j", "it is no index map"),
    ("(i) -> (i,)", "an expression is missing"),
    ("(i) -> (i*)", r"'i\*': "),
    ("(1) -> (0)", "'1' is no name of an index"),
]


@pytest.mark.parametrize(("text", "reason"), BAD)
def test_bad_maps_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse_index_map(text)


@pytest.mark.parametrize(
    ("layout", "logical", "reason"),
    [
        ("NHWX", "NHWC", "'X' is none of the logical indices NHWC"),
        ("NHW", "NHWC", "the index C is there 0 times"),
        ("NHWCC", "NHWC", "the index C is there 2 times"),
        ("NHWC0c", "NHWC", "a block of 0 elements"),
        ("NHWC8", "NHWC", "'8' is none"),
        ("NHWC", "NHWN", "logical indices are different upper-case letters"),
    ],
)
def test_bad_names_are_refused(layout: str, logical: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        named_index_map(layout, logical)


def test_wrong_rank_and_negative_places_are_refused() -> None:
    with pytest.raises(ConfigError, match="the map has 2 indices, and the tensor 3 dimensions"):
        physical_sizes(parse_index_map("(i, j) -> (j, i)"), (2, 3, 4))
    with pytest.raises(ConfigError, match=r"-2 \+ i is negative for the element \[0\]"):
        physical_sizes(parse_index_map("(i) -> (i - 2)"), (4,))


@st.composite
def blocked(draw: st.DrawFn) -> tuple[IndexMap, tuple[int, ...]]:
    """A map with the sizes of its tensor."""
    sizes = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    return draw(blocked_maps(sizes)), sizes


@given(blocked())
def test_properties_agree_with_enumeration(case: tuple[IndexMap, tuple[int, ...]]) -> None:
    index_map, sizes = case
    points = [dict(zip(index_map.names, point, strict=True)) for point in product(*map(range, sizes))]
    image = {index_map.evaluate(point) for point in points}
    assert len(image) == len(points)
    box = physical_sizes(index_map, sizes)
    assert box == tuple(max(coordinates) + 1 for coordinates in zip(*image, strict=True))
    missing = holes(index_map, sizes)
    for place in product(*map(range, box)):
        assert missing.contains(dict(zip(missing.names, place, strict=True))) == (place not in image)


@given(blocked())
def test_the_inverse_of_the_inverse_is_the_map(case: tuple[IndexMap, tuple[int, ...]]) -> None:
    index_map, sizes = case
    check_inverse(index_map, sizes)
    back = inverse(index_map, sizes)
    forth = relation(index_map, sizes)
    image = forth.range
    again = type(forth).function(image, dict(zip(index_map.names, back.results, strict=True))).reversed()
    assert again.named(forth.ins, forth.outs).equals(forth)
