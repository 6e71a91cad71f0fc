"""The processor at hand: found in the files of the system, measured, and rendered as a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stripe.exec.native import processor
from stripe.exec.native.measure import Measurement, measured
from stripe.exec.native.processor import CacheLevel, Processor, from_files, from_sysctl, this_processor
from stripe.hw.checks import check_model
from stripe.ir import ConfigError
from stripe.pipeline import native
from stripe.pipeline.hardware import find_hardware
from stripe.pipeline.native import native_remarks

ZEN3 = "fpu sse sse2 avx avx2 fma bmi2"
ICE_LAKE = f"{ZEN3} avx512f avx512bw avx512dq avx512vl"
MEASURED = Measurement(
    clock_mhz=3249.0, gflops=103.5, latency_cycles=4.02, dot_gops=95.0, loads_per_cycle=1.9,
    gb_per_s={1: 205.0, 2: 101.4, 3: 60.2}, core_memory_gb_per_s=20.0, memory_gb_per_s=33.3,
)  # fmt: skip


CACHES = "1 Data 32K 0|2 Unified 512K 0|3 Unified 32768K 0-7"


def system(root: Path, flags: str, *, key: str = "flags") -> Path:
    """The files of a Linux system with one kind of core."""
    (root / "proc").mkdir()
    text = f"processor\t: 0\nmodel name\t: Model of a test\n{key}\t: {flags}\n\nprocessor\t: 1\nmodel name\t: other\n"
    (root / "proc/cpuinfo").write_text(text)
    core = root / "sys/devices/system/cpu/cpu0"
    (core / "topology").mkdir(parents=True)
    (core / "topology/thread_siblings_list").write_text("0,4\n")
    for number, entry in enumerate(CACHES.split("|")):
        level, kind, size, shared = entry.split()
        folder = core / f"cache/index{number}"
        folder.mkdir(parents=True)
        files = {
            "level": level,
            "type": kind,
            "size": size,
            "shared_cpu_list": shared,
            "coherency_line_size": "64",
        }
        for name, value in (files | {"ways_of_associativity": "8"}).items():
            (folder / name).write_text(f"{value}\n")
    return root


@pytest.mark.parametrize(
    ("machine", "flags", "key", "expected", "width"),
    [
        ("x86_64", ZEN3, "flags", "x86_avx2", 32),
        ("x86_64", ICE_LAKE, "flags", "x86_avx512", 64),
        ("x86_64", "fpu sse sse2 avx", "flags", "portable", 16),
        ("x86_64", f"{ZEN3} avx512f", "flags", "x86_avx2", 32),
        ("aarch64", "fp asimd evtstrm", "Features", "aarch64_neon", 16),
        ("riscv64", "", "isa", "portable", 16),
    ],
)
def test_a_processor_is_known_by_its_instructions(
    machine: str, flags: str, key: str, expected: str, width: int, tmp_path: Path
) -> None:
    found = from_files(system(tmp_path, flags, key=key), machine, cores=frozenset({0}), memory=8 << 30)
    assert (found.model, found.vector_bytes, found.name) == (expected, width, "Model of a test")
    assert (found.cores, found.memory_gib) == (1, 8)
    assert dict(found.caches) == {
        1: CacheLevel(32, 8, 64),
        2: CacheLevel(512, 8, 64),
        3: CacheLevel(32768, 8, 64, 8),
    }
    assert bool(found.remarks) == (expected == "portable")


def test_hardware_threads_of_a_core_count_once(tmp_path: Path) -> None:
    root = system(tmp_path, ZEN3)
    other = root / "sys/devices/system/cpu/cpu4/topology"
    other.mkdir(parents=True)
    (other / "thread_siblings_list").write_text("0,4\n")
    assert from_files(root, "x86_64", cores=frozenset({0, 4}), memory=1 << 30).cores == 1
    assert from_files(root, "x86_64", cores=frozenset({0, 4, 7}), memory=1 << 30).cores == 2


def test_a_system_that_tells_nothing_is_said_to() -> None:
    found = from_files(Path("/nowhere"), "x86_64", cores=frozenset({0}), memory=0)
    assert (found.model, dict(found.caches), found.memory_gib) == ("portable", {}, 1)
    assert len(found.remarks) == 2


def test_sysctl_of_an_apple_processor() -> None:
    values = {
        "machdep.cpu.brand_string": "Apple M2", "hw.perflevel0.physicalcpu": "4", "hw.physicalcpu": "8",
        "hw.perflevel0.l1dcachesize": "131072", "hw.l1dcachesize": "65536", "hw.perflevel0.l2cachesize": "16777216",
        "hw.perflevel0.cpusperl2": "4", "hw.cachelinesize": "128", "hw.memsize": str(16 << 30),
    }  # fmt: skip
    found = from_sysctl("arm64", values)
    assert (found.name, found.model, found.cores, found.memory_gib) == ("Apple M2", "aarch64_neon", 4, 16)
    assert dict(found.caches) == {1: CacheLevel(128, 0, 128), 2: CacheLevel(16384, 0, 128, 4)}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Processor:
    """A processor with AVX2 in place of that of the tests, with figures for it."""
    found = Processor("Zen", "x86_avx2", 6, 30, {1: CacheLevel(32, 8, 64), 2: CacheLevel(512, 8, 64)})
    monkeypatch.setattr(native, "this_processor", lambda: found)
    monkeypatch.setattr(native, "measurement", lambda: MEASURED)
    return found


def test_the_model_has_what_was_read_and_measured(known: Processor) -> None:
    model = find_hardware("native", {"DRAM_GIB": 7})
    assert check_model(model) == ()
    assert {name: model.parameters[name] for name in ("CORES", "L1_KIB", "L2_KIB", "L3_KIB", "DRAM_GIB")} == {
        "CORES": 6, "L1_KIB": 32, "L2_KIB": 512, "L3_KIB": 0, "DRAM_GIB": 7,
    }  # fmt: skip
    assert {name: model.parameters[name] for name in ("CLOCK_MHZ", "FMA_PER_CYCLE", "FMA_LATENCY")} == {
        "CLOCK_MHZ": 3200, "FMA_PER_CYCLE": 2.0, "FMA_LATENCY": 4,
    }  # fmt: skip
    assert {name: model.parameters[name] for name in ("LOADS_PER_CYCLE", "L2_GB_PER_S", "DRAM_GB_PER_S")} == {
        "LOADS_PER_CYCLE": 2.0, "L2_GB_PER_S": 101, "DRAM_GB_PER_S": 33,
    }  # fmt: skip
    sources = {entry.path: entry.source for entry in model.sources}
    assert sources["parameters.CORES"] == "read from the system"
    assert sources["parameters.CLOCK_MHZ"] == "measured on this machine"
    assert sources["parameters.DRAM_GIB"] == "given with -D"
    assert "L3" not in model.mem_units
    assert native_remarks() == ()


@pytest.mark.parametrize(("gops", "rate"), [(40.0, 1), (60.0, 2), (110.0, 2), (240.0, 4), (410.0, 4)])
@pytest.mark.parametrize("kind", ["x86_avx2", "x86_avx512"])
def test_products_of_bytes_are_those_that_the_compiler_makes(
    kind: str, gops: float, rate: int, known: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "this_processor", lambda: replace(known, model=kind))
    monkeypatch.setattr(native, "measurement", lambda: replace(MEASURED, dot_gops=gops))
    model = find_hardware("native")
    assert model.parameters["I8_RATE"] == rate
    operations = model.exec_unit("CORE").ops_per_cycle
    assert operations["i8"] == rate * operations["fp32"]
    assert {e.path: e.source for e in model.sources}["parameters.I8_RATE"] == "measured on this machine"
    assert find_hardware("native", {"I8_RATE": 1}).parameters["I8_RATE"] == 1


def test_without_a_compiler_the_model_has_its_own_speeds(
    known: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "measurement", lambda: None)
    model = find_hardware("native")
    assert (model.parameters["CORES"], model.parameters["CLOCK_MHZ"]) == (
        6,
        find_hardware("x86_avx2").parameters["CLOCK_MHZ"],
    )
    assert native_remarks() == ("no C compiler is here to measure with: speeds are those of the model",)


@pytest.mark.parametrize("kib", [1, 1 << 40])
def test_odd_sizes_are_fitted_to_the_model(
    kib: int, known: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = Processor("odd", "portable", 4096, 0, {1: CacheLevel(kib, 0, 48), 3: CacheLevel(kib, 3, 64, 2)})
    monkeypatch.setattr(native, "this_processor", lambda: odd)
    model = find_hardware("native")
    assert model.parameters["CORES"] == 128
    assert model.parameters["LINE_BYTES"] in (32, 64)
    with pytest.raises(ConfigError, match="has no parameter 'NOPE'"):
        find_hardware("native", {"NOPE": 1})


def test_this_machine_is_measured_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("stripe.exec.native.measure._SECONDS", 0.0005)
    monkeypatch.setattr("stripe.exec.native.measure._ROUNDS", 2)
    measured.cache_clear()
    first = measured()
    lanes = this_processor().vector_bytes / 4
    assert 0.2 < first.gflops * 1e3 / (first.clock_mhz * 2 * lanes) < 9, "multiply-adds of vectors in a cycle"
    assert 1 < first.latency_cycles < 20
    assert 0.05 < first.dot_gops / first.gflops < 9
    monkeypatch.setattr("stripe.exec.native.measure._measure", None)
    measured.cache_clear()
    assert measured() == first
    kept = next(path for path in tmp_path.rglob("*.txt"))
    kept.write_text("{}")
    measured.cache_clear()
    with pytest.raises(TypeError):
        measured()
    measured.cache_clear()


def test_this_processor_is_found() -> None:
    assert this_processor().cores >= 1
    assert processor.this_processor() is this_processor()
