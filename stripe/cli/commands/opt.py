"""`stripe-opt`: compiles all parts of an input, and writes the product when none has an error."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, TypeAlias

from stripe.cli.arguments.opt import OptSpec
from stripe.cli.compiling import (
    load_program,
    policy,
    read_job,
    require_fit_for_code,
    run_passes,
    to_stderr,
    warn_of_idle_parameters,
    warn_of_idle_policy,
)
from stripe.cli.input import load_source, read_source, split_source, suffixes
from stripe.cli.job import Job
from stripe.cli.streams import write_text
from stripe.cli.usage import UsageError
from stripe.exit_status import INPUT_ERROR, OK
from stripe.frontends.frontend import ReadOptions, Source
from stripe.frontends.registry import by_suffix, find_front_end
from stripe.ir import ConfigError, Program, StripeError, print_program
from stripe.output import check_folder, write_folder
from stripe.pipeline.checks.claims import require_claims

if TYPE_CHECKING:
    from stripe.cli.commands.expectations import Message
    from stripe.emit.targets import FolderTarget, SourceTarget, Target

Product: TypeAlias = "str | Mapping[str, bytes]"
"""A text, or the contents of the files of a folder by name."""


def perform(job: Job, spec: OptSpec) -> int:
    """Compiles; gives the exit status."""
    # None for Stripe itself, so that most runs load no target
    target = None if spec.emit == "stripe" else _parsed(spec.emit)
    if spec.verify_against is not None and _source_target(target) is not None:
        reason = f"--verify-against compares results, and --emit {spec.emit} has none"
        raise UsageError(reason, "leave one out")
    folder = _folder_target(target)
    if folder is not None:
        _require_folder(spec, folder)
    checked = target is not None and target.unchecked and spec.verify != "none"
    warn_of_idle_policy(spec, judged=checked or spec.verify_against is not None)
    source = read_job(job, spec)
    against = None if spec.verify_against is None else _other_program(job, spec.verify_against)
    products: list[Product] = []
    status = OK
    for part in split_source(source) if spec.split_input_file else (source,):
        job.source = part
        try:
            product = (_announced if spec.verify_diagnostics else _product)(job, spec, target, part, against)
        except StripeError as error:
            if not spec.split_input_file:
                raise
            print(error, file=sys.stderr)
            status = max(status, error.exit_status)
            continue
        if product is None:
            status = max(status, INPUT_ERROR)
        elif product:
            products.append(product)
    if status == OK and products:
        warn_of_idle_parameters(job)
        _write(products, target, spec)
    return status


def _write(products: Sequence[Product], target: Target | None, spec: OptSpec) -> None:
    """Writes the products, which are one folder or texts."""
    texts = [product for product in products if isinstance(product, str)]
    if texts:
        joined = (target or _parsed("stripe")).join(texts) if len(texts) > 1 else texts[0]
        write_text(spec.output, joined)
        return
    folder = _folder_target(target)
    assert folder is not None
    assert spec.output is not None
    for files in products:
        assert not isinstance(files, str)
        write_folder(spec.output, files, folder.mark, folder.owned, folder.signature)


def _folder_target(target: Target | None) -> FolderTarget | None:
    """The target, if it makes folders."""
    if target is None:
        return None
    from stripe.emit.targets import FolderTarget

    return target if isinstance(target, FolderTarget) else None


def _require_folder(spec: OptSpec, folder: FolderTarget) -> None:
    """Raises UsageError for options that do not fit a product that is a folder, ConfigError for a folder with other
    contents: before long work."""
    if spec.output is None or spec.output == "-":
        raise UsageError(f"--emit {spec.emit} writes a folder", "name it with -o DIR")
    for option, given in (
        ("--split-input-file", spec.split_input_file),
        ("--verify-diagnostics", spec.verify_diagnostics),
    ):
        if given:
            raise UsageError(
                f"--emit {spec.emit} writes one folder, and {option} takes several parts", "leave one out"
            )
    check_folder(spec.output, folder.mark, folder.signature)


def _parsed(spelled: str) -> Target:
    from stripe.emit.targets import parse_target

    return parse_target(spelled)


def _source_target(target: Target | None) -> SourceTarget | None:
    """The target, if it shows Tile sources."""
    if target is None:
        return None
    from stripe.emit.targets import SourceTarget

    return target if isinstance(target, SourceTarget) else None


def _announced(
    job: Job, spec: OptSpec, target: Target | None, source: Source, against: Source | None
) -> Product | None:
    """`--verify-diagnostics`: the product of one part, empty for one with the errors that its comments announce, and
    None when its messages differ.
    """
    from stripe.cli.commands.expectations import error_messages, unmet  # a testing mode

    messages: list[Message] = []
    product: Product = ""
    try:
        product = _product(job, spec, target, source, against, messages)
    except StripeError as error:
        messages += error_messages(error, source)
    problems = unmet(source, messages)
    for problem in problems:
        print(problem, file=sys.stderr)
    return None if problems else product


def _product(
    job: Job,
    spec: OptSpec,
    target: Target | None,
    source: Source,
    against: Source | None,
    messages: list[Message] | None = None,
) -> Product:
    """The product of one part; warnings and remarks are added to `messages` when it is a list."""
    if (shown := _source_target(target)) is not None:
        return _source_form(job, spec, shown, source)
    loaded, reading = load_program(job, source, spec, quiet=messages is not None)
    collector = None
    if messages is not None:
        from stripe.cli.commands.expectations import RemarkCollector, error_messages

        for warning in loaded.warnings:
            messages += error_messages(warning, source)
        collector = RemarkCollector(loaded, messages)
    unchecked = target is not None and target.unchecked
    if unchecked:
        require_fit_for_code(loaded.program, source, spec)
    result = run_passes(job, spec, loaded.program, reading, collector, unchecked=unchecked)
    if against is not None:
        _compare(job, against, spec, result)
    if target is None:
        return print_program(result)
    from stripe.emit.targets import ProgramTarget

    if (folder := _folder_target(target)) is not None:
        return folder.files(result, to_stderr if spec.remarks else None)
    assert isinstance(target, ProgramTarget)
    return target.emit(result)


def _source_form(job: Job, spec: OptSpec, target: SourceTarget, source: Source) -> str:
    """The source in a form of Tile. Raises UsageError for passes, and ConfigError for another language."""
    name = target.target_name
    if job.entries:
        raise UsageError(f"--emit {name} shows the source, and passes run after it", "leave the passes out")
    if source.language == "tile":
        return target.emit_source(source.text, source.name)
    front_end = find_front_end(source.language)
    if not front_end.as_tile:
        reason = f"--emit {name} shows Tile, and the input is {source.language.capitalize()}"
        raise ConfigError(reason, path=source.name, hint="give a .tile file")
    return target.emit_source(front_end.tile(source, spec.reading), source.name)


def _other_program(job: Job, path: str) -> Source:
    """The source of `--verify-against`, whose language its name tells. Raises ConfigError for other names."""
    if path != "-" and by_suffix(PurePath(path).suffix) is None:
        raise ConfigError("its language is unknown", path=path, hint=f"end its name in {suffixes()}")
    source = read_source(path, recorded=job.contents.get("verify_against"))
    job.contents["verify_against"] = source.data
    return source


def _compare(job: Job, against: Source, spec: OptSpec, result: Program) -> None:
    """Raises ProofError where the result differs from the program in `against`, StripeError where that one is wrong or
    where one of them is not at the stage that it claims on the machine.

    A Tile program takes the same --shape as the input.
    """
    from stripe.pipeline.checks.proof import require_equal  # the prover, where a proof is asked for

    if job.source is not None and against.language == job.source.language:
        options = spec.reading
    else:
        takes_shapes = "shapes" in find_front_end(against.language).takes
        options = ReadOptions(spec.shape if takes_shapes else ())
    reference = load_source(against, options)
    require_claims(reference.program, job.hardware, reference.place)
    require_claims(result, job.hardware)
    require_equal(reference.program, against.name, result, to_stderr, policy(spec))
