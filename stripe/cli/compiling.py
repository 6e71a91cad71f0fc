"""From a command line to a program after its passes: the configuration, the input, and the watchers of the passes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stripe.cli.arguments.compile import CompileSpec, PassDiffSpec
from stripe.cli.input import load_source, read_source
from stripe.cli.job import Job
from stripe.frontends.frontend import Loaded, Source
from stripe.frontends.registry import find_front_end
from stripe.ir import ConfigError, Program, print_program
from stripe.pipeline.checks.claims import require_claims
from stripe.verify.policy import Policy

if TYPE_CHECKING:
    from stripe.hw.schema import HardwareModel
    from stripe.pipeline.instrument import Instrument


def read_job(job: Job, spec: CompileSpec) -> Source:
    """Reads passes, machine and input into `job`, in this order, since the input may take long; gives the input. A
    replayed job has all three.

    Raises UsageError, and StripeError for errors in configuration and input.
    """
    if job.source is None:
        if spec.pass_sources or spec.hw is not None:
            from stripe.cli.setup import parse_defines, setup_of  # pydantic and Jinja: where they are needed

            job.entries, job.hardware = setup_of(spec)
            if spec.define and job.hardware is not None:
                from stripe.pipeline.effects import GivenParameters

                given = parse_defines(spec.define)
                job.parameters = GivenParameters(spec.pass_sources, spec.hw, given, job.entries, job.hardware)
        elif spec.define:
            raise ConfigError(f"-D {spec.define[0]} has nothing to set", hint="give --hw or --config with it")
        job.source = read_source(spec.input, spec.input_format)
    return job.source


def load_program(job: Job, source: Source, spec: CompileSpec, *, quiet: bool = False) -> tuple[Loaded, float]:
    """The program of an input, and the seconds that reading took; warnings go to stderr unless `quiet`. Raises
    StripeError where the program is not at the stage that it claims."""
    started = time.perf_counter()
    loaded = load_source(source, spec.reading)
    if spec.verify != "none":
        require_claims(loaded.program, job.hardware, loaded.place)
    for warning in () if quiet else loaded.warnings:
        print(warning, file=sys.stderr)
    return loaded, time.perf_counter() - started


def require_fit_for_code(program: Program, source: Source, spec: CompileSpec) -> None:
    """Raises StripeError where emitted code, which checks nothing, could leave a tensor; `--verify none` only warns."""
    if spec.verify == "none":
        print(
            "warning: --verify none: accesses out of bounds are not looked for, and emitted code does not check them",
            file=sys.stderr,
        )
    elif spec.verify == "structural" and find_front_end(source.language).out_of_bounds:
        from stripe.pipeline.checks.proof import require_sound  # at the level `exact` an instrument does

        require_sound(program, to_stderr, source.name, policy(spec))


def run_passes(
    job: Job,
    spec: CompileSpec,
    program: Program,
    reading: float = 0.0,
    listener: Instrument | None = None,
    *,
    unchecked: bool = False,
) -> Program:
    """The program after all passes, watched as the options say; `listener` watches as well. Of a program that becomes
    code without checks (`unchecked`) the accesses are checked once more."""
    watched = spec.dump_dir or spec.verify_roundtrip or spec.timing or spec.verify == "exact"
    if not (job.entries or watched):
        return program
    from stripe.pipeline.checks.levels import checks_of
    from stripe.pipeline.fault import InternalFault
    from stripe.pipeline.manager import PassManager
    from stripe.pipeline.timing import Timing

    if spec.tune is not None and job.entries:
        from stripe.pipeline.tuning import tuned  # the C compiler, where it is asked for

        job.entries = tuned(
            job.entries, job.hardware, program, spec.tune,
            (lambda line: to_stderr(f"remark: {line}\n")) if spec.remarks else None,
        )  # fmt: skip
    timing = Timing(reading) if spec.timing else None
    instruments: list[Instrument] = [timing] if timing else []
    instruments += _watchers(job, spec)
    instruments += [listener] if listener is not None else []
    name = job.source.name if job.source is not None else "the input"
    code_of = job.entries if unchecked else None
    instruments += checks_of(spec.verify, job.hardware, policy(spec), to_stderr, name, code_of)
    try:
        machine = job.hardware if job.parameters is None else job.parameters.traced()
        return PassManager(job.entries, machine, tuple(instruments)).run(program)
    except InternalFault:
        # The reproducer of a faulty pass holds the program that the first pass was given.
        job.source = Source(print_program(program).encode(), "input", "stripe")
        job.spec = replace(spec, shape=())
        raise
    finally:
        if timing is not None:
            to_stderr(timing.table() + "\n")


def warn_of_idle_parameters(job: Job, result: Callable[[HardwareModel], object] | None = None) -> None:
    """Warns of parameters given with `-D` that change neither the work of the passes nor `result`, which is computed
    from a machine."""
    for text in job.parameters.without_effect(result) if job.parameters is not None else ():
        to_stderr(f"warning: {text}\n")


def _watchers(job: Job, spec: CompileSpec) -> Sequence[Instrument]:
    """The clients that see a result before it is checked, so that a bad one shows."""
    from stripe.pipeline import printing
    from stripe.pipeline.checks.structure import RoundTripCheck

    found: list[Instrument] = []
    if spec.dump_dir is not None:
        from stripe.pipeline.dumps import Dumps

        found.append(Dumps(Path(spec.dump_dir), job.entries, job.hardware))
    shown = printing.Shown(
        before=spec.print_ir_before,
        after=spec.print_ir_after,
        after_all=spec.print_ir_after_all,
        after_change=spec.print_ir_after_change,
        diff=isinstance(spec, PassDiffSpec) and spec.diff,
    )
    if shown.any():
        found.append(printing.PrintPrograms(to_stderr, shown))
    found.append(printing.Warnings(to_stderr))
    if spec.remarks:
        found.append(printing.Remarks(to_stderr, job.hardware))
    if sys.stderr.isatty():
        found.append(printing.Progress(to_stderr, len(job.entries)))
    if spec.verify_roundtrip:
        found.append(RoundTripCheck())
    return found


def policy(spec: CompileSpec) -> Policy:
    """The answers of proofs that the user accepts."""
    return Policy.of(spec.assume, spec.verify_unknown)


def warn_of_idle_policy(spec: CompileSpec, *, judged: bool) -> None:
    """Warns of options about the answers of proofs where there are none: neither `--verify exact` nor another check
    that is `judged` by them."""
    if spec.verify == "exact" or judged:
        return
    for given, option in (
        (spec.assume != "all", "--assume"),
        (spec.verify_unknown != "run", "--verify-unknown"),
    ):
        if given:
            to_stderr(
                f"warning: {option} has no effect, for nothing is proved: give --verify exact with it\n"
            )


def to_stderr(text: str) -> None:
    """Writes messages, which are not the product."""
    sys.stderr.write(text)
