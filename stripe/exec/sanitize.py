"""Running emitted code under the address and undefined-behaviour sanitizers, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stripe.emit.c import CModule, EntryParameter
from stripe.exec.arith import Array

_TIMEOUT = 600.0
"""Seconds; sanitized code is some ten times slower than the plain one."""


class SanitizerError(Exception):
    """The sanitizers found a fault in the emitted code, or it crashed: a fault of ours. `str()` is their report."""


def with_c_main(module: CModule) -> str:
    """The source of `module` with a `main` that reads all parameters from a file and writes them to another.

    Each tensor has a heap block of exactly its size, so that a step over its end is found.
    """
    names = [f"tensor_{number}" for number in range(len(module.parameters))]
    lines = ["", "#include <stdio.h>", "#include <stdlib.h>", "", "int main(int argc, char **argv) {"]
    lines += ["  if (argc != 3) return 2;", '  FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");']
    lines += ["  if (in == NULL || out == NULL) return 2;"]
    for name, parameter in zip(names, module.parameters, strict=True):
        lines.append(f"  void *{name} = malloc({parameter.ref.bytes});")
        lines.append(f"  if ({_transfer('fread', name, parameter, 'in')}) return 2;")
    lines.append(f"  {module.entry}({', '.join(names)});")
    for name, parameter in zip(names, module.parameters, strict=True):
        lines.append(f"  if ({_transfer('fwrite', name, parameter, 'out')}) return 2;")
    lines += [f"  free({name});" for name in names]
    lines += ["  return fclose(in) || fclose(out) ? 2 : 0;", "}", ""]
    return module.source + "\n".join(lines)


def _transfer(function: str, name: str, parameter: EntryParameter, stream: str) -> str:
    return (
        f"{name} == NULL || {function}({name}, 1, {parameter.ref.bytes}, {stream}) != {parameter.ref.bytes}"
    )


def run_sanitized(program: Path, module: CModule, buffers: Sequence[Array]) -> None:
    """Runs a program that was built from `with_main` on `buffers`, of which the outputs get their contents.

    Raises SanitizerError when it fails.
    """
    with tempfile.TemporaryDirectory(prefix="stripe-") as folder:
        given, made = Path(folder) / "in", Path(folder) / "out"
        with given.open("wb") as stream:
            for buffer in buffers:
                stream.write(buffer.tobytes())
        environment = {
            **os.environ,
            # Leaks are looked for by tracing the process, which containers often forbid.
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        }
        try:
            result = subprocess.run(
                [str(program), str(given), str(made)],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                env=environment,
                timeout=_TIMEOUT,
            )
        except subprocess.TimeoutExpired:
            raise SanitizerError(f"the sanitized program did not end within {_TIMEOUT:g} s") from None
        if result.returncode:
            raise SanitizerError(result.stderr.strip() or f"it ended with status {result.returncode}")
        _read_back(made.read_bytes(), module, buffers)


def _read_back(data: bytes, module: CModule, buffers: Sequence[Array]) -> None:
    offset = 0
    for parameter, buffer in zip(module.parameters, buffers, strict=True):
        size = parameter.ref.bytes
        if parameter.role in ("out", "inout"):
            buffer[...] = np.frombuffer(data[offset : offset + size], buffer.dtype)
        offset += size
