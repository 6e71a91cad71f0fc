"""Programs as machine code: emitted as C, compiled, loaded and called on arrays."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from stripe.emit.c import CModule, COptions, EntryParameter, emit_module
from stripe.exec.arith import Array
from stripe.exec.layout import check_inputs, constant_array, from_flat, to_flat
from stripe.exec.sanitize import run_sanitized, with_main
from stripe.exec.toolchain import CompileOptions, toolchain
from stripe.ir import ConfigError, Program, Refinement, is_row_major

_INLINE_CONSTANTS = 1 << 20
"""Constants of more bytes than this are passed in: as text they would take compilers minutes."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds of each run."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def min(self) -> float:
        return min(self.seconds)


class CompiledProgram:
    """A built program. `source` is its C, `library` the file that the compiler wrote."""

    def __init__(self, program: Program, module: CModule, library: Path, *, sanitized: bool) -> None:
        self.program = program
        self.module = module
        self.library = library
        self._sanitized = sanitized
        self._constants = {constant.name: constant_array(constant) for constant in program.constants}

    @property
    def source(self) -> str:
        return self.module.source

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name, as C-contiguous arrays in logical shape, for inputs in logical shape and dtype.

        Raises ExecutionError for inputs that do not fit, and, when built with `sanitize`, SanitizerError.
        """
        buffers = self._buffers(inputs)
        if self._sanitized:
            run_sanitized(self.library, self.module, buffers)
        else:
            self._entry(_table(buffers))
        return {
            parameter.ref.name: _result(parameter.ref, buffer)
            for parameter, buffer in zip(self.module.parameters, buffers, strict=True)
            if parameter.role in ("out", "inout")
        }

    def bench(self, inputs: Mapping[str, Array], repeats: int = 10) -> Timings:
        """Seconds of `repeats` calls after one that does not count. Only the calls are timed, not the marshalling."""
        if self._sanitized:
            raise ValueError("a sanitized program is not for timing")
        buffers = self._buffers(inputs)
        changing = [
            (buffer, buffer.copy())
            for parameter, buffer in zip(self.module.parameters, buffers, strict=True)
            if parameter.role == "inout"
        ]
        table = _table(buffers)
        seconds: list[float] = []
        for _ in range(repeats + 1):
            for buffer, original in changing:
                buffer[...] = original
            start = time.perf_counter_ns()
            self._entry(table)
            seconds.append((time.perf_counter_ns() - start) / 1e9)
        return Timings(tuple(seconds[1:]))

    @cached_property
    def _entry(self) -> Callable[[object], object]:
        """The function that runs the program, loaded when it is first called: in the process that calls it."""
        return _load(self.library)

    def _buffers(self, inputs: Mapping[str, Array]) -> list[Array]:
        """The memory of each parameter in order: inputs under their strides, outputs zero."""
        given = {**check_inputs(self.program, inputs), **self._constants}
        return [_buffer(parameter, given.get(parameter.ref.name)) for parameter in self.module.parameters]


def compile_program(program: Program, options: CompileOptions | None = None) -> CompiledProgram:
    """Emits, compiles and loads a structurally valid program.

    Raises ConfigError when there is no compiler, StripeError for sizes that no machine can address, and CompileError,
    a fault of ours, when the compiler refuses the code.
    """
    chosen = options or CompileOptions()
    module = emit_module(program, _emit_options(program, chosen))
    source = with_main(module) if chosen.sanitize else _with_table(module)
    library = toolchain(chosen).build(source, shared=not chosen.sanitize)
    return CompiledProgram(program, module, library, sanitized=chosen.sanitize)


def _emit_options(program: Program, options: CompileOptions) -> COptions:
    large = sum(len(constant.data) for constant in program.constants) > _INLINE_CONSTANTS
    return COptions(
        openmp=options.openmp,
        arenas=options.arenas,
        reorder=options.reorder,
        constants="arguments" if large else "inline",
        checked=options.sanitize,
    )


_TABLE = "st_call"


def _with_table(module: CModule) -> str:
    """The source of `module` with a function that takes all tensors in one table: ctypes passes 1024 arguments."""
    arguments = ", ".join(f"tensors[{number}]" for number in range(len(module.parameters)))
    unused = "" if module.parameters else "(void)tensors; "
    call = f"{{ {unused}{module.entry}({arguments}); }}"
    return (
        f"{module.source}\nvoid {_TABLE}(void *const *tensors);\nvoid {_TABLE}(void *const *tensors) {call}\n"
    )


def _load(library: Path) -> Callable[[object], object]:
    try:
        entry = ctypes.CDLL(str(library))[_TABLE]
    except (OSError, AttributeError) as error:
        hint = "does the compiler build for this processor, and are its libraries here?"
        raise ConfigError(f"the compiled program cannot be loaded: {error}", hint=hint) from None
    entry.argtypes = [ctypes.c_void_p]
    entry.restype = None
    return entry


def _table(buffers: Sequence[Array]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(buffers))(*(buffer.ctypes.data for buffer in buffers))


def _buffer(parameter: EntryParameter, given: Array | None) -> Array:
    ref = parameter.ref
    if given is None:
        return np.zeros(ref.span, ref.dtype.numpy())
    if parameter.role != "inout" and is_row_major(ref.sizes, ref.strides):
        return np.require(given, requirements=["C", "A"]).reshape(-1)
    return to_flat(ref, given)


def _result(ref: Refinement, flat: Array) -> Array:
    return flat.reshape(ref.sizes) if is_row_major(ref.sizes, ref.strides) else from_flat(ref, flat)
