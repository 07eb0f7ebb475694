"""The registry of jobs, their flow groups and their leases."""

import hmac
from collections import deque
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from controller.access.options import UNLIMITED
from controller.registry.admission import (
    check_age,
    check_iteration,
    check_job,
    check_measurable,
    check_profile,
    check_transfer,
)
from controller.registry.errors import ConflictError, ExhaustedError, InvalidFieldError, NotOwnerError, UnknownJobError
from controller.registry.graph_admission import GraphAdmission
from controller.registry.group_registration import GroupRegistration
from controller.registry.job_log import JobLog
from controller.registry.jobs import FlowGroupInstance, RegisteredFlowGroup, RegisteredJob, StoredJob
from controller.registry.journal import Journal
from controller.registry.requests import FlowGroupRequest, InstanceRequest, JobRequest, TaskGraphRequest
from controller.registry.state import RegistryState
from controller.registry.usage import QuotasOf
from policies.flows import FlowKey
from policies.job import Profile
from topologies.addressing import FiveTuple
from topologies.fabric import Fabric
from topologies.printable import quoted

MAX_JOBS = 20_000
"""Bounds the memory; ten times what the controller is meant to serve."""
_MOST_WITHDRAWN = 10_000
"""Withdrawals by operators that are remembered."""


class Registry:
    """Jobs with their flow groups and leases.

    A method that refuses a request raises a RegistrationError and changes nothing. The caller passes the time; a lease
    ends ``lease_s`` seconds after it was last renewed. With a ``journal``, ``jobs`` shows a change only once ``commit``
    has returned, and the change is undone where that raises; ``instances`` shows changes at once. No tenant gets more
    than ``quotas_of`` gives it. Whoever has committed a change tells ``log``.

    Example::

        registry = Registry(fabric, lease_s=30.0)
        registry.register_job(JobRequest("gpt", ("h0", "h1"), 8, Profile(1.0, 0.5, 2.0)), now_s=0.0)
        await registry.commit()
    """

    def __init__(
        self,
        fabric: Fabric,
        lease_s: float,
        journal: Journal | None = None,
        quotas_of: QuotasOf = lambda _: UNLIMITED,
    ) -> None:
        self.fabric = fabric
        self.lease_s = lease_s
        self.log = JobLog()
        self._state = RegistryState(lease_s, journal, quotas_of)
        self._withdrawn: dict[tuple[str, str], str] = {}
        """By a job's name and owner token, the operator who has withdrawn it."""

    @property
    def jobs(self) -> tuple[RegisteredJob, ...]:
        """The jobs whose registration is committed, in order of their names."""
        return tuple(job for _, job in sorted(self._state.committed_jobs.items()))

    @property
    def jobs_unordered(self) -> tuple[RegisteredJob, ...]:
        """The same in no order, which is quicker."""
        return tuple(self._state.committed_jobs.values())

    def job(self, name: str) -> RegisteredJob | None:
        """The job of a name, once its registration is committed."""
        return self._state.committed_jobs.get(name)

    @property
    def silence_period_s(self) -> float:
        """How often ``record_silences`` is to be called."""
        return self._state.leases.silence_period_s

    @property
    def next_lease_end_s(self) -> float | None:
        """When the earliest lease ends; None where there is none."""
        return self._state.leases.next_end_s

    def lease_end_s(self, name: str) -> float:
        """When the lease of a registered job ends; 0 where its removal is not committed yet."""
        return self._state.leases.end_s(name) or 0.0

    def arrival_s(self, name: str) -> float | None:
        """When a job arrived; None where it is not registered."""
        job = self._state.jobs.get(name)
        return None if job is None else job.arrival_s

    def __contains__(self, job: object) -> bool:
        return job in self._state.jobs

    def authorise(self, name: str, owner_token: str, tenant: str = "") -> None:
        """Raise NotOwnerError where a job is registered under another token, or by another tenant."""
        known = self._state.jobs.get(name)
        if known is None:
            return
        if known.tenant != tenant:
            raise NotOwnerError(f"job {name!r} belongs to another tenant")
        if not hmac.compare_digest(known.owner_token.encode(), owner_token.encode()):
            raise NotOwnerError(f"owner_token: job {name!r} belongs to another client")

    def register_job(
        self, request: JobRequest, now_s: float, owner_token: str = "", age_s: float = 0.0, tenant: str = ""
    ) -> bool:  # nosec B107 # no token, which is not the token of anything
        """Register a job of a tenant that arrived ``age_s`` ago, and start its lease.

        Registering the same job again renews its lease, and replaces its profile where that differs.

        Returns:
            Whether anything but the lease has changed.

        Raises:
            InvalidFieldError: A field has a value that it cannot have.
            NotOwnerError: An operator has withdrawn the job.
            ConflictError: Another job has the name; or the job has no profile, and its traffic could not be told apart
                from another's.
            ExhaustedError: The job has no profile, and switches have no room to count its traffic; or the tenant's
                quotas are used up.
        """
        check_job(request, self.fabric)
        check_age(age_s)
        if (operator := self._withdrawn.get((request.name, owner_token))) is not None:
            raise NotOwnerError(f"name: job {request.name!r} was withdrawn by operator {operator!r}")
        known = self._state.jobs.get(request.name)
        if known is not None and replace(known.request, profile=request.profile) != request:
            raise ConflictError(f"name: another job is registered as {request.name!r}")
        if request.profile is None:
            if known is not None and (known.flow_groups or known.task_graph is not None):
                raise ConflictError(
                    f"profile: job {request.name!r} has flow groups, so that it must report its profile"
                )
            others = (job.request for name, job in self._state.jobs.items() if name != request.name)
            measured = [other for other in others if other.profile is None]
            own = {name for name, job in self._state.jobs.items() if job.tenant == tenant}
            check_measurable(request, measured, self.fabric, own)
        self._state.usage.check_job(tenant, known, 0.0 if request.profile is None else request.profile.work)
        if known is None:
            if len(self._state.jobs) >= MAX_JOBS:
                raise ExhaustedError(f"name: there is no room for more than {MAX_JOBS:,} jobs")
            self._state.change(request.name, RegisteredJob(request, now_s - age_s, owner_token, tenant=tenant))
        elif known.request != request:
            self._state.change(request.name, replace(known, request=request))
        self.renew(request.name, now_s)
        return known is None or known.request != request

    def report_profile(self, name: str, profile: Profile, admission: GraphAdmission | None = None) -> bool:
        """Replace the profile of a job, whether it was reported or measured, and its task graph by an admitted one.

        Returns whether either differs. Raises UnknownJobError, InvalidFieldError, ExhaustedError where the tenant's
        quotas are used up, and CommitError where groups that the graph sends are not stored after all.
        """
        job = self._job(name)
        check_profile(profile)
        graph = job.task_graph if admission is None else admission.graph_of(job, has_new_groups=False)
        if profile == job.request.profile and graph is job.task_graph:
            return False
        self._state.usage.check_job(job.tenant, job, profile.work)
        self._state.usage.check_task_graph(job, graph)
        self._state.change(name, replace(job, request=replace(job.request, profile=profile), task_graph=graph))
        return True

    def admitting(self, name: str, task_graph: TaskGraphRequest) -> GraphAdmission:
        """Begin to admit another task graph of a job, which ``report_profile`` makes part of it.

        Raises UnknownJobError.
        """
        return GraphAdmission(self._job(name), task_graph)

    def register_flow_groups(
        self, name: str, requests: Sequence[FlowGroupRequest], task_graph: TaskGraphRequest | None = None
    ) -> tuple[bool, tuple[RegisteredFlowGroup, ...]]:
        """Register flow groups of a job, and the task graph that sends all that it has; all or none.

        A graph replaces the one before. Without one, new groups drop that, since it does not send them.

        Returns:
            Whether any group or the graph is new, and all groups with their 5-tuples.

        Raises:
            UnknownJobError: The job is not registered.
            InvalidFieldError: A field has a value that it cannot have.
            ConflictError: A group of the name differs, or another flow holds a 5-tuple.
            ExhaustedError: No source port, or no room, is left, or the tenant's quotas are used up.
        """
        registration = self.registering(name, requests, task_graph)
        try:
            deque(registration.steps(), maxlen=0)
            registration.admit_graph()
            return registration.finish()
        except BaseException:
            registration.cancel()
            raise

    def registering(
        self, name: str, requests: Sequence[FlowGroupRequest], task_graph: TaskGraphRequest | None = None
    ) -> GroupRegistration:
        """Begin to do the same in steps. Raises UnknownJobError and ConflictError."""
        return GroupRegistration(self._state, self.fabric, name, requests, task_graph)

    def update_instances(self, name: str, reports: Mapping[str, InstanceRequest], now_s: float) -> bool:
        """Record which instances of flow groups have begun or ended, by group, and renew the lease.

        A report of an instance that is older than the newest is late, and changes nothing. Returns whether any report
        has changed anything. Raises UnknownJobError and InvalidFieldError.
        """
        groups = self._state.groups.of(self._job(name)).by_name
        for position, (group, instance) in enumerate(reports.items()):
            if group not in groups:
                raise InvalidFieldError(
                    f"instances[{position}].flow_group: job {name!r} has none named {quoted(group)}"
                )
            check_iteration(instance.iteration, f"instances[{position}].iteration")
            if instance.sent is not None:
                check_transfer(instance.sent.size_bytes, self.fabric, f"instances[{position}]")
        self.renew(name, now_s)
        newest = self.instances(name)
        is_change = False
        for group, instance in reports.items():
            known = newest.get(group)
            if instance.sent is not None and (known is None or known.iteration <= instance.iteration):
                self._state.sent.setdefault(name, {})[group] = instance.sent
            if known is None or known.iteration < instance.iteration:
                begun = FlowGroupInstance(instance.iteration, now_s, instance.has_ended)
            elif known.iteration == instance.iteration and instance.has_ended:
                begun = replace(known, has_ended=True)
            else:
                continue
            if begun != known:
                self._state.set_instance(name, group, begun)
                is_change = True
        return is_change

    def instances(self, name: str) -> Mapping[str, FlowGroupInstance]:
        """The newest instance of every flow group of a job that has begun one."""
        return self._state.instances.get(name, {})

    def sent_bytes(self, name: str) -> Mapping[str, int]:
        """What a job's flow groups that can send less than their templates say send now, as it has told last."""
        return {group: sent.size_bytes for group, sent in self._state.sent.get(name, {}).items()}

    def sent_reasons(self, name: str) -> Mapping[str, str]:
        """Why these groups send so much, in the job's words."""
        return {group: sent.reason for group, sent in self._state.sent.get(name, {}).items()}

    def change_source_ports(self, five_tuples: Mapping[FlowKey, FiveTuple]) -> frozenset[FlowKey]:
        """Give flows new 5-tuples; returns the flows that have theirs now.

        A flow stays as it is where it has left, chose its 5-tuple itself, or another flow holds the new one.
        """
        deque(self.releasing(), maxlen=0)
        changed: set[FlowKey] = set()
        for name in {key.job for key in five_tuples} & self._state.jobs.keys():
            job = self._state.jobs[name]
            groups = tuple(self._moved(job, group, five_tuples, changed) for group in job.flow_groups)
            if any(moved is not group for moved, group in zip(groups, job.flow_groups, strict=True)):
                self._state.change(name, replace(job, flow_groups=groups))
        return frozenset(changed)

    def renew(self, name: str, now_s: float) -> bool:
        """Renew the lease of a job; returns whether that is to be committed. Raises UnknownJobError."""
        self._job(name)
        return self._state.renew(name, now_s)

    def record_silences(self, now_s: float) -> None:
        """Record which jobs have been silent for long, so that the next controller knows."""
        self._state.record_silences(now_s)

    def deregister(self, name: str) -> bool:
        """Remove a job with its flow groups; returns False where it is not registered.

        Its 5-tuples are free for other jobs at once, although it takes ``releasing`` some time to give back many.
        """
        if name not in self._state.jobs:
            return False
        self._state.remove(name)
        return True

    def releasing(self) -> Iterator[None]:
        """Give back the 5-tuples of jobs that have left, one at a time. Several callers may take turns.

        Registrations and ``change_source_ports`` do what is left of it first.
        """
        return self._state.releasing()

    def withdraw(self, names: Sequence[str], operator: str) -> tuple[RegisteredJob, ...]:
        """Remove jobs for an operator, all or none; returns them.

        Their clients cannot register them again until the controller restarts, or ``readmit`` lets them. Raises
        UnknownJobError.
        """
        jobs = tuple(map(self._job, names))
        for job in jobs:
            if len(self._withdrawn) >= _MOST_WITHDRAWN:
                self._withdrawn.pop(next(iter(self._withdrawn)))
            self._withdrawn[job.request.name, job.owner_token] = operator
            self.deregister(job.request.name)
        return jobs

    def readmit(self, jobs: Iterable[RegisteredJob]) -> None:
        """Let the clients of withdrawn jobs register them again."""
        for job in jobs:
            self._withdrawn.pop((job.request.name, job.owner_token), None)

    def extend_leases(self, by_s: float) -> None:
        """Put off the end of all leases: nobody could have been heard for so long."""
        self._state.leases.extend(by_s)

    def expire(self, now_s: float, most: int | None = None) -> tuple[str, ...]:
        """Remove the jobs whose leases have ended, or the first of them; returns their names."""
        ended = self._state.leases.ended(now_s)[:most]
        for name in ended:
            self.deregister(name)
        return ended

    def commit(self, job: str | None = None) -> Awaitable[None]:
        """Commit all that was changed before this call, or what of it concerns a job.

        Returns at once where there is no journal.

        The result raises CommitError where the changes are undone instead.
        """
        return self._state.commit(job)

    def restore(self, jobs: Iterable[StoredJob], now_s: float) -> None:
        """Load jobs from the database into an empty registry; their leases go on from where they were."""
        self._state.restore(jobs, now_s)

    def use_fabric(self, fabric: Fabric, jobs: Iterable[RegisteredJob]) -> None:
        """Go on with another fabric, on which ``jobs`` are all that are registered, each the same but for its NICs.

        To be called while all changes are committed and no registration is under way.
        """
        self.fabric = fabric
        self._state.refit(jobs)

    def _job(self, name: str) -> RegisteredJob:
        if name not in self._state.jobs:
            raise UnknownJobError(f"job: {quoted(name)} is not registered")
        return self._state.jobs[name]

    def _moved(
        self,
        job: RegisteredJob,
        group: RegisteredFlowGroup,
        five_tuples: Mapping[FlowKey, FiveTuple],
        changed: set[FlowKey],
    ) -> RegisteredFlowGroup:
        """The group with the new 5-tuples that its flows may have; adds their keys to ``changed``."""
        flows = []
        for number, flow in enumerate(group.flows):
            key = FlowKey(job.request.name, group.name, number)
            five_tuple = five_tuples.get(key)
            if five_tuple is not None and flow.is_assigned and five_tuple not in self._state.source_ports:
                self._state.source_ports.release(flow.five_tuple, job.tenant)
                self._state.source_ports.take(five_tuple, key, job.tenant)
                changed.add(key)
                flow = replace(flow, five_tuple=five_tuple)
            flows.append(flow)
        # A group without changes stays the same object: the store writes only those that differ.
        is_same = all(moved is flow for moved, flow in zip(flows, group.flows, strict=True))
        return group if is_same else replace(group, flows=tuple(flows))
