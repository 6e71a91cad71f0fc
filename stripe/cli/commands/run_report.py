"""The report of `stripe-run`: outputs, comparison and times, as text or as JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import numpy as np
from pydantic import BaseModel, Field

from stripe.cli.streams import write_text
from stripe.exec.arith import Array


class OutputJson(BaseModel):
    """One output tensor in short: NaN and infinities do not count for `min`, `max` and `mean`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    min: float | None = Field(description="null when there is no finite element")
    max: float | None
    mean: float | None
    sha256: str = Field(description="of the elements in row-major order, little-endian")


class ComparisonJson(BaseModel):
    """The result of `--compare`."""

    reference: str
    equal: bool
    exact: bool = Field(description="whether equal means bit for bit")
    identical: bool = Field(description="whether it was equal bit for bit, demanded or not")
    differences: tuple[str, ...]
    blame: str
    worst_ratio: float | None = Field(
        description="the largest error of an element in units of the allowed one; null where bits must be or are "
        "equal, and where elements differ"
    )
    worst_element: str | None = Field(description="the output and the index of that element")


class SpeedJson(BaseModel):
    """Work in a time, and its share of the peak of this machine with as many threads."""

    operations: int = Field(description="a multiply-add is two")
    bytes: int = Field(description="each element read once and each written once")
    gflops: float
    gb_per_s: float
    share_of_peak: float | None = Field(
        description="of the multiply-adds that this machine reaches, in fp32, and with bytes for products of bytes; "
        "null where that was not measured"
    )
    share_of_bandwidth: float | None = Field(
        description="of the bandwidth of the nearest level that holds the bytes"
    )
    level: str | None = Field(description="that level: L1, L2, L3 or DRAM")


class KernelJson(BaseModel):
    """A kernel of the program after the passes."""

    name: str
    seconds: float = Field(description="on the clock, the fastest run")
    speed: SpeedJson


class TimesJson(BaseModel):
    """The result of `--bench`, in seconds."""

    runs: int
    threads: int
    min: float = Field(description="on the clock")
    median: float
    max: float
    processor_min: float = Field(description="of processor time, of all threads together")
    processor_median: float
    speed: SpeedJson = Field(
        description="of the whole program, by the work of the program before the passes and the least time: of the "
        "processor for one thread, on the clock for more"
    )
    kernels: tuple[KernelJson, ...]


class ReportJson(BaseModel):
    """The document of `--json`."""

    input: str
    engine: str
    outputs: tuple[OutputJson, ...]
    comparison: ComparisonJson | None
    bench: TimesJson | None


def output_json(name: str, dtype: str, array: Array) -> OutputJson:
    """An output in short."""
    values = np.asarray(array).astype(np.float64)
    finite = values[np.isfinite(values)]
    some = finite.size > 0
    return OutputJson(
        name=name,
        dtype=dtype,
        shape=tuple(array.shape),
        min=float(finite.min()) if some else None,
        max=float(finite.max()) if some else None,
        mean=float(finite.mean()) if some else None,
        sha256=hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest(),
    )


def write(report: ReportJson, path: str | None) -> None:
    """Prints the report, and writes it as JSON to `path` (`-`: to standard output, instead of the text)."""
    if path is not None:
        write_text(path, json.dumps(report.model_dump(mode="json"), indent=2) + "\n")
    if path == "-":
        return
    lines = [_output_line(output) for output in report.outputs]
    if report.comparison is not None:
        lines += _comparison_lines(report.comparison, report.engine)
    if report.bench is not None:
        lines += _times_lines(report.bench, report.engine)
    write_text(None, "\n".join(lines) + "\n")


def _times_lines(times: TimesJson, engine: str) -> Iterator[str]:
    threads = f" on {times.threads} threads" if times.threads > 1 else ""
    yield (
        f"{engine}: {times.runs} runs{threads}, median {_duration(times.median)}, min {_duration(times.min)}, "
        f"max {_duration(times.max)}, processor time {_duration(times.processor_median)}"
    )
    yield f"  {_speed_text(times.speed)}"
    width = max((len(kernel.name) for kernel in times.kernels), default=0)
    for kernel in times.kernels if len(times.kernels) > 1 else ():
        yield f"  {kernel.name:{width}}  {_duration(kernel.seconds)}, {_speed_text(kernel.speed)}"


def _speed_text(speed: SpeedJson) -> str:
    peak = f" ({speed.share_of_peak:.0%} of the peak)" if speed.share_of_peak is not None else ""
    share = (
        f" ({speed.share_of_bandwidth:.0%} of {speed.level})" if speed.share_of_bandwidth is not None else ""
    )
    return f"{speed.gflops:.4g} GFLOP/s{peak}, {speed.gb_per_s:.4g} GB/s{share}"


def _output_line(output: OutputJson) -> str:
    numbers = [("min", output.min), ("max", output.max), ("mean", output.mean)]
    known = ", ".join(f"{word} {value:g}" for word, value in numbers if value is not None)
    shape = ", ".join(map(str, output.shape))
    return (
        f"{output.name}: {output.dtype}({shape}) {known or 'no finite element'}, sha256 {output.sha256[:16]}"
    )


def _comparison_lines(comparison: ComparisonJson, engine: str) -> list[str]:
    if comparison.equal:
        how = "bit for bit" if comparison.identical else "within rounding"
        ratio = comparison.worst_ratio
        share = (
            f" (at most {ratio:.2g} of the bound of an element, {comparison.worst_element})" if ratio else ""
        )
        return [f"{engine} agrees with {comparison.reference}, {how}{share}"]
    how = "bit for bit" if comparison.exact else "beyond rounding"
    lines = [f"{engine} DIFFERS from {comparison.reference} ({how}):"]
    lines += [f"  {difference}" for difference in comparison.differences]
    return [*lines, *([f"  {comparison.blame}"] if comparison.blame else [])]


def _duration(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3f} {unit}"
    return f"{seconds * 1e6:.3f} µs"
