"""Results of evaluations on disk, by content: shared by sweeps, safe under parallel use, bounded.

An entry is a result with the fields of the machine that it depends on (`stripe.hw.trace.Reads`). It is found for every
machine that agrees in these fields. What is kept is JSON; a damaged file is begun anew.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue

from stripe.hw.trace import MachineFacts, Reads

MAX_RESULTS = 100_000
"""Results that are kept; the least recently used are dropped."""

_FORMAT = 1
_TABLES = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA user_version = {_FORMAT};
CREATE TABLE IF NOT EXISTS places (key TEXT, places TEXT, PRIMARY KEY (key, places));
CREATE TABLE IF NOT EXISTS results (digest TEXT PRIMARY KEY, value BLOB, used REAL);
CREATE INDEX IF NOT EXISTS by_use ON results (used);
"""
_Result = TypeVar("_Result")


class ResultCache:
    """A file of results. Its own faults never become those of a sweep: a result that cannot be read is computed."""

    def __init__(self, path: Path, most: int = MAX_RESULTS) -> None:
        self._path, self._most = path, most
        self._database: sqlite3.Connection | None = None

    def find(self, key: str, machine: MachineFacts) -> JsonValue:
        """The result of `key` for a machine that agrees in all that it depends on; None without any."""
        return self._safely(lambda database: self._find(database, key, machine))

    def add(self, key: str, reads: Reads, value: JsonValue) -> None:
        """Keeps a result with the fields of the machine that it depends on."""
        self._safely(lambda database: self._add(database, key, reads, value))

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _find(self, database: sqlite3.Connection, key: str, machine: MachineFacts) -> JsonValue:
        for (places,) in database.execute("SELECT places FROM places WHERE key = ?", (key,)):
            names: list[str] = json.loads(places)
            digest = _digest(key, {name: machine.at(name) for name in names})
            row = database.execute("SELECT value FROM results WHERE digest = ?", (digest,)).fetchone()
            if row is not None:
                database.execute("UPDATE results SET used = ? WHERE digest = ?", (time.time(), digest))
                database.commit()
                return json.loads(zlib.decompress(row[0]))
        return None

    def _add(self, database: sqlite3.Connection, key: str, reads: Reads, value: JsonValue) -> None:
        packed = zlib.compress(json.dumps(value).encode())
        with database:
            database.execute("INSERT OR IGNORE INTO places VALUES (?, ?)", (key, json.dumps(sorted(reads))))
            database.execute(
                "INSERT OR REPLACE INTO results VALUES (?, ?, ?)",
                (_digest(key, dict(reads)), packed, time.time()),
            )
            (count,) = database.execute("SELECT count(*) FROM results").fetchone()
            if count > self._most:
                database.execute(
                    "DELETE FROM results WHERE digest IN (SELECT digest FROM results ORDER BY used LIMIT ?)",
                    (count - self._most * 9 // 10,),
                )

    def _safely(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result | None:
        try:
            if self._database is None:
                self._database = _opened(self._path)
            return work(self._database)
        except (sqlite3.DatabaseError, OSError, ValueError, zlib.error):
            self.close()
            return None


def _opened(path: Path) -> sqlite3.Connection:
    """The database at `path`; one that is damaged, or of another format, is removed first."""
    for attempt in (1, 2):
        database = sqlite3.connect(path, timeout=20.0, check_same_thread=False)
        try:
            with closing(database.execute("PRAGMA user_version")) as cursor:
                if cursor.fetchone()[0] in (0, _FORMAT):
                    database.executescript(_TABLES)
                    return database
        except sqlite3.OperationalError:  # locked or read-only: another process may be using it well
            database.close()
            raise
        except sqlite3.DatabaseError:
            if attempt == 2:
                raise
        database.close()
        for end in ("", "-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
    raise sqlite3.DatabaseError(f"{path} has a format of another version")


def _digest(key: str, values: dict[str, str | None]) -> str:
    return hashlib.sha256(json.dumps([key, values], sort_keys=True).encode()).hexdigest()
