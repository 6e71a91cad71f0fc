"""The options of `stripe-run`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from stripe.cli.arguments.compile import PassDiffSpec
from stripe.cli.option import exclusive, option
from stripe.cli.usage import UsageError, file_name, number
from stripe.frontends.frontend import ReadOptions
from stripe.frontends.registry import BUILTIN, references

BUILTIN_REFERENCES = tuple(
    dict.fromkeys(name for front_end in BUILTIN.values() for name in front_end.references)
)

_running = partial(option, group="running")


@dataclass(frozen=True, kw_only=True)
class RunSpec(PassDiffSpec):
    """`stripe-run`: compiles a tensor program as `stripe-opt` does, runs it on data, and compares and times it."""

    prog = "stripe-run"
    summary = "Runs tensor programs, compares their results and times them."
    usage = "stripe-run INPUT [options]"
    epilog = """\
examples:
  stripe-run examples/conv_bias_relu.tile
  stripe-run examples/conv_bias_relu.tile --config dsp_conv --engine c --compare interp
  stripe-run examples/matmul.tile --data inputs.npz --out results.npz --engine c --bench 20

--compare interp runs the program as it was before the passes in the interpreter, so that it judges passes and engine;
--compare numpy evaluates the Tile source by itself, so that it judges the lowering too.

exit status: 0 success, 1 an error in the input, 2 wrong usage or configuration, 3 the comparison failed,
70 a fault of ours (a line on stderr says where the crash reproducer lies)
"""
    command = "run"

    engine: str = _running(
        "--engine", metavar="ENGINE", default="interp", complete="engines",
        help="interp (the interpreter, the default), c (emitted C), or with options 'c{openmp=true}'",
    )  # fmt: skip
    threads: int | None = _running(
        "--threads", metavar="N", read=number(1),
        help="threads of the engine c: more than one run blocks tagged thread or parallel",
    )  # fmt: skip
    cc: str | None = _running(
        "--cc", metavar="COMPILER", replayed=False, help="C compiler of the engine c (default: cc, gcc or clang)"
    )  # fmt: skip
    cflags: str | None = _running(
        "--cflags", metavar="FLAGS", replayed=False, help="more flags for it, after -O3 and that for this processor"
    )  # fmt: skip
    list_engines: str | None = _running(
        "--list-engines", metavar="NAME", optional=True, complete="engines", replayed=False,
        help="list the engines with their options, or that of one, and end",
    )  # fmt: skip
    data: str | None = _running(
        "--data", metavar="FILE.npz", read=file_name, complete="files", content=True,
        help="inputs, one array for each by its name",
    )  # fmt: skip
    random: int | None = _running(
        "--random", metavar="SEED", read=number(0), help="inputs of small random integers (default: 0)"
    )
    compare: str | None = _running(
        "--compare", choices=("interp", *BUILTIN_REFERENCES), more=references, complete="references",
        help="compare the results with the program before the passes, or with a reference of its language",
    )  # fmt: skip
    compare_layers: bool = _running(
        "--compare-layers",
        help="compare the value of each layer of a network as well, in order: the first that differs comes first",
    )
    bench: int | None = _running(
        "--bench", metavar="N", read=number(1),
        help="run N times more and show times and speeds, of the engine c beside those that this machine reaches",
    )  # fmt: skip
    out: str | None = _running(
        "--out",
        metavar="FILE.npz",
        read=file_name,
        complete="files",
        replayed=False,
        help="write the outputs",
    )
    json: str | None = _running(
        "--json", metavar="FILE", read=file_name, complete="files", replayed=False,
        help="write the report as JSON (- for standard output, and nothing else there)",
    )  # fmt: skip

    def question(self) -> bool:
        return self.list_engines is not None or super().question()

    def engine_options(self) -> dict[str, object]:
        """The options of the engine that stand beside its name."""
        given = {"threads": self.threads, "cc": self.cc, "cflags": self.cflags}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def reading(self) -> ReadOptions:
        return replace(super().reading, layers=self.compare_layers)

    def check(self) -> None:
        if self.compare_layers and self.compare is None:
            raise UsageError("--compare-layers has nothing to compare with", "add --compare onnx")
        exclusive(
            self.data is not None and self.random is not None,
            "--data and --random are two sources for the same inputs",
            "give one of them",
        )
