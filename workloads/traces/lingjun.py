"""Reader of the Lingjun dataset (github.com/alibaba/alibaba-lingjun-dataset-2023): three CSV files in a folder.

The dataset covers two weeks of July 2023 of the cluster that Crux measured (section 2.2). ``job.csv`` has a row per
job, ``worker.csv`` one per worker, ``topo.csv`` one per host. Times have a resolution of minutes and come in two
formats, even in one file. Absent values are empty, or ``NaN`` in tables that were written back. ``job.csv`` has unnamed
columns behind the named ones.

The reader takes rows as they are; ``workloads.traces.cleaning`` judges them.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from workloads.traces.csv_rows import CsvRow, TraceError, read_csv

JOB_FILE, WORKER_FILE, TOPOLOGY_FILE = "job.csv", "worker.csv", "topo.csv"

JOB_COLUMNS = (
    "job_name",
    "model",
    "status",
    "gmt_job_submitted",
    "gmt_job_running",
    "gmt_job_stopped",
    "gmt_job_finished",
)
"""Columns of ``job.csv`` that are read."""

WORKER_COLUMNS = ("job_name", "worker_name", "host_ip", "gmt_pod_running", "gmt_pod_finished", "RES")
"""Columns of ``worker.csv`` that are read."""

TOPOLOGY_COLUMNS = ("ip", "DSW", "PSW", "ASW")
"""Columns of ``topo.csv``: a host, and its core, aggregation and ToR switches or groups of them."""

_TIME = re.compile(r"(\d{4})([-/])(\d{1,2})\2(\d{1,2}) (\d{1,2}):(\d{2})(?::(\d{2}))?", re.ASCII)
_ABSENT = frozenset({"", "NaN", "nan"})


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A value that does not fit its column."""

    column: str
    value: str


@dataclass(frozen=True, slots=True)
class JobRow:
    """A row of ``job.csv``; times in seconds since 1970, None where absent or unreadable."""

    line: int
    name: str
    model: str
    status: str
    submitted_s: float | None
    running_s: float | None
    ended_s: float | None
    unreadable: tuple[Unreadable, ...]


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A row of ``worker.csv``; ``gpus`` is None where it has no resources."""

    line: int
    job: str
    name: str
    host: str
    running_s: float | None
    ended_s: float | None
    gpus: int | None
    unreadable: tuple[Unreadable, ...]


@dataclass(frozen=True, slots=True)
class Rack:
    """A host's group of ToR switches (ASW). Its label is unique only under one PSW and DSW."""

    core: str
    aggregation: str
    tor: str


@dataclass(frozen=True, slots=True)
class LingjunRows:
    """All rows of a folder in file order, and the rack of every host."""

    jobs: tuple[JobRow, ...]
    workers: tuple[WorkerRow, ...]
    racks: Mapping[str, Rack]


def read_lingjun(folder: Path) -> LingjunRows:
    """Read the three files of a folder. Raises TraceError for the first defect of a file."""
    racks = read_racks(folder / TOPOLOGY_FILE)
    jobs = tuple(_job(row) for row in read_csv(folder / JOB_FILE, JOB_COLUMNS))
    workers = tuple(_worker(row) for row in read_csv(folder / WORKER_FILE, WORKER_COLUMNS))
    return LingjunRows(jobs, workers, racks)


def read_racks(path: Path) -> Mapping[str, Rack]:
    """Read the rack of every host from ``topo.csv``. Raises TraceError for a repeated host or a missing switch."""
    racks: dict[str, Rack] = {}
    for row in read_csv(path, TOPOLOGY_COLUMNS):
        for column in TOPOLOGY_COLUMNS:
            if row.values[column] in _ABSENT:
                raise TraceError(f"{path}: line {row.line}, column {column}: empty; expected a name")
        host, *switches = (row.values[column] for column in TOPOLOGY_COLUMNS)
        if host in racks:
            raise TraceError(f"{path}: line {row.line}, column ip: expected every host once, {host} is there again")
        racks[host] = Rack(*switches)
    if not racks:
        raise TraceError(f"{path}: line 2, column 1: expected hosts, the file ends here")
    return racks


def _job(row: CsvRow) -> JobRow:
    cells = _Cells(row)
    submitted_s, running_s = cells.time_s("gmt_job_submitted"), cells.time_s("gmt_job_running")
    finished_s, stopped_s = cells.time_s("gmt_job_finished"), cells.time_s("gmt_job_stopped")
    return JobRow(
        row.line,
        cells.text("job_name"),
        cells.text("model"),
        cells.text("status"),
        submitted_s,
        running_s,
        stopped_s if finished_s is None else finished_s,
        tuple(cells.unreadable),
    )


def _worker(row: CsvRow) -> WorkerRow:
    cells = _Cells(row)
    return WorkerRow(
        row.line,
        cells.text("job_name"),
        cells.text("worker_name"),
        cells.text("host_ip"),
        cells.time_s("gmt_pod_running"),
        cells.time_s("gmt_pod_finished"),
        cells.gpus("RES"),
        tuple(cells.unreadable),
    )


class _Cells:
    """The values of a row; collects those that cannot be read."""

    def __init__(self, row: CsvRow) -> None:
        self._values = row.values
        self.unreadable: list[Unreadable] = []

    def text(self, column: str) -> str:
        """Return a value as it is; empty where absent."""
        value = self._values[column]
        return "" if value in _ABSENT else value

    def time_s(self, column: str) -> float | None:
        """Parse a time into seconds since 1970."""
        text = self.text(column)
        if not text:
            return None
        if match := _TIME.fullmatch(text):
            year, month, day, hour, minute, second = (int(match[group] or 0) for group in (1, 3, 4, 5, 6, 7))
            with suppress(ValueError):
                return datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()
        self.unreadable.append(Unreadable(column, text))
        return None

    def gpus(self, column: str) -> int | None:
        """Count the GPUs in a worker's resources, a JSON object in which keys that end in ``/gpu`` count GPUs."""
        text = self.text(column)
        if not text:
            return None
        try:
            return sum(_gpus(text))
        except (ValueError, TypeError, OverflowError, RecursionError):
            self.unreadable.append(Unreadable(column, text))
            return None


def _gpus(resources: str) -> Iterator[int]:
    document = json.loads(resources)
    if not isinstance(document, dict):
        raise ValueError("expected an object")
    for key, value in document.items():
        if key.endswith("/gpu"):
            number = float(value)
            if not (0 <= number < math.inf and number == int(number)):
                raise ValueError("expected a number of GPUs")
            yield int(number)
