"""The times of `stripe-run --bench`, beside the peaks of this machine."""

from __future__ import annotations

import statistics

from stripe.cli.commands.run_report import KernelJson, SpeedJson, TimesJson
from stripe.cost.counts.work import KernelWork, program_work, tensor_bytes
from stripe.exec.native.measure import Measurement
from stripe.exec.native.processor import this_processor
from stripe.ir import Program
from stripe.pipeline.engines import Arrays, CEngine, Engine, Runner
from stripe.pipeline.native import measurement


def measure(
    runner: Runner, engine: Engine, original: Program, program: Program, inputs: Arrays, count: int
) -> TimesJson:
    """Times `count` runs of `program`, whose meaning is that of `original`, and its kernels where the engine can."""
    threads, machine = 1, None
    if isinstance(engine, CEngine):
        threads = engine.threads or (this_processor().cores if engine.openmp else 1)
        machine = measurement()
    times = runner.bench(inputs, count)
    works = program_work(original)
    operations, of_bytes = sum(work.operations for work in works), sum(work.of_bytes for work in works)
    whole = KernelWork("", operations, of_bytes, tensor_bytes(original))
    kernels = tuple(
        KernelJson(name=work.name, seconds=seconds, speed=_speed(work, seconds, machine, threads))
        for work, seconds in zip(program_work(program), runner.profile(inputs, count), strict=False)
    )
    least = times.min if threads > 1 else min(times.processor)
    return TimesJson(
        runs=len(times.wall),
        threads=threads,
        min=times.min,
        median=times.median,
        max=max(times.wall),
        processor_min=min(times.processor),
        processor_median=statistics.median(times.processor),
        speed=_speed(whole, least, machine, threads),
        kernels=kernels,
    )


def _speed(work: KernelWork, seconds: float, machine: Measurement | None, threads: int) -> SpeedJson:
    seconds = max(seconds, 1e-9)
    gflops, gb_per_s = work.operations / seconds / 1e9, work.bytes / seconds / 1e9
    level, bandwidth = _bandwidth(work.bytes, machine, threads) if machine else (None, None)
    return SpeedJson(
        operations=work.operations,
        bytes=work.bytes,
        gflops=gflops,
        gb_per_s=gb_per_s,
        share_of_peak=_least_seconds(work, machine) / threads / seconds if machine else None,
        share_of_bandwidth=gb_per_s / bandwidth if bandwidth else None,
        level=level,
    )


def _least_seconds(work: KernelWork, machine: Measurement) -> float:
    """Seconds of the operations on one core at its peaks, of which products of bytes have their own."""
    others = work.operations - work.of_bytes
    return (others / machine.gflops + work.of_bytes / machine.dot_gops) / 1e9


def _bandwidth(size: int, machine: Measurement, threads: int) -> tuple[str, float]:
    """The nearest level of the caches that holds so many bytes, and its bandwidth for these threads."""
    for level, cache in sorted(this_processor().caches.items()):
        if level in machine.gb_per_s and size <= cache.kib * 1024 * (threads if cache.sharers == 1 else 1):
            return f"L{level}", machine.gb_per_s[level] * threads
    return "DRAM", min(machine.core_memory_gb_per_s * threads, machine.memory_gb_per_s)
