"""The options of `stripe-sweep` and its subcommands."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from stripe.cli.option import Spec, exclusive, option
from stripe.cli.usage import UsageError, file_name, number, suggestion

_STATUS = """\
exit status: 0 success, 1 an error in the input, 2 wrong usage or configuration, 3 a best point that fails its check,
70 a fault of ours (a line on stderr says where the crash reproducer lies)
"""


def _seconds(text: str) -> float:
    """An argparse type for a time of more than 0 s."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is no time of more than 0 s")
    return found


_running = partial(option, group="running", replayed=False)


class SubcommandSpec(Spec):
    """A subcommand of `stripe-sweep`; a shell completes all of them at once."""

    @classmethod
    def family(cls) -> tuple[type[Spec], ...]:
        return SweepSpec.family()


@dataclass(frozen=True, kw_only=True)
class RunSweepSpec(SubcommandSpec):
    """`stripe-sweep run`: evaluates the points of a sweep file."""

    prog = "stripe-sweep run"
    summary = "Evaluates design points of a machine over networks: each is compiled and simulated."
    usage = "stripe-sweep run FILE --out DIR [options]"
    epilog = f"""\
examples:
  stripe-sweep run examples/sweeps/dsp_conv.json.j2 --out results
  stripe-sweep run examples/sweeps/dsp_conv.json.j2 --out results --resume --jobs 8
  stripe-sweep run examples/sweeps/dsp_conv.json.j2 --dry-run

DIR gets sweep.sqlite, with a row for each point and workload, as the rows come. A run that was
stopped at any moment goes on with --resume; it repeats no point that has its rows.
'stripe-opt --schema sweep' prints the JSON Schema of FILE.

{_STATUS}"""
    command = "sweep_run"

    input: str | None = option(
        group="input", metavar="FILE", help="sweep file, a .json.j2 or .json", complete="files"
    )
    define: tuple[str, ...] = option(
        "-D", group="input", metavar="NAME=VALUE", many=True, help="parameter of the sweep file"
    )
    out: str | None = _running(
        "--out", metavar="DIR", read=file_name, complete="files", help="folder of the results"
    )
    resume: bool = _running("--resume", help="go on with the results in DIR")
    jobs: int | None = _running(
        "--jobs", metavar="N", read=number(1), help="evaluate in N processes (default: one a core)"
    )
    scheduler: str | None = _running(
        "--scheduler", metavar="ADDRESS", read=str,
        help="evaluate on the Dask cluster whose scheduler has this address, as tcp://10.0.0.1:8786",
    )  # fmt: skip
    batch: int = _running(
        "--batch", metavar="N", read=number(1), default=1, help="points that a process takes at a time (default: 1)"
    )  # fmt: skip
    point_timeout: float = _running(
        "--point-timeout", metavar="SECONDS", read=_seconds, default=600.0,
        help="time after which a point is stopped (default: 600)",
    )  # fmt: skip
    limit: int | None = _running("--limit", metavar="N", read=number(1), help="stop after N points")
    dry_run: bool = _running("--dry-run", help="count the points and show ten, without evaluating them")
    no_cache: bool = _running("--no-cache", help="neither use nor keep results of other sweeps")

    def check(self) -> None:
        exclusive(self.input is None, "no FILE is given", "name a sweep file")
        exclusive(
            self.scheduler is not None and self.jobs is not None,
            "--jobs counts processes of this machine, and --scheduler evaluates elsewhere",
            "leave one of them out",
        )
        exclusive(self.out is None and not self.dry_run, "no --out is given", "name a folder with --out DIR")


_store = partial(
    option, group="input", metavar="DIR", help="folder of the results of 'stripe-sweep run'", complete="files"
)


@dataclass(frozen=True, kw_only=True)
class StoreSpec(SubcommandSpec):
    """A subcommand on the results of a sweep."""

    input: str | None = _store()

    def check(self) -> None:
        exclusive(self.input is None, "no DIR is given", "name the folder that 'stripe-sweep run --out' made")


@dataclass(frozen=True, kw_only=True)
class BestSpec(StoreSpec):
    """`stripe-sweep best`: prints the best point as options, or the front as a table."""

    prog = "stripe-sweep best"
    summary = "Prints the best point of a sweep as options of stripe-opt, stripe-run and stripe-sim."
    usage = "stripe-sweep best DIR [--objective METRIC]"
    epilog = f"""\
examples:
  stripe-sweep best results --objective edp
  stripe-sim net.tile $(stripe-sweep best results --objective latency_us)
  stripe-sweep best results --front

{_STATUS}"""
    command = "sweep_best"

    objective: str | None = option(
        "--objective", group="choosing", metavar="METRIC", read=str,
        help="metric to make smallest (default: the first objective of the sweep)",
    )  # fmt: skip
    largest: bool = option("--largest", group="choosing", help="make it largest instead")
    front: bool = option("--front", group="choosing", help="a table of all points that no other dominates")

    def check(self) -> None:
        super().check()
        exclusive(
            self.front and (self.objective is not None or self.largest),
            "--front is that of all objectives",
            "leave --objective and --largest out",
        )


@dataclass(frozen=True, kw_only=True)
class ExportSpec(StoreSpec):
    """`stripe-sweep export`: writes the rows as one table."""

    prog = "stripe-sweep export"
    summary = "Writes the rows of a sweep as one tidy table."
    usage = "stripe-sweep export DIR -o FILE"
    epilog = f"""\
examples:
  stripe-sweep export results -o rows.csv
  stripe-sweep export results -o rows.parquet

{_STATUS}"""
    command = "sweep_export"

    output: str | None = option(
        "-o", group="writing", metavar="FILE", read=file_name, complete="files",
        help="FILE.csv or FILE.parquet; - or nothing: CSV on standard output",
    )  # fmt: skip

    def check(self) -> None:
        super().check()
        wrong = self.output not in (None, "-") and not self.output.lower().endswith((".csv", ".parquet"))
        exclusive(wrong, f"'{self.output}' tells no format", "name a file FILE.csv or FILE.parquet")


@dataclass(frozen=True, kw_only=True)
class ReportSpec(StoreSpec):
    """`stripe-sweep report`: the results as one page."""

    prog = "stripe-sweep report"
    summary = "Writes one HTML page that works offline: Pareto front, sensitivity, layers, doubts."
    usage = "stripe-sweep report DIR [-o FILE.html] [--pictures FOLDER]"
    epilog = f"""\
examples:
  stripe-sweep report results
  stripe-sweep report results --pictures figures --format png

{_STATUS}"""
    command = "sweep_report"

    output: str | None = option(
        "-o", group="writing", metavar="FILE", read=file_name, complete="files",
        help="write FILE instead of DIR/report.html",
    )  # fmt: skip
    pictures: str | None = option(
        "--pictures", group="writing", metavar="FOLDER", read=file_name, complete="files",
        help="write the pictures as files into FOLDER, too",
    )  # fmt: skip
    format: str = option(
        "--format", group="writing", choices=("svg", "png"), default="svg", help="of the pictures (default: svg)",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class VerifySweepSpec(StoreSpec):
    """`stripe-sweep verify`: proves the programs of the best points."""

    prog = "stripe-sweep verify"
    summary = "Compiles the best points again, proves each pass, simulates, and runs small programs."
    usage = "stripe-sweep verify DIR [--best N]"
    epilog = f"""\
example:
  stripe-sweep verify results --best 5

{_STATUS}"""
    command = "sweep_verify"

    best: int = option(
        "--best", group="choosing", metavar="N", read=number(1), default=1,
        help="the N best points by each objective (default: 1)",
    )  # fmt: skip


SUBCOMMANDS: dict[str, type[SubcommandSpec]] = {
    "run": RunSweepSpec, "best": BestSpec, "export": ExportSpec, "report": ReportSpec, "verify": VerifySweepSpec,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SweepSpec(Spec):
    """`stripe-sweep`, without a subcommand."""

    prog = "stripe-sweep"
    summary = "Sweeps parameters of hardware models and pass lists over networks."
    usage = "stripe-sweep run|best|export|report|verify … [options]"
    epilog = f"""\
subcommands (each has its own --help):
  run     evaluate the points of a sweep file
  best    print the best point as options, or the front as a table
  export  write the rows as CSV or Parquet
  report  write a page with pictures
  verify  prove the programs of the best points

{_STATUS}"""
    command = "answers"

    subcommand: str | None = option(
        group="input", metavar="SUBCOMMAND", help="run, best, export, report or verify",
        complete=tuple(SUBCOMMANDS),
    )  # fmt: skip

    @classmethod
    def family(cls) -> tuple[type[Spec], ...]:
        return (SweepSpec, *SUBCOMMANDS.values())

    def check(self) -> None:
        known = ", ".join(SUBCOMMANDS)
        exclusive(self.subcommand is None, "no subcommand is given", f"give one of {known}")
        hint = suggestion(self.subcommand or "", SUBCOMMANDS, f"there are {known}")
        raise UsageError(f"unknown subcommand '{self.subcommand}'", hint)


def subcommand(words: Sequence[str]) -> tuple[type[Spec], Sequence[str]]:
    """The description of the subcommand that a command line begins with, and the words after it."""
    found = SUBCOMMANDS.get(words[0]) if words else None
    return (found, words[1:]) if found else (SweepSpec, words)
