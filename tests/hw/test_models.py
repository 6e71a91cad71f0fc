"""The shipped models: each renders, passes its checks, documents every number, over the range of its parameters."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path

import pytest
from pydantic import JsonValue

from stripe.config.files import find_file, load_parameters, resolve_parameters, shipped
from stripe.config.model import Documented, Scalar
from stripe.config.parameters import Parameter
from stripe.config.template import render_json
from stripe.hw import HardwareModel, UnitGraph, load_hardware
from stripe.ir import ConfigError
from stripe.ir.dtypes import FP16, FP32, I8, I32, U8

PROCESSORS = ("aarch64_neon", "portable", "x86_avx2", "x86_avx512")
MODELS = (
    "aarch64_neon", "dsp_conv", "edge_npu", "eyeriss", "hexagon", "mobile_gpu", "portable", "ref16x16", "systolic",
    *PROCESSORS[2:],
)  # fmt: skip


def test_these_ship() -> None:
    assert shipped() == MODELS


@pytest.mark.parametrize("name", MODELS)
def test_loads_with_its_defaults(name: str) -> None:
    model = load_hardware(name)
    assert model.name == name
    assert model.description
    assert model.parameters == resolve_parameters(find_file(name, "hwmodels"), {})
    assert model.main_memory is not None
    assert HardwareModel.model_validate_json(model.model_dump_json()) == model


@pytest.mark.parametrize("name", MODELS)
def test_every_unit_is_reached(name: str) -> None:
    graph = UnitGraph(load_hardware(name))
    fed = {unit for memory in graph.memories for unit in graph.reached_from(memory)}
    assert fed.issuperset(graph.exec_units)
    for unit in graph.exec_units:
        assert graph.memories_of(unit, "read")
        assert graph.memories_of(unit, "write")
    main = f"{graph.model.main_memory}[0]"
    reached = {main}
    while True:  # over memories and everything else, as a program with transfers gets there
        further = reached.union(*(graph.reached_from(unit) for unit in reached))
        if further == reached:
            break
        reached = further
    assert reached == set(graph.units)


def _extremes(parameter: Parameter) -> tuple[Scalar, ...]:
    return parameter.choices or parameter.range or (True, False)


@pytest.mark.parametrize("name", MODELS)
def test_loads_over_the_whole_range_of_each_parameter(name: str) -> None:
    described = load_parameters(find_file(name, "hwmodels"))
    assert described is not None
    for parameter, spec in described[1].parameters.items():
        assert spec.description
        assert spec.range or spec.choices, "a sweep must know what it may vary"
        for value in _extremes(spec):
            assert load_hardware(name, {parameter: value}).parameters[parameter] == value


def _numbers(value: JsonValue, path: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of a rendered model by path; entries of lists go by their names."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            name = inner.get("name", position) if isinstance(inner, dict) else position
            yield from _numbers(inner, f"{path}.{name}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def _covers(entry: Documented, path: str) -> bool:
    return fnmatchcase(path, entry.path) or fnmatchcase(path, f"{entry.path}.*")


@pytest.mark.parametrize("name", MODELS)
def test_every_number_has_a_source(name: str) -> None:
    described = load_parameters(find_file(name, "hwmodels"))
    assert described is not None
    file = described[1]
    model = load_hardware(name).model_dump(
        mode="json", exclude_unset=True, exclude={"parameters": True, "sources": True}
    )
    unused = set(file.values)
    for path, number in _numbers(model):
        entry = next((entry for entry in file.values if _covers(entry, path)), None)
        assert entry is not None, f"{path} = {number} has no entry in the params file"
        unused.discard(entry)
        if entry.value is not None:
            assert number == entry.value, path
        if entry.source.startswith("parameter "):
            assert entry.source.removeprefix("parameter ") in file.parameters
    assert unused == set()


def test_reports_can_name_what_nobody_sourced() -> None:
    paths = {entry.path for entry in load_hardware("dsp_conv", {"NUM_SRAM": 2}).unverified()}
    assert "parameters.CLOCK_MHZ" in paths
    assert "parameters.NUM_SRAM" not in paths
    assert "buses.dsp_*.bytes_per_cycle" in paths


def test_the_slides_model_loads_as_it_stands() -> None:
    path = str(Path(__file__).with_name("slide15.json.j2"))
    given: dict[str, Scalar] = {
        "NUM_SRAM": 4,
        "NUM_CONV": 4,
        "NUM_DSP": 2,
        "SRAM_SIZE_KIB": 512,
        "CLOCK_MHZ": 500,
    }
    model = load_hardware(path, given)
    assert model.clock_mhz == 500
    assert model.parameters == given
    assert {name: (unit.count, unit.size) for name, unit in model.mem_units.items()} == {
        "DRAM": (1, 2**30),
        "SRAM": (4, 512 * 1024),
    }
    assert model.exec_unit("CONV").pipeline_depth == 2
    assert model.exec_unit("DSP").rate("mul", I8) == 64
    assert model.buses[2].sinks == ("SRAM[0]", "SRAM[1]", "SRAM[2]", "SRAM[3]")
    assert UnitGraph(model).route("DRAM[0]", "SRAM[3]").units == ("DMA[0]",)
    shipped_model = load_hardware("dsp_conv", given)
    assert shipped_model.mem_units.keys() == model.mem_units.keys()
    assert len(model.buses) == 8
    with pytest.raises(ConfigError, match="'CLOCK_MHZ' is not defined"):
        load_hardware(path, {})


def test_the_reference_machine_has_the_published_energies() -> None:
    model = load_hardware("ref16x16")
    energies = {name: (m.read_pJ_per_byte, m.write_pJ_per_byte) for name, m in model.mem_units.items()}
    assert energies == {"DRAM": (160, 170), "SRAM": (5, 7), "Orf": (0.07, 0.11), "Wreg": (0.03, 0.05)}
    assert model.exec_unit("PE").mac_energy_pJ(I8) == 0.3
    assert (model.memory("Wreg").count, model.memory("Orf").count, model.memory("SRAM").size) == (
        256,
        16,
        131072,
    )
    graph = UnitGraph(model)
    for column, row in product((0, 7, 15), (0, 9, 15)):
        unit = f"PE[{16 * column + row}]"
        assert graph.memories_of(unit, "write") == (f"Orf[{column}]",)


def test_the_first_tpu_reaches_92_tops() -> None:
    model = load_hardware("systolic")
    rate = model.exec_unit("MXU").rate("mul", I8)
    assert rate is not None
    assert round(rate * model.clock_mhz / 1e6, 1) == 91.8
    assert model.memory("ACC").size == 4 << 20
    assert model.exec_unit("MXU").rate("mul", FP32) is None


def test_rates_and_energies_go_by_operation_then_dtype() -> None:
    unit = load_hardware("edge_npu").exec_unit("VEC")
    assert [unit.rate("mul", dtype) for dtype in (I8, I32, FP16, FP32)] == [256, 64, 128, 64]
    assert unit.op_energy_pJ("mul", FP16) == 1.1
    assert unit.op_energy_pJ("exp", FP32) == 0.0
    assert unit.mac_energy_pJ(I8) == pytest.approx(0.23)


@pytest.mark.parametrize(("machine", "unit"), [("edge_npu", "MAT"), ("edge_npu", "VEC"), ("systolic", "MXU")])
def test_bytes_without_sign_take_as_much_energy(machine: str, unit: str) -> None:
    found = load_hardware(machine).exec_unit(unit)
    assert found.mac_energy_pJ(U8) == found.mac_energy_pJ(I8) > 0


def test_look_ups_name_the_nearest() -> None:
    model = load_hardware("dsp_conv")
    for look_up, name, reason, hint in [
        (model.memory, "SRAN", "the machine 'dsp_conv' has no memory 'SRAN'", "did you mean 'SRAM'?"),
        (
            model.exec_unit,
            "sram",
            "the machine 'dsp_conv' has no execution unit 'sram'",
            "there are DSP, CONV",
        ),
        (
            model.exec_unit,
            "DMA",
            "'DMA' of the machine 'dsp_conv' is no execution unit",
            "there are DSP, CONV",
        ),
        (model.tx_unit, "NOG", "the machine 'dsp_conv' has no transfer unit 'NOG'", "did you mean 'NOC'?"),
    ]:
        with pytest.raises(ConfigError) as caught:
            look_up(name)
        assert (caught.value.reason, caught.value.hint) == (reason, hint)
    assert model.microseconds(1000) == 2.0


def test_unknown_models_name_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'dsp_conv'"):
        load_hardware("dsp_conf")
    with pytest.raises(ConfigError, match="there are aarch64_neon, dsp_conv, edge_npu"):
        load_hardware("zzz")
    with pytest.raises(ConfigError, match="there is no such file"):
        load_hardware("./dsp_conv")


def test_the_schema_is_exported() -> None:
    schema = HardwareModel.model_json_schema()
    assert schema["additionalProperties"] is False
    assert (
        "cycles from a request"
        in schema["$defs"]["MemUnit"]["properties"]["read_latency_cycles"]["description"]
    )
    rates = schema["$defs"]["ExecUnit"]["properties"]["ops_per_cycle"]
    assert {option.get("type") for option in rates["anyOf"]} == {"number", "object"}


def test_rendering_keeps_whole_numbers_whole(tmp_path: Path) -> None:
    path = tmp_path / "m.json.j2"
    path.write_text('{ "mem_KiB": {{ SRAM_SIZE_KIB / NUM_SRAM }} }')
    assert render_json(path, load_hardware("dsp_conv").parameters).text == '{ "mem_KiB": 128 }'
