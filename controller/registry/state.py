"""The registry's state: every change goes through a journal, and is undone where it is not committed."""

from collections import deque
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from typing import TypeVar

from controller.registry.group_index import GroupIndex
from controller.registry.job_leases import JobLeases
from controller.registry.jobs import FlowGroupInstance, RegisteredFlow, RegisteredJob, StoredJob
from controller.registry.journal import (
    Change,
    InstanceChange,
    JobChange,
    JobOverwrite,
    Journal,
    SilenceChange,
    nothing_to_commit,
)
from controller.registry.requests import Sent
from controller.registry.source_ports import SourcePorts
from controller.registry.usage import QuotasOf, TenantUsage

_ValueT = TypeVar("_ValueT")


class RegistryState:
    """All jobs, those of them that are committed, and their leases, instances and source ports.

    With a ``journal``, changes are committed once ``commit`` has returned, and undone where it raises.
    """

    def __init__(self, lease_s: float, journal: Journal | None, quotas_of: QuotasOf) -> None:
        self.jobs: dict[str, RegisteredJob] = {}
        self.committed_jobs: dict[str, RegisteredJob] = self.jobs
        self.leases = JobLeases(lease_s)
        self.instances: dict[str, dict[str, FlowGroupInstance]] = {}
        self.sent: dict[str, dict[str, Sent]] = {}
        """By job and flow group, what it sends where it compresses. It is not stored: jobs tell it again and again."""
        self.source_ports = SourcePorts()
        self.usage = TenantUsage(quotas_of)
        self.groups = GroupIndex()
        self._leaving: deque[tuple[str, list[RegisteredFlow]]] = deque()
        """The tenant of each job that has left, and its flows whose 5-tuples it still holds."""
        self._journal = journal
        if journal is not None:
            self.committed_jobs = {}
            journal.follow(self._on_stored, self._undo)

    def restore(self, jobs: Iterable[StoredJob], now_s: float) -> None:
        """Load jobs from the database into an empty state."""
        for stored in jobs:
            job, name = stored.job, stored.job.request.name
            self.jobs[name] = self.committed_jobs[name] = job
            self.usage.replace(None, job)
            self.leases.restore(name, now_s, stored.silent_s)
            if stored.instances:
                self.instances[name] = dict(stored.instances)
            self._take_ports(job)

    def refit(self, jobs: Iterable[RegisteredJob]) -> None:
        """Replace jobs by what they are on another fabric; the database has the same of both."""
        for job in jobs:
            name = job.request.name
            self.jobs[name] = self.committed_jobs[name] = job
            self.groups.drop(name)

    def change(self, name: str, after: RegisteredJob) -> None:
        """Add a job, or replace the one of this name. To be called before its lease is renewed."""
        self._add_to_journal(self._change_to(name, after))
        self.usage.replace(self.jobs.get(name), after)
        self.jobs[name] = after

    def remove(self, name: str) -> None:
        """Remove a job with all that belongs to it; ``releasing`` gives back its 5-tuples."""
        self._add_to_journal(self._change_to(name, None))
        job = self.jobs.pop(name)
        self.usage.replace(job, None)
        self._leaving.append((job.tenant, _flows_of(job)))
        self.leases.drop(name)
        self.instances.pop(name, None)
        self.sent.pop(name, None)
        self.groups.drop(name)

    def releasing(self) -> Iterator[None]:
        """Give back the 5-tuples of jobs that have left, one at a time. Several callers may take turns."""
        while self._leaving:
            tenant, flows = self._leaving[0]
            if flows:
                self.source_ports.release(flows.pop().five_tuple, tenant)
                yield
            else:
                self._leaving.popleft()

    def set_instance(self, job: str, flow_group: str, instance: FlowGroupInstance) -> None:
        """Set the newest instance of a job's flow group."""
        newest = self.instances.setdefault(job, {})
        self._add_to_journal(InstanceChange(job, flow_group, newest.get(flow_group), instance))
        newest[flow_group] = instance

    def renew(self, name: str, now_s: float) -> bool:
        """Begin the lease of a job anew; returns whether that is to be committed, since a silence was recorded."""
        self.leases.renew(name, now_s)
        return self._record_silence(name, 0.0)

    def record_silences(self, now_s: float) -> None:
        """Record which jobs have been silent for long, so that the next controller knows."""
        for silence in self.leases.silences_s(now_s):
            self._record_silence(*silence)

    def commit(self, job: str | None = None) -> Awaitable[None]:
        """Commit all that was changed before this call, or what of it concerns a job.

        Returns at once where there is no journal.

        The result raises CommitError where the changes are undone instead.
        """
        return nothing_to_commit() if self._journal is None else self._journal.commit(job)

    def _change_to(self, name: str, after: RegisteredJob | None) -> JobChange:
        lease = self.leases.end_s(name), self.leases.recorded_silence_s(name)
        return JobChange(name, self.jobs.get(name), after, *lease, self.instances.get(name))

    def _record_silence(self, name: str, silent_s: float) -> bool:
        recorded_s = self.leases.recorded_silence_s(name)
        if recorded_s == silent_s:
            return False
        self.leases.record_silence(name, silent_s)
        self._add_to_journal(SilenceChange(name, recorded_s, silent_s))
        return True

    def _add_to_journal(self, change: Change) -> None:
        if self._journal is not None:
            self._journal.add(change)

    def _on_stored(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if isinstance(change, JobChange):
                _put(self.committed_jobs, change.job, change.after)

    def _undo(self, changes: Sequence[Change], uncertain: Sequence[Change]) -> None:
        """Undo these changes, the newest; the database may have committed the ``uncertain`` ones.

        A job with an uncertain change is overwritten with the next commit. So is a job whose overwrite is undone.
        """
        deque(self.releasing(), maxlen=0)
        for change in reversed(changes):
            match change:
                case JobChange():
                    self._undo_job(change)
                case InstanceChange(job, flow_group, before):
                    _put(self.instances[job], flow_group, before)
                case SilenceChange(job, before_s):
                    self.leases.record_silence(job, before_s)
        overwrites = (change for change in changes if isinstance(change, JobOverwrite))
        for name in dict.fromkeys(change.job for change in (*uncertain, *overwrites)):
            self._overwrite(name)

    def _undo_job(self, change: JobChange) -> None:
        name, before, after = change.job, change.before, change.after
        if after is not None:
            for flow in _flows_of(after):
                self.source_ports.release(flow.five_tuple, after.tenant)
        if before is not None:
            self._take_ports(before)
        self.usage.replace(after, before)
        _put(self.jobs, name, before)
        if before is None:
            self.leases.drop(name)
            self.instances.pop(name, None)
            self.groups.drop(name)
        elif after is None:
            self.leases.put(name, change.lease_end_s, change.recorded_silence_s)
            _put(self.instances, name, change.instances)

    def _take_ports(self, job: RegisteredJob) -> None:
        for key, five_tuple in job.five_tuples:
            self.source_ports.take(five_tuple, key, job.tenant)

    def _overwrite(self, name: str) -> None:
        """Have the job written whole with the next commit."""
        self._add_to_journal(JobOverwrite(name, self.jobs.get(name)))
        for flow_group, instance in self.instances.get(name, {}).items():
            self._add_to_journal(InstanceChange(name, flow_group, instance, instance))
        if silent_s := self.leases.recorded_silence_s(name):
            self._add_to_journal(SilenceChange(name, silent_s, silent_s))


def _flows_of(job: RegisteredJob) -> list[RegisteredFlow]:
    return [flow for group in job.flow_groups for flow in group.flows]


def _put(into: dict[str, _ValueT], name: str, value: _ValueT | None) -> None:
    """Set the value of a name; None: delete it."""
    if value is None:
        into.pop(name, None)
    else:
        into[name] = value
