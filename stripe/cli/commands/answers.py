"""Answers of the commands about themselves: passes, targets, engines, hardware models (rendered, too), schemas,
completion."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stripe.cli.arguments.compile import CompileSpec
from stripe.cli.arguments.opt import OptSpec
from stripe.cli.arguments.run import RunSpec
from stripe.cli.arguments.sim import SimSpec
from stripe.cli.job import Job
from stripe.cli.option import Spec
from stripe.cli.streams import write_text
from stripe.exit_status import OK

if TYPE_CHECKING:
    from stripe.config.registry import Registry
    from stripe.emit.targets import Target
    from stripe.pipeline.engines import Engine


def perform(_job: Job, spec: Spec) -> int:
    """Writes the answer; gives the exit status."""
    write_text(spec.output if isinstance(spec, OptSpec) else None, _answer(spec))
    return OK


def _answer(spec: Spec) -> str:
    # Each answer has its own imports, since the schemas load the whole program.
    if spec.completion is not None:
        from stripe.cli.completion import completion

        return completion(type(spec), spec.completion)
    assert isinstance(spec, CompileSpec)
    if spec.list_passes is not None:
        from stripe.pipeline.describe import describe_pass, list_passes

        return describe_pass(spec.list_passes) if spec.list_passes else list_passes()
    if spec.list_models is not None:
        from stripe.config.listing import describe_model, list_models

        return describe_model(spec.list_models) if spec.list_models else list_models()
    if isinstance(spec, OptSpec) and spec.list_targets is not None:
        from stripe.emit.targets import TARGETS

        return _listing(TARGETS, spec.list_targets)
    if isinstance(spec, RunSpec) and spec.list_engines is not None:
        from stripe.pipeline.engines import ENGINES

        return _listing(ENGINES, spec.list_engines)
    if isinstance(spec, (OptSpec, SimSpec)) and spec.schema is not None:
        return json.dumps(_schema(spec.schema), indent=2) + "\n"
    return _machine(spec.hw or "", spec)


def _listing(registry: Registry[Target] | Registry[Engine], name: str) -> str:
    """The class called `name` with its options; all classes when no name is given."""
    from stripe.pipeline.describe import describe_options

    names = [name] if name else registry.names()
    return "\n".join("\n".join(describe_options(name, registry.find(name))) for name in names)


def _schema(name: str) -> object:
    if name in ("sim", "counts"):
        from stripe.cost.report.schema import CountsJson, SimulationJson

        return (SimulationJson if name == "sim" else CountsJson).model_json_schema()
    from stripe.pipeline import describe

    if name == "sweep":
        from stripe.sweeps.schema import SweepFile

        return describe.file_schema(SweepFile)
    return {"config": describe.config_schema, "hw": describe.hardware_schema, "ir": describe.ir_schema}[
        name
    ]()


def _machine(name: str, spec: CompileSpec) -> str:
    """A hardware model: the graph of its units, or its rendered data."""
    from stripe.cli.setup import parse_defines
    from stripe.hw import to_dot
    from stripe.pipeline.hardware import find_hardware

    model = find_hardware(name, parse_defines(spec.define))
    if isinstance(spec, OptSpec) and spec.emit == "dot":
        return to_dot(model)
    return json.dumps(model.model_dump(mode="json", exclude_defaults=True), indent=2) + "\n"
