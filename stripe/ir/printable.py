"""Values that show themselves: as text where they are printed, and in notebooks as text and graphs.

The two functions are generic. The printer gives the text of each class, and `stripe.api` the form of notebooks, so that
the classes of the IR know neither.
"""

from __future__ import annotations

from functools import singledispatch

from typing_extensions import override


@singledispatch
def text_of(value: object) -> str:
    """The text of a value of the IR, as it stands in a program."""
    raise NotImplementedError(type(value).__name__)


@singledispatch
def html_of(_value: object) -> str | None:
    """The form of a value in notebooks; None where it has none."""
    return None


class Printable:
    """A value with a text, and with a form for notebooks where there is one."""

    __slots__ = ()

    @override
    def __str__(self) -> str:
        return text_of(self).removesuffix("\n")

    def _repr_html_(self) -> str | None:
        return html_of(self)
