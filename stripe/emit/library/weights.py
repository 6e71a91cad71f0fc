"""The weights of a library as one file: a header, then the constants, each aligned.

| byte | contents |
| --- | --- |
| 0 | the letters `STRIPEWT` |
| 8 | 1, the version of this format |
| 12 | 0x01020304, which tells the order of bytes |
| 16 | bytes of the file, 8 bytes wide |
| 24 | the layout: CRC-32 of the names, dtypes, sizes and offsets of the constants, and of the program that reads them |
| 28 | CRC-32 of the contents, from byte 64 on |
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stripe.emit.loops.memory import ALIGNMENT, align

HEADER_BYTES = 64
_FORMAT = 1
_ORDER = 0x01020304
_WIDTH = 4


@dataclass(frozen=True, slots=True)
class Slot:
    """A constant in the contents: `offset` counts from the end of the header."""

    name: str
    description: str
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Weights:
    """All constants of a library; `data` is the whole file, empty where there is none."""

    slots: tuple[Slot, ...]
    layout: int
    checksum: int
    data: bytes

    @staticmethod
    def of(constants: Iterable[tuple[str, str, bytes]], program: str) -> Weights:
        """`constants` have a name, a dtype with sizes and strides, and little-endian bytes. The text of the `program`
        tells where passes that computed constants put each element.
        """
        slots: list[Slot] = []
        contents = bytearray()
        for name, description, data in constants:
            slots.append(Slot(name, description, len(contents), len(data)))
            contents += data
            contents += bytes(align(len(contents)) - len(contents))
        if not slots:
            return Weights((), 0, 0, b"")
        texts = [f"{slot.name} {slot.description} {slot.offset}\n" for slot in slots]
        layout, checksum = zlib.crc32("".join([*texts, program]).encode()), zlib.crc32(contents)
        head = struct.pack(
            "<8sIIQII", b"STRIPEWT", _FORMAT, _ORDER, HEADER_BYTES + len(contents), layout, checksum
        )
        return Weights(tuple(slots), layout, checksum, head.ljust(HEADER_BYTES, b"\0") + bytes(contents))

    def as_c(self, name: str) -> Iterator[str]:
        """The lines that define the file as an array of words called `name`."""
        words = [word for (word,) in struct.iter_unpack("<Q", self.data)]
        yield f"_Alignas({ALIGNMENT}) const uint64_t {name}[{len(words)}] = {{"
        for first in range(0, len(words), _WIDTH):
            yield "  " + " ".join(f"0x{word:x}u," for word in words[first : first + _WIDTH])
        yield "};"
