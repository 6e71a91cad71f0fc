"""Programs on arrays, and on models of machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from typing_extensions import override

from stripe.api.arguments import require
from stripe.api.compiling import Machine, machine_of, sound_for
from stripe.api.reading import require_structure
from stripe.config.model import Scalar
from stripe.cost.report.schema import SimulationJson
from stripe.garbage import collected_seldom
from stripe.ir import Program
from stripe.verify.policy import VerifyCode

if TYPE_CHECKING:
    import numpy.typing as npt

    from stripe.exec.arith import Array
    from stripe.pipeline.engines import Runner


def compile(program: Program, engine: str = "c", *, verify: VerifyCode = "structural") -> Runner:
    """The program made ready by an engine, spelled as `stripe-run --engine` does (`"c{openmp=true}"`, `"interp"`), to
    run or time it often: `.run(inputs)`, `.bench(inputs, count)`.

    The engine `c` runs without checks: unless `verify` is `"none"`, accesses out of bounds are looked for before. (All
    that is wrong in a program that was written by hand is found by `stripe.check`.) Raises ConfigError for an unknown
    engine, StripeError for a program that is wrong or where the C compiler fails.
    """
    from stripe.pipeline.engines import parse_engine

    spelled = require(engine, str, "the name of an engine", "as in 'interp' or 'c{openmp=true}'")
    found = parse_engine(spelled, "engine")
    return found.load(sound_for(program, verify, unchecked=found.unchecked), reorder=False)


def run(program: Program, inputs: Mapping[str, npt.ArrayLike], engine: str = "interp") -> dict[str, Array]:
    """The outputs by name for inputs by name, in the shapes and dtypes of the program's tensors.

    Raises StripeError for inputs that do not fit, and, by the interpreter, for accesses that the meaning forbids.
    """
    require(inputs, Mapping, "a mapping from names of inputs to arrays", "as in {'A': a, 'B': b}")
    import numpy as np

    return compile(program, engine).run({name: np.asarray(array) for name, array in inputs.items()})


def random_inputs(program: Program, seed: int = 0) -> dict[str, Array]:
    """Inputs by name: small integers that keep sums exact where that is possible, valid indices for gather."""
    from stripe.exec import data

    return data.random_inputs(require_structure(program), seed)


class SimulationReport(SimulationJson):
    """A simulation: time, stalls, traffic and energy, by statement, unit, bus and memory. The fields are those of
    `stripe-sim --json`, the text is the tables of `stripe-sim`; a notebook shows timeline and tables.
    """

    @override
    def __str__(self) -> str:
        from stripe.cost.report.table import tables_text
        from stripe.cost.report.tables import simulation_notes, simulation_tables

        return tables_text(simulation_tables(self), simulation_notes(self)).removesuffix("\n")

    @override
    def __repr__(self) -> str:
        return f"<SimulationReport {self.input} on {self.machine}: {self.latency_cycles:,.0f} cycles>"

    def svg(self) -> str:
        """The picture that `stripe-sim --plot` writes: timeline, roofline, and energy by component."""
        from stripe.cost.report.plot import picture

        return picture(self)

    def _repr_html_(self) -> str:
        from stripe.api.notebook import simulation_html

        return simulation_html(self)


@collected_seldom()
def simulate(program: Program, hardware: Machine, **parameters: Scalar) -> SimulationReport:
    """The report of the simulator for a program on a machine: a model, or the name or path of one, which `parameters`
    vary. Raises ConfigError for errors in the model, StripeError for a program that the machine cannot run.
    """
    from stripe.cost.report.report import simulation_json
    from stripe.cost.time.simulate import simulate_program

    require_structure(program)
    found = simulation_json(simulate_program(program, machine_of(hardware, parameters)), program.name)
    return SimulationReport.model_validate(dict(found))  # its parts are valid
