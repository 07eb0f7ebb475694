"""Logs the jobs that come and go, in lines of which there are not too many."""

import logging
from collections.abc import Iterable

from controller.events import BurstLog, EventKind
from controller.registry.jobs import RegisteredJob

_LOG = logging.getLogger(__name__)

_MOST_HOSTS = 4
"""Hosts that a line names."""


class JobLog:
    """The lines about jobs of one registry; to be told once a change is committed."""

    def __init__(self) -> None:
        self._burst = BurstLog(_LOG)

    def admitted(self, job: RegisteredJob) -> None:
        """Log that a job has been registered."""
        request = job.request
        hosts = ", ".join((*request.hosts[:_MOST_HOSTS], *("…" for _ in request.hosts[_MOST_HOSTS : _MOST_HOSTS + 1])))
        self._burst.tell(
            EventKind.JOB_ADMITTED,
            "job %s: admitted: %d GPUs on %d hosts (%s)%s",
            request.name,
            request.gpus,
            len(request.hosts),
            hosts,
            f" of tenant {job.tenant}" if job.tenant else "",
            job=request.name,
            hosts=len(request.hosts),
            gpus=request.gpus,
            tenant=job.tenant,
        )

    def deregistered(self, job: str) -> None:
        """Log that a job's client has deregistered it."""
        self._withdrawn(job, "deregistered by its client")

    def ended(self, jobs: Iterable[str]) -> None:
        """Log that the leases of jobs have ended."""
        for job in jobs:
            self._withdrawn(job, "its lease has ended")

    def withdrawn(self, jobs: Iterable[str], operator: str) -> None:
        """Log that an operator has withdrawn jobs."""
        for job in jobs:
            self._withdrawn(job, f"by operator {operator}")

    def _withdrawn(self, job: str, why: str) -> None:
        self._burst.tell(EventKind.JOB_WITHDRAWN, "job %s: withdrawn: %s", job, why, job=job, why=why)
