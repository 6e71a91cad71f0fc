"""Passes over a program, machines, proofs of equality, and the forms in which a program is written."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from typing_extensions import override

from stripe.api.arguments import require
from stripe.api.reading import require_structure
from stripe.config.files import SUFFIXES, shipped
from stripe.config.model import Scalar
from stripe.garbage import collected_seldom
from stripe.hw.schema import HardwareModel
from stripe.ir import ConfigError, Program
from stripe.ir.errors import did_you_mean
from stripe.ir.frozen import replace
from stripe.passes.base import Pass, Remark
from stripe.passes.registry import find_pass, pass_names
from stripe.pipeline.checks.claims import require_claims
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.hardware import find_hardware
from stripe.pipeline.instrument import Instrument
from stripe.verify.policy import Policy, Unproved, Verify, VerifyCode

if TYPE_CHECKING:
    from stripe.verify.proof.judge import Judgement

PassLike: TypeAlias = "str | os.PathLike[str] | Pass | PassEntry"
"""A pass list by name or path, passes as `--passes` spells them, or a pass with its options."""
_PASSES = "a pass list by name or path, spelled passes, a Pass, or several of them"
_PASSES_HINT = "as in 'dsp_conv', 'fusion{a_reqs=[conv]},dce' or stripe.find_pass('dce')()"
Machine: TypeAlias = "str | os.PathLike[str] | HardwareModel"


def hardware(model: str | os.PathLike[str], **parameters: Scalar) -> HardwareModel:
    """The hardware model of a name (`"dsp_conv"`, or `"native"` for this machine) or path; `parameters` replace their
    defaults. Raises ConfigError.
    """
    require(
        model, (str, os.PathLike), "the name or path of a hardware model", "as in stripe.hardware('dsp_conv')"
    )
    return find_hardware(os.fspath(model), parameters)


def machine_of(model: Machine, parameters: dict[str, Scalar]) -> HardwareModel:
    """The model itself, or the model of a name or path. Raises ConfigError for parameters of a model that is loaded."""
    if not isinstance(model, HardwareModel):
        return hardware(model, **parameters)
    if parameters:
        reason = f"the hardware model is loaded, and {', '.join(parameters)} cannot change it"
        raise ConfigError(reason, hint="give parameters to stripe.hardware, or the name of the model here")
    return model


@collected_seldom()
def run_passes(
    program: Program,
    passes: PassLike | Iterable[PassLike],
    *,
    hardware: Machine | None = None,
    verify: Verify = "structural",
    assume: str = "all",
    unknown: Unproved = "run",
    on_remark: Callable[[str, Remark], object] | None = None,
    **parameters: Scalar,
) -> Program:
    """The program after `passes`: a pass list by name or path (`"dsp_conv"`), passes as `--passes` spells them
    (`"fusion{a_reqs=[conv]},dce"`), passes with options (`Pass`), or several of these in order. The same object when no
    pass changed it.

    `hardware` is the machine; without it the model that the pass list names. `parameters` are those of the machine and
    the list, as `-D` gives them. `on_remark` is called with the name of the entry and each remark. `verify` is checked
    after each pass: with `"exact"` each is proved to keep the meaning, under the policy of `assume` and `unknown`, as
    `prove` has it.

    Raises ConfigError for errors in the configuration, StripeError for those in the program or where a proof fails.
    """
    from stripe.pipeline.checks.levels import checks_of
    from stripe.pipeline.manager import PassManager
    from stripe.pipeline.setup import read_setup

    require_structure(program)
    require_level(verify, get_args(Verify))
    if isinstance(passes, (str, os.PathLike, Pass, PassEntry)):
        passes = (passes,)
    steps = [_step(step) for step in require(passes, Iterable, _PASSES, _PASSES_HINT)]
    if hardware is not None and not isinstance(hardware, HardwareModel):
        hardware = os.fspath(
            require(hardware, (str, os.PathLike), "a hardware model", "give its name or path")
        )
    entries, machine = read_setup(steps, hardware, parameters, "passes")
    if verify != "none":
        require_claims(program, machine)
    instruments: list[Instrument] = [] if on_remark is None else [_RemarkListener(on_remark)]
    instruments += checks_of(verify, machine, _policy(assume, unknown))
    return PassManager(entries, machine, tuple(instruments)).run(program)


def prove(before: Program, after: Program, *, assume: str = "all", unknown: Unproved = "run") -> Judgement:
    """The verdict on whether `after` computes what `before` does: true where that is proved or, where the proof has no
    answer, both give equal results. `str` shows the witness: an element, and both computations of it.

    `assume` names the assumptions that a proof may use, as `--assume` does: `"all"`, `"none"`, `"float-order,finite"`;
    `assumptions` of the verdict are those that it relies on.
    With `unknown="fail"` nothing counts but a proof. Raises StripeError for a `before` that is wrong in itself, as
    `stripe.check` does, or, under this policy, is not proved to be right.
    """
    from stripe.pipeline.checks.proof import quiet, require_sound
    from stripe.verify.proof.judge import judge

    policy = _policy(assume, unknown)
    require_claims(require_structure(before), None)
    of_input = require_sound(before, quiet, "the first program", policy)
    return replace(judge(before, require_structure(after), policy), of_input=of_input)


def _policy(assume: str, unknown: str) -> Policy:
    """The policy of two arguments. Raises ConfigError for words that they do not have."""
    from stripe.verify.assumptions import Assumption

    if unknown not in get_args(Unproved):
        raise ConfigError(f"unknown is '{unknown}'", hint=f"it is one of {', '.join(get_args(Unproved))}")
    try:
        return Policy.of(assume, unknown)
    except ValueError:
        hint = f"write all, none, or some of {', '.join(Assumption)}"
        raise ConfigError(f"unknown assumption in '{assume}'", where="assume", hint=hint) from None


def translate(program: Program, target: str = "stripe", *, verify: VerifyCode = "structural") -> str:
    """The program in the form of a target, spelled as `--emit` does: `"c{openmp=true}"`, `"json"`, `"dot"`.

    C accesses memory without checks: unless `verify` is `"none"`, accesses out of bounds are looked for before. Raises
    ConfigError for an unknown target or option, StripeError for a program that is wrong.
    """
    from stripe.emit.targets import FolderTarget, ProgramTarget, parse_target

    found = parse_target(require(target, str, "the name of a target", "as in 'c{openmp=true}'"), "target")
    if isinstance(found, FolderTarget):
        hint = f"write it with stripe.write_folder(program, FOLDER, {target!r})"
        raise ConfigError(f"the target '{found.target_name}' is a folder of files", hint=hint)
    if not isinstance(found, ProgramTarget):
        raise ConfigError(f"the target '{found.target_name}' shows Tile sources, and a Program is given")
    return found.emit(sound_for(program, verify, unchecked=found.unchecked))


def write_folder(
    program: Program,
    folder: str | os.PathLike[str],
    target: str = "library",
    *,
    verify: VerifyCode = "structural",
) -> None:
    """Writes the program as a folder, whole or not at all, in the form of a target that is one: `"library{name=net}"`.

    Raises as `translate` does, and ConfigError for a folder that has other contents.
    """
    from stripe import output
    from stripe.emit.targets import FolderTarget, parse_target

    found = parse_target(require(target, str, "the name of a target", "as in 'library{name=net}'"), "target")
    if not isinstance(found, FolderTarget):
        hint = f"stripe.translate(program, {target!r}) gives it"
        raise ConfigError(f"the target '{found.target_name}' is a text", hint=hint)
    output.check_folder(folder, found.mark, found.signature)
    sound = sound_for(program, verify, unchecked=found.unchecked)
    output.write_folder(folder, found.files(sound), found.mark, found.owned, found.signature)


def sound_for(program: Program, verify: VerifyCode, *, unchecked: bool) -> Program:
    """The program itself, fit for one of its forms. Raises TypeError for other values, ConfigError for an unknown
    level, StripeError where the structure is wrong, or `unchecked` code would leave a tensor or use wrong addresses."""
    require_level(verify, get_args(VerifyCode))
    require_structure(program)
    if unchecked and verify != "none":
        from stripe.pipeline.checks.bounds import require_memory_safe  # the prover

        require_claims(program, None)
        name = program.name or "the program"
        require_memory_safe(program, lambda text: warnings.warn(text.strip(), stacklevel=5), name)
    return program


def require_level(level: str, levels: tuple[str, ...]) -> None:
    """Raises ConfigError for a level of verification that is none of `levels`."""
    if level not in levels:
        raise ConfigError(f"verify is '{level}'", hint=f"it is one of {', '.join(levels)}")


def _step(step: PassLike) -> tuple[Literal["config", "passes"], str] | PassEntry:
    if isinstance(step, Pass):
        return PassEntry(step.pass_name, step)
    if isinstance(step, PassEntry):
        return step
    if isinstance(step, os.PathLike):
        return "config", os.fspath(step)
    require(step, str, _PASSES, _PASSES_HINT)
    if step in shipped("optconfigs") or step.endswith(SUFFIXES):
        return "config", step
    if step.isidentifier() and step not in pass_names():
        # raises ConfigError for a name that is neither that of a pass nor that of a shipped list
        try:
            find_pass(step)
        except ConfigError as error:
            lists = shipped("optconfigs")
            hint = did_you_mean(step, [*pass_names(), *lists], f"the pass lists are {', '.join(lists)}")
            raise ConfigError(f"there is no pass and no pass list called '{step}'", hint=hint) from error
    return "passes", step


class _RemarkListener(Instrument):
    """Hands remarks to the caller."""

    def __init__(self, listen: Callable[[str, Remark], object]) -> None:
        self._listen = listen

    @override
    def remark(self, entry: PassEntry, remark: Remark) -> None:
        self._listen(entry.name, remark)
