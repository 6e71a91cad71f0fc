"""From options to a pipeline: the passes, the machine, and those who watch them."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stripe.cli.guard import CrashRecord
from stripe.cli.options import InputOptions, PipelineOptions
from stripe.cli.sources import Loaded
from stripe.ir import ConfigError, Program, closest

if TYPE_CHECKING:
    from stripe.hw.schema import HardwareModel
    from stripe.pipeline.instrument import Instrument, PassEntry
    from stripe.pipeline.timing import Timing

Scalar = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Setup:
    """What the configuration of a run comes to: read before the input, so that it is refused before long work."""

    entries: tuple[PassEntry, ...] = ()
    hardware: HardwareModel | None = None


def set_up(options: PipelineOptions) -> Setup:
    """Reads the hardware model and the pass lists. Raises ConfigError."""
    if not options.steps and options.hardware is None:
        if options.defines:
            raise ConfigError(
                f"-D {options.defines[0]} has nothing to set", hint="give --hw or --config with it"
            )
        return Setup()
    from stripe.config.files import find_file
    from stripe.pipeline.passlist import names_of

    defines = parse_defines(options.defines)
    paths = {
        step.value: find_file(step.value, "optconfigs") for step in options.steps if step.kind == "config"
    }
    names = {value: names_of(path) for value, path in paths.items()} if defines else {}
    hardware = _hardware(options, list(paths.values()), defines, frozenset[str]().union(*names.values()))
    machine = hardware.parameters if hardware else {}
    known = frozenset(machine).union(*names.values())
    entries: list[PassEntry] = []
    for step in options.steps:
        if step.kind == "passes":
            entries += _spelled(step.value)
        else:
            entries += _listed(paths[step.value], hardware, defines, known)
    _check_names(options.print_after, entries)
    return Setup(tuple(entries), hardware)


def parse_defines(texts: tuple[str, ...]) -> dict[str, Scalar]:
    """`-D NAME=VALUE` as texts; what they mean depends on the parameter. Raises ConfigError."""
    from stripe.config.parameters import parse_define

    return dict(parse_define(text) for text in texts)


def _hardware(
    options: PipelineOptions, lists: list[Path], defines: Mapping[str, Scalar], elsewhere: frozenset[str]
) -> HardwareModel | None:
    """The model that `--hw` names, else the one that the pass lists are for."""
    from stripe.config.files import is_path
    from stripe.hw.load import load_hardware
    from stripe.pipeline.passlist import hardware_of, located_hardware

    if options.hardware is not None:
        return load_hardware(options.hardware, defines, elsewhere)
    named = {
        located_hardware(model, path): path for path in lists if (model := hardware_of(path)) is not None
    }
    if not named:
        return None
    if len(named) > 1:
        listed = ", ".join(sorted(named))
        raise ConfigError(f"the pass lists are for different machines: {listed}", hint="choose one with --hw")
    ((name, path),) = named.items()
    if is_path(name) and not Path(name).exists():
        reason, hint = f"there is no file '{name}'", "a path starts at the folder of the pass list"
        raise ConfigError(reason, path=str(path), where="$.hardware", hint=hint)
    try:
        return load_hardware(name, defines, elsewhere)
    except ConfigError as error:
        if not error.place:
            error.path, error.where = str(path), "$.hardware"
        raise


def _spelled(text: str) -> tuple[PassEntry, ...]:
    from stripe.pipeline.passlist import parse_passes

    return parse_passes(text)


def _listed(
    path: Path, hardware: HardwareModel | None, defines: Mapping[str, Scalar], known: frozenset[str]
) -> tuple[PassEntry, ...]:
    """The entries of a pass list, rendered with the machine's parameters and its own in scope."""
    from stripe.pipeline.passlist import load_pass_list, parameters_of

    machine = hardware.parameters if hardware else {}
    return load_pass_list(path, {**machine, **parameters_of(path, defines, known)}).entries


def _check_names(names: tuple[str, ...], entries: list[PassEntry]) -> None:
    """Every name after which the program is to be shown is that of an entry or of a pass."""
    known = sorted({name for entry in entries for name in (entry.name, entry.pass_.pass_name)})
    for name in names:
        if name not in known:
            near = closest(name, known)
            hint = f"did you mean '{near}'?" if near else f"there are {', '.join(known) or 'none'}"
            raise ConfigError(f"--print-ir-after: no pass '{name}' runs here", hint=hint)


def run_passes(
    loaded: Loaded,
    setup: Setup,
    options: PipelineOptions,
    record: CrashRecord,
    listener: Instrument | None = None,
) -> Program:
    """The program after all passes, watched as the options say; `listener` watches as well."""
    program = loaded.program
    watched = options.dump_dir or options.verify_roundtrip or options.timing or options.verify == "exact"
    if not (setup.entries or watched):
        return program
    from stripe.pipeline.manager import PassManager

    instruments, timing = _instruments(setup, options, record)
    instruments += [listener] if listener is not None else []
    started = time.perf_counter()
    try:
        return PassManager(setup.entries, setup.hardware, tuple(instruments)).run(program)
    finally:
        if timing is not None:
            watching = time.perf_counter() - started - sum(seconds for _, seconds in timing.seconds)
            timing.seconds.insert(0, ("reading and lowering the input", loaded.seconds))
            timing.seconds.append(("checks, dumps, prints", max(0.0, watching)))
            to_stderr(timing.table() + "\n")


def _instruments(
    setup: Setup, options: PipelineOptions, record: CrashRecord
) -> tuple[list[Instrument], Timing | None]:
    """The clients in the order in which they see a result: measured and shown first, so that a bad one is seen too."""
    from stripe.pipeline import printing, verification
    from stripe.pipeline.reproducer import CrashReproducer, Reproducer
    from stripe.pipeline.timing import Timing

    timing = Timing() if options.timing else None
    found: list[Instrument] = [timing] if timing else []
    if options.dump_dir is not None:
        found.append(printing.Dumps(Path(options.dump_dir), dump_documents(setup)))
    if options.print_all or options.print_after:
        found.append(printing.PrintAfter(to_stderr, None if options.print_all else options.print_after))
    if options.remarks:
        found.append(printing.Remarks(to_stderr))
    if sys.stderr.isatty():
        found.append(printing.Progress(to_stderr, len(setup.entries)))
    if options.verify_roundtrip:
        found.append(verification.RoundTripCheck())
    if options.verify != "none":
        found.append(verification.StructureCheck(setup.hardware))
    if options.verify == "exact":
        from stripe.pipeline.proof import ExactCheck

        found.append(ExactCheck(to_stderr))
    template = Reproducer(
        error="", input="", input_format="stripe", command=record.command, passes=record.passes,
        hardware=record.hardware, verify=record.verify, verify_roundtrip=record.verify_roundtrip, emit=record.emit,
    )  # fmt: skip
    found.append(CrashReproducer(template, record.folder))
    return found, timing


def dump_documents(setup: Setup) -> dict[str, object]:
    """What `--dump-dir` holds beside programs: the pass list as it runs, and the rendered model."""
    from stripe.pipeline.passlist import entry_json

    documents: dict[str, object] = {"config": {"passes": [entry_json(entry) for entry in setup.entries]}}
    if setup.hardware is not None:
        documents["hw"] = setup.hardware.model_dump(mode="json", exclude_defaults=True)
    return documents


def to_stderr(text: str) -> None:
    """What is not the product goes there."""
    sys.stderr.write(text)


def remember(record: CrashRecord, setup: Setup, options: PipelineOptions, given: InputOptions) -> None:
    """Notes for a crash reproducer what the run depends on."""
    record.shapes = given.shapes
    record.verify = options.verify
    record.verify_roundtrip = options.verify_roundtrip
    record.folder = None if options.dump_dir is None else Path(options.dump_dir)
    if setup.entries:
        from stripe.pipeline.passlist import entry_json

        record.passes = tuple(entry_json(entry) for entry in setup.entries)
    if setup.hardware is not None:
        record.hardware = setup.hardware.model_dump(mode="json", exclude_defaults=True)
