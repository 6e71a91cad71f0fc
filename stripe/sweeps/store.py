"""The store of a sweep: a folder with one SQLite file, which has a row for each point and workload.

Rows are kept as they come, those of one point in one transaction. A sweep that is killed loses the points in flight,
and nothing else. Each row ends with a checksum of its other columns.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import shlex
import shutil
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from pydantic import BaseModel, JsonValue

from stripe.config.document import parse_document
from stripe.config.model import Scalar
from stripe.config.parameters import shown
from stripe.ir import ConfigError
from stripe.sweeps.cache import row_checksum
from stripe.sweeps.evaluate import ResultRow, RowStatus
from stripe.sweeps.extras import extra
from stripe.sweeps.metrics import COLUMNS
from stripe.sweeps.plan import SweepPlan, plan_of
from stripe.sweeps.results import PointResult, point_results
from stripe.sweeps.schema import ObjectiveSpec
from stripe.sweeps.space import DesignPoint

FILE = "sweep.sqlite"
_FORMAT = 2
_TABLES = f"""
PRAGMA user_version = {_FORMAT};
CREATE TABLE sweep (name TEXT PRIMARY KEY, value TEXT, checksum TEXT);
CREATE TABLE rows (
    number INTEGER, point TEXT, workload TEXT, status TEXT, reason TEXT, passes TEXT,
    given TEXT, parameters TEXT, metrics TEXT, provenance TEXT, layers BLOB, seconds REAL, checksum TEXT,
    PRIMARY KEY (point, workload)
);
"""


class SweepFacts(BaseModel):
    """A sweep as its store remembers it."""

    title: str
    file: str
    defines: dict[str, Scalar]
    text: str
    identity: str
    machine: str
    """Hardware model as `--hw` takes it."""
    lists: dict[str, tuple[str, dict[str, Scalar]]]
    """Pass lists as `--config` takes them, with fixed parameters, by name."""
    objectives: tuple[ObjectiveSpec, ...]
    constraints: tuple[str, ...]
    weights: dict[str, float]
    axes: dict[str, tuple[str, tuple[Scalar, ...]]]
    """Unit and values of each axis."""

    def plan(self) -> SweepPlan:
        """The plan of the results. Raises ConfigError where templates, workloads or the program changed since, or
        cannot be read."""
        plan = plan_of(parse_document(self.text, self.file), Path(self.file), self.defines)
        if plan.identity != self.identity:
            raise ConfigError(
                "templates, workloads or the program changed since these results",
                path=self.file,
                hint="run the sweep again",
            )
        return plan

    def options(self, result: PointResult) -> str:
        """A point as options of the commands that compile."""
        config, fixed = self.lists[result.point.passes]
        given = {**fixed, **result.point.choices}
        defines = (f"-D {shlex.quote(f'{name}={plain(value)}')}" for name, value in sorted(given.items()))
        return " ".join([f"--config {shlex.quote(config)}", f"--hw {shlex.quote(self.machine)}", *defines])


def plain(value: Scalar) -> str:
    """A value as -D takes it."""
    return value if isinstance(value, str) else shown(value)


class ResultStore:
    """The results of one sweep. Made by `writing_store` and `open_store`."""

    def __init__(self, folder: Path, database: sqlite3.Connection, points: int) -> None:
        self.folder = folder
        self.copy: TemporaryDirectory[str] | None = None
        """The folder of a copy, which lasts as long as the store."""
        self.dropped = 0
        """The number of points whose damaged rows were dropped to be computed anew."""
        self._database = database
        self._points = points

    def facts(self) -> SweepFacts:
        """The sweep that the rows belong to. Raises ConfigError where they are damaged."""
        return SweepFacts.model_validate(self._facts("true"))

    def identity(self) -> JsonValue:
        """The inputs that the results depend on. Raises ConfigError where it is damaged."""
        return self._facts("name = 'identity'").get("identity")

    def _facts(self, condition: str) -> dict[str, JsonValue]:
        found: dict[str, JsonValue] = {}
        for name, value, checksum in self._read(f"SELECT name, value, checksum FROM sweep WHERE {condition}"):
            if checksum != row_checksum(name, value):
                raise self._damaged(f"the fact '{name}' of the sweep is damaged", "name another folder")
            found[name] = json.loads(value)
        return found

    def keep_facts(self, plan: SweepPlan) -> None:
        """Keeps the aims and axes of the sweep file as it is now."""
        with self._database as database:
            database.execute("DELETE FROM sweep")
            database.executemany("INSERT INTO sweep VALUES (?, ?, ?)", _facts(plan))

    def drop_damaged(self) -> int:
        """Drops the points with damaged rows, so that a run computes them anew; their number."""
        bad = [row[:2] for row in self._read(f"SELECT {_COLUMNS}, checksum FROM rows") if not _is_whole(row)]
        with self._database as database:
            database.executemany("DELETE FROM rows WHERE number IS ? OR point IS ?", bad)
        return len(set(bad))

    def _read(self, question: str) -> Iterator[tuple[Any, ...]]:
        """The rows that answer a question, one at a time: layers are large."""
        try:
            yield from self._database.execute(question)
        except sqlite3.DatabaseError as error:
            raise self._damaged(f"the results cannot be read: {error}", "name another folder") from None

    def _damaged(self, reason: str, hint: str) -> ConfigError:
        return ConfigError(reason, path=str(self.folder / FILE), hint=hint)

    def add(self, rows: tuple[ResultRow, ...]) -> None:
        """Keeps the rows of a point, all or none, in place of older ones. Raises ConfigError where the disk is full."""
        try:
            with self._database as database:
                places = ", ".join("?" * 13)
                for row in rows:
                    packed = _packed(self._points, row)
                    database.execute(
                        f"INSERT OR REPLACE INTO rows VALUES ({places})", (*packed, row_checksum(*packed))
                    )
        except sqlite3.OperationalError as error:
            reason = f"cannot keep results: {error}"
            hint = "make room on the disk, then go on with --resume"
            raise ConfigError(reason, path=str(self.folder / FILE), hint=hint) from None
        self._points += 1

    def rows(self) -> Iterator[ResultRow]:
        """All rows, in the order of points. Raises ConfigError for a damaged row."""
        for row in self._read(f"SELECT {_COLUMNS}, checksum FROM rows ORDER BY number, rowid"):
            if not _is_whole(row):
                hint = "'stripe-sweep run' with --resume computes the points of damaged rows anew"
                raise self._damaged(f"a row of the point {row[1]} is damaged", hint)
            _, _, workload, status, reason, passes, given, *documents, layers, seconds, _ = row
            choices = cast("dict[str, Scalar]", json.loads(given))
            point = DesignPoint(passes, tuple(sorted(choices.items())))
            parameters, metrics, provenance = map(json.loads, documents)
            yield ResultRow(
                point, workload, RowStatus(status), reason, parameters, metrics, provenance, layers, seconds
            )

    def results(self) -> tuple[PointResult, ...]:
        """The results of all points over their mix of workloads."""
        facts = self.facts()
        return point_results(self.rows(), facts.weights, facts.constraints)

    def close(self) -> None:
        self._database.close()


_COLUMNS = (
    "number, point, workload, status, reason, passes, given, parameters, metrics, provenance, layers, seconds"
)


def _is_whole(row: tuple[object, ...]) -> bool:
    """Whether the checksum at the end of a row is that of its other columns."""
    return row[-1] == row_checksum(*row[:-1])


def _packed(number: int, row: ResultRow) -> tuple[object, ...]:
    return (
        number, row.point.key, row.workload, row.status.value, row.reason, row.point.passes,
        json.dumps(row.point.choices), json.dumps(row.parameters), json.dumps(row.metrics),
        json.dumps(row.provenance), row.packed_layers, float(row.seconds),
    )  # fmt: skip


@contextmanager
def writing_store(folder: Path, plan: SweepPlan, resume: bool) -> Generator[ResultStore]:
    """The store in a folder for one sweep at a time: a new store, or with `resume` the present one.

    Raises ConfigError: a folder that cannot be written, a store that is there (or, with `resume`, belongs to another
    sweep), a sweep that is running on it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise ConfigError(
            f"cannot be written: {error.strerror}", path=str(folder), hint="name a folder of your own"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            reason = "another sweep is running on this folder"
            raise ConfigError(reason, path=str(folder), hint="wait for it, or name another one") from None
        there = (folder / FILE).exists()
        if there and not resume:
            reason = "there are results already"
            raise ConfigError(reason, path=str(folder), hint="go on with --resume, or name another folder")
        store = _open(folder) if there else _create(folder, plan)
        try:
            if store.identity() != plan.identity:
                raise ConfigError(
                    "the results are those of other templates, other workloads or another version of the program",
                    path=str(folder / FILE),
                    hint="name another folder",
                )
            store.keep_facts(plan)
            store.dropped = store.drop_damaged()
            yield store
        finally:
            store.close()


def open_store(folder: Path) -> ResultStore:
    """The store in a folder, to read. Raises ConfigError where there is none."""
    if not (folder / FILE).is_file():
        raise ConfigError(
            "there are no results of a sweep", path=str(folder), hint="run 'stripe-sweep run' first"
        )
    if os.access(folder, os.W_OK):
        return _open(folder)
    # SQLite writes beside a file that it reads: of a folder that is read-only a copy is read, with all its rows.
    kept = TemporaryDirectory(prefix="stripe-sweep-")
    for file in folder.glob(f"{FILE}*"):
        shutil.copyfile(file, Path(kept.name) / file.name)
    store = _open(Path(kept.name))
    store.folder, store.copy = folder, kept
    return store


def _create(folder: Path, plan: SweepPlan) -> ResultStore:
    # The tables are there whole or not at all: the file takes its name at the end.
    new = folder / f"{FILE}.new"
    new.unlink(missing_ok=True)
    database = sqlite3.connect(new)
    database.executescript(_TABLES)
    with database:
        database.executemany("INSERT INTO sweep VALUES (?, ?, ?)", _facts(plan))
    database.close()
    new.rename(folder / FILE)
    return _open(folder)


def _facts(plan: SweepPlan) -> list[tuple[str, str, str]]:
    """The rows that `SweepFacts` is made of, with their checksums."""
    templates = plan.space.templates
    facts: dict[str, JsonValue] = {
        "title": plan.title,
        "file": str(plan.file),
        "defines": dict(plan.defines),
        "text": plan.text,
        "identity": plan.identity,
        "machine": templates.machine.reference,
        "lists": {n: [t.reference, dict(templates.fixed[n])] for n, t in templates.lists.items()},
        "objectives": [objective.model_dump() for objective in plan.objectives],
        "constraints": list(plan.constraints),
        "weights": {workload.name: workload.weight for workload in plan.workloads},
        "axes": {axis.name: [axis.unit, list(axis.values)] for axis in plan.space.axes},
    }
    rows = ((name, json.dumps(value)) for name, value in facts.items())
    return [(*row, row_checksum(*row)) for row in rows]


def _open(folder: Path) -> ResultStore:
    path = folder / FILE
    try:
        database = sqlite3.connect(path, timeout=20.0)
        (version,) = database.execute("PRAGMA user_version").fetchone()
        counted = "SELECT count(DISTINCT point) FROM rows" if version == _FORMAT else "SELECT 0"
        (points,) = database.execute(counted).fetchone()
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(
            "PRAGMA synchronous = NORMAL"
        )  # survives a killed process without a sync for each row
    except sqlite3.DatabaseError as error:
        raise ConfigError(
            f"this is no store of a sweep: {error}", path=str(path), hint="name another folder"
        ) from None
    if version != _FORMAT:
        reason = f"the store has format {version}, and this version reads {_FORMAT}"
        raise ConfigError(reason, path=str(path), hint="use the version that wrote it")
    return ResultStore(folder, database, points)


def table(store: ResultStore) -> tuple[list[str], list[list[Scalar | None]]]:
    """The rows as one tidy table: a row for each point and workload, with all parameters and metrics as columns."""
    rows = list(store.rows())
    parameters = dict.fromkeys(name for row in rows for name in row.parameters)
    metrics = dict.fromkeys(name for row in rows for name in row.metrics)
    provenance = dict.fromkeys(name for row in rows for name in row.provenance)
    hashes = [name if name == "program" else f"{name}_hash" for name in provenance]
    *before, after = COLUMNS
    header = [*before, *parameters, *metrics, *hashes, after]
    lines: list[list[Scalar | None]] = [
        [
            row.workload, row.status.value, row.reason, row.point.passes,
            *(row.parameters.get(name, row.point.choices.get(name)) for name in parameters),
            *(row.metrics.get(name) for name in metrics),
            *(row.provenance.get(name) for name in provenance),
            row.seconds,
        ]
        for row in rows
    ]  # fmt: skip
    return header, lines


def csv_bytes(store: ResultStore) -> bytes:
    """The table as CSV, UTF-8."""
    header, lines = table(store)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    return stream.getvalue().encode()


def parquet_bytes(store: ResultStore) -> bytes:
    """The table as Parquet. Raises ConfigError where pyarrow is not installed."""
    parquet = extra("pyarrow.parquet", "Parquet")
    header, lines = table(store)
    columns = {name: [line[number] for line in lines] for number, name in enumerate(header)}
    stream = io.BytesIO()
    parquet.write_table(extra("pyarrow", "Parquet").table(columns), stream)
    return stream.getvalue()
