"""Results of evaluations on disk, by content: shared by sweeps, safe under parallel use, bounded.

A result is kept with the fields of the machine that it depends on (`stripe.hw.trace.Reads`), and is found for every
machine that agrees in these fields. A deterministic computation reads the same field next wherever it read the same
values before, so that the fields read of all results of one key form a decision tree. A lookup walks one route from its
root, with the values of the machine, whatever the number of results. The results of rendered points are found by their
parameters as well, without a machine. What is kept is JSON. Each row ends with a checksum of its other columns, but for
the time of its last use; a row that it does not fit is dropped and made again, as a damaged file is.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue

from stripe.hw.trace import MachineFacts, Reads

MAX_RESULTS = 100_000
"""Results that are kept; the least recently used are dropped."""

_STEP = 16
"""Fields between two nodes of the tree."""

_LATELY = 3600.0
"""Seconds for which a result counts as just used: a lookup writes nothing."""

_FORMAT = 3
_TABLES = f"""
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA user_version = {_FORMAT};
CREATE TABLE IF NOT EXISTS reads (
    node TEXT, places TEXT, checksum TEXT, PRIMARY KEY (node, places)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (
    number INTEGER PRIMARY KEY AUTOINCREMENT, node TEXT UNIQUE, nodes TEXT, value BLOB, layers BLOB, used REAL,
    checksum TEXT
);
CREATE TABLE IF NOT EXISTS points (key TEXT PRIMARY KEY, result INTEGER, facts TEXT, checksum TEXT);
CREATE INDEX IF NOT EXISTS by_use ON results (used);
"""
_RESULT = "number, node, nodes, value, layers, checksum, coalesce(CAST(used AS REAL), 0.0)"
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class KeptResult:
    """A result, with the packed layers of its simulation and the number of its row."""

    value: JsonValue
    layers: bytes
    number: int | None = None


class ResultCache:
    """A file of results. Faults of the file never fail a sweep: a result that cannot be read is computed. The first
    row that is damaged is told to `warn`."""

    def __init__(
        self, path: Path, most: int = MAX_RESULTS, warn: Callable[[str], object] = lambda _: None
    ) -> None:
        self._path, self._most, self._warn = path, most, warn
        self._warned = False
        self._turn = max(1, most // 10)
        """Results from one clearing to the next."""
        self._database: sqlite3.Connection | None = None

    def find(self, key: str, machine: MachineFacts) -> KeptResult | None:
        """The result of `key` for a machine that agrees in all that it depends on."""
        return self._safely(lambda database: self._walk(database, _digest(key), machine))

    def add(self, key: str, reads: Reads, value: JsonValue, layers: bytes) -> KeptResult:
        """Keeps a result with the fields of the machine that it depends on, in the order in which they were read."""
        made = self._safely(lambda database: self._add(database, key, reads, value, layers))
        return made or KeptResult(value, layers)

    def find_point(self, key: str) -> tuple[JsonValue, KeptResult] | None:
        """The facts of a rendered point, with its result."""
        return self._safely(lambda database: self._find_point(database, key))

    def add_point(self, key: str, facts: JsonValue, result: KeptResult) -> None:
        """Keeps the facts of a rendered point, with a result that is kept."""

        def insert(database: sqlite3.Connection) -> None:
            with database:
                text = json.dumps(facts)
                row = (key, result.number, text, row_checksum(key, result.number, text))
                last = (
                    database.execute("INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?)", row).lastrowid or 0
                )
                if last % self._turn == 0:
                    database.execute("DELETE FROM points WHERE rowid <= ?", (last - self._most,))

        if result.number is not None:
            self._safely(insert)

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _walk(self, database: sqlite3.Connection, node: str, machine: MachineFacts) -> KeptResult | None:
        """The result at the end of the routes from a node along which the machine has the values that were read."""
        for row in database.execute(f"SELECT {_RESULT} FROM results WHERE node = ?", (node,)).fetchall():
            return self._used(database, row)
        # More than one row where computations whose values differ within a step read on at different fields.
        asked = "SELECT places, checksum FROM reads WHERE node = ?"
        for places, checksum in database.execute(asked, (node,)).fetchall():
            if checksum != row_checksum(node, places):
                self._drop_damaged(database, "reads WHERE node = ? AND places = ?", node, places)
                continue
            names: list[str] = json.loads(places)
            reached = _digest(node, [(name, machine.at(name)) for name in names])
            if (result := self._walk(database, reached, machine)) is not None:
                return result
        return None

    def _used(
        self, database: sqlite3.Connection, row: tuple[int, str, str, bytes, bytes, str, float]
    ) -> KeptResult | None:
        """The result of a row of `_RESULT`; None where it is damaged."""
        number, node, nodes, value, layers, checksum, used = row
        if checksum != row_checksum(number, node, nodes, value, layers):
            return self._drop_damaged(database, "results WHERE number = ?", number)
        if (now := time.time()) - used > _LATELY:
            with database:
                database.execute("UPDATE results SET used = ? WHERE number = ?", (now, number))
        return KeptResult(json.loads(zlib.decompress(value)), layers, number)

    def _find_point(self, database: sqlite3.Connection, key: str) -> tuple[JsonValue, KeptResult] | None:
        point = database.execute(
            "SELECT result, facts, checksum FROM points WHERE key = ?", (key,)
        ).fetchone()
        if point is None:
            return None
        number, facts, checksum = point
        if checksum != row_checksum(key, number, facts):
            return self._drop_damaged(database, "points WHERE key = ?", key)
        row = database.execute(f"SELECT {_RESULT} FROM results WHERE number = ?", (number,)).fetchone()
        result = None if row is None else self._used(database, row)
        return None if result is None else (json.loads(facts), result)

    def _drop_damaged(self, database: sqlite3.Connection, rows: str, *values: object) -> None:
        """Drops a damaged row, so that its result is computed anew."""
        if not self._warned:
            self._warned = True
            self._warn(f"{self._path}: warning: rows of kept results are damaged: they are computed anew")
        with database:
            database.execute(f"DELETE FROM {rows}", values)

    def _add(
        self, database: sqlite3.Connection, key: str, reads: Reads, value: JsonValue, layers: bytes
    ) -> KeptResult:
        nodes = [_digest(key)]
        values = list(reads.items())
        with database:
            for start in range(0, len(values), _STEP):
                step = values[start : start + _STEP]
                places = json.dumps([name for name, _ in step])
                database.execute(
                    "INSERT OR IGNORE INTO reads VALUES (?, ?, ?)",
                    (nodes[-1], places, row_checksum(nodes[-1], places)),
                )
                nodes.append(_digest(nodes[-1], step))
            packed = zlib.compress(json.dumps(value).encode())
            row = (nodes[-1], json.dumps(nodes), packed, layers)
            number = database.execute(
                "INSERT OR REPLACE INTO results (node, nodes, value, layers, used) VALUES (?, ?, ?, ?, ?)",
                (*row, time.time()),
            ).lastrowid
            checksum = row_checksum(number, *row)
            database.execute("UPDATE results SET checksum = ? WHERE number = ?", (checksum, number))
            if number is not None and number % self._turn == 0:
                self._drop(database)
        return KeptResult(value, layers, number)

    def _drop(self, database: sqlite3.Connection) -> None:
        """Drops the results that were used least recently, with the parts of the tree that led to them alone."""
        database.execute(
            "DELETE FROM results WHERE number NOT IN (SELECT number FROM results ORDER BY used DESC LIMIT ?)",
            (self._most - self._turn,),
        )
        database.execute("DELETE FROM results WHERE NOT json_valid(nodes)")
        database.execute("DELETE FROM points WHERE result NOT IN (SELECT number FROM results)")
        database.execute(
            "DELETE FROM reads WHERE node NOT IN (SELECT json_each.value FROM results, json_each(nodes))"
        )

    def _safely(self, work: Callable[[sqlite3.Connection], _Found]) -> _Found | None:
        try:
            if self._database is None:
                self._database = _opened(self._path)
            return work(self._database)
        except (sqlite3.DatabaseError, OSError, ValueError, zlib.error):
            self.close()
            return None


def _opened(path: Path) -> sqlite3.Connection:
    """The database at `path`; a damaged file, or a file of another format, is removed first."""
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


def _digest(node: str, values: Sequence[tuple[str, str | None]] = ()) -> str:
    return hashlib.sha256(json.dumps([node, values]).encode()).hexdigest()[:32]


def row_checksum(*columns: object) -> str:
    """The checksum of a row, whatever the kinds of its columns."""
    return hashlib.sha256(repr(columns).encode()).hexdigest()[:32]
