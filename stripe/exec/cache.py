"""Files that are made once and kept by content, in the user's cache folder.

A file is kept under a hash of everything that it follows from. Any number of processes may make it at the same time:
each writes to a name of its own and renames. The hash of its contents follows them in the file, which loaders of
objects ignore. A damaged file is made again, as is a file that another user owns or can write.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stripe.ir import ConfigError

_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class FileCache:
    """A folder of such files."""

    folder: Path

    def file(self, key: str, suffix: str, make: Callable[[Path], Path]) -> Path:
        """The file of `key`; where it is missing, `make` writes it into the folder that it gets, and gives its path.

        Raises ConfigError when the cache cannot be written, or belongs to another user.
        """
        digest = hashlib.sha256(key.encode()).hexdigest()
        target = self.folder / digest[:2] / (digest[2:40] + suffix)
        try:
            for folder in (self.folder, target.parent):
                make_private(folder)
            if contents(target) is not None:
                return target
            with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as name:
                made = make(Path(name))
                # the hash of the contents follows them, and both are on the disk before the file takes its place
                with made.open("r+b") as stream:
                    stream.write(hashlib.sha256(stream.read()).digest())
                    stream.flush()
                    os.fchmod(stream.fileno(), 0o700)
                    os.fsync(stream.fileno())
                made.replace(target)
        except OSError as error:
            raise ConfigError(
                f"cannot write to the cache: {error.strerror}",
                path=str(self.folder),
                hint="set XDG_CACHE_HOME to a folder that can be written",
            ) from None
        return target

    def text(self, key: str, make: Callable[[], str]) -> str:
        """The text of `key`; where it is missing, `make` gives it."""

        def write(folder: Path) -> Path:
            made = folder / "text"
            made.write_text(make(), encoding="utf-8")
            return made

        path = self.file(key, ".txt", write)
        found = contents(path)
        return make() if found is None else found.decode()


def user_cache() -> FileCache:
    """`stripe-opt` in the user's cache folder, as the XDG base directory specification has it."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        base = Path(given) if Path(given).is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # no HOME, and no entry in the table of users
        base = Path(tempfile.gettempdir()) / f"cache-{os.geteuid()}"
    return FileCache(base / "stripe-opt" / "objects")


def make_private(folder: Path) -> None:
    """Makes a folder of the cache. Raises ConfigError where another user could put files into it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.geteuid():
        reason = "the cache belongs to another user, whose objects are not run"
        raise ConfigError(reason, path=str(folder), hint="set XDG_CACHE_HOME to a folder of your own")
    if found.st_mode & 0o022:
        folder.chmod(0o700)


def contents(target: Path) -> bytes | None:
    """The contents of a whole file of the cache that no other user owns or can write."""
    try:
        with os.fdopen(os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
            found = os.fstat(stream.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
                return None
            data = stream.read()
    except OSError:
        return None
    whole = hashlib.sha256(data[:-_DIGEST]).digest() == data[-_DIGEST:]
    return data[:-_DIGEST] if whole else None
