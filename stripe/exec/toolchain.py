"""The C compiler: options of a build, search for the compiler, and a cache of objects by content.

An object is kept under a hash of the source, the compiler's version and the flags, so that equal code is built once,
on this machine and by any number of processes at the same time: each writes to a name of its own and renames. The hash
of its contents follows the object in its file, which loaders ignore. A damaged object is built again, as is an object
that another user owns or can write.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from stripe.ir import ConfigError

CANDIDATES = ("cc", "gcc", "clang")
_FLAGS = (
    "-std=c11",
    "-ffp-contract=off",  # a*b + c in one rounding would change bits
    "-fno-math-errno",  # errno is not read, and sqrt without it is one instruction
    "-fno-trapping-math",  # nor floating-point exceptions: lets conditions become selections
)

_SEPARATE = ("-fno-inline-functions", "-fno-inline-functions-called-once", "-fno-inline-small-functions")
MANY_KERNELS = 1000
"""Kernels above which the compiler keeps them out of the entry: gcc takes time quadratic in the accesses of a
function."""


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Options of a build. `compiler` None takes the first of `cc`, `gcc` and `clang` that is there.

    `native` tunes for this processor; `openmp` runs blocks tagged `thread` or `parallel` on several threads; `arenas`
    puts placed buffers at their addresses; `reorder` runs innermost loops in the order that suits caches and vectors.
    `sanitize` runs the program in a process of its own under the address and undefined-behaviour sanitizers. No option
    changes a bit of the results.
    """

    compiler: str | None = None
    level: Literal["O0", "O1", "O2", "O3", "Os"] = "O2"
    native: bool = False
    openmp: bool = False
    arenas: bool = True
    reorder: bool = False
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
    cache: Path

    def build(self, source: str, *, shared: bool) -> Path:
        """Compiles `source` to a shared object, or to a program; from the cache when it is there.

        Raises CompileError when the compiler refuses, ConfigError when the cache cannot be written.
        """
        flags = (*self.flags, *(("-shared", "-fPIC") if shared else ()))
        if source.count("\nstatic void kernel_") > MANY_KERNELS:
            flags += _SEPARATE
        key = "\0".join([source, self.compiler, identity(self.compiler, "-march=native" in flags), *flags])
        digest = hashlib.sha256(key.encode()).hexdigest()
        target = self.cache / digest[:2] / (digest[2:40] + (".so" if shared else ".exe"))
        try:
            for folder in (self.cache, target.parent):
                _make_private(folder)
            if _is_intact(target):
                return target
            with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as name:
                built = self._compile(source, flags, Path(name))
                _seal(built)
                built.replace(target)
        except OSError as error:
            raise ConfigError(
                f"cannot write to the cache: {error.strerror}",
                path=str(self.cache),
                hint="set XDG_CACHE_HOME to a folder that can be written",
            ) from None
        return target

    def _compile(self, source: str, flags: tuple[str, ...], folder: Path) -> Path:
        text, built = folder / "program.c", folder / "program.out"
        text.write_text(source, encoding="utf-8")
        command = (self.compiler, *flags, "-o", str(built), str(text), "-lm")
        result = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
        )
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
    r"|cannot execute [^\n]*|Killed signal[^\n]*"
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
    flags = [*_FLAGS, f"-{options.level}"]
    flags += ["-march=native"] if options.native else []
    flags += ["-fopenmp"] if options.openmp else []
    flags += _SANITIZE if options.sanitize else []
    return Toolchain(find_compiler(options.compiler), (*flags, *options.extra_flags), cache_folder())


_DIGEST = hashlib.sha256().digest_size


def _make_private(folder: Path) -> None:
    """Makes a folder of the cache. Raises ConfigError where another user could put objects into it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.geteuid():
        reason = "the cache belongs to another user, whose objects are not run"
        raise ConfigError(reason, path=str(folder), hint="set XDG_CACHE_HOME to a folder of your own")
    if found.st_mode & 0o022:
        folder.chmod(0o700)


def _seal(built: Path) -> None:
    """Appends the hash of the contents, and has both on the disk before the file takes its place."""
    with built.open("r+b") as stream:
        stream.write(hashlib.sha256(stream.read()).digest())
        stream.flush()
        os.fchmod(stream.fileno(), 0o700)
        os.fsync(stream.fileno())


def _is_intact(target: Path) -> bool:
    """Whether the file of the cache is whole, and nobody else's."""
    try:
        with os.fdopen(os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
            found = os.fstat(stream.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
                return False
            data = stream.read()
    except OSError:
        return False
    return hashlib.sha256(data[:-_DIGEST]).digest() == data[-_DIGEST:]


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


def cache_folder() -> Path:
    """`stripe-opt` in the user's cache folder, as the XDG base directory specification has it."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        base = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # no HOME, and no entry in the table of users
        base = Path(tempfile.gettempdir()) / f"cache-{os.geteuid()}"
    return base / "stripe-opt" / "objects"


@lru_cache(maxsize=32)
def identity(compiler: str, native: bool) -> str:
    """The identity of a compiler: its version and, with -march=native, the processor that it finds."""
    version = _output((compiler, "--version"))
    return version + (
        _output((compiler, "-march=native", "-dM", "-E", "-x", "c", os.devnull)) if native else ""
    )


def _output(command: tuple[str, ...]) -> str:
    try:
        result = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        reason = f"cannot run the C compiler: {error.strerror}"
        raise ConfigError(reason, path=command[0], hint=_TRY_IT) from None
    return result.stdout
