"""Where buffers live: arenas for what is placed, large addresses, constants, and sizes that nothing can hold."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from stripe.emit.c import COptions, emit_c, emit_module
from stripe.exec.compile import CompileOptions, compile_program
from stripe.exec.data import random_inputs
from stripe.exec.interp import interpret
from stripe.exec.isolation import isolated
from stripe.ir import StripeError, parse_program
from tests.support.compilers import BUILD_NAMES, BUILDS
from tests.support.programs import checked, load, source

PLACED = source("emit/memory/placed")
"""O takes the memory of T once T is dead; B is spread over banks; R lies in the bank of its row."""


@pytest.mark.parametrize("options", BUILDS, ids=BUILD_NAMES)
def test_placed_programs_run_in_arenas(options: CompileOptions) -> None:
    built = checked(PLACED)
    data = {"A": np.arange(32, dtype=np.int32).reshape(4, 8)}
    expected = (2 * data["A"]).sum(1)
    assert np.array_equal(interpret(built, data, arenas=True)["O"], expected)
    assert np.array_equal(compile_program(built, options).run(data)["O"], expected)
    assert np.array_equal(compile_program(built, replace(options, arenas=False)).run(data)["O"], expected)


def test_a_wrong_placement_shows() -> None:
    """T over A: the kernel that doubles reads what it has just written only in arenas."""
    wrong = load("emit/memory/overlapping")
    data = {"A": np.arange(32, dtype=np.int32).reshape(4, 8)}
    expected = (2 * data["A"]).sum(1)
    options = CompileOptions(level="O0")
    assert not np.array_equal(compile_program(wrong, options).run(data)["O"], expected)
    assert np.array_equal(compile_program(wrong, replace(options, arenas=False)).run(data)["O"], expected)


def test_arenas_in_the_text() -> None:
    text = emit_c(checked(PLACED), COptions(openmp=True))
    assert "unsigned char *arena_DRAM = st_allocate(256);" in text
    assert "unsigned char *arena_SRAM = st_allocate(512);" in text, "four banks of 128 bytes"
    assert text.index("kernel_load(T, B);") < text.index("memset(O_placed"), "O starts when T is dead"
    assert "#pragma omp" not in text, "threads would share the place of R"
    assert "const st_raw_int32_t *restrict T" in text


@pytest.mark.parametrize(
    "options", [CompileOptions(level="O1"), CompileOptions(level="O2"), CompileOptions()]
)
@pytest.mark.parametrize(
    ("name", "array"), [("small_arrays", "uint16_t T0_array[24]"), ("small_copies", "int8_t T0_array[20]")]
)
def test_small_arrays_say_the_alignment_that_their_stores_need(
    name: str, array: str, options: CompileOptions
) -> None:
    """gcc 12 sets 48 bytes, and 24, by aligned stores, and did not align them: the process ended."""
    program = load(f"emit/memory/{name}")
    options = replace(options, native=True, arenas=False)
    random = np.random.default_rng(1)
    data = {ref.name: random.integers(0, 9, ref.sizes).astype(ref.dtype.numpy()) for ref in program.inputs}
    built = compile_program(program, options)
    assert f"_Alignas(32) {array};" in built.source
    found = isolated(lambda: built.run(data))
    for name, expected in interpret(program, data).items():
        assert np.array_equal(found[name], expected), name


def test_buffers_that_overlap_are_not_restrict() -> None:
    text = emit_c(load("emit/memory/overlapping"))
    assert "static void kernel_double_(const st_raw_int32_t *A_placed, st_raw_int32_t *T)" in text


@pytest.mark.parametrize("options", BUILDS, ids=BUILD_NAMES)
def test_temporaries_that_are_not_alive_together_share_memory(options: CompileOptions) -> None:
    """V takes the memory of a temporary that is dead, and begins at zero only then."""
    chain = checked(source("emit/memory/chain_of_temporaries"))
    text = emit_c(chain)
    assert f"st_allocate({2 * 64 * 256 * 4})" in text, "U and V; T lies where V does"
    assert text.index("kernel_turn(T, U)") < text.index("memset(V") < text.index("kernel_sum(V, U)")
    assert "const st_raw_int32_t *restrict U" in text
    data = {"A": np.arange(64 * 256, dtype=np.int32).reshape(64, 256)}
    assert np.array_equal(compile_program(chain, options).run(data)["O"], interpret(chain, data)["O"])


@pytest.mark.parametrize("options", BUILDS, ids=BUILD_NAMES)
def test_specials_read_all_before_they_write(options: CompileOptions) -> None:
    """C wrote over elements that a later row reads."""
    data = {
        "A": np.arange(1, 5, dtype=np.float32),
        "I": np.array([3, 0, 1, 0], np.int32),
        "O": np.zeros(4, np.float32),
    }
    for name, expected in (("special_in_place", [4, 1, 2, 1]), ("scatter_in_place", [6, 3, 0, 1])):
        built = checked(source(f"emit/memory/{name}"))
        assert interpret(built, data)["O"].tolist() == expected
        assert compile_program(built, options).run(data)["O"].tolist() == expected


def test_names_of_one_buffer_keep_no_threads_apart() -> None:
    """Two threads added to one element at the same time, and lanes of one vector did."""
    text = source("emit/memory/two_names_of_one_buffer")
    for tag in ("#thread", "#parallel", "#vector"):
        code = emit_c(checked(text.replace("#thread", tag)), COptions(openmp=True))
        assert "#pragma omp" not in code


def test_addresses_past_two_to_the_31() -> None:
    """Two bytes, three gigabytes apart: the pages between are never touched."""
    built = load("emit/memory/addresses_past_two_to_the_31")
    assert compile_program(built).run({})["O"].tolist() == [7, 7]


def test_a_size_that_nothing_can_address_is_an_error() -> None:
    built = load("emit/memory/a_size_that_nothing_can_address_is_an_error")
    with pytest.raises(StripeError, match=r"'T' takes \d+ bytes, which no address can reach"):
        emit_c(built)


def constants(dtype: str, data: bytes, count: int) -> str:
    return f"""0: #program block [] ( // constants
        #const none new@0x00000000<[0]> K[0] {dtype}({count}:1)
        #user none new@0x00000000<[0]> O[0] {dtype}({count}:1)
    ) {{
      0: #main block [] ( // main
          in<[0]> K[0] {dtype}({count}:1)
          out<[0]> O[0]:assign {dtype}({count}:1)
      ) {{
        0: #kernel block [i:{count}] ( // copy
            in<[0]> K[i] {dtype}(1:1)
            out<[0]> O[i]:assign {dtype}(1:1)
        ) {{
          0: $k = load(K)
          1: O = store($k)
        }}
      }}
    }}
    const K {dtype}({count}) = "{data.hex()}"
    """


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "uint64", "int8", "bool"])
def test_constants_keep_every_bit(dtype: str) -> None:
    if dtype.startswith("float"):
        values = np.array([0.1, -0.0, 6e-8, np.inf, -np.inf, 1 / 3, 65504], dtype)
        tiny = np.array(
            [np.finfo(dtype).tiny, np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max], dtype
        )
        values = np.concatenate([values, tiny])
    elif dtype == "bool":
        values = np.array([True, False])
    else:
        info = np.iinfo(dtype)
        values = np.array([info.min, info.max, 0, 1], dtype)
    name = {"float16": "fp16", "float32": "fp32", "float64": "fp64"}.get(dtype, dtype.replace("int", "i"))
    text = constants(name.replace("ui", "u"), values.tobytes(), values.size)
    built = parse_program(text, "constants")
    for mode in ("inline", "arguments"):
        roles = [p.role for p in emit_module(built, COptions(constants=mode)).parameters]
        assert roles == (["out"] if mode == "inline" else ["out", "const"])
    assert compile_program(built).run({})["O"].tobytes() == values.tobytes()


def test_large_constants_are_passed_in() -> None:
    values = np.arange(1 << 18, dtype=np.int64)
    built = compile_program(parse_program(constants("i64", values.tobytes(), values.size), "constants"))
    assert len(built.source) < 10_000
    assert np.array_equal(built.run({})["O"], values)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_bytes_that_hold_elements_of_several_types(compiler: str) -> None:
    """Compilers may take elements of two types for elements of two places, unless their types say that they are not."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    program = load("emit/memory/effective_types")
    data = random_inputs(program, 109)
    found = compile_program(program, CompileOptions(compiler, level="O3")).run(data)
    for name, expected in interpret(program, data).items():
        assert np.array_equal(found[name], expected), name
