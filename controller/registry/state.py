"""What a registry holds, and how that becomes durable: every change goes through a journal, or is taken back."""

from collections.abc import Awaitable, Iterable, Sequence
from typing import TypeVar

from controller.registry.journal import Journal, at_once
from controller.registry.leases import Leases
from controller.registry.registration import (
    Change,
    FlowGroupInstance,
    InstanceChange,
    JobChange,
    JobRestated,
    RegisteredJob,
    SilenceChange,
    StoredJob,
)
from controller.registry.source_ports import SourcePorts

_ValueT = TypeVar("_ValueT")


class Register:
    """Jobs as accepted, those of them that are stored, and their leases, instances and source ports.

    With a ``journal``, what is changed is stored once ``stored`` has returned, and undone where that raises.
    """

    def __init__(self, lease_s: float, journal: Journal | None) -> None:
        self.jobs: dict[str, RegisteredJob] = {}
        self.stored_jobs: dict[str, RegisteredJob] = self.jobs
        self.leases = Leases(lease_s)
        self.instances: dict[str, dict[str, FlowGroupInstance]] = {}
        self.source_ports = SourcePorts()
        self._journal = journal
        if journal is not None:
            self.stored_jobs = {}
            journal.follow(self._note_stored, self._undo)

    def restore(self, jobs: Iterable[StoredJob], now_s: float) -> None:
        """Take over what was stored before, where nothing is held yet."""
        for stored in jobs:
            job, name = stored.job, stored.job.request.name
            self.jobs[name] = self.stored_jobs[name] = job
            self.leases.restore(name, now_s, stored.silent_s)
            if stored.instances:
                self.instances[name] = dict(stored.instances)
            for key, five_tuple in job.five_tuples:
                self.source_ports.take(five_tuple, key)

    def change(self, name: str, after: RegisteredJob) -> None:
        """Put a job in the place of the one of this name, if there is one, before its lease is touched."""
        self._journalise(self._change_to(name, after))
        self.jobs[name] = after

    def withdraw(self, name: str) -> None:
        """Let a job go, with all that is its."""
        self._journalise(self._change_to(name, None))
        for _, five_tuple in self.jobs.pop(name).five_tuples:
            self.source_ports.release(five_tuple)
        self.leases.drop(name)
        self.instances.pop(name, None)

    def note_instance(self, job: str, flow_group: str, instance: FlowGroupInstance) -> None:
        """This is the newest instance of a flow group of a job."""
        newest = self.instances.setdefault(job, {})
        self._journalise(InstanceChange(job, flow_group, newest.get(flow_group), instance))
        newest[flow_group] = instance

    def renew(self, name: str, now_s: float) -> bool:
        """Begin the lease of a job anew; whether that is to be stored, as silence was."""
        self.leases.renew(name, now_s)
        return self._tell_silence(name, 0.0)

    def tell_silences(self, now_s: float) -> None:
        """Have the next controller know which jobs have not been heard of in time."""
        for silence in self.leases.silences_s(now_s):
            self._tell_silence(*silence)

    def stored(self) -> Awaitable[None]:
        """Wait until all that was changed before this call outlives this process; not at all where nothing is to.

        Raises NotStoredError where it cannot, and all of it is as it was.
        """
        return at_once() if self._journal is None else self._journal.stored()

    def _change_to(self, name: str, after: RegisteredJob | None) -> JobChange:
        lease = self.leases.end_s(name), self.leases.told_s(name)
        return JobChange(name, self.jobs.get(name), after, *lease, self.instances.get(name))

    def _tell_silence(self, name: str, silent_s: float) -> bool:
        told_s = self.leases.told_s(name)
        if told_s == silent_s:
            return False
        self.leases.tell(name, silent_s)
        self._journalise(SilenceChange(name, told_s, silent_s))
        return True

    def _journalise(self, change: Change) -> None:
        if self._journal is not None:
            self._journal.add(change)

    def _note_stored(self, changes: Iterable[Change]) -> None:
        for change in changes:
            if isinstance(change, JobChange):
                _put(self.stored_jobs, change.job, change.after)

    def _undo(self, changes: Sequence[Change], doubtful: Sequence[Change]) -> None:
        """These changes, the newest, have not been; of the ``doubtful`` it is not known whether they are stored.

        What was to be restated, as it was doubtful before, is so still.
        """
        for change in reversed(changes):
            match change:
                case JobChange():
                    self._undo_job(change)
                case InstanceChange(job, flow_group, before):
                    _put(self.instances[job], flow_group, before)
                case SilenceChange(job, before_s):
                    self.leases.tell(job, before_s)
        restated = (change for change in changes if isinstance(change, JobRestated))
        for name in dict.fromkeys(change.job for change in (*doubtful, *restated)):
            self._restate(name)

    def _undo_job(self, change: JobChange) -> None:
        name, before, after = change.job, change.before, change.after
        for _, five_tuple in after.five_tuples if after else ():
            self.source_ports.release(five_tuple)
        for key, five_tuple in before.five_tuples if before else ():
            self.source_ports.take(five_tuple, key)
        _put(self.jobs, name, before)
        if before is None:
            self.leases.drop(name)
            self.instances.pop(name, None)
        elif after is None:
            self.leases.put(name, change.lease_end_s, change.told_silence_s)
            _put(self.instances, name, change.instances)

    def _restate(self, name: str) -> None:
        """Have what is so stored with the next change."""
        self._journalise(JobRestated(name, self.jobs.get(name)))
        for flow_group, instance in self.instances.get(name, {}).items():
            self._journalise(InstanceChange(name, flow_group, instance, instance))
        if told_s := self.leases.told_s(name):
            self._journalise(SilenceChange(name, told_s, told_s))


def _put(into: dict[str, _ValueT], name: str, value: _ValueT | None) -> None:
    """Set what stands under a name; None: nothing."""
    if value is None:
        into.pop(name, None)
    else:
        into[name] = value
