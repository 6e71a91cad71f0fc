"""What is checked of a case: each pass leaves valid IR, and interpreter, compiled C and proof say the same."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal, TypeAlias

import numpy as np

from stripe.exec.arith import Array
from stripe.exec.compare import compare, tolerance_for
from stripe.exec.compile import CompileOptions, compile_program
from stripe.exec.data import random_inputs
from stripe.exec.exactness import best_magnitude, order_free, uses_transcendentals
from stripe.exec.interp import interpret
from stripe.exec.sanitize import SanitizerError
from stripe.exec.toolchain import CompileError
from stripe.hw.schema import HardwareModel
from stripe.ir import (
    Block,
    Program,
    StripeError,
    parse_program,
    print_program,
    verify_structural,
    walk,
)
from stripe.pipeline.checks.structure import require_units
from stripe.pipeline.fault import InternalFault
from stripe.pipeline.manager import PassManager
from stripe.verify.proof.prove import prove_equal
from stripe.verify.proof.running import difference
from stripe.verify.proof.witness import Different, Equal, Unknown, Verdict
from tests.fuzz.case import Case
from tests.fuzz.pass_lists import Entry, pass_of, read_entry
from tests.fuzz.placements import claims_something, corrupted, in_other_orders, refusals
from tests.fuzz.zeros import in_any_order, signed_zeros
from tests.support.batch import Arrays, merge, merge_arrays, split_arrays

DATA_SEED = 0
PATIENCE = 60
"""Seconds after which a step counts as one that hangs."""
Level: TypeAlias = Literal["O0", "O1", "O2", "O3"]
LEVELS: tuple[Level, ...] = ("O0", "O1", "O2", "O3")
"""Levels of the C compiler, of which chunks take turns: faults of its own show at some alone."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What is wrong with a case. `kind` and `guilty` (the pass, when one is known) name its group."""

    kind: str
    guilty: str
    detail: str
    case: Case

    @property
    def group(self) -> str:
        first = self.detail.strip().splitlines()[0] if self.detail.strip() else ""
        return f"{self.kind}: {self.guilty}: {generic(first)}"


@dataclass(slots=True)
class Counts:
    """What a run of cases came to."""

    cases: int = 0
    refused_programs: int = 0
    equal: int = 0
    different: int = 0
    inexact: int = 0
    in_c: int = 0
    checked: int = 0
    corrupted: int = 0
    corrupted_refused: int = 0
    rewrites: int = 0
    unknown: Counter[str] = field(default_factory=Counter[str])
    applied: Counter[str] = field(default_factory=Counter[str])
    unchanged: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    failures: Counter[str] = field(default_factory=Counter[str])

    def add(self, other: Counts) -> None:
        self.cases += other.cases
        self.refused_programs += other.refused_programs
        self.equal += other.equal
        self.different += other.different
        self.inexact += other.inexact
        self.in_c += other.in_c
        self.checked += other.checked
        self.corrupted += other.corrupted
        self.corrupted_refused += other.corrupted_refused
        self.rewrites += other.rewrites
        for name in ("unknown", "applied", "unchanged", "refused", "failures"):
            getattr(self, name).update(getattr(other, name))


@dataclass(frozen=True, slots=True)
class Checked:
    """A case that went well so far, for the C compiler."""

    case: Case
    before: Program
    after: Program
    inputs: dict[str, Array]
    expected: dict[str, Array]


class Hang(Exception):
    """A step took longer than PATIENCE."""


def check_cases(
    cases: Sequence[Case], counts: Counts, *, sanitize: bool = False, level: Level = "O0"
) -> list[Failure]:
    """All that is wrong with the cases; the C of all is compiled at once."""
    failures: list[Failure] = []
    good: list[Checked] = []
    for case in cases:
        found = check_case(case, counts)
        if isinstance(found, Failure):
            failures.append(found)
        elif found is not None:
            good += [found, *_on_zeros(found)]
    failures += check_c(good, sanitize=sanitize, level=level)
    counts.in_c += len({id(item.case) for item in good})
    counts.failures.update(failure.group for failure in failures)
    return failures


def check_case(case: Case, counts: Counts) -> Checked | Failure | None:
    """The passes, the interpreter and the proof; None for a program that the compiler refuses."""
    counts.cases += 1
    try:
        with patience():
            before = case.program()
    except StripeError:
        counts.refused_programs += 1
        return None
    except Exception as error:  # noqa: BLE001 - whatever a compiler raises is a finding
        return Failure("lowering crashed", _place(error), _trace(error), replace(case, passes=()))
    wrong = _invalid(before)
    if wrong:
        return Failure("invalid IR", "lowering", wrong, replace(case, passes=()))
    try:
        with patience():
            inputs = random_inputs(before, DATA_SEED)
            expected = interpret(before, inputs)
    except Exception as error:  # noqa: BLE001 - a program from the compiler runs
        return Failure("the program does not run", _place(error), _trace(error), replace(case, passes=()))
    after = run_passes(case, before, counts)
    if isinstance(after, Failure):
        return after
    program, ran = after
    case = replace(case, passes=tuple(ran))
    checked = Checked(case, before, program, inputs, expected)
    return compare_engines(checked, counts) or check_machine(checked, counts) or checked


def run_passes(case: Case, program: Program, counts: Counts) -> tuple[Program, list[Entry]] | Failure:
    """The program after the passes that did not refuse, and these; a Failure for a crash or for invalid IR."""
    ran: list[Entry] = []
    for item in case.passes:
        name = pass_of(item)
        failed = replace(case, passes=(*ran, item))
        try:
            with patience():
                entry = read_entry(item)
                result = PassManager((entry,), case.hardware).run(program)
                if result is not program:
                    require_units(entry, result, case.hardware)
        except StripeError:
            counts.refused[name] += 1
            continue
        except InternalFault as fault:
            error = fault.__cause__ if isinstance(fault.__cause__, Exception) else fault
            return Failure("pass crashed", f"{name} at {_place(error)}", _trace(error), failed)
        ran.append(item)
        (counts.unchanged if result is program else counts.applied)[name] += 1
        wrong = "" if result is program else _invalid(result) or _other_interface(program, result)
        if wrong:
            return Failure("invalid IR", name, wrong, failed)
        program = result
    return program, ran


def _invalid(program: Program) -> str:
    found = verify_structural(program, program.stage)
    if found:
        return "\n".join(map(str, found[:5]))
    try:
        again = parse_program(print_program(program), "<printed>")
    except StripeError as error:
        return f"prints to text that does not parse: {error}"
    return "" if again == program else "prints to text that parses to another program"


def _other_interface(before: Program, after: Program) -> str:
    """The tensors of the caller that are inputs or outputs in one of two programs alone."""
    roles = [
        {
            *((ref.name, "input", ref.logical_sizes) for ref in program.inputs),
            *((ref.name, "output", ref.logical_sizes) for ref in program.outputs),
        }
        for program in (before, after)
    ]
    lost = roles[0] ^ roles[1]
    return f"the interface changed: {sorted(lost)}" if lost else ""


def compare_engines(checked: Checked, counts: Counts) -> Failure | None:
    """Interpreter before and after, and the proof; they have to agree."""
    case, before, after = checked.case, checked.before, checked.after
    differs = interpreted_differently(before, after, checked)
    counts.inexact += not _comparable(before)
    try:
        with patience():
            verdict: Verdict = prove_equal(before, after)
    except Hang as hang:  # isl counts steps, which are slow where sets have many dimensions
        verdict = Unknown(f"the proof {hang}")
    except Exception as error:  # noqa: BLE001 - the prover answers, whatever it is given
        return Failure("proof crashed", _place(error), _trace(error), case)
    match verdict:
        case Equal():
            counts.equal += 1
        case Unknown(reason):
            counts.unknown[generic(reason)] += 1
        case Different():
            counts.different += 1
    if differs:
        kind = {Equal: "wrong but proved", Unknown: "wrong, proof unknown"}.get(type(verdict), "wrong")
        return Failure(kind, guilty_pass(checked, by_proof=False), f"{differs}\n{verdict}", case)
    if isinstance(verdict, Different):
        return Failure("proof says different", guilty_pass(checked, by_proof=True), str(verdict), case)
    zeros = signed_zeros(before) if isinstance(verdict, Equal) and _comparable(before) else None
    if isinstance(verdict, Equal) and zeros is not None:
        differs = difference(before, after, zeros, frozenset(verdict.assumptions))
        if differs:
            return Failure("wrong but proved", "zeros of both signs", differs, case)
    return None


def _on_zeros(checked: Checked) -> list[Checked]:
    """The program after the passes on zeros of both signs, of which C has to make what the interpreter does."""
    zeros, after = signed_zeros(checked.before), checked.after
    if zeros is None or not in_any_order(after):
        return []
    with np.errstate(all="ignore"):
        given = {ref.name: zeros.draw()[ref.name] for ref in after.inputs}
        return [replace(checked, before=after, inputs=given, expected=interpret(after, given))]


def check_machine(checked: Checked, counts: Counts) -> Failure | None:
    """The checkers of schedule and placement accept the program, it computes the same in any order that its dependences
    allow, and corrupted it is refused or computes the same, too."""
    case, program = checked.case, checked.after
    if not claims_something(program) or _foreign(checked.before, case.hardware):
        return None
    if refusals(checked.before, case.hardware):
        return None  # a program of a golden test, which is wrong on this machine before any pass
    counts.checked += 1
    random = Random(print_program(program))
    try:
        with patience():
            refused = refusals(program, case.hardware)
            if refused:
                return Failure("checkers refuse", refused[0], "\n".join(refused[:5]), case)
            differs = _differs_in_some_order(checked, program, random)
            if differs:
                return Failure("wrong in another order", "dependences", differs, case)
            for change, broken in corrupted(program, random):
                counts.corrupted += 1
                if refusals(broken, case.hardware):
                    counts.corrupted_refused += 1
                elif differs := _differs_in_some_order(checked, broken, random):
                    text = f"{change}\n{differs}\n{print_program(broken)}"
                    return Failure("corrupted and accepted", change.partition(":")[0], text, case)
    except Hang:
        return None
    return None


def _foreign(program: Program, hardware: HardwareModel) -> bool:
    """Whether a program that was drawn with locations names units of another machine."""
    blocks = [block for _, block in walk(program.entry)]
    places = [
        *(block.location for block in blocks),
        *(ref.location for block in blocks for ref in block.refinements),
    ]
    return any(
        device.name and device.name not in hardware.units for place in places for device in place.devices
    )


def _differs_in_some_order(checked: Checked, program: Program, random: Random) -> str:
    orders = (program, *in_other_orders(program, random))
    return next(filter(None, (interpreted_differently(checked.before, p, checked) for p in orders)), "")


def interpreted_differently(before: Program, after: Program, checked: Checked) -> str:
    """How the outputs of `after` differ from what is expected; empty when they do not."""
    try:
        with patience():
            actual = interpret(after, {ref.name: checked.inputs[ref.name] for ref in after.inputs})
    except Exception as error:  # noqa: BLE001 - what the passes made has to run
        return _first_line(error)
    return _differences(before, checked.expected, actual)


def _comparable(program: Program) -> bool:
    return order_free(program, best_magnitude(program)) or uses_transcendentals(program)


def _differences(program: Program, expected: Arrays, actual: Arrays) -> str:
    """How results differ; nothing where the order of sums decides them (products that overflow, long sums of fp16)."""
    if not _comparable(program):
        return ""
    return "; ".join(map(str, compare(expected, actual, tolerance_for(program))))


def guilty_pass(checked: Checked, *, by_proof: bool) -> str:
    """The first pass after which something is wrong."""
    program = checked.before
    for item in checked.case.passes:
        entry = read_entry(item)
        result = PassManager((entry,), checked.case.hardware).run(program)
        if by_proof:
            wrong = isinstance(prove_equal(program, result), Different)
        else:
            wrong = bool(interpreted_differently(checked.before, result, checked))
        if wrong:
            return entry.pass_.pass_name
        program = result
    return "all passes together"


def check_c(checked: Sequence[Checked], *, sanitize: bool, level: Level) -> list[Failure]:
    """Runs before and after of all cases as compiled C; one by one what cannot be merged, and to find who failed."""
    options = CompileOptions(level="O1" if sanitize else level, sanitize=sanitize)
    together = [
        (item, program) for item in checked for program in (item.before, item.after) if mergeable(program)
    ]
    alone = [
        (item, program) for item in checked for program in (item.before, item.after) if not mergeable(program)
    ]
    for start in range(0, len(together), 50):
        part = together[start : start + 50]
        if not _merged_well(part, options):
            alone += part
    return [
        failure
        for item, program in alone
        for each in (options, *_other_compilers(program, sanitize=sanitize))
        if (failure := _compiled_alone(item, program, each))
    ]


def _other_compilers(program: Program, *, sanitize: bool) -> tuple[CompileOptions, ...]:
    """Buffers of several dtypes lie at one address one after the other: an optimizer that takes types for a proof that
    accesses are apart would move them, and clang does more of this than gcc."""
    if sanitize or not is_placed(program) or shutil.which("clang") is None:
        return ()
    return (CompileOptions(compiler="clang", level="O2"),)


def mergeable(program: Program) -> bool:
    """Programs with addresses would lie on one another in a merged one."""
    main = program.main
    runs_once = not main.indices and not main.constraints
    statements = (*program.entry.statements, *main.statements)
    return not is_placed(program) and runs_once and all(isinstance(s, Block) for s in statements)


def is_placed(program: Program) -> bool:
    return any(ref.offset is not None for _, block in walk(program.entry) for ref in block.refinements)


def _merged_well(part: Sequence[tuple[Checked, Program]], options: CompileOptions) -> bool:
    try:
        with patience():
            built = compile_program(merge([_without_deps(program) for _, program in part]), options)
            given = [{ref.name: item.inputs[ref.name] for ref in program.inputs} for item, program in part]
            results = split_arrays(built.run(merge_arrays(given)), len(part))
    except (CompileError, SanitizerError, StripeError, Hang, ValueError):
        return False
    return not any(
        _differences(item.before, item.expected, result)
        for (item, _), result in zip(part, results, strict=True)
    )


def _without_deps(program: Program) -> Program:
    """Statements get other numbers when programs are merged."""
    main = program.main
    bare = replace(main, statements=tuple(replace(s, deps=()) for s in main.statements))
    statements = tuple(bare if s is main else s for s in program.entry.statements)
    return replace(program, entry=replace(program.entry, statements=statements))


def _compiled_alone(item: Checked, program: Program, options: CompileOptions) -> Failure | None:
    when = "before" if program is item.before else "after"
    case = replace(item.case, passes=()) if program is item.before else item.case
    try:
        with patience():
            built = compile_program(program, options)
            result = built.run({ref.name: item.inputs[ref.name] for ref in program.inputs})
    except Exception as error:  # noqa: BLE001 - emitted C compiles and runs
        return Failure(f"C of the program {when} the passes fails", _place(error), _trace(error), case)
    found = _differences(item.before, item.expected, result)
    if found:
        return Failure(f"C of the program {when} the passes differs", options.compiler or "", found, case)
    return None


@contextlib.contextmanager
def patience(seconds: int = PATIENCE) -> Iterator[None]:
    """Ends a step that takes too long (in the main thread, where alone signals arrive): in processor time, since the
    machine may be busy, and by the clock ten times as much."""

    def ring(_number: int, _frame: object) -> None:
        raise Hang(f"took longer than {seconds} s")

    signals = (
        (signal.SIGPROF, signal.ITIMER_PROF, seconds),
        (signal.SIGALRM, signal.ITIMER_REAL, 10 * seconds),
    )
    previous = [signal.signal(number, ring) for number, _, _ in signals]
    for _, timer, limit in signals:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(signals, previous, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def generic(text: str) -> str:
    """A message without its numbers and names, to count alike ones together."""
    return re.sub(r"\d+", "N", re.sub(r"'[^']*'", "'…'", text))[:160]


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def _trace(error: Exception) -> str:
    return f"{_first_line(error)}\n{''.join(traceback.format_exception(error))}"


def _place(error: Exception) -> str:
    """Where in our code the error was raised."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/stripe/" in f.filename]
    return f"{frames[-1].filename.rpartition('/stripe/')[2]}:{frames[-1].lineno}" if frames else "?"
