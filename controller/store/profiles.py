"""The measured profiles of jobs that report none, stored for the next controller."""

import json
import logging
from collections.abc import Iterable
from dataclasses import astuple
from functools import partial
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from controller.background import BackgroundTask
from controller.errors import StoreError
from controller.profiling.measured import Measured
from controller.profiling.rhythm import Rhythm
from controller.profiling.shares import PathShare, transfer_s
from controller.registry.jobs import RegisteredJob
from controller.store.database import Database
from controller.store.schema import JOB, MEASURED
from topologies.fabric import Nic
from topologies.routing import Routing

_LOG = logging.getLogger(__name__)


class ProfileStore:
    """Measurements of jobs on one fabric, in a database. Raises StoreError where the database cannot be used."""

    def __init__(self, database: Database, routing: Routing) -> None:
        self._database = database
        self._routing = routing
        self._waiting: dict[str, dict[str, Any]] = {}
        """By job, its last measurement that is not stored yet."""
        self._writing = BackgroundTask(self._write_all)
        # An older database has no such table.
        database.write_now(partial(MEASURED.create, checkfirst=True))

    def load(self, jobs: Iterable[RegisteredJob]) -> dict[str, Measured]:
        """The measurements of these jobs, by name; those that do not fit this fabric are left out."""
        known = self._database.read(lambda connection: list(connection.execute(select(MEASURED))))
        arrival_s = {job.request.name: job.arrival_s for job in jobs if job.request.profile is None}
        found = {
            row.job: self._measured(json.loads(row.body)) for row in known if arrival_s.get(row.job) == row.arrival_s
        }
        return {name: measured for name, measured in found.items() if measured is not None}

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

    def _measured(self, body: Any) -> Measured | None:
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
        return nics[index] if index < len(nics) else None


def _reference(nic: Nic) -> tuple[str, int]:
    return nic.host, nic.index


def _replace(values: dict[str, Any], connection: Connection) -> None:
    is_it = (JOB.c.name == values["job"]) & (JOB.c.arrival_s == values["arrival_s"])
    if connection.scalar(select(JOB.c.name).where(is_it)) is not None:
        connection.execute(delete(MEASURED).where(MEASURED.c.job == values["job"]))
        connection.execute(insert(MEASURED), values)
