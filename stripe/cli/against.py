"""`--verify-against FILE`: the result has to compute what another program does, such as one written by hand."""

from __future__ import annotations

from dataclasses import replace

from stripe.cli.compile import to_stderr
from stripe.cli.job import Job
from stripe.cli.sources import Source, load_program, read_source
from stripe.ir import ConfigError, Program


def reference(path: str, job: Job) -> Source:
    """The text of the other program, whose language its name tells. Raises ConfigError for other names."""
    if path != "-" and not path.lower().endswith((".tile", ".stripe")):
        raise ConfigError("its language is unknown", path=path, hint="end its name in .tile or .stripe")
    return read_source(replace(job.given, path=path, format=None))


def check(job: Job, source: Source, result: Program) -> None:
    """Raises ProofError where the result differs from the program in `source`, StripeError where that one is wrong.

    A Tile program takes the same --shape as the input.
    """
    from stripe.pipeline.proof import check_against

    given = job.given if source.format == "tile" else replace(job.given, shapes=())
    check_against(load_program(source, given).program, source.name, result, to_stderr)
