"""Names of a library: all of them begin with its prefix, and no tensor's name does."""

from __future__ import annotations

import re
from typing import ClassVar

from typing_extensions import override

from stripe.emit.c.dialect import Dialect
from stripe.emit.c.names import sanitize

_CPP = frozenset(
    """
alignas alignof and_eq asm bitand bitor char8_t char16_t char32_t co_await co_return co_yield compl concept const_cast
consteval constexpr constinit decltype dynamic_cast explicit export final friend import module mutable noexcept not_eq
nullptr operator or_eq override protected reinterpret_cast requires static_assert static_cast thread_local typeid
typename using virtual wchar_t xor xor_eq
""".split()
)
"""Words of C++ that are names in C."""


class LibraryDialect(Dialect):
    """C11 in several files: functions of blocks are seen by the other files, and equal ones are one function."""

    kernel: ClassVar[str] = "void"
    shares_functions: ClassVar[bool] = True

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    @override
    def identifier(self, name: str) -> str:
        word = sanitize(name)
        if f"{word.lower()}_".startswith(f"{self.prefix}_"):
            return f"v_{word}"
        return f"{word}_" if word in _CPP else word

    @override
    def function_name(self, block: str) -> str:
        return f"{self.prefix}_{super().function_name(block)}"


def with_prefix(text: str, prefix: str) -> str:
    """`text`, which calls the library `net`, for the library `prefix`."""
    return _NET.sub(lambda match: match[1] + (prefix if match[2] == "net" else prefix.upper()), text)


_NET = re.compile(r"(?<![A-Za-z0-9_])(lib|)(net|NET)(?=_|\b)")
