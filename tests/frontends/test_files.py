"""Files of programs that are read, and files that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from stripe.frontends.files import checked_text, read_file
from stripe.ir import StripeError


def _text(path: Path) -> bytes:
    return checked_text(read_file(str(path)), str(path))


def test_byte_order_mark_and_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "f.tile"
    path.write_bytes(b"\xef\xbb\xbffunction (A[M]) -> (O) {\r\n O = A;\r\n}\r\n")
    assert _text(path) == b"function (A[M]) -> (O) {\n O = A;\n}\n"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    binary, latin = tmp_path / "binary.tile", tmp_path / "latin.tile"
    binary.write_bytes(b"\x7fELF\0\0")
    latin.write_bytes("// caf\xe9\nfunction".encode("latin-1"))
    for path, reason in (
        (tmp_path, "directory"),
        (tmp_path / "latn.tile", "no such file"),
        (binary, "binary"),
        (latin, "not UTF-8"),
    ):
        with pytest.raises(StripeError, match=reason) as caught:
            _text(path)
        assert caught.value.hint
    with pytest.raises(StripeError) as caught:
        _text(latin)
    assert (caught.value.line, caught.value.col) == (1, 7)
