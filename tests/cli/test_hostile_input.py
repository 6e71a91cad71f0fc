"""Inputs and surroundings that nobody tests by hand: each ends with status 1 or 2, a place and a reason."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from stripe.cli.start import opt, run
from tests.support.programs import MATMUL, source

Capture = pytest.CaptureFixture[str]

TILE = "function (A[N=4]: fp32) -> (B) { B = A + 1; }"
LONG = "9" * 5000


def _file(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, "utf-8")
    return str(folder / name)


def _process(words: list[str], command: str = "opt", **settings: object) -> subprocess.CompletedProcess[str]:
    code = f"import sys; from stripe.cli.start import {command}; sys.exit({command}())"
    return subprocess.run(  # pyright: ignore[reportCallIssue, reportUnknownVariableType]
        [sys.executable, "-c", code, *words], text=True, check=False, timeout=60, **settings  # pyright: ignore[reportArgumentType]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("range.stripe", MATMUL.replace("i:8", f"i:{LONG}")),
        ("access.stripe", MATMUL.replace("A[i, k]", f"A[{LONG} + i, k]")),
        ("tag.stripe", MATMUL.replace("#kernel", f"#kernel #x={LONG}")),
        ("size.tile", f"function (A[N={LONG}]) -> (B) {{ B = A; }}"),
        ("number.tile", f"function (A[N=4]) -> (B) {{ B = A + {LONG}; }}"),
        ("float.tile", TILE.replace("1", "1e400")),
        ("float.stripe", MATMUL.replace("mul($A, $B)", "(fp32)1e400")),
        ("tag_float.stripe", MATMUL.replace("#kernel", "#kernel #x=-1e400")),
        (
            "pad.stripe",
            MATMUL.replace(
                "A[0, 0] fp32(8:6, 6:1)", "A[0, 0] fp32(8:6, 6:1) = (i:8, k:6) -> (i, k) else 1e400", 1
            ),
        ),
        ("float.json", '{"stripe_ir": 1,\n "a": [1e400]}'),
        ("number.json", f'{{"a": {LONG}}}'),
        ("nan.json", '{"a": NaN}'),
        ("deep.json", "[" * 100_000),
        ("objects.json", '{"a":' * 100_000),
        ("escape.tile", TILE.replace("A + 1", "A \x1b[31m + 1")),
        ("bell.stripe", MATMUL.replace("// mm", "// \a mm")),
        ("turned.tile", f"// \u202e\n{TILE}"),
        ("turned.stripe", MATMUL.replace("// mm", "// \u2067 mm")),
        ("turned.json", '{"a": "\u202e"}'),
        ("c1.tile", f"// \x9b31m\n{TILE}"),
    ],
)
def test_programs(name: str, text: str, tmp_path: Path, capsys: Capture) -> None:
    path = _file(tmp_path, name, text)
    assert opt([path]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(path)
    assert "error: " in captured.err
    assert "\n  hint: " in captured.err
    assert not any((ord(char) < 32 and char != "\n") or char in "\u202e\u2067" for char in captured.err)


def test_control_characters_of_options_and_names_are_escaped(tmp_path: Path, capsys: Capture) -> None:
    for char in "\x1b\u202e\u2067":
        for words in (
            [f"{tmp_path}/{char}[31m.tile"],
            ["x.tile", f"--{char}[31m"],
            ["x.tile", "--hw", f"{char}[2J"],
        ):
            assert opt(words) in (1, 2)
            assert char not in capsys.readouterr().err


def _archive(path: Path, damage: str) -> None:
    np.savez(path, A=np.zeros(4, np.float32))
    data = bytearray(path.read_bytes())
    if damage == "encrypted":
        data[6] |= 1
        data[data.index(b"PK\1\2") + 8] |= 1
    elif damage == "lzma":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
            archive.writestr("A.npy", bytes(data) * 50)
        data = bytearray(path.read_bytes())
        data[60:120] = bytes(60)
    elif damage == "method":
        data[8] = 77
        data[data.index(b"PK\1\2") + 10] = 77
    elif damage == "header":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("A.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': ((((((")
        data = bytearray(path.read_bytes())
    elif damage == "shape":
        with zipfile.ZipFile(path, "w") as archive:
            head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 4)}\n"
            archive.writestr("A.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
        data = bytearray(path.read_bytes())
    elif damage == "bytes":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("A", b"no array")
        data = bytearray(path.read_bytes())
    path.write_bytes(data)


@pytest.mark.parametrize("damage", ["encrypted", "lzma", "method", "header", "shape", "bytes"])
def test_archives(damage: str, tmp_path: Path, capsys: Capture) -> None:
    program = _file(tmp_path, "p.tile", TILE)
    path = tmp_path / "in.npz"
    _archive(path, damage)
    assert run([program, "--data", str(path)]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"{path}: error: cannot read tensors: ")
    assert "\n  hint: " in err


def test_files_without_end(tmp_path: Path, capsys: Capture) -> None:
    program = _file(tmp_path, "p.tile", TILE)
    assert opt([program, "--hw", "/dev/zero"]) == 2
    assert opt([program, "--config", "/dev/zero"]) == 2
    assert run([program, "--data", "/dev/zero"]) == 1
    assert opt(["--run-reproducer", "/dev/zero"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_full_memory_is_no_fault_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def full(*_: object) -> str:
        raise MemoryError

    monkeypatch.setattr("stripe.emit.targets.DotTarget.emit", full)
    path = _file(tmp_path, "p.tile", TILE)
    assert opt([path, "--emit", "dot"]) == 1
    assert capsys.readouterr().err.startswith(
        f"{path}: error: this takes more memory than there is\n  hint: "
    )


def test_messages_that_cannot_be_written_change_no_status(tmp_path: Path) -> None:
    good, bad = _file(tmp_path, "p.tile", TILE), _file(tmp_path, "q.tile", "function")
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        assert _process([bad], stderr=full, stdout=subprocess.DEVNULL).returncode == 1
        assert _process([good, "--remarks"], stderr=full, stdout=subprocess.DEVNULL).returncode == 0
    for number, status in ((0, 0), (1, 2), (2, 0)):
        code = (
            f"import os, sys; os.close({number}); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
        )
        start = "import sys; from stripe.cli.start import opt; sys.exit(opt())"
        words = [sys.executable, "-c", code, "-c", start, good, "--passes", "dce", "--remarks"]
        assert subprocess.run(words, capture_output=True, check=False, timeout=60).returncode == status


def test_no_home(tmp_path: Path) -> None:
    program = _file(tmp_path, "p.tile", TILE)
    kept = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    assert _process([program, "--engine", "c"], "run", env=kept | {"TMPDIR": str(tmp_path)}).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_termination_leaves_no_build_folder(number: signal.Signals, tmp_path: Path) -> None:
    program = _file(tmp_path, "p.tile", TILE)
    (tmp_path / "bin").mkdir()
    compiler = Path(
        _file(tmp_path / "bin", "cc", "#!/bin/sh\ncase $* in *program.c*) exec sleep 60;; esac\n")
    )
    compiler.chmod(0o755)
    cache = tmp_path / "cache"
    settings = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(cache)}
    code = "import sys; from stripe.cli.start import run; sys.exit(run())"
    before = signal.signal(number, signal.SIG_DFL)  # under nohup signals are ignored, and stay so
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", code, program, "--engine", "c"],
            env=os.environ | settings,
            stderr=subprocess.PIPE,
        )
    finally:
        signal.signal(number, before)
    deadline = time.monotonic() + 50
    while not list(cache.rglob("program.c")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    _, err = process.communicate(timeout=50)
    assert (process.returncode, err) == (128 + number, b"stripe-run: terminated\n")
    assert list(cache.rglob("build-*")) == []


def test_a_program_that_is_wrong_is_named(tmp_path: Path, capsys: Capture) -> None:
    path = _file(tmp_path, "p.stripe", MATMUL.replace("A[i, k] fp32", "A[3 + i, k] fp32"))
    assert opt([path, "--emit", "c"]) == 1
    assert capsys.readouterr().err.startswith(f"{path}: error: ")


def test_tags_of_value_nan(tmp_path: Path, capsys: Capture) -> None:
    text = source("verify/enumeration/a_race_is_undefined").replace(
        "#kernel", '#kernel #low=-inf #weight=nan #word="nan"', 1
    )
    program = _file(tmp_path, "nan.stripe", text)
    assert opt([program, "--verify-roundtrip", "-o", str(tmp_path / "again.stripe")]) == 0
    assert opt([program, "--emit", "json", "-o", str(tmp_path / "nan.json")]) == 0
    assert opt([str(tmp_path / "nan.json"), "--verify-roundtrip"]) == 0
    assert '#low=-inf #weight=nan #word="nan"' in capsys.readouterr().out
