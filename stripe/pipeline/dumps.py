"""`--dump-dir`: the program after each pass as files, beside the pass list and the rendered model."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from typing_extensions import override

from stripe.ir import ConfigError, Program, print_program
from stripe.pipeline.instrument import Instrument, PassEntry
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

    The dumps of an earlier run go first: a longer run's would stand behind those of this one. `dumps.json` lists what a
    run wrote, and nothing else is removed.
    """

    def __init__(self, folder: Path, documents: dict[str, object]) -> None:
        self._folder = folder
        self._documents = documents
        self._files: list[str] = []
        self._count = 0

    @override
    def begin(self, program: Program) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"cannot make the folder for dumps: {error.strerror}",
                path=str(self._folder),
                hint="--dump-dir takes a folder",
            ) from None
        self._remove_earlier()
        for name, document in self._documents.items():
            self._save(f"{name}.json", json.dumps(document, indent=2) + "\n")
        self._save("00_input.stripe", print_program(program))

    @override
    def after(self, entry: PassEntry, before: Program, after: Program) -> None:
        self._count += 1
        self._save(f"{self._count:02d}_{_file_name(entry.name)}.stripe", print_program(after))

    def _save(self, name: str, text: str) -> None:
        self._files.append(name)
        self._write(_LISTING, json.dumps({"stripe_dumps": self._files}, indent=1) + "\n")
        self._write(name, text)

    def _write(self, name: str, text: str) -> None:
        try:
            (self._folder / name).write_text(text, "utf-8")
        except OSError as error:
            raise ConfigError(
                f"cannot write a dump: {error.strerror}", path=str(self._folder / name)
            ) from None

    def _remove_earlier(self) -> None:
        """Removes what the listing names, where it is a file of the kind that a run writes into this very folder."""
        for name in _listed(self._folder / _LISTING):
            path = self._folder / name
            if _DUMP.fullmatch(name) and path.is_file() and not path.is_symlink():
                try:
                    path.unlink()
                except OSError as error:
                    reason = f"cannot remove the dump of an earlier run: {error.strerror}"
                    raise ConfigError(reason, path=str(path)) from None


_LISTING = "dumps.json"
_DUMP = re.compile(r"\d{2,}_[\w.+-]+\.stripe|config\.json|hw\.json")


def _listed(path: Path) -> list[str]:
    """The files that an earlier run wrote; none when there was none, or when the listing is no such thing."""
    try:
        found: object = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return []
    names: object = cast("dict[str, object]", found).get("stripe_dumps") if isinstance(found, dict) else None
    return [str(name) for name in cast("list[object]", names)] if isinstance(names, list) else []


def _file_name(name: str) -> str:
    """An entry's name without what a file name cannot hold."""
    return re.sub(r"[^\w.+-]", "_", name)[:100] or "pass"
