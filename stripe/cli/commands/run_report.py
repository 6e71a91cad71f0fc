"""The report of `stripe-run`: outputs, comparison and times, as text or as JSON."""

from __future__ import annotations

import hashlib
import json
import statistics

import numpy as np
from pydantic import BaseModel, Field

from stripe.cli.files import write_text
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


class TimesJson(BaseModel):
    """The result of `--bench`, in seconds."""

    runs: int
    min: float
    median: float
    max: float


class ReportJson(BaseModel):
    """What `--json` writes."""

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


def times_json(times: tuple[float, ...]) -> TimesJson:
    """At least one time in short."""
    return TimesJson(runs=len(times), min=min(times), median=statistics.median(times), max=max(times))


def write(report: ReportJson, path: str | None) -> None:
    """Prints the report, and writes it as JSON to `path` (`-`: to standard output, instead of the text)."""
    if path is not None:
        write_text(path, json.dumps(report.model_dump(mode="json"), indent=2) + "\n")
    if path != "-":
        write_text(None, _as_text(report))


def _as_text(report: ReportJson) -> str:
    lines = [_output_line(output) for output in report.outputs]
    if report.comparison is not None:
        lines += _comparison_lines(report.comparison, report.engine)
    if report.bench is not None:
        times = report.bench
        lines.append(
            f"{report.engine}: {times.runs} runs, median {_duration(times.median)}, "
            f"min {_duration(times.min)}, max {_duration(times.max)}"
        )
    return "\n".join(lines) + "\n"


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
        return [f"{engine} agrees with {comparison.reference}, {how}"]
    how = "bit for bit" if comparison.exact else "beyond rounding"
    lines = [f"{engine} DIFFERS from {comparison.reference} ({how}):"]
    lines += [f"  {difference}" for difference in comparison.differences]
    return [*lines, *([f"  {comparison.blame}"] if comparison.blame else [])]


def _duration(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3f} {unit}"
    return f"{seconds * 1e6:.3f} µs"
