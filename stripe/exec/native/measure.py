"""The speed of this processor: clock, multiply-adds and bandwidths, measured once in a second or two and kept."""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from stripe.exec.cache import user_cache
from stripe.exec.isolation import isolated
from stripe.exec.native.processor import CacheLevel, Processor, this_processor
from stripe.exec.toolchain import CompileOptions, identity, toolchain

_ROUNDS = 7
"""Runs of a loop, of which the fastest counts: others may have used the core."""
_SECONDS = 0.004
"""Length of one run."""
_STEP_CYCLES = 6
"""Cycles of a step of `st_steps`."""
_SUMS = 12
"""Multiply-adds of a step of `st_peak`."""
_UNROLLED = 8
"""Vectors of a step of `st_read`, and elements of one of `st_load`."""
_DOT_OPS = 2 * 9 * 2048
"""Operations of a step of `st_dots`."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Figures of one core, but for `memory_gb_per_s`, which all cores reach together: fp32 multiply-adds (two
    operations each), cycles from one of them to the next one of its sum, sums of products of bytes as the compiler
    makes them, loads of one element for all lanes, reading from levels of cache and from memory.
    """

    clock_mhz: float
    gflops: float
    latency_cycles: float
    dot_gops: float
    loads_per_cycle: float
    gb_per_s: dict[int, float]
    core_memory_gb_per_s: float
    memory_gb_per_s: float


@lru_cache(maxsize=1)
def measured() -> Measurement:
    """The figures of this machine, from the cache where they are there. Raises ConfigError without a C compiler."""
    processor = this_processor()
    source, dots = (
        Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("measure.c", "dots.c")
    )
    flags = (f"-DVECTOR_BYTES={processor.vector_bytes}", "-ffp-contract=fast", "-fno-tree-vectorize")
    tools = toolchain(CompileOptions(extra_flags=flags))
    library = tools.build(source, shared=True)
    dot_library = toolchain(CompileOptions()).build(dots, shared=True)
    key = "\0".join(
        [
            "measurement",
            *Measurement.__annotations__,
            source,
            dots,
            processor.identity,
            identity(tools.compiler, True),
        ]
    )

    def measure() -> str:
        return json.dumps(asdict(isolated(lambda: _measure(library, dot_library, processor))))

    kept = json.loads(user_cache().text(key, measure))
    return Measurement(**kept | {"gb_per_s": {int(level): rate for level, rate in kept["gb_per_s"].items()}})


def _measure(library: Path, dot_library: Path, processor: Processor) -> Measurement:
    code, dot_code = (ctypes.CDLL(str(path)) for path in (library, dot_library))
    for name in ("st_steps", "st_chain", "st_peak", "st_read", "st_load"):
        code[name].restype = ctypes.c_float if name in ("st_chain", "st_peak") else ctypes.c_uint64
    floats = ctypes.c_float(0.999), ctypes.c_float(1e-3)
    steps = _rate(lambda count: code.st_steps(ctypes.c_int64(count), ctypes.c_uint64(88172645463325252)))
    chain = _rate(lambda count: code.st_chain(ctypes.c_int64(count), *floats))
    peak = _rate(lambda count: code.st_peak(ctypes.c_int64(count), *floats)) * _SUMS
    lanes = processor.vector_bytes // 4
    buffers = {level: _buffer(size, processor) for level, size in _sizes(processor.caches).items()}
    largest = max((cache.kib for cache in processor.caches.values()), default=16384) * 1024
    memory = [
        _buffer(max(4 * largest // processor.cores, 64 << 20), processor) for _ in range(processor.cores)
    ]

    def read(buffer: np.ndarray, least: float = _SECONDS) -> float:
        """Bytes a second."""
        count = ctypes.c_int64(buffer.nbytes // (_UNROLLED * processor.vector_bytes))
        address = ctypes.c_void_p(buffer.ctypes.data)
        return _rate(lambda n: code.st_read(address, count, ctypes.c_int64(n)), least) * buffer.nbytes

    line, rows = (_buffer(size, processor) for size in (4096, 6 * 2048))
    address = ctypes.c_void_p(rows.ctypes.data)
    dots = _rate(lambda count: dot_code.st_dots(address, ctypes.c_int64(count), ctypes.c_int16(0)))
    loads = _rate(lambda count: code.st_load(ctypes.c_void_p(line.ctypes.data), ctypes.c_int64(count)))

    with ThreadPoolExecutor(processor.cores) as pool:
        together = sum(pool.map(read, memory))
    return Measurement(
        clock_mhz=steps * _STEP_CYCLES / 1e6,
        gflops=peak * lanes * 2 / 1e9,
        latency_cycles=steps * _STEP_CYCLES / chain,
        dot_gops=dots * _DOT_OPS / 1e9,
        loads_per_cycle=loads * _UNROLLED / (steps * _STEP_CYCLES),
        gb_per_s={level: read(buffer) / 1e9 for level, buffer in buffers.items()},
        core_memory_gb_per_s=read(memory[0]) / 1e9,
        memory_gb_per_s=together / 1e9,
    )


def _rate(run: Callable[[int], object], least: float = _SECONDS) -> float:
    """Steps a second of processor time: `run` takes a number of steps, which is doubled until it runs long enough."""
    count = 1
    while _seconds(run, count) < least:
        count *= 2
    return count / min(_seconds(run, count) for _ in range(_ROUNDS))


def _seconds(run: Callable[[int], object], count: int) -> float:
    started = time.thread_time_ns()
    run(count)
    return max(1, time.thread_time_ns() - started) / 1e9


def _sizes(caches: Mapping[int, CacheLevel]) -> dict[int, int]:
    """For each level the bytes of a buffer that lies in it, and not in the level before."""
    sizes: dict[int, int] = {}
    before = 0
    for level, cache in sorted(caches.items()):
        own = cache.kib * 1024 // cache.sharers
        sizes[level] = min(own // 2, 4 * before) if own > 4 * before > 0 else own // 2
        before = cache.kib * 1024
    return sizes


def _buffer(size: int, processor: Processor) -> np.ndarray:
    step = _UNROLLED * processor.vector_bytes
    raw = np.ones(size // step * step + 4096, np.uint8)
    start = -raw.ctypes.data % 4096
    return raw[start : start + size // step * step]
