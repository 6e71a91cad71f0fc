"""Building and calling emitted code: marshalling, the cache, timings, compilers, and what the sanitizers say."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

from stripe.exec import toolchain
from stripe.exec.cache import contents, user_cache
from stripe.exec.compile import CompiledProgram, CompileOptions, compile_program
from stripe.exec.errors import ExecutionError
from stripe.exec.sanitize import SanitizerError
from stripe.exec.toolchain import CompileError, find_compiler
from stripe.ir import ConfigError, Program, StripeError
from tests.support.c_programs import matmul, strided
from tests.support.programs import load


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def objects(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file())


def test_equal_code_is_built_once(cache: Path) -> None:
    sample = matmul()
    first = compile_program(sample.program)
    (built,) = objects(cache)
    assert built == first.library
    stamp = built.stat().st_mtime_ns
    second = compile_program(sample.program)
    assert objects(cache) == [built]
    assert built.stat().st_mtime_ns == stamp
    assert np.array_equal(second.run(sample.inputs)["C"], sample.expected["C"])
    compile_program(sample.program, CompileOptions(level="O1"))
    assert len(objects(cache)) == 2, "other flags, another object"


def test_files_that_flags_name_are_part_of_the_key(cache: Path, tmp_path: Path) -> None:
    header = tmp_path / "x.h"
    options = CompileOptions(extra_flags=("-include", str(header)))
    for text in ("", "// changed\n"):
        header.write_text(text, "utf-8")
        compile_program(matmul().program, options)
    assert len(objects(cache)) == 2
    header.write_text("#error changed\n", "utf-8")
    with pytest.raises(CompileError):
        compile_program(matmul().program, options)


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "writable", "link", "folder"])
def test_a_damaged_object_is_built_again(damage: str, cache: Path) -> None:
    sample = matmul()
    built = compile_program(sample.program).library
    data = built.read_bytes()
    if damage == "truncated":
        built.write_bytes(data[: len(data) // 2])
    elif damage == "flipped":
        built.write_bytes(data[:2000] + bytes([data[2000] ^ 1]) + data[2001:])
    elif damage == "empty":
        built.write_bytes(b"")
    elif damage == "writable":
        built.chmod(0o777)
    elif damage == "link":
        built.rename(cache / "other")
        built.symlink_to(cache / "other")
    else:
        built.parent.chmod(0o777)
    again = compile_program(sample.program)
    assert np.array_equal(again.run(sample.inputs)["C"], sample.expected["C"])
    assert not built.is_symlink()
    assert built.stat().st_mode & 0o022 == 0
    assert built.parent.stat().st_mode & 0o022 == 0
    assert contents(built) is not None


def test_a_cache_of_another_user_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_program(matmul().program)
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(ConfigError, match="belongs to another user"):
        compile_program(matmul().program)


def test_building_and_not_running_loads_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stripe.exec.compile.ctypes.CDLL", None)
    compile_program(matmul().program)


def test_an_object_for_another_machine_is_no_fault_of_ours(cache: Path, tmp_path: Path) -> None:
    fake = tmp_path / "fakecc"
    fake.write_text('#!/bin/sh\nwhile [ $# -gt 0 ]; do [ "$1" = -o ] && echo none > "$2"; shift; done\n')
    fake.chmod(0o755)
    built = compile_program(matmul().program, CompileOptions(str(fake)))
    with pytest.raises(ConfigError, match="cannot be loaded"):
        built.run(matmul().inputs)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 1", "failed without a message, status 1"),
        ("exit 0", "reports no error, and wrote no program"),
        ("kill -9 $$", r"was killed \(SIGKILL\)"),
        ("echo 'collect2: fatal error: cannot find ‘ld’' >&2; exit 1", "failed: cannot find ‘ld’"),
        ("echo 'fatal: No space left on device' >&2; exit 1", "failed: No space left on device"),
        ("echo \"gcc: error: cannot execute 'cc1'\" >&2; exit 1", "cannot execute 'cc1'"),
    ],
)
def test_compilers_that_do_not_work(script: str, reason: str, tmp_path: Path, cache: Path) -> None:
    fake = tmp_path / "fakecc"
    fake.write_text(f"#!/bin/sh\ncase $* in *--version*) exit 0;; esac\n{script}\n")
    fake.chmod(0o755)
    with pytest.raises(ConfigError, match=reason) as caught:
        compile_program(matmul().program, CompileOptions(str(fake)))
    assert str(caught.value).startswith(f"{fake}: error: ")
    assert caught.value.hint


def test_without_a_path_the_compiler_finds_its_linker(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATH")
    sample = matmul()
    built = compile_program(sample.program)
    assert np.array_equal(built.run(sample.inputs)["C"], sample.expected["C"])


def test_without_a_home_the_cache_lies_with_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    assert f"cache-{os.geteuid()}" in str(user_cache().folder)


def test_many_threads_build_the_same(cache: Path) -> None:
    sample = matmul()
    found: list[CompiledProgram] = []
    threads = [
        threading.Thread(target=lambda: found.append(compile_program(sample.program))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(objects(cache)) == 1
    assert all(np.array_equal(built.run(sample.inputs)["C"], sample.expected["C"]) for built in found)


def test_a_failed_build_leaves_nothing(cache: Path) -> None:
    with pytest.raises(CompileError, match="no-such-flag"):
        compile_program(matmul().program, CompileOptions(extra_flags=("-fno-such-flag",)))
    assert objects(cache) == []
    assert not isinstance(CompileError(("cc",), "", ""), StripeError), "it is no error of the user's"


def test_the_cache_folder_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert user_cache().folder == Path("/somewhere/stripe-opt/objects")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert user_cache().folder == Path.home() / ".cache/stripe-opt/objects"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert user_cache().folder == Path.home() / ".cache/stripe-opt/objects"


def test_a_cache_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="cannot write to the cache"):
        compile_program(matmul().program)


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="no C compiler 'no-such-cc'"):
        find_compiler("no-such-cc")
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(ConfigError, match="none of cc, gcc, clang is on the path"):
        compile_program(matmul().program)


def fake_compiler(folder: Path, message: str) -> str:
    path = folder / "fakecc"
    path.write_text(
        f'#!/bin/sh\ncase $* in *--version*) echo fake 1.0; exit 0;; esac\necho "{message}" >&2\nexit 1\n'
    )
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("options", "message", "expected"),
    [
        ({"openmp": True}, "fatal error: 'omp.h' file not found", "has no OpenMP here"),
        ({"sanitize": True}, "ld: cannot find /usr/lib/libclang_rt.asan.a", "has no sanitizers here"),
    ],
)
def test_a_compiler_without_a_runtime(
    options: dict[str, bool], message: str, expected: str, tmp_path: Path, cache: Path
) -> None:
    fake = fake_compiler(tmp_path, message)
    chosen = CompileOptions(fake, openmp="openmp" in options, sanitize="sanitize" in options)
    with pytest.raises(ConfigError, match=expected):
        compile_program(matmul().program, chosen)
    with pytest.raises(CompileError):
        compile_program(matmul().program, CompileOptions(fake))


def test_bench_times_the_calls() -> None:
    sample = matmul()
    timings = compile_program(sample.program).bench(sample.inputs, 5)
    assert len(timings.wall) == len(timings.processor) == 5
    assert 0 < timings.min <= timings.median < 1


def test_the_time_of_a_kernel_is_that_of_all_points_of_main() -> None:
    library = ctypes.CDLL(str(compile_program(matmul().program, CompileOptions(profile=True)).library))
    clock = ctypes.c_double.in_dll(library, "st_kernel_seconds")
    library.st_kernel_done(-1)
    time.sleep(0.02)
    library.st_kernel_done(0)
    first = clock.value
    library.st_kernel_done(0)
    assert clock.value >= first >= 0.02
    library.st_kernel_done(-1)
    assert clock.value == 0.0


def test_bench_gives_each_run_the_same_input() -> None:
    sample = strided()
    built = compile_program(sample.program)
    before = sample.inputs["X"].copy()
    built.bench(sample.inputs, 3)
    assert np.array_equal(sample.inputs["X"], before)
    assert np.array_equal(built.run(sample.inputs)["X"], 2 * before)


def test_inputs_may_lie_anywhere() -> None:
    sample = matmul()
    built = compile_program(sample.program)
    turned = {name: np.asfortranarray(array) for name, array in sample.inputs.items()}
    assert np.array_equal(built.run(turned)["C"], sample.expected["C"])
    wide = np.zeros((8, 12), np.float32)
    wide[:, ::2] = sample.inputs["A"]
    assert np.array_equal(built.run({**sample.inputs, "A": wide[:, ::2]})["C"], sample.expected["C"])
    raw = np.zeros(8 * 6 * 4 + 1, np.uint8)
    odd = raw[1:].view(np.float32).reshape(8, 6)
    odd[...] = sample.inputs["A"]
    assert np.array_equal(built.run({**sample.inputs, "A": odd})["C"], sample.expected["C"])
    frozen = sample.inputs["A"].copy()
    frozen.flags.writeable = False
    assert np.array_equal(built.run({**sample.inputs, "A": frozen})["C"], sample.expected["C"])


def test_inputs_that_do_not_fit() -> None:
    sample = matmul()
    built = compile_program(sample.program)
    with pytest.raises(ExecutionError, match="input 'B' is missing"):
        built.run({"A": sample.inputs["A"]})
    with pytest.raises(ExecutionError, match="has dtype float64"):
        built.run({**sample.inputs, "A": sample.inputs["A"].astype(np.float64)})


def out_of_bounds() -> Program:
    """Reads one element past the end of A: nothing that the verifier of structure sees."""
    return load("exec/compile/out_of_bounds")


def test_the_sanitizers_report() -> None:
    built = compile_program(out_of_bounds(), CompileOptions(sanitize=True))
    with pytest.raises(SanitizerError, match=r"insufficient space|heap-buffer-overflow"):
        built.run({"A": np.zeros(4, np.float32)})


def test_the_sanitizers_see_the_end_of_each_temporary() -> None:
    built = load("exec/compile/the_sanitizers_see_the_end_of_each_temporary")
    with pytest.raises(SanitizerError, match=r"insufficient space|heap-buffer-overflow"):
        compile_program(built, CompileOptions(sanitize=True)).run({})


def test_no_contraction_with_native_code() -> None:
    """(1 + e)^2 - 1 - 2e loses e^2 without fma and keeps it with: both compilers must lose it."""
    e = np.float32(2.0**-13)
    data = {"A": np.full(64, 1 + e, np.float32), "B": np.full(64, -1 - 2 * e, np.float32)}
    built = load("exec/compile/no_contraction_with_native_code")
    for compiler in ("gcc", "clang"):
        if toolchain.shutil.which(compiler):
            options = CompileOptions(compiler, level="O3", native=True)
            assert not compile_program(built, options).run(data)["O"].any()


def test_a_bound_call_keeps_its_tensors() -> None:
    sample = matmul()
    built = compile_program(sample.program)
    call, outputs = built.bind({name: array.copy() for name, array in sample.inputs.items()})
    call()
    assert np.array_equal(outputs()["C"], sample.expected["C"])
    alive = weakref.ref(next(iter(outputs().values())).base)
    del outputs
    gc.collect()
    assert alive() is not None
    call()
