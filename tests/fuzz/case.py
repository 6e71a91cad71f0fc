"""A fuzz case: a program and a pass list; as a file it is a crash reproducer, as stripe-opt and stripe-reduce take."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from hypothesis import strategies as st
from pydantic import JsonValue

from stripe.config.files import shipped
from stripe.hw import load_hardware
from stripe.hw.schema import HardwareModel
from stripe.ir import Program, StripeError, print_program
from stripe.pipeline.reproducer import Reproducer, read_reproducer
from stripe.tile import compile_tile
from tests.fuzz.corpus import read_program, seeded
from tests.fuzz.pass_lists import Entry, entries_that_change, pass_lists
from tests.fuzz.placements import placing_lists, through_units
from tests.fuzz.structures.programs import stripe_programs
from tests.fuzz.tile_programs import tile_programs
from tests.fuzz.variations import varied

Machine: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
SMALL: tuple[Machine, ...] = (
    ("dsp_conv", ()),
    ("dsp_conv", (("SRAM_SIZE_KIB", "1"), ("NUM_SRAM", "1"))),
    ("dsp_conv", (("SRAM_SIZE_KIB", "2"), ("NUM_CONV", "2"))),
)
"""Parameters of the hardware model: small memories make small tiles of small programs."""


def machines() -> list[Machine]:
    """The shipped models, and those with small memories."""
    return [*SMALL, *((name, ()) for name in shipped())]


@cache
def machine(chosen: Machine) -> HardwareModel:
    name, defines = chosen
    return load_hardware(name, dict(defines))


@dataclass(frozen=True, slots=True)
class Case:
    """A program as text, the entries that run over it, and the machine, rendered."""

    text: str
    passes: tuple[Entry, ...]
    hardware: HardwareModel
    language: str = "tile"

    def program(self) -> Program:
        """Raises StripeError when the compiler refuses the text."""
        return read_program(self.text, self.language)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A program with a pass list whose words occur in it: mostly random Tile, else Stripe that lowering does not make,
    or what a golden test has, changed.
    """
    hardware = machine(draw(st.sampled_from(machines())))
    if draw(st.integers(0, 4)) == 0:
        seed = draw(seeded(hardware))
        return Case(seed.text, seed.passes, seed.hardware or hardware, seed.language)
    if draw(st.integers(0, 4)) == 0:
        return draw(cases_of_structures())
    text = draw(tile_programs())
    placing = draw(st.integers(0, 4)) == 0
    try:
        program = compile_tile(text, "fuzz.tile")
    except StripeError:
        return Case(text, (), hardware)
    except Exception:  # noqa: BLE001 - the check of the case meets it again and reports it
        return Case(text, (), hardware)
    if placing:
        program = draw(through_units(program, hardware))
        return Case(print_program(program), draw(placing_lists(hardware)), hardware, "stripe")
    if draw(st.integers(0, 4)):
        return Case(text, draw(pass_lists(program, hardware)), hardware)
    program = draw(varied(program))
    return Case(print_program(program), draw(pass_lists(program, hardware)), hardware, "stripe")


@st.composite
def cases_of_structures(draw: st.DrawFn) -> Case:
    """Stripe that lowering never makes, before one pass, a list, or dependences and addresses."""
    hardware = machine(draw(st.sampled_from(machines())))
    kind = draw(st.sampled_from(("pass", "pass", "pass", "list", "list", "placing")))
    program = draw(stripe_programs(schedulable=kind == "placing" and draw(st.booleans())))
    if draw(st.integers(0, 2)) == 0:
        program = draw(varied(program))
    if kind == "placing":
        if draw(st.booleans()):  # to the memories that it takes many units have no bus
            program = draw(through_units(program, hardware))
        return Case(print_program(program), draw(placing_lists(hardware)), hardware, "stripe")
    if kind == "list":
        return Case(print_program(program), draw(pass_lists(program, hardware)), hardware, "stripe")
    entries = draw(entries_that_change(program, hardware))
    return Case(print_program(program), tuple(entries), hardware, "stripe")


def save(case: Case, error: str, origin: str, path: Path) -> None:
    """Writes a case with what was wrong. `origin` says which run found it (its seed)."""
    reproducer = Reproducer(
        error=error, command=("make", "fuzz", origin), input_format=case.language, input=case.text,
        passes=case.passes, hardware=_dump(case.hardware), options=("--verify=exact",),
    )  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(reproducer.model_dump(mode="json"), indent=1) + "\n", "utf-8")


def _dump(hardware: HardwareModel) -> JsonValue:
    return hardware.model_dump(mode="json", exclude_defaults=True)


def load(path: Path) -> Case:
    """A case that `save` wrote, or any crash reproducer. Raises ConfigError for any other file."""
    found, _ = read_reproducer(path)
    hardware = machine(SMALL[0]) if found.hardware is None else HardwareModel.model_validate(found.hardware)
    return Case(found.input, found.passes, hardware, found.input_format)
