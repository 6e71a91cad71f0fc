"""The C compiler: options of a build, search for the compiler, and objects by content.

An object is kept in the cache under a hash of the source, the compiler's version, the flags and the processor, so that
equal code is built once.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal

from stripe.emit.c.dialect import FLAGS
from stripe.exec.cache import FileCache, user_cache
from stripe.ir import ConfigError

CANDIDATES = ("cc", "gcc", "clang")


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Options of a build. `compiler` None takes the first of `cc`, `gcc` and `clang` that is there.

    `native` builds for this processor, by the flag that the compiler has for it. `openmp` runs blocks tagged
    `thread` or `parallel` on `threads` threads, on as many as there are cores where that is None. `arenas` puts
    placed buffers at their addresses; `reorder` runs innermost loops in the order that suits caches and vectors;
    `profile` times kernels; `sanitize` runs the program in a process of its own under the address and undefined-
    behaviour sanitizers. Products that sums take are rounded with
    them where the processor can (`native`) and the compiler does; no option changes another bit of the results.
    """

    compiler: str | None = None
    level: Literal["O0", "O1", "O2", "O3", "Os"] = "O3"
    native: bool = True
    openmp: bool = False
    threads: int | None = None
    arenas: bool = True
    reorder: bool = False
    profile: bool = False
    sanitize: bool = False
    extra_flags: tuple[str, ...] = ()


class CompileError(Exception):
    """The C compiler refused the emitted code: a fault of ours. `str()` has the command and the compiler's message."""

    def __init__(self, command: tuple[str, ...], output: str, source: str) -> None:
        super().__init__(f"the C compiler refused the emitted code\n$ {' '.join(command)}\n{output.strip()}")
        self.command = command
        self.output = output
        self.source = source


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler with the flags of a build."""

    compiler: str
    flags: tuple[str, ...]
    cache: FileCache

    def build(self, source: str, *, shared: bool) -> Path:
        """Compiles `source` to a shared object, or to a program; from the cache when it is there.

        Raises CompileError when the compiler refuses, ConfigError when the cache cannot be written.
        """
        flags = (*self.flags, *(("-shared", "-fPIC") if shared else ()))
        native = any(flag in _NATIVE for flag in flags)
        files = (_content(flag) for flag in flags)
        key = "\0".join([source, self.compiler, identity(self.compiler, native), *flags, *files])
        suffix = ".so" if shared else ".exe"
        return self.cache.file(key, suffix, lambda folder: self._compile(source, flags, folder))

    def _compile(self, source: str, flags: tuple[str, ...], folder: Path) -> Path:
        text, built = folder / "program.c", folder / "program.out"
        text.write_text(source, encoding="utf-8")
        command = (self.compiler, *flags, "-o", str(built), str(text), "-lm")
        result = _run(command)
        output = (result.stderr or result.stdout).strip()
        if result.returncode < 0:
            name = signal.Signals(-result.returncode).name
            raise ConfigError(f"the C compiler was killed ({name})", path=self.compiler, hint=_ROOM)
        if result.returncode == 0 and not built.is_file():
            reason = "the C compiler reports no error, and wrote no program"
            raise ConfigError(reason, path=self.compiler, hint=_TRY_IT)
        if result.returncode:
            if not output:
                reason = f"the C compiler failed without a message, status {result.returncode}"
                raise ConfigError(reason, path=self.compiler, hint=_TRY_IT)
            if broken := _BROKEN.search(output):
                raise ConfigError(f"the C compiler failed: {broken[0]}", path=self.compiler, hint=_ROOM)
            for flag, (what, hint) in _RUNTIMES.items():
                if any(given.startswith(flag) for given in flags) and _LACKS.search(output):
                    raise ConfigError(f"{self.compiler} has no {what} here", hint=hint)
            raise CompileError(command, output, source)
        return built


_TRY_IT = "compile a small program with it by hand, or put another compiler first on the path"
_ROOM = "it needs memory, space in the folder for temporary files, and a whole installation"
_BROKEN = re.compile(
    r"No space left on device|[Cc]annot allocate memory|out of memory[^\n]*|virtual memory exhausted[^\n]*"
    r"|cannot execute [^\n]*|Killed signal[^\n]*|cannot find \W*(?:ld|as|cc1|crt\w+\.o)\b[^\n]*"
)
"""Messages of compilers about the machine, not about the program."""

_RUNTIMES = {
    "-fopenmp": ("OpenMP", "install its library (libgomp for gcc, libomp for clang), or do without threads"),
    "-fsanitize": ("sanitizers", "install their libraries (clang has them in compiler-rt), or use gcc"),
}
_LACKS = re.compile(r"'?omp\.h'?[ :].*(not found|No such file)|cannot find .*(omp|asan|ubsan|clang_rt)")
"""Messages of compilers when the library for a flag is not installed."""


def toolchain(options: CompileOptions) -> Toolchain:
    """The toolchain for these options. Raises ConfigError when there is no such compiler."""
    compiler = find_compiler(options.compiler)
    flags = [*FLAGS, f"-{options.level}"]
    flags += native_flags(compiler) if options.native else []
    flags += ["-fopenmp"] if options.openmp else []
    flags += _SANITIZE if options.sanitize else []
    return Toolchain(compiler, (*flags, *options.extra_flags), user_cache())


_SANITIZE = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]


def find_compiler(name: str | None = None) -> str:
    """The path of the C compiler `name`, or of the first of `CANDIDATES`; raises ConfigError when there is none."""
    for candidate in (name,) if name else CANDIDATES:
        found = shutil.which(candidate)
        if found is not None:
            return found
    if name:
        raise ConfigError(
            f"no C compiler '{name}'", hint="name one that is on the path, such as gcc or clang"
        )
    raise ConfigError(
        f"no C compiler: none of {', '.join(CANDIDATES)} is on the path",
        hint="install gcc or clang",
    )


@lru_cache(maxsize=32)
def identity(compiler: str, native: bool) -> str:
    """The identity of a compiler: its version and, for code that is `native`, the processor that it finds."""
    version = _run((compiler, "--version")).stdout
    return version + (_macros(compiler, native_flags(compiler)).stdout if native else "")


_NATIVE = ("-mcpu=native", "-march=native")
"""Flags for the processor at hand, the better one first; compilers for x86 have the second."""


@lru_cache(maxsize=32)
def native_flags(compiler: str) -> tuple[str, ...]:
    """The flag by which `compiler` builds for this processor; none where it takes none."""
    flags = _NATIVE[1:] if platform.machine() in ("x86_64", "AMD64", "i386", "i686") else _NATIVE
    taken = (flag for flag in flags if _macros(compiler, (flag,)).returncode == 0)
    return tuple(islice(taken, 1))


def _macros(compiler: str, flags: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """The macros that a compiler predefines: they tell the processor that it builds for."""
    return _run((compiler, *flags, "-dM", "-E", "-x", "c", os.devnull))


def _run(command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    # Without a path the compiler itself is found in the places that the system has for it; gcc then finds no linker.
    environment = {"PATH": os.defpath, **os.environ}
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
            env=environment,
        )  # fmt: skip
    except OSError as error:
        reason = f"cannot run the C compiler: {error.strerror}"
        raise ConfigError(reason, path=command[0], hint=_TRY_IT) from None


def _content(flag: str) -> str:
    """The hash of a file that a flag of the user names (`-include`, `@FILE`); empty where it names none."""
    path = Path(re.split("[=@]", flag)[-1])
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
