"""Libraries: built from C and C++ in a clean folder, run, and compared with the interpreter; weights that are wrong."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from stripe import ConfigError, run_passes, translate, write_folder
from stripe.cli.start import opt
from stripe.exec.interp import interpret
from stripe.ir import Program, parse_program, print_program, with_entry
from stripe.pipeline.targets.library import LibraryTarget
from stripe.tile import bind, lower, parse_tile
from tests.support.compilers import COMPILERS

ROOT = Path(__file__).resolve().parents[2]
Arrays = Mapping[str, npt.NDArray[np.generic]]
Capture = pytest.CaptureFixture[str]

NET = """
function (X[H=10, W=10, C=4]: fp32, K1[D=3, D, C, C]: fp32, K2[D, D, C, C]: fp32, G[N=256, J=5]: fp32) -> (Y) {
    A[h, w, o : 8, 8, 4] = +(X[h + i, w + j, c] * K1[i, j, c, o]);
    R = relu(A);
    P[h + 1, w + 1, c : 10, 10, 4] = =(R[h, w, c]);
    B[h, w, o : 8, 8, 4] = +(P[h + i, w + j, c] * K2[i, j, c, o]);
    S = relu(B);
    F = reshape(S, 256);
    Y[j : 5] = +(F[n] * G[n, j]);
}
"""
"""Two equal layers of a convolution and a ReLU, and a Gemm."""

SANITIZED = "CFLAGS=-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
STRICT = "CFLAGS=-O1 -Wall -Wextra -Werror"


def numbers(*sizes: int, seed: int) -> npt.NDArray[np.float32]:
    """Integers, so that sums are exact in any order."""
    return np.random.default_rng(seed).integers(-3, 4, sizes).astype(np.float32)


def network() -> Program:
    weights = {
        "K1": numbers(3, 3, 4, 4, seed=1), "K2": numbers(3, 3, 4, 4, seed=2), "G": numbers(256, 5, seed=3)
    }  # fmt: skip
    return lower(bind(parse_tile(NET, "net.tile")), "net", weights)


def written(folder: Path, program: Program, **options: object) -> Path:
    folder.mkdir()
    for name, data in LibraryTarget.model_validate(options).files(program).items():
        (folder / name).write_bytes(data)
    return folder


def built(folder: Path, *arguments: str, flags: str = STRICT) -> Path:
    command = ["make", "ARCH=", flags, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def ran(folder: Path, program: Program, inputs: Arrays, example: str = "./example") -> Arrays:
    """The outputs of the example on `inputs`."""
    paths: list[str] = []
    for ref in program.inputs:
        (folder / f"{ref.name}.bin").write_bytes(np.ascontiguousarray(inputs[ref.name]).tobytes())
        paths.append(f"{ref.name}.bin")
    paths += [f"{ref.name}.out" for ref in program.outputs]
    done = subprocess.run([example, *paths], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {
        ref.name: np.frombuffer((folder / f"{ref.name}.out").read_bytes(), ref.dtype.numpy()).reshape(
            ref.sizes
        )
        for ref in program.outputs
    }


def same(found: Arrays, wanted: Arrays) -> bool:
    return all(found[name].tobytes() == np.ascontiguousarray(wanted[name]).tobytes() for name in wanted)


@pytest.fixture(scope="module")
def program() -> Program:
    return network()


@pytest.fixture(scope="module")
def inputs() -> Arrays:
    return {"X": numbers(10, 10, 4, seed=4)}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, program: Program) -> Path:
    folder = written(tmp_path_factory.mktemp("library") / "net", program)
    return built(folder, "all", "example-cpp")


@pytest.mark.parametrize("example", ["./example", "./example-cpp"])
def test_c_and_cpp_compute_what_the_interpreter_does(
    example: str, library: Path, program: Program, inputs: Arrays
) -> None:
    assert same(ran(library, program, inputs, example), interpret(program, inputs))


@pytest.mark.parametrize("weights", ["object", "c"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_weights_are_linked_in(
    weights: str, compiler: str, tmp_path: Path, program: Program, inputs: Arrays
) -> None:
    folder = built(written(tmp_path / "net", program, weights=weights, name="tiny"), f"CC={compiler}")
    if weights == "object":
        (folder / "tiny.weights").unlink()  # needed to build, and not to run
    assert same(ran(folder, program, inputs), interpret(program, inputs))


@pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no cmake")
def test_cmake_builds_it(tmp_path: Path, program: Program, inputs: Arrays) -> None:
    folder = written(tmp_path / "net", program, weights="object")
    for command in (["cmake", "-B", "build", "-DNET_NATIVE=OFF"], ["cmake", "--build", "build"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert same(ran(folder, program, inputs, "build/example"), interpret(program, inputs))


def test_symbols(library: Path) -> None:
    """All names begin with the prefix, only the interface is exported, and no data can be written."""
    symbols = _symbols(library, "libnet.a")
    assert {kind for kind, _ in symbols} <= {"T", "t", "r", "R"}
    assert all(name.startswith("net_") for kind, name in symbols if kind.isupper())
    exported = {name for kind, name in _symbols(library, "-D", "libnet.so") if kind == "T"}
    assert exported == {
        "net_setup_file", "net_setup_memory", "net_release", "net_arena_bytes", "net_run"
    }  # fmt: skip
    wanted = _run_nm(library, "-u", "net.o").split()
    assert not {"malloc", "calloc", "aligned_alloc", "abort", "exit", "printf"} & set(wanted)


def _run_nm(folder: Path, *arguments: str) -> str:
    return subprocess.run(["nm", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def _symbols(folder: Path, *arguments: str) -> list[tuple[str, str]]:
    """Kinds and names of the symbols that are defined."""
    lines = (line.split() for line in _run_nm(folder, "--defined-only", *arguments).splitlines())
    return [(parts[1], parts[2]) for parts in lines if len(parts) == 3]


def test_equal_layers_are_one_function(library: Path) -> None:
    text = (library / "net.c").read_text()
    calls = re.findall(r"^  (net_kernel\w+)\(", text, re.MULTILINE)
    assert len(calls) > len(set(calls)) == len(re.findall(r"void net_kernel\w+\(.*{$", text, re.MULTILINE))


def test_the_arena_is_as_small_as_can_be(library: Path) -> None:
    header = (library / "net.h").read_text()
    (arena,), (bound,) = (
        re.findall(rf"{name} (\d+)", header) for name in ("ARENA_BYTES", "ARENA_LOWER_BOUND")
    )
    assert int(bound) <= int(arena) <= int(bound) + 64


CHECKS = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"

static net_model model;
static float x[2][NET_IN_X_ELEMENTS], y[2][NET_OUT_Y_ELEMENTS], wanted[2][NET_OUT_Y_ELEMENTS];
static _Alignas(NET_ALIGNMENT) unsigned char arenas[2][NET_ARENA_BYTES];

static void *work(void *argument) {
  const long self = (long)argument;
  for (int i = 0; i < 2000; ++i) {
    memset(y[self], 0, sizeof y[self]);
    if (net_run(&model, arenas[self], sizeof arenas[self], x[self], y[self]) != NET_OK) exit(2);
    if (memcmp(y[self], wanted[self], sizeof y[self]) != 0) exit(3);
  }
  return NULL;
}

int main(int count, char **paths) {
  for (int i = 1; i < count; ++i) {
    printf("%d ", net_setup_file(&model, paths[i]));
    net_release(&model);
  }
  printf("%d ", net_run(&model, arenas[0], sizeof arenas[0], x[0], y[0]));
  if (net_setup_file(&model, "net.weights") != NET_OK) return 1;
  printf("%d ", net_run(&model, arenas[0], sizeof arenas[0], x[0], NULL));
  printf("%d ", net_run(&model, arenas[0], sizeof arenas[0] - 1, x[0], y[0]));
  printf("%d\\n", net_run(&model, arenas[0] + 1, sizeof arenas[0], x[0], y[0]));
  for (int t = 0; t < 2; ++t) {
    for (int i = 0; i < NET_IN_X_ELEMENTS; ++i) x[t][i] = (float)((i * (t + 3)) % 7);
    if (net_run(&model, arenas[0], sizeof arenas[0], x[t], wanted[t]) != NET_OK) return 4;
  }
  pthread_t threads[2];
  for (long t = 0; t < 2; ++t) pthread_create(&threads[t], NULL, work, (void *)t);
  for (int t = 0; t < 2; ++t) pthread_join(threads[t], NULL);
  return 0;
}
"""


@pytest.mark.parametrize("transposed", [False, True])
def test_weights_fit_where_elements_lie_in_the_same_places(transposed: bool) -> None:
    """Weights that were trained anew do; those that a pass transposed do not, though sizes and names are equal."""
    access = "G[j, n]" if transposed else "G[n, j]"
    text = f"function (X[N=8], G[N, N]) -> (Y) {{ Y[j : N] = +(X[n] * {access}); }}"

    def layout(name: str, seed: int, source: str) -> bytes:
        weights = {"G": numbers(8, 8, seed=seed)}
        program = lower(bind(parse_tile(source, "net.tile")), name, weights)
        files = LibraryTarget.model_validate({}).files(program)
        (found,) = re.findall(rb"NET_WEIGHTS_LAYOUT (0x\w+)u", files["net.h"])
        return found

    first = layout("net", 1, text)
    assert first == layout("net_again", 2, text)
    other = text.replace(access, "G[n, j]" if transposed else "G[j, n]")
    assert first != layout("net", 1, other)


def test_errors_are_codes_and_threads_have_their_own_arenas(library: Path, tmp_path: Path) -> None:
    data = bytearray((library / "net.weights").read_bytes())
    damaged = bytearray(data)
    damaged[-70] ^= 1
    files = {
        "short": data[:-1], "tiny": data[:10], "long": data + b"\0", "text": b"x" * len(data), "damaged": damaged,
        "other": data[:24] + b"\0" + data[25:],
    }  # fmt: skip
    for name, contents in files.items():
        (tmp_path / name).write_bytes(bytes(contents))
    (tmp_path / "checks.c").write_text(CHECKS)
    command = ["cc", "-std=c11", "-O1", "-pthread", "-I", str(library), "checks.c", "-o", "checks"]
    subprocess.run([*command, str(library / "libnet.a"), "-lm"], cwd=tmp_path, check=True)
    paths = [str(tmp_path / name) for name in (*files, "none")]
    done = subprocess.run(
        [str(tmp_path / "checks"), *paths], cwd=library, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split()) == (
        0,
        ["5", "5", "5", "6", "8", "7", "4", "2", "1", "3", "3"],
    )


@pytest.mark.parametrize("openmp", [False, True], ids=["serial", "openmp"])
def test_threads_and_sanitizers(openmp: bool, tmp_path: Path, program: Program, inputs: Arrays) -> None:
    """After the list `cpu`, whose tiles have workspaces and threads."""
    passed = run_passes(program, "cpu")
    folder = written(tmp_path / "net", passed, openmp=openmp, stack_bytes=0 if openmp else 16384)
    if openmp:
        built(folder)
    else:
        built(folder, "LDFLAGS=-fsanitize=address,undefined", flags=SANITIZED)
    assert same(ran(folder, program, inputs), interpret(program, inputs))


def test_large_networks_are_several_files(
    tmp_path: Path, program: Program, inputs: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stripe.emit.library.sources._FILE_CHARACTERS", 500)
    folder = built(written(tmp_path / "net", program))
    assert (folder / "net_kernels_2.c").is_file()
    assert same(ran(folder, program, inputs), interpret(program, inputs))


def test_hostile_names(tmp_path: Path) -> None:
    """Names of tensors and of the program never reach C as they are."""
    text = print_program(lower(bind(parse_tile(NET, "net.tile")), "net"))
    for name, other in (("X", "class"), ("K1", "net_run"), ("K2", "NET_OK"), ("G", "_Bool"), ("Y", "arena")):
        text = re.sub(rf"\b{name}\b", other, text)
    program = parse_program(text)
    name = '*/\n#error "$(false)" ??/\n[[net \\'
    program = with_entry(program, replace(program.entry, name=name))
    built(written(tmp_path / "net", program), "all", "example-cpp")


def test_the_page_builds_and_runs(tmp_path: Path) -> None:
    """The program of docs/library.md, as C and as C++."""
    (text,) = re.findall(
        r"^```c\n(.*?)^```", (ROOT / "docs/library.md").read_text(), re.MULTILINE | re.DOTALL
    )
    program = network()
    folder = built(written(tmp_path / "net", program), "libnet.a")
    (folder / "main.c").write_text(text)
    x = (np.arange(400) % 5).astype(np.float32).reshape(10, 10, 4)
    wanted = [f"{value:g}" for value in interpret(program, {"X": x})["Y"].tolist()]
    for command in (["cc", "-std=c11", "main.c"], ["c++", "-x", "c++", "main.c", "-x", "none"]):
        subprocess.run([*command, "-Wall", "-Wextra", "-Werror", "libnet.a", "-lm"], cwd=folder, check=True)
        done = subprocess.run(["./a.out"], cwd=folder, capture_output=True, text=True, check=True)
        assert done.stdout.split() == wanted


def test_the_header(golden: Callable[[str, str], None], program: Program) -> None:
    files = LibraryTarget().files(program)
    golden("library_header", re.sub(r"stripe-opt [\d.]+", "stripe-opt VERSION", files["net.h"].decode()))


def test_python_writes_the_folder(tmp_path: Path, program: Program) -> None:
    write_folder(program, tmp_path / "net", "library{weights=c}")
    assert (tmp_path / "net/net_weights.c").is_file()
    with pytest.raises(ConfigError, match="is a text"):
        write_folder(program, tmp_path / "other", "json")
    with pytest.raises(ConfigError, match="is a folder of files"):
        translate(program, "library")


def test_the_folder_is_written_whole_or_not_at_all(tmp_path: Path, capsys: Capture) -> None:
    source = str(ROOT / "examples/matmul.tile")
    folder = tmp_path / "net"
    assert opt([source, "--emit", "library"]) == 2
    assert opt([source, "--emit", "library{name=int}", "-o", str(folder)]) == 2
    assert opt([source, "--emit", "library", "-o", str(folder)]) == 0
    (folder / "mine.txt").write_text("kept")
    (folder / "net_kernels_7.c").write_text("of a larger network")
    assert opt([source, "--emit", "library", "-o", str(folder)]) == 0
    assert (folder / "mine.txt").read_text() == "kept"
    assert not (folder / "net_kernels_7.c").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("kept")
    capsys.readouterr()
    assert opt([source, "--emit", "library", "-o", str(tmp_path / "full")]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]
    for name in ("net.h", "net_kernels_7.c", "Makefile"):
        (tmp_path / "full" / name).write_text("of somebody else")
    assert opt([source, "--emit", "library", "-o", str(tmp_path / "full")]) == 2
    assert "has no 'net.h' of a library by stripe-opt" in capsys.readouterr().err
    assert all("somebody" in (tmp_path / "full" / name).read_text() for name in ("net.h", "net_kernels_7.c"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full", "net"]


def test_a_network_with_hostile_names(tmp_path: Path) -> None:
    """Names of ONNX go through Tile, C, make and the shell, and the result is that of the reference."""
    onnx = pytest.importorskip("onnx")
    helper, tensor = onnx.helper, onnx.helper.make_tensor_value_info
    names = {
        "x": 'x"; system("false"); //',
        "w": "w\n*/",
        "c": "c'$(false)",
        "r": "int",
        "f": "??/",
        "y": "y;#\\",
    }
    held = [
        onnx.numpy_helper.from_array(numbers(4, 3, 3, 3, seed=1), names["w"]),
        onnx.numpy_helper.from_array(numbers(64, 5, seed=2), "g"),
    ]
    nodes = [
        helper.make_node(
            "Conv", [names["x"], names["w"]], [names["c"]], name="conv/1\n", strides=[2, 2], pads=[1, 1, 1, 1]
        ),
        helper.make_node("Relu", [names["c"]], [names["r"]]),
        helper.make_node("Flatten", [names["r"]], [names["f"]]),
        helper.make_node("Gemm", [names["f"], "g"], [names["y"]], name="*/ gemm"),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes, "g\n#", [tensor(names["x"], 1, [1, 3, 8, 8])], [tensor(names["y"], 1, [1, 5])], held
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(model, tmp_path / "net.onnx")
    folder = tmp_path / "net"
    assert opt([str(tmp_path / "net.onnx"), "--config", "cpu", "--emit", "library", "-o", str(folder)]) == 0
    built(folder, "all", "example-cpp")
    x = numbers(1, 3, 8, 8, seed=3)
    (folder / "x.bin").write_bytes(x.tobytes())
    subprocess.run(["./example", "x.bin", "y.bin"], cwd=folder, check=True)
    (wanted,) = onnx.reference.ReferenceEvaluator(model).run(None, {names["x"]: x})
    assert (np.frombuffer((folder / "y.bin").read_bytes(), np.float32) == wanted.ravel()).all()
