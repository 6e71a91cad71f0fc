"""What all commands do with an input: read the configuration, then the input, and run the passes over it."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stripe.cli.compile import Setup, remember, run_passes, set_up
from stripe.cli.guard import CrashRecord
from stripe.cli.options import InputOptions, PipelineOptions, input_options, pipeline_options
from stripe.cli.sources import Loaded, Source, load_program, read_source
from stripe.cli.usage import UsageError
from stripe.ir import Program

if TYPE_CHECKING:
    from stripe.pipeline.instrument import Instrument


@dataclass(frozen=True, slots=True)
class Job:
    """One input with its passes and its machine, and the record that can replay it, should the run crash."""

    source: Source
    given: InputOptions
    options: PipelineOptions
    setup: Setup
    record: CrashRecord

    def __post_init__(self) -> None:
        remember(self.record, self.setup, self.options, self.given)
        self.record.source = self.source

    def part(self, source: Source) -> Job:
        """The same with a part of the input."""
        return replace(self, source=source)

    def load(self, *, quiet: bool = False) -> Loaded:
        """The program of the input; what is to be told about its text goes to stderr, unless `quiet`."""
        loaded = load_program(self.source, self.given)
        for warning in () if quiet else loaded.warnings:
            print(warning, file=sys.stderr)
        return loaded

    def run(self, loaded: Loaded, listener: Instrument | None = None) -> Program:
        """The program after all passes."""
        return run_passes(loaded, self.setup, self.options, self.record, listener)


def begin(namespace: argparse.Namespace, record: CrashRecord) -> Job:
    """The job of a command line. The configuration is read first, so that it is refused before long work.

    Raises UsageError, and StripeError for what is wrong with configuration and input.
    """
    given = input_options(namespace)
    options = pipeline_options(namespace)
    if given.path is None:
        raise UsageError("no INPUT is given", "name a .tile or .stripe file, or - for standard input")
    setup = set_up(options)
    return Job(read_source(given), given, options, setup, record)
