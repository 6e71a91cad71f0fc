"""Output files: each is there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from stripe.ir.errors import ConfigError


def check_output(path: str | os.PathLike[str]) -> Path | int:
    """The file to write, with links followed, or the number of an open descriptor, such as that of `/dev/stdout`.
    Raises ConfigError where it plainly cannot be written.
    """
    name = os.fspath(path)
    try:
        if (descriptor := _descriptor(name)) is not None:
            os.fstat(descriptor)
            return descriptor
        target = Path(os.path.realpath(name))
        if target.is_dir():
            raise ConfigError("this is a directory", path=name, hint="name a file for the output")
        if not target.parent.exists():
            raise ConfigError(f"there is no folder '{target.parent}'", path=name, hint="make it first")
        beside = target.is_file() or not target.exists()
        if not os.access(target.parent if beside else target, os.W_OK):
            raise ConfigError(
                "cannot be written: Permission denied", path=name, hint="name a file in a folder of your own"
            )
    except OSError as error:
        raise unwritable(name, error) from None
    except ValueError as error:
        raise ConfigError(f"this is no file name: {error}", path=repr(name), hint="name a file") from None
    return target


def _descriptor(name: str) -> int | None:
    """The descriptor of this process that a name stands for, with links followed. Raises OSError for endless links."""
    path = Path(name)
    for _ in range(40):
        folder = os.path.realpath(path.parent)
        if folder in ("/dev/fd", f"/proc/{os.getpid()}/fd") and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = Path(folder) / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def unwritable(path: str, error: OSError) -> ConfigError:
    """The error of a file that the system refuses to write."""
    return ConfigError(f"cannot be written: {error.strerror or error}", path=path, hint="name another file")


@contextmanager
def writing(path: str | os.PathLike[str]) -> Generator[BinaryIO]:
    """A stream to the file `path`: into a new file beside it, which takes its name at the end. Raises ConfigError.

    A link is followed. A device, a pipe or an open descriptor is written directly, and never replaced.
    """
    target = check_output(path)
    try:
        if isinstance(target, int) or (target.exists() and not target.is_file()):
            buffer = io.BytesIO()  # devices lie about positions
            yield buffer
            # A descriptor keeps its position: a shell may write into the same file before and after.
            with os.fdopen(os.dup(target), "wb") if isinstance(target, int) else target.open("wb") as device:
                device.write(buffer.getbuffer())
        else:
            with _replacing(target) as stream:
                yield stream
    except BrokenPipeError:
        raise  # the reader has read enough
    except OSError as error:
        raise unwritable(os.fspath(path), error) from None


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file whole or not at all. Raises ConfigError."""
    with writing(path) as stream:
        stream.write(data)


def check_folder(path: str | os.PathLike[str], mark: str, signature: str = "") -> Path:
    """The folder to write, with links followed: a new one, an empty one, or that of an earlier run, known by the file
    `mark` with `signature` in its first line. Raises ConfigError for others.
    """
    name = os.fspath(path)
    try:
        target = Path(os.path.realpath(name))
        if target.exists() and not target.is_dir():
            raise ConfigError("this is a file", path=name, hint="name a folder for the output")
        if target.is_dir() and not _is_signed(target / mark, signature) and any(target.iterdir()):
            hint = "name an empty folder, or the folder of an earlier run"
            by = f" of {signature}" if signature else ""
            raise ConfigError(f"this folder is not empty, and has no '{mark}'{by}", path=name, hint=hint)
        if not target.parent.is_dir():
            raise ConfigError(f"there is no folder '{target.parent}'", path=name, hint="make it first")
    except OSError as error:
        raise unwritable(name, error) from None
    except ValueError as error:
        raise ConfigError(f"this is no file name: {error}", path=repr(name), hint="name a folder") from None
    return target


def _is_signed(mark: Path, signature: str) -> bool:
    if not mark.is_file():
        return False
    with mark.open("rb") as stream:
        return signature.encode() in stream.readline(_LONGEST_LINE)


_LONGEST_LINE = 1 << 16


def write_folder(
    path: str | os.PathLike[str],
    files: Mapping[str, bytes],
    mark: str,
    owned: Collection[str] = (),
    signature: str = "",
) -> None:
    """Writes a folder of files, whole or not at all. In the folder of an earlier run, files that the patterns `owned`
    match and the new ones lack go; others stay. Raises ConfigError.
    """
    import tempfile

    target = check_folder(path, mark, signature)
    try:
        new = not target.is_dir()
        with tempfile.TemporaryDirectory(
            prefix=f".{target.name[:40]}.", dir=target.parent if new else target
        ) as folder:
            made = Path(folder) / "made"
            made.mkdir()
            for file, data in files.items():
                (made / file).write_bytes(data)
            if new:
                made.replace(target)
                return
            for file in files:
                (made / file).replace(target / file)
            for pattern in owned:
                for stale in sorted(target.glob(pattern)):
                    if stale.name not in files:
                        stale.unlink()
    except OSError as error:
        raise unwritable(os.fspath(path), error) from None


def replace_file(target: Path, data: bytes) -> None:
    """Writes a file whole or not at all; a link of its name is replaced, not followed. Raises OSError."""
    with _replacing(target) as stream:
        stream.write(data)


@contextmanager
def _replacing(target: Path) -> Generator[BinaryIO]:
    import tempfile  # loads cryptography, and most products go to standard output

    handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:40]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        try:
            mode = stat.S_IMODE(target.lstat().st_mode) & 0o777 if target.is_file() else 0o666 & ~_umask()
        except FileNotFoundError:  # removed meanwhile
            mode = 0o666 & ~_umask()
        Path(temporary).chmod(mode)
        Path(temporary).replace(target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise


def _umask() -> int:
    """The permissions that new files of this process do not get. (It can only be read by setting it.)"""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
