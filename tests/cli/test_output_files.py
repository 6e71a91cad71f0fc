"""Files that commands write: whole or not at all, links followed, and never another's file."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from stripe.cli.start import opt, run, sim
from stripe.exec.data import save_arrays
from stripe.ir import ConfigError
from stripe.output import writing
from tests.support.archives import load_arrays

Capture = pytest.CaptureFixture[str]

TILE = "function (A[N=4]: fp32) -> (B) { B = A + 1; }"


@pytest.fixture
def program(tmp_path: Path) -> str:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "p.tile").write_text(TILE, "utf-8")
    return str(folder / "p.tile")


COMMANDS = {
    "opt -o": (opt, "-o"),
    "run --out": (run, "--out"),
    "run --json": (run, "--json"),
    "sim --json": (lambda words: sim([*words, "--counts"]), "--json"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_link_is_followed(name: str, program: str, tmp_path: Path, capsys: Capture) -> None:
    command, option = COMMANDS[name]
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real/file")
    assert command([program, option, str(tmp_path / "link")]) == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "file").stat().st_size > 10
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["file"]


@pytest.mark.parametrize("name", COMMANDS)
def test_folders_devices_and_absent_folders(name: str, program: str, tmp_path: Path, capsys: Capture) -> None:
    command, option = COMMANDS[name]
    assert command([program, option, str(tmp_path)]) == 2
    assert f"{tmp_path}: error: this is a directory\n  hint: name a file" in capsys.readouterr().err
    assert command([program, option, str(tmp_path / "no" / "x")]) == 2
    assert "there is no folder" in capsys.readouterr().err
    assert command([program, option, "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()
    capsys.readouterr()
    assert command([program, option, "/dev/full"]) == 2
    assert "/dev/full: error: cannot be written: No space left" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_the_partial_file_of_another_is_left_alone(program: str, tmp_path: Path) -> None:
    (tmp_path / "o.npz.partial").write_text("mine", "utf-8")
    assert run([program, "--out", str(tmp_path / "o.npz")]) == 0
    assert (tmp_path / "o.npz.partial").read_text("utf-8") == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "o.npz", "o.npz.partial"]


def test_an_error_leaves_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "o"
    path.write_text("before", "utf-8")
    with pytest.raises(KeyboardInterrupt), writing(path) as stream:
        stream.write(b"half")
        raise KeyboardInterrupt
    assert path.read_text("utf-8") == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["o"]


def test_permissions_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "o"
    path.write_text("before", "utf-8")
    path.chmod(0o640)
    with writing(path) as stream:
        stream.write(b"after")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_parallel_writers_give_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "o.npz"

    def write(number: int) -> None:
        save_arrays(path, {"A": np.full(10_000, number)})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    assert np.unique(load_arrays(path)["A"]).size == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["o.npz"]


def test_a_file_name_that_the_system_refuses(program: str, capsys: Capture) -> None:
    assert run([program, "--out", "a\0b"]) == 2
    assert "no file name" in capsys.readouterr().err
    assert run([program, "--out", "x" * 5000]) == 2
    assert "File name too long" in capsys.readouterr().err


def test_bytes_to_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((tmp_path / "pipe").read_bytes)
        save_arrays(tmp_path / "pipe", {"A": np.zeros(3)})
        (tmp_path / "copy.npz").write_bytes(read.result())
    assert load_arrays(tmp_path / "copy.npz")["A"].tolist() == [0, 0, 0]


COMMAND = f"{sys.executable} -c 'from stripe.cli.start import opt; raise SystemExit(opt())'"


@pytest.mark.parametrize(
    ("line", "begin", "end"),
    [
        ("COMMAND -o /dev/stdout | cat", "0: #program", "}\n"),
        ("COMMAND -o /dev/stderr 2>&1 >/dev/null | cat", "0: #program", "}\n"),
        ("COMMAND -o >(cat)", "0: #program", "}\n"),
        (
            "(echo before; COMMAND -o /dev/fd/1; echo after) > file; cat file",
            "before\n0: #program",
            "}\nafter\n",
        ),
        ("echo before > file; COMMAND -o /dev/stdout >> file; cat file", "before\n0: #program", "}\n"),
        ("ln -s /dev/stdout out; COMMAND -o out | cat", "0: #program", "}\n"),
    ],
)
def test_descriptors_are_written_in_place(
    line: str, begin: str, end: str, program: str, tmp_path: Path
) -> None:
    words = ["bash", "-c", line.replace("COMMAND", f"{COMMAND} {program}") + "; wait $!"]
    found = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert found.stdout.startswith(begin)
    assert found.stdout.endswith(end)
    assert found.stderr == ""


def test_descriptors_that_are_not_open_and_endless_links(
    program: str, tmp_path: Path, capsys: Capture
) -> None:
    assert opt([program, "-o", "/proc/self/fd/777"]) == 2
    assert "/proc/self/fd/777: error: cannot be written: Bad file" in capsys.readouterr().err
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert opt([program, "-o", str(tmp_path / "a")]) == 2
    assert "/a: error: cannot be written: Too many levels" in capsys.readouterr().err


def test_a_reader_that_has_gone_is_no_error_of_the_file() -> None:
    read, written = os.pipe()
    os.close(read)
    try:
        with pytest.raises(BrokenPipeError), writing(f"/dev/fd/{written}") as stream:
            stream.write(b"x")
    finally:
        os.close(written)


@pytest.mark.parametrize("name", ["config.json", "00_input.stripe", "01_dce.stripe", "dumps.json"])
@pytest.mark.parametrize("linked", [False, True])
def test_dumps_overwrite_no_file_of_others(
    name: str, linked: bool, program: str, tmp_path: Path, capsys: Capture
) -> None:
    folder = tmp_path / "dumps"
    folder.mkdir()
    mine = tmp_path / "mine" if linked else folder / name
    mine.write_text("{}", "utf-8")
    if linked:
        (folder / name).symlink_to(mine)
    assert opt([program, "--passes", "dce", "--dump-dir", str(folder)]) == 2
    err = capsys.readouterr().err
    assert f"{folder / name}: error: this file is no unchanged dump" in err
    assert "hint: name another folder" in err
    assert mine.read_text("utf-8") == "{}"
    assert [path.name for path in folder.iterdir()] == [name]  # nothing was written before it was refused


def test_an_edited_dump_is_kept(program: str, tmp_path: Path, capsys: Capture) -> None:
    words = [program, "--passes", "dce", "--dump-dir", str(tmp_path / "dumps")]
    assert opt(words) == 0
    assert opt(words) == 0
    (tmp_path / "dumps" / "00_input.stripe").write_text("edited", "utf-8")
    kept = {path.name: path.read_bytes() for path in (tmp_path / "dumps").iterdir()}
    assert opt(words) == 2
    assert {path.name: path.read_bytes() for path in (tmp_path / "dumps").iterdir()} == kept
    assert (tmp_path / "dumps" / "00_input.stripe").read_text("utf-8") == "edited"


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", '{"stripe_dumps": 3}', "\xff"])
def test_a_listing_that_is_none_is_kept(text: str, program: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "dumps.json").write_text(text, "latin-1")
    assert opt([program, "--dump-dir", str(tmp_path)]) == 2
    assert (tmp_path / "dumps.json").read_text("latin-1") == text


def test_a_forged_listing_removes_nothing_else(program: str, tmp_path: Path) -> None:
    (tmp_path / "x.stripe").write_text("mine", "utf-8")
    folder = tmp_path / "dumps"
    folder.mkdir()
    digest = hashlib.sha256(b"mine").hexdigest()
    listing = {"stripe_dumps": {"../x.stripe": digest, "../00_x.stripe": digest}}
    (folder / "dumps.json").write_text(json.dumps(listing), "utf-8")
    assert opt([program, "--dump-dir", str(folder)]) == 0
    assert (tmp_path / "x.stripe").read_text("utf-8") == "mine"


def test_a_wrong_folder_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no folder"):
        save_arrays(tmp_path / "nowhere" / "data.npz", {"A": np.zeros(2)})
