"""Index maps as text: `(i, j) -> (j, floor(i/4), i mod 4)`, and named forms such as `NHWC -> NCHW16c`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

from stripe.ir.affine import Affine
from stripe.ir.errors import ConfigError, StripeError
from stripe.ir.index_map import IndexMap
from stripe.ir.text.parser import parse_affine

_FORM = re.compile(r"\s*\(([^()]*)\)\s*->\s*\((.*)\)\s*", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PART = re.compile(r"([A-Z])|(\d+)([a-z])|(\|)|(.)")


def parse_index_map(text: str) -> IndexMap:
    """The map that a text such as `(i, j) -> (j, i)` writes. Raises ConfigError that names the place."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise _error(text, "it is no index map", "write (i, j) -> (j, floor(i/4), i mod 4)")
    names = tuple(name.strip() for name in form[1].split(","))
    for name in names:
        if not _NAME.fullmatch(name):
            raise _error(text, f"'{name}' is no name of an index", "names are letters, digits and _")
        if names.count(name) > 1:
            raise _error(text, f"the index '{name}' is there twice", "give each index a name of its own")
    axes = [_split(axis, ",") for axis in _split(form[2], "|")]
    results = tuple(_result(part, names, text) for axis in axes for part in axis)
    return IndexMap(names, results, tuple(map(len, axes)))


def read_index_map(text: str) -> IndexMap:
    """The map of `(i, j) -> (j, i)`, of `NHWC -> NCHW16c`, or of `NCHW16c` with its capital letters as dimensions.

    Raises ConfigError that names the place.
    """
    if "(" in text:
        return parse_index_map(text)
    logical, arrow, layout = text.partition("->")
    if arrow:
        return named_index_map(layout.strip(), logical.strip())
    return named_index_map(text.strip(), "".join(letter for letter in text if letter.isupper()))


def named_index_map(layout: str, logical: str) -> IndexMap:
    """The map of a blocked layout such as `NHWC8h8w32c` for a tensor with the indices `NHWC`.

    An upper-case letter is the index, in blocks where a number with the lower-case letter follows: the place in a
    block of so many elements. Of several blocks of one index the later lies inside the earlier.
    Raises ConfigError for letters that are missing, unknown or repeated.
    """
    if not logical.isupper() or not logical.isalpha() or len(set(logical)) < len(logical):
        raise _error(logical, "logical indices are different upper-case letters", "write NHWC")
    blocks: dict[str, list[int]] = {letter: [] for letter in logical}
    for letter, size, small, _, other in _PART.findall(layout):
        if other or (letter or small.upper()) not in (*logical, ""):
            found = other or letter or small
            raise _error(layout, f"'{found}' is none of the logical indices {logical}", "write NCHW16c")
        if small:
            blocks[small.upper()].append(int(size))
            if int(size) < 1:
                raise _error(layout, f"a block of {size} elements", "a block has at least one element")
    names = {letter: letter.lower() for letter in logical}
    results: list[Affine] = []
    axes = [0]
    seen: dict[str, int] = {}
    for letter, _, small, bar, _ in _PART.findall(layout):
        if bar:
            axes.append(0)
            continue
        key = letter or small.upper()
        inside = blocks[key][seen.get(small, 0) + 1 :] if small else blocks[key]
        place = Affine.var(names[key]).floordiv(prod(inside))
        if small:
            place = place.mod(blocks[key][seen.get(small, 0)])
        results.append(place)
        axes[-1] += 1
        seen[letter or small] = seen.get(letter or small, 0) + 1
    for letter in logical:
        if seen.get(letter, 0) != 1:
            raise _error(layout, f"the index {letter} is there {seen.get(letter, 0)} times", "name it once")
    return IndexMap(tuple(names.values()), tuple(results), tuple(axes))


def _split(text: str, sign: str) -> list[str]:
    """Parts of a text between signs that stand outside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == sign and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _result(part: str, names: Sequence[str], text: str) -> Affine:
    if not part.strip():
        raise _error(text, "an expression is missing", "write one between two commas")
    try:
        affine = parse_affine(part.strip())
    except StripeError as error:
        raise _error(text, f"'{part.strip()}': {error.reason}", error.hint or "") from None
    unknown = sorted(affine.names() - set(names))
    if unknown:
        hint = f"its indices are {', '.join(names)}"
        raise _error(text, f"'{part.strip()}' uses the unknown index '{unknown[0]}'", hint)
    return affine


def _error(text: str, reason: str, hint: str) -> ConfigError:
    return ConfigError(reason, where=f"index map {text.strip()!r}", hint=hint or None)
