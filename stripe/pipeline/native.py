"""`--hw native`: the hardware model of this processor, with the numbers that were read and measured."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from stripe.config.files import NATIVE, find_file, load_parameters
from stripe.config.model import Scalar
from stripe.config.parameters import Parameter
from stripe.exec.native.processor import Processor, this_processor
from stripe.hw.load import load_hardware
from stripe.hw.schema import HardwareModel
from stripe.ir import ConfigError

if TYPE_CHECKING:
    from stripe.exec.native.measure import Measurement

_SYSTEM = "read from the system"
_MEASURED = "measured on this machine"
_UNMEASURED = "no C compiler is here to measure with"


def native_model(
    defines: Mapping[str, Scalar] | None = None, elsewhere: Collection[str] = ()
) -> HardwareModel:
    """The model of this processor, with `defines` instead of its own numbers; raises as `load_hardware` does."""
    processor, given = this_processor(), defines or {}
    found = {name: (value, _SYSTEM) for name, value in _described(processor).items()}
    found |= {name: (value, _MEASURED) for name, value in _rates(processor).items()}
    described = load_parameters(find_file(processor.model, "hwmodels"))
    parameters = described[1].parameters if described else {}
    values = {name: _fitted(parameters[name], value) for name, (value, _) in found.items()}
    model = load_hardware(processor.model, {**values, **given}, elsewhere)
    sources = tuple(
        entry.model_copy(update={"source": found[name][1]})
        if (name := entry.path.removeprefix("parameters.")) in found and name not in given
        else entry
        for entry in model.sources
    )
    text = f"{processor.name}, found on this machine; {model.description}"
    return model.model_copy(update={"name": NATIVE, "description": text, "sources": sources})


def native_remarks() -> tuple[str, ...]:
    """Facts about this machine that could not be found, so that the model's own numbers hold."""
    remarks = this_processor().remarks
    return remarks if measurement() else (*remarks, f"{_UNMEASURED}: speeds are those of the model")


def _fitted(parameter: Parameter, value: float) -> Scalar:
    """The value that the parameter may have that is nearest to `value`."""
    if parameter.choices is not None:
        return min(parameter.choices, key=lambda choice: abs(float(choice) - value))
    low, high = parameter.range or (value, value)
    fitted = min(max(value, low), high)
    return float(fitted) if isinstance(parameter.default, float) else round(fitted)


def _described(processor: Processor) -> dict[str, float]:
    """Parameters of the model that the system tells."""
    found: dict[str, float] = {"CORES": processor.cores, "DRAM_GIB": processor.memory_gib}
    for level, cache in processor.caches.items():
        # The model counts L1 and L2 by core, shared or not; L3 is one for all cores.
        found[f"L{level}_KIB"] = cache.kib if level == 3 else cache.kib // cache.sharers
        found |= {f"L{level}_WAYS": cache.ways} if cache.ways else {}
        found |= {"LINE_BYTES": cache.line} if cache.line else {}
    return found | ({"L3_KIB": 0} if processor.caches and 3 not in processor.caches else {})


def measurement() -> Measurement | None:
    """The speeds of this machine; None without a C compiler to measure with."""
    try:
        from stripe.exec.native.measure import measured  # numpy, and the compiler

        return measured()
    except ConfigError:
        return None


def _rates(processor: Processor) -> dict[str, float]:
    """Parameters of the model that were measured, none where there is no compiler. Rates in a cycle are quarters: a
    core that runs at another speed for a moment is no other machine."""
    found = measurement()
    if found is None:
        return {}
    cycles, lanes = found.clock_mhz * 1e6, processor.vector_bytes / 4
    rates = {f"L{level}_GB_PER_S": rate for level, rate in found.gb_per_s.items() if level > 1}
    rates["CLOCK_MHZ"] = round(found.clock_mhz, -2)
    rates["FMA_LATENCY"] = round(found.latency_cycles)
    rates["FMA_PER_CYCLE"] = _quarters(found.gflops * 1e9 / (cycles * lanes * 2))
    # Products of bytes that an instruction adds to a sum, as the compiler makes them. Fours reach 2 to 4 times the rate
    # of fp32; pairs, whose factors have to become numbers of 16 bits first, about the same; a product and an addition
    # of vectors half of it at most.
    ratio = found.dot_gops / found.gflops
    rates["I8_RATE"] = 4 if ratio >= 1.5 else 2 if ratio >= 0.5 else 1
    rates["ELEMENT_LOADS_PER_CYCLE"] = _quarters(found.loads_per_cycle)
    if 1 in found.gb_per_s:
        rates["LOADS_PER_CYCLE"] = _quarters(found.gb_per_s[1] * 1e9 / (cycles * processor.vector_bytes))
    return rates | {"DRAM_GB_PER_S": found.memory_gb_per_s}


def _quarters(rate: float) -> float:
    return max(1, round(4 * rate)) / 4
