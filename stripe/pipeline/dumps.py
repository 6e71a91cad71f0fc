"""`--dump-dir`: the program after each pass as files, beside the pass list and the rendered model."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from typing_extensions import override

from stripe.ir import ConfigError, Program, print_program
from stripe.output import replace_file, unwritable
from stripe.pipeline.entry import PassEntry
from stripe.pipeline.instrument import Instrument
from stripe.pipeline.passlist import entry_json

if TYPE_CHECKING:
    from stripe.hw.schema import HardwareModel


def documents(entries: Sequence[PassEntry], hardware: HardwareModel | None) -> dict[str, object]:
    """The files beside the programs: the pass list as it runs, and the rendered model."""
    found: dict[str, object] = {"config": {"passes": [entry_json(entry) for entry in entries]}}
    if hardware is not None:
        found["hw"] = hardware.model_dump(mode="json", exclude_defaults=True)
    return found


class Dumps(Instrument):
    """`--dump-dir DIR`: `00_input.stripe`, `01_NAME.stripe`, …, and the rendered pass list and model as JSON.

    `dumps.json` lists the files of a run with the hashes of their contents. The dumps of an earlier run are removed
    first. Any other file is left alone, edited dumps included; where its name is needed, the run is refused before
    anything is removed or written.
    """

    def __init__(
        self, folder: Path, entries: Sequence[PassEntry], hardware: HardwareModel | None = None
    ) -> None:
        self._folder = folder
        self._documents = documents(entries, hardware)
        self._names = [f"{name}.json" for name in self._documents]
        self._names += [_INPUT, *(_name(number, entry) for number, entry in enumerate(entries, 1))]
        self._files: dict[str, str] = {}
        self._count = 0

    @override
    def begin(self, program: Program) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"cannot make the folder for dumps: {error.strerror}"
            raise ConfigError(reason, path=str(self._folder), hint="--dump-dir takes a folder") from None
        earlier = self._earlier()
        for path in (self._folder / name for name in self._names):
            if os.path.lexists(path) and path not in earlier:
                raise _foreign(path)
        for path in earlier:
            try:
                path.unlink()
            except OSError as error:
                raise unwritable(str(path), error) from None
        for name, document in self._documents.items():
            self._save(f"{name}.json", json.dumps(document, indent=2) + "\n")
        self._save(_INPUT, print_program(program))

    @override
    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        self._count += 1
        self._save(_name(self._count, entry), print_program(after))

    def _save(self, name: str, text: str) -> None:
        path = self._folder / name
        data = text.encode("utf-8", "backslashreplace")
        if os.path.lexists(path):
            raise _foreign(path)
        self._files[name] = _hash(data)
        try:
            listing = json.dumps({"stripe_dumps": self._files}, indent=1) + "\n"
            replace_file(self._folder / _LISTING, listing.encode())
            with path.open("xb") as stream:
                stream.write(data)
        except FileExistsError:
            raise _foreign(path) from None
        except OSError as error:
            raise unwritable(str(path), error) from None

    def _earlier(self) -> list[Path]:
        """The files of the listing of an earlier run whose contents are unchanged."""
        found: list[Path] = []
        listing = self._folder / _LISTING
        for name, digest in _listed(listing).items() if os.path.lexists(listing) else ():
            path = self._folder / name
            try:
                if _DUMP.fullmatch(name) and not path.is_symlink() and _hash(path.read_bytes()) == digest:
                    found.append(path)
            except (FileNotFoundError, IsADirectoryError):
                continue
            except OSError as error:
                raise unwritable(str(path), error) from None
        return found


_LISTING = "dumps.json"
_INPUT = "00_input.stripe"
_DUMP = re.compile(r"\d{2,}_[\w.+-]+\.stripe|config\.json|hw\.json")


def _name(number: int, entry: PassEntry) -> str:
    """The file of the program after pass `number`, of characters that a file name may hold."""
    name = re.sub(r"[^\w.+-]", "_", entry.name)[:100] or "pass"
    return f"{number:02d}_{name}.stripe"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _foreign(path: Path) -> ConfigError:
    return ConfigError(
        "this file is no unchanged dump of an earlier run, so it is not overwritten",
        path=str(path),
        hint="name another folder, or remove the file",
    )


def _listed(path: Path) -> dict[str, str]:
    """The files of an earlier run with their hashes. Raises ConfigError for a file that is no listing."""
    try:
        found: object = None if path.is_symlink() else json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        found = None
    listed = cast("dict[str, object]", found).get("stripe_dumps") if isinstance(found, dict) else None
    if not isinstance(listed, dict):
        raise _foreign(path)
    return {name: str(digest) for name, digest in cast("dict[str, object]", listed).items()}
