"""Programs as machine code: emitted as C, compiled, loaded and called on arrays."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from stripe.emit.c import CModule, COptions, EntryParameter, emit_module
from stripe.exec.arith import Array
from stripe.exec.layout import check_inputs, constant_array, from_flat, to_flat
from stripe.exec.sanitize import run_sanitized, with_c_main
from stripe.exec.toolchain import CompileOptions, toolchain
from stripe.ir import ConfigError, Program, Refinement, is_row_major

_INLINE_CONSTANTS = 1 << 20
"""Constants of more bytes than this are passed in: as text they would take compilers minutes."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds of each run: on the clock, and of processor time, which all threads of a run use together."""

    wall: tuple[float, ...]
    processor: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.wall)

    @property
    def min(self) -> float:
        return min(self.wall)


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """Times calls."""

    wall: list[float] = field(default_factory=list[float])
    processor: list[float] = field(default_factory=list[float])

    def time(self, call: Callable[[], object]) -> None:
        """Calls `call`, and notes its times."""
        worked, started = time.process_time_ns(), time.perf_counter_ns()
        call()
        self.wall.append((time.perf_counter_ns() - started) / 1e9)
        self.processor.append((time.process_time_ns() - worked) / 1e9)

    def timings(self, skipped: int = 0) -> Timings:
        """The times of all calls but the first `skipped`."""
        return Timings(tuple(self.wall[skipped:]), tuple(self.processor[skipped:]))


class CompiledProgram:
    """A built program. `source` is its C, `library` the file that the compiler wrote."""

    def __init__(
        self, program: Program, module: CModule, library: Path, *, sanitized: bool, threads: int | None = None
    ) -> None:
        self.program = program
        self.module = module
        self.library = library
        self._sanitized = sanitized
        self._threads = threads
        self._constants = {constant.name: constant_array(constant) for constant in program.constants}

    @property
    def source(self) -> str:
        return self.module.source

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name, as C-contiguous arrays in logical shape, for inputs in logical shape and dtype.

        Raises ExecutionError for inputs that do not fit, and, when built with `sanitize`, SanitizerError.
        """
        if not self._sanitized:
            call, outputs = self.bind(inputs)
            call()
            return outputs()
        buffers = self._buffers(inputs)
        run_sanitized(self.library, self.module, buffers)
        return self._outputs(buffers)

    def bind(
        self, inputs: Mapping[str, Array]
    ) -> tuple[Callable[[], object], Callable[[], dict[str, Array]]]:
        """A function that runs the program on these inputs, in this process, and one that gives the outputs of the
        last run."""
        buffers = self._buffers(inputs)
        table = _table(buffers)

        def call(_kept: object = buffers) -> None:  # the table has addresses alone, which keep no array alive
            self._entry(table)

        return call, lambda: self._outputs(buffers)

    def bench(self, inputs: Mapping[str, Array], repeats: int = 10) -> Timings:
        """The times of `repeats` calls after one that does not count. Only the calls are timed, not the marshalling."""
        watch = Stopwatch()
        self._repeat(inputs, repeats + 1, watch.time)
        return watch.timings(1)

    def profile(self, inputs: Mapping[str, Array], repeats: int = 10) -> tuple[float, ...]:
        """Seconds on the clock of each kernel of main, in order: the least of `repeats` calls after one that does not
        count. The program is one that was built with `profile`."""
        clock = (ctypes.c_double * max(1, self.module.kernels)).in_dll(self._loaded, _CLOCK)
        times: list[tuple[float, ...]] = []

        def noted(run: Callable[[], object]) -> None:
            run()
            times.append(tuple(clock))

        self._repeat(inputs, repeats + 1, noted)
        return tuple(map(min, zip(*times[1:], strict=True)))

    def _repeat(
        self, inputs: Mapping[str, Array], count: int, call: Callable[[Callable[[], object]], object]
    ) -> None:
        """Calls the program `count` times through `call`, each time on the same inputs."""
        if self._sanitized:
            raise ValueError("a sanitized program is not for timing")
        buffers = self._buffers(inputs)
        changing = [
            (buffer, buffer.copy())
            for parameter, buffer in zip(self.module.parameters, buffers, strict=True)
            if parameter.role == "inout"
        ]
        table = _table(buffers)
        for _ in range(count):
            for buffer, original in changing:
                buffer[...] = original
            call(lambda: self._entry(table))

    @cached_property
    def _loaded(self) -> ctypes.CDLL:
        """The library, loaded when it is first needed: in the process that calls it."""
        loaded = _load(self.library)
        if self._threads is not None:
            with suppress(AttributeError):  # without OpenMP there is one thread
                loaded.omp_set_num_threads(self._threads)
        return loaded

    @property
    def _entry(self) -> Callable[[object], object]:
        """The function that runs the program."""
        return self._loaded[_TABLE]

    def _outputs(self, buffers: Sequence[Array]) -> dict[str, Array]:
        return {
            parameter.ref.name: _result(parameter.ref, buffer)
            for parameter, buffer in zip(self.module.parameters, buffers, strict=True)
            if parameter.role in ("out", "inout")
        }

    def _buffers(self, inputs: Mapping[str, Array]) -> list[Array]:
        """The memory of each parameter in order: inputs under their strides, outputs zero."""
        given = {**check_inputs(self.program, inputs), **self._constants}
        return [_buffer(parameter, given.get(parameter.ref.name)) for parameter in self.module.parameters]


def compile_program(program: Program, options: CompileOptions | None = None) -> CompiledProgram:
    """Emits and compiles a structurally valid program, which is loaded by its first run.

    Raises ConfigError when there is no compiler, StripeError for sizes that no machine can address, and CompileError,
    a fault of ours, when the compiler refuses the code.
    """
    chosen = options or CompileOptions()
    large = sum(len(constant.data) for constant in program.constants) > _INLINE_CONSTANTS
    module = emit_module(
        program,
        COptions(
            openmp=chosen.openmp,
            arenas=chosen.arenas,
            reorder=chosen.reorder,
            profile=chosen.profile,
            constants="arguments" if large else "inline",
            checked=chosen.sanitize,
        ),
    )
    source = with_c_main(module) if chosen.sanitize else _with_table(module)
    library = toolchain(chosen).build(source, shared=not chosen.sanitize)
    return CompiledProgram(program, module, library, sanitized=chosen.sanitize, threads=chosen.threads)


_TABLE = "st_call"


def _with_table(module: CModule) -> str:
    """The source of `module` with a function that takes all tensors in one table: ctypes passes 1024 arguments."""
    arguments = ", ".join(f"tensors[{number}]" for number in range(len(module.parameters)))
    unused = "" if module.parameters else "(void)tensors; "
    begin = "st_kernel_done(-1); " if module.kernels else ""
    call = f"{{ {unused}{begin}{module.entry}({arguments}); }}"
    table = f"void {_TABLE}(void *const *tensors);\nvoid {_TABLE}(void *const *tensors) {call}\n"
    clock = _KERNEL_CLOCK.replace("COUNT", str(module.kernels)) if module.kernels else ""
    return f"{module.source}\n{table}{clock}"


_CLOCK = "st_kernel_seconds"
_KERNEL_CLOCK = f"""
#include <time.h>

// Seconds from the end of the kernel before to that of each kernel, of all points of main.
double {_CLOCK}[COUNT];
static struct timespec st_before;
void st_kernel_done(int kernel) {{
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  const double whole = (double)(now.tv_sec - st_before.tv_sec);
  if (kernel >= 0) {_CLOCK}[kernel] += whole + 1e-9 * (double)(now.tv_nsec - st_before.tv_nsec);
  for (int each = 0; kernel < 0 && each < COUNT; each++) {_CLOCK}[each] = 0;
  st_before = now;
}}
"""


def _load(library: Path) -> ctypes.CDLL:
    try:
        loaded = ctypes.CDLL(str(library))
        entry = loaded[_TABLE]
    except (OSError, AttributeError) as error:
        hint = "does the compiler build for this processor, and are its libraries here?"
        raise ConfigError(f"the compiled program cannot be loaded: {error}", hint=hint) from None
    entry.argtypes = [ctypes.c_void_p]
    entry.restype = None
    return loaded


def _table(buffers: Sequence[Array]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(buffers))(*(buffer.ctypes.data for buffer in buffers))


_LINE = 64
"""Bytes to which tensors are aligned: a vector that lies in two lines of the cache takes two accesses."""


def _buffer(parameter: EntryParameter, given: Array | None) -> Array:
    """The memory of a parameter. An output is zero, an input is copied where it is changed or not aligned."""
    ref = parameter.ref
    if given is None:
        return _aligned(ref.span, ref.dtype.numpy())
    if parameter.role != "inout" and _is_plain(ref):
        flat = np.require(given, requirements=["C", "A"]).reshape(-1)
        if flat.ctypes.data % _LINE == 0:
            return flat
    else:
        flat = to_flat(ref, given)
    made = _aligned(flat.size, flat.dtype)
    made[...] = flat
    return made


def _aligned(size: int, dtype: np.dtype[Any]) -> Array:
    raw = np.zeros(size * dtype.itemsize + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    return raw[start : start + size * dtype.itemsize].view(dtype)


def _result(ref: Refinement, flat: Array) -> Array:
    return flat.reshape(ref.sizes) if _is_plain(ref) else from_flat(ref, flat)


def _is_plain(ref: Refinement) -> bool:
    """Whether the memory of a tensor is that of its logical array."""
    return ref.layout is None and is_row_major(ref.sizes, ref.strides)
