"""The measured profiles of jobs that report none, stored for the next controller."""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from functools import partial
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Row, delete, insert, select

from controller.background import BackgroundTask
from controller.errors import StoreError
from controller.profiling.measured import Measured
from controller.profiling.rhythm import Rhythm
from controller.profiling.shares import PathShare, transfer_s
from controller.registry.jobs import RegisteredJob
from controller.store.database import Database
from controller.store.rows import Finite, StoredRow, checked_json, checked_row
from controller.store.schema import JOB, MEASURED
from topologies.fabric import Nic
from topologies.routing import Routing

_LOG = logging.getLogger(__name__)

_Rhythm = tuple[Finite, Finite, Finite, int, Finite]
_Shares = list[tuple[str, int, str, int, list[int], Finite]]
_Body = tuple[Finite, _Rhythm, _Shares]
_BODY: TypeAdapter[_Body] = TypeAdapter(_Body)


class _MeasuredRow(StoredRow):
    job: str
    arrival_s: Finite
    body: str


class ProfileStore:
    """Measurements of jobs on one fabric, in a database. Raises StoreError where the database cannot be used."""

    def __init__(self, database: Database, routing: Routing) -> None:
        self._database = database
        self._routing = routing
        self._waiting: dict[str, dict[str, Any]] = {}
        """By job, its last measurement that is not stored yet."""
        self._writing = BackgroundTask(self._write_all)

    def load(self, jobs: Iterable[RegisteredJob]) -> dict[str, Measured]:
        """The measurements of these jobs, by name; those that do not fit this fabric are left out."""
        return self._database.read(partial(self._read, {job.request.name: job for job in jobs}))

    def _read(self, jobs: Mapping[str, RegisteredJob], connection: Connection) -> dict[str, Measured]:
        found = {}
        for of_job in connection.execute(select(MEASURED)).all():
            row = _checked(of_job)
            job = jobs.get(row.job)
            if job is not None and job.request.profile is None and job.arrival_s == row.arrival_s:
                measured = self._measured(_body(row))
                if measured is not None:
                    found[row.job] = measured
        return found

    def save(self, job: RegisteredJob, measured: Measured) -> None:
        """Store a job's measurement in the background, unless the job goes meanwhile.

        A failure is logged only: the job can be measured again.
        """
        shares = [
            [*_reference(share.source), *_reference(share.destination), list(share.path), share.size_bytes]
            for share in measured.shares
        ]
        body = json.dumps([measured.at_s, astuple(measured.rhythm), shares])
        name = job.request.name
        self._waiting[name] = {"job": name, "arrival_s": job.arrival_s, "body": body}
        self._writing.start()

    def use_routing(self, routing: Routing) -> None:
        """Go on with another fabric; what is known is to be saved anew, as paths have other numbers there."""
        self._routing = routing

    async def flush(self) -> None:
        """Wait until all measurements are stored, or could not be."""
        await self._writing.join()

    async def _write_all(self) -> None:
        while self._waiting:
            name, values = self._waiting.popitem()
            try:
                await self._database.write(partial(_replace, values))
            except StoreError as error:
                _LOG.error("what was measured of job %r is not stored: %s", name, error)

    def _measured(self, body: _Body) -> Measured | None:
        """Decode a measurement; None where a path is not of this fabric. The transfer time is that of its links now."""
        at_s, rhythm, shares = body
        found = []
        for source_host, source_index, destination_host, destination_index, path, size_bytes in shares:
            source, destination = self._nic(source_host, source_index), self._nic(destination_host, destination_index)
            if source is None or destination is None:
                return None
            if tuple(path) not in self._routing.candidate_paths(source, destination):
                return None
            found.append(PathShare(source, destination, tuple(path), size_bytes))
        return Measured(at_s, Rhythm(*rhythm), transfer_s(found, self._routing), tuple(found))

    def _nic(self, host: str, index: int) -> Nic | None:
        nics = self._routing.fabric.nics.get(host, ())
        return nics[index] if 0 <= index < len(nics) else None


def check_measurement(found: Row[Any]) -> None:
    """Raise DamagedRowError where a row is no measurement."""
    _body(_checked(found))


def _checked(found: Row[Any]) -> _MeasuredRow:
    return checked_row(_MeasuredRow, MEASURED.name, found.job, found)


def _body(row: _MeasuredRow) -> _Body:
    return checked_json(_BODY, MEASURED.name, row.job, "body", row.body)


def _reference(nic: Nic) -> tuple[str, int]:
    return nic.host, nic.index


def _replace(values: dict[str, Any], connection: Connection) -> None:
    is_it = (JOB.c.name == values["job"]) & (JOB.c.arrival_s == values["arrival_s"])
    if connection.scalar(select(JOB.c.name).where(is_it)) is not None:
        connection.execute(delete(MEASURED).where(MEASURED.c.job == values["job"]))
        connection.execute(insert(MEASURED), values)
