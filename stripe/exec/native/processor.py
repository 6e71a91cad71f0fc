"""The processor as the operating system describes it: instruction set, cores, caches, memory."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

PORTABLE = "portable"
"""The model of a processor that is not known."""


@dataclass(frozen=True, slots=True)
class CacheLevel:
    """A cache that holds data: KiB of one instance, ways (0: unknown), bytes of a line, cores that share it."""

    kib: int
    ways: int
    line: int
    sharers: int = 1


@dataclass(frozen=True, slots=True)
class Processor:
    """The processor: `model` is its hardware model; `caches` are by level, none where the system does not tell.

    `remarks` say what could not be found.
    """

    name: str
    model: str
    cores: int
    memory_gib: int
    caches: Mapping[int, CacheLevel] = field(default_factory=dict[int, CacheLevel])
    remarks: tuple[str, ...] = ()

    @property
    def vector_bytes(self) -> int:
        """Width of its vector registers."""
        return {"x86_avx512": 64, "x86_avx2": 32}.get(self.model, 16)

    @property
    def identity(self) -> str:
        """Two processors with the same identity give the same measurements."""
        return repr((self.name, self.model, self.cores, sorted(self.caches.items())))


@lru_cache(maxsize=1)
def this_processor() -> Processor:
    """The processor of this machine."""
    if platform.system() == "Darwin":
        return from_sysctl(platform.machine(), _sysctl())
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return from_files(Path("/"), platform.machine(), cores=frozenset(cores), memory=_memory_bytes())


def from_files(root: Path, machine: str, *, cores: frozenset[int], memory: int) -> Processor:
    """The processor of a Linux system whose `/proc` and `/sys` lie under `root`, of which a program has `cores`."""
    info = _cpuinfo(root / "proc/cpuinfo")
    flags = frozenset(f"{info.get('flags', '')} {info.get('Features', '')}".split())
    system = root / "sys/devices/system/cpu"
    siblings = {_read(system / f"cpu{core}/topology/thread_siblings_list") or str(core) for core in cores}
    caches = dict(_cache_levels(system / f"cpu{min(cores)}/cache"))
    return _processor(
        info.get("model name") or info.get("CPU part") or machine or "unknown",
        _model(machine, flags), len(siblings), memory, caches,
    )  # fmt: skip


def from_sysctl(machine: str, values: Mapping[str, str]) -> Processor:
    """The processor of a macOS system whose `sysctl` has these values."""
    flags = {name for key, name in _SYSCTL_FLAGS.items() if values.get(key) == "1"}
    line = _number(values.get("hw.cachelinesize"))
    levels = {1: "l1dcachesize", 2: "l2cachesize", 3: "l3cachesize"}
    caches: dict[int, CacheLevel] = {}
    for level, name in levels.items():
        # Apple's processors have faster cores (perflevel0) and slower ones; L2 is shared by the cores of a cluster.
        size = _number(values.get(f"hw.perflevel0.{name}") or values.get(f"hw.{name}"))
        sharers = _number(values.get("hw.perflevel0.cpusperl2")) if level == 2 else 0
        if size:
            caches[level] = CacheLevel(size // 1024, 0, line, max(1, sharers))
    cores = _number(values.get("hw.perflevel0.physicalcpu") or values.get("hw.physicalcpu")) or 1
    name = values.get("machdep.cpu.brand_string") or machine
    return _processor(name, _model(machine, flags), cores, _number(values.get("hw.memsize")), caches)


def _processor(name: str, model: str, cores: int, memory: int, caches: dict[int, CacheLevel]) -> Processor:
    remarks: list[str] = []
    if model == PORTABLE:
        remarks.append(f"the vectors of '{name}' are not known: the model '{PORTABLE}' has 16 bytes for them")
    if not caches:
        remarks.append(f"the system does not tell the caches of '{name}': their sizes are those of the model")
    return Processor(name, model, cores, max(1, memory >> 30), caches, tuple(remarks))


def _model(machine: str, flags: set[str] | frozenset[str]) -> str:
    """The hardware model of an instruction set."""
    if machine in ("aarch64", "arm64"):
        return "aarch64_neon"
    if machine not in ("x86_64", "AMD64"):
        return PORTABLE
    if flags >= {"avx512f", "avx512bw", "avx512dq", "avx512vl"}:
        return "x86_avx512"
    return "x86_avx2" if flags >= {"avx2", "fma"} else PORTABLE


_SYSCTL_FLAGS = {
    "hw.optional.avx2_0": "avx2", "hw.optional.fma": "fma", "hw.optional.avx512f": "avx512f",
    "hw.optional.avx512bw": "avx512bw", "hw.optional.avx512dq": "avx512dq", "hw.optional.avx512vl": "avx512vl",
}  # fmt: skip


def _cpuinfo(path: Path) -> dict[str, str]:
    """The first processor of /proc/cpuinfo."""
    found: dict[str, str] = {}
    for line in (_read(path) or "").splitlines():
        key, colon, value = line.partition(":")
        if not colon and found:
            break
        found[key.strip()] = value.strip()
    return found


def _cache_levels(folder: Path) -> Iterator[tuple[int, CacheLevel]]:
    """The caches for data of a core, by level."""
    for index in sorted(folder.glob("index*")):
        level, size = _number(_read(index / "level")), _kib(_read(index / "size"))
        if level and size and _read(index / "type") in ("Data", "Unified"):
            line = _number(_read(index / "coherency_line_size"))
            ways = _number(_read(index / "ways_of_associativity"))
            yield level, CacheLevel(size, ways, line, _listed(_read(index / "shared_cpu_list")))


def _listed(text: str | None) -> int:
    """How many numbers a list such as `0-3,8` has; at least one."""
    count = 0
    for part in (text or "0").split(","):
        low, _, high = part.partition("-")
        count += _number(high) - _number(low) + 1 if high else 1
    return max(1, count)


def _kib(text: str | None) -> int:
    text = text or ""
    return _number(text[:-1]) * {"K": 1, "M": 1024}.get(text[-1:], 0)


def _number(text: str | None) -> int:
    """A whole number, 0 where there is none."""
    return int(text) if text is not None and text.strip().isdecimal() else 0


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0


def _sysctl() -> dict[str, str]:
    try:
        run = subprocess.run(("sysctl", "hw", "machdep.cpu"), capture_output=True, text=True, check=False)
    except OSError:
        return {}
    pairs = (line.partition(":") for line in run.stdout.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}
